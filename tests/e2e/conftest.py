# SPDX-License-Identifier: BSD-2-Clause
"""Fixtures of the end-to-end tests.

    def test_something(weir):
        server = weir(rooms={"concert": "rate=1 burst=1"}, gate="concert")
        token = server.api().ticket("concert")
"""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from weirtest import Nginx, Shop  # noqa: E402
from weirtest.browser import browsers  # noqa: E402
from weirtest.redis_pool import pool  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "local: about the zone, its memory, its locks or its journal, which a store has none of")
    config.addinivalue_line("markers", "one_store: about the page or the shop: of all stores a standalone one is enough")
    config.addinivalue_line("markers", "once: starts the stores that it needs itself, or asks no engine at all")


def pytest_collection_modifyitems(config, items):
    """With WEIR_STORE every server of a test keeps its rooms in such a store, and only tests run for which it may be any."""
    backend = os.environ.get("WEIR_STORE")
    if backend:
        markers = ("local", "once") if backend in ("local", "standalone") else ("local", "once", "one_store")
        left_out = [item for item in items if any(map(item.get_closest_marker, markers))]
        items[:] = [item for item in items if item not in set(left_out)]
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="session", autouse=True)
def stores():
    """Those that tests were given (WEIR_STORE) live as long as the tests do."""
    yield
    pool.stop()


@pytest.fixture(scope="module", autouse=True)
def stores_of_module():
    """A module's own servers give theirs back when it is over."""
    with pool.borrowing():
        yield


@pytest.fixture
def weir(tmp_path):
    """Makes and starts a server (`start=False` only makes it). All are stopped, and looked at, when the test is over."""
    servers = []

    def make(start=True, **kwargs):
        server = Nginx(tmp_path / f"nginx{len(servers)}", **kwargs)
        servers.append(server)
        return server.start() if start else server

    with pool.borrowing():
        yield make
        stop_all(servers)


def stop_all(servers):
    problems = []
    for server in servers:
        try:
            server.stop()
        except AssertionError as problem:
            problems.append(str(problem))
    assert not problems, "\n".join(problems)


@pytest.fixture(scope="module")
def shop():
    """What stands behind the gates of a module's tests. Those that need another kind have a fixture of this name."""
    shop = Shop()
    yield shop
    shop.close()


@pytest.fixture
def browser(tmp_path):
    with browsers(tmp_path) as start:
        yield start
