# SPDX-License-Identifier: BSD-2-Clause
"""Tests of what surrounds the module: the build, the scripts, the demo. They use the harness of the end-to-end tests."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "e2e"))

from demo import Demo  # noqa: E402
from weirtest import free_port  # noqa: E402
from weirtest.browser import browsers  # noqa: E402


@pytest.fixture
def demo(tmp_path):
    started = []

    def start(port=None, **wishes):
        started.append(Demo(tmp_path / f"data{len(started)}", port or free_port(), **wishes))
        return started[-1]

    yield start

    for one in started:
        one.end()


@pytest.fixture
def browser(tmp_path):
    with browsers(tmp_path) as start:
        yield start
