# SPDX-License-Identifier: BSD-2-Clause
"""Looks at a room in Redis every few milliseconds and holds it to its limits, whichever nodes run it.

A look is one command, so it sees the room between two scripts and never within one. As the bucket of the pace holds `burst` at
most, gains `rate` a second and what is given back, and never is below nothing, between any two looks at one server
calls - refunds <= burst + rate * time holds exactly, by the room's clock; which in turn must not be faster than the server's.
"""

import threading
from collections import namedtuple

from .redis_client import RedisError

EVERY_SEC = 0.003
DOUBT_LOOKS = 100  # after so many it is asked whether another is the primary by now
FIELDS = "primary clock_ms ticked_ms calls refunds called entered active epoch"

Look = namedtuple("Look", FIELDS)


class Watch:
    """From `with` to its end. `find` says which server is the primary of the room; it may fail while there is none."""

    def __init__(self, find, room):
        self.find = find
        self.key = f"queue:room:{{{room}}}"
        self.series = []  # one for each epoch, and for each time that a server was found
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()

    @property
    def last(self):
        return self.series[-1][-1] if self.series and self.series[-1] else None

    def _run(self):
        while not self.stopped.is_set():
            try:
                server = self.find()
                with server.client(timeout_sec=2) as client:
                    self._look_on(client, server)
            except (OSError, RedisError, StopIteration):
                pass  # it died, does not answer, or has the room no more: whoever has it now is asked
            self.stopped.wait(EVERY_SEC)

    def _look_on(self, client, server):
        looks = []
        while not self.stopped.wait(EVERY_SEC):
            values = client("HMGET", self.key, *FIELDS.split())
            if None in values:
                return
            look = Look(values[0], *map(int, values[1:]))
            if not looks or look.epoch != looks[-1].epoch:
                looks = []
                self.series.append(looks)
            looks.append(look)
            if len(looks) % DOUBT_LOOKS == 0 and self.find() is not server:
                return

    # --- promises, when it is over

    def assert_pace(self, rate, burst):
        """net(t) = calls - refunds - rate * t never rises by more than the burst over any of its lows before."""
        looks = 0
        for series in self.series:
            low = None
            for look in series:
                net = 1000 * (look.calls - look.refunds) - rate * look.clock_ms
                low = net if low is None else min(low, net)
                assert net - low <= 1000 * burst, f"{(net - low) / 1000 - burst} calls too many at {look}"
            for before, now in zip(series, series[1:]):
                assert now.clock_ms - before.clock_ms <= now.ticked_ms - before.ticked_ms, f"time ran away: {before} {now}"
            looks += len(series)
        assert looks > 100, f"there were {looks} looks only"

    @property
    def most_inside(self):
        return max(look.called + look.entered + look.active for series in self.series for look in series)

    @property
    def epochs(self):
        """Those that the room has had, in order, each with the process that kept it then."""
        return list(dict.fromkeys((look.epoch, look.primary) for series in self.series for look in series))
