# SPDX-License-Identifier: BSD-2-Clause
"""Stores for the tests that run on any engine, of the kind that WEIR_STORE names (redis.BACKENDS; `local` is a zone).

A server with a zone of its own shares it with no other server, so each one gets a store of its own, wiped. To start one for each
test would take longer than most tests; so they are given back and used again.
"""

import os
from contextlib import contextmanager

from .redis import BACKENDS


class Pool:
    def __init__(self, backend):
        self.backend = backend
        self.has_stores = backend != "local"
        self.free, self.taken = [], []

    def take(self):
        """A store that knows of no room; None where rooms are kept in a zone."""
        if not self.has_stores:
            return None
        store = self.free.pop() if self.free else BACKENDS[self.backend]().start()
        store.wipe()
        self.taken.append(store)
        return store

    @contextmanager
    def borrowing(self):
        """Gives back what was taken within."""
        before = len(self.taken)
        try:
            yield
        finally:
            self.free += self.taken[before:]
            del self.taken[before:]

    def stop(self):
        for store in self.free + self.taken:
            store.stop()


pool = Pool(os.environ.get("WEIR_STORE", "local"))
