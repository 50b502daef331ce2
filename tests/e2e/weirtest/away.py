# SPDX-License-Identifier: BSD-2-Clause
"""A server whose engine is away.

With a zone: in the middle of an upgrade, when the old nginx has the journal still and the new one answers everything. With a
store: its servers are stopped where they stand, and nobody hangs up.
"""

import signal
from contextlib import contextmanager
from pathlib import Path

from .daemon import Daemon
from .nginx import Nginx
from .redis_pool import pool
from .wait import wait_until


@contextmanager
def engine_away(folder, http="", before=lambda server: None, **kwargs):
    """The server, of one worker, with `come_back` on it. `before` is called with it while all is well."""
    away = store_away if pool.has_stores else journal_away
    with away(folder, http, before, **kwargs) as server:
        wait_until(lambda: server.client().get("/readyz").status == 503, 10, "an engine that is away")
        yield server


@contextmanager
def journal_away(folder, http, before, **kwargs):
    server = Daemon(folder, http="weir_journal journal;" + http, workers=1, **kwargs)
    [old_worker] = server.start().worker_pids()
    before(server)
    old = server.begin_upgrade()
    old.send_signal(signal.SIGWINCH)
    wait_until(lambda: not Path(f"/proc/{old_worker}").exists(), 20, "the end of the old worker")

    def come_back():
        old.send_signal(signal.SIGQUIT)
        old.wait()

    server.come_back = come_back
    yield server
    server.stop()


@contextmanager
def store_away(folder, http, before, **kwargs):
    server = Nginx(folder, http=http, workers=1, **kwargs)
    server.write_conf(store=f"{server.store.directive} timeout=1s")  # for all that will not be answered
    server.start()
    before(server)
    for process in server.store.servers:
        process.pause()

    def come_back():
        for process in server.store.servers:
            process.resume()

    server.come_back = come_back
    try:
        yield server
    finally:
        come_back()
    server.stop()
