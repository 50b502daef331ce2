# SPDX-License-Identifier: BSD-2-Clause
"""The reference pages say what the code's own tables say."""

import os
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "reference"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The pages as the code of today makes them."""
    folder = tmp_path_factory.mktemp("reference")
    # A make of its own, not a part of the one that may have started this.
    env = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    subprocess.run(["make", "VARIANT=gcc", "build/gcc/reference"], cwd=ROOT, env=env, check=True)
    subprocess.run([ROOT / "build" / "gcc" / "reference", folder], check=True)
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.mark.parametrize("name", ["directives.md", "errors.md", "settings.md"])
def test_the_reference_pages_are_what_make_docs_writes_today(made, name):
    assert (PAGES / name).read_text() == made[name], f"docs/reference/{name} is stale: run `make docs`"


def test_there_is_no_reference_page_that_nobody_makes(made):
    assert {path.name for path in PAGES.iterdir()} == set(made)
