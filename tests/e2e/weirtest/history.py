# SPDX-License-Identifier: BSD-2-Clause
"""Everything that happened in a room, as the server itself wrote it down.

With `log_level="debug_core"` the log has a line for every operation and every tick of a room, written under the room's
lock: so the lines stand in the order of effects, whichever worker wrote them, and each says what the room's own clock
said. Of a room in Redis its server says as much (redis_account.py). A limit is checked against all of them, at every
instant and over every window; no client's clock and no luck in sampling comes into it.
"""

import re
from collections import namedtuple
from fractions import Fraction

LINE = re.compile(r'weir room "([^"]+)" (at:\d+ .*)$', re.MULTILINE)
TICK_MS = 100
# A tick counts this much time at most, however late it comes.
TICK_MOST_MS = 1000
# Nodes tick by clocks of their own, and their ticks take their time to the server.
TICK_LEAST_MS_OF_REDIS = 50

FIELDS = "at clock settings issued waiting away called entered active calls refunds"


class Moment(namedtuple("Moment", FIELDS)):
    """The room after an operation or a tick. `at` is the machine's monotonic clock, `clock` the room's; in milliseconds."""

    __slots__ = ()

    @property
    def inside(self):
        return self.called + self.entered + self.active


class Step(namedtuple("Step", "before now")):
    """From one moment to the next. A tick lets time pass, then ends what is over, then calls; nothing else moves the clock."""

    __slots__ = ()

    @property
    def is_tick(self):
        return self.now.clock != self.before.clock

    @property
    def elapsed_ms(self):
        return self.now.clock - self.before.clock

    @property
    def calls(self):
        return self.now.calls - self.before.calls

    @property
    def refunds(self):
        return self.now.refunds - self.before.refunds


class Pace(namedtuple("Pace", "per_ms most")):
    """A bucket that gains `per_ms` calls a millisecond and holds `most`. Fractions: nothing is rounded here either."""

    __slots__ = ()

    @classmethod
    def of_rate(cls, rate, burst=None):
        per_ms = Fraction(str(rate)) / 1000
        tick = TICK_MS * per_ms
        return cls(per_ms, Fraction(burst) if burst else max(1 + tick, 2 * tick))

    @classmethod
    def of_batch(cls, batch, interval_sec):
        return cls.of_rate(Fraction(batch, interval_sec))


def logged(server, room):
    found = (match for match in LINE.finditer(server.log()) if match[1] == room)
    return [[int(field.split(":")[1]) for field in match[2].split()] for match in found]


class History:
    """All moments of a room since nginx started, the empty room first."""

    def __init__(self, server, room):
        self.tick_least_ms = TICK_MS if not server.account else TICK_LEAST_MS_OF_REDIS
        moments = [Moment(*told) for told in (server.account.moments(room) if server.account else logged(server, room))]
        assert moments, f"nothing happened in {room}: is the log_level debug_core?"
        # An operation that changed nothing, a poll mostly, is no moment of its own.
        self.moments = [moments[0]._replace(**dict.fromkeys(FIELDS.split()[3:], 0))]
        self.moments += [now for before, now in zip(self.moments + moments, moments) if now[1:] != before[1:]]

    @property
    def steps(self):
        return [Step(before, now) for before, now in zip(self.moments, self.moments[1:])]

    @property
    def ticks(self):
        return [step for step in self.steps if step.is_tick]

    @property
    def last(self):
        return self.moments[-1]

    def first_where(self, condition):
        return next(moment for moment in self.moments if condition(moment))

    # --- promises

    def assert_conserved(self):
        """Nobody comes from nowhere, and nobody who is gone comes back."""
        gone = [moment.issued - moment.waiting - moment.away - moment.inside for moment in self.moments]
        assert gone == sorted(gone) and gone[0] == 0

    def assert_at_most(self, what, most):
        """`what` (a figure, such as "inside") at every instant. Within a tick people end before others are called."""
        for moment in self.moments:
            assert getattr(moment, what) <= most, moment

    def assert_pace(self, pace):
        """In every window, also of no length: calls - refunds <= burst + rate * its length.

        With net(t) = calls - refunds - rate * t that is: net never rises by more than the burst over any of its lows.
        The low of a tick lies between its refunds and its calls.
        """
        low = -pace.per_ms * self.moments[0].clock
        for before, now in self.steps:
            passed = pace.per_ms * now.clock
            low = min(low, before.calls - now.refunds - passed)
            over = now.calls - now.refunds - passed - low - pace.most
            assert over <= 0, f"{float(over)} calls too many at {now}, after {before}"

    def assert_never_idle(self, pace, max_active=0, max_called=0):
        """While someone waits and nothing forbids it a call comes: no two ticks on end leave such a one waiting."""
        credit, idle = pace.most, 0
        for step in self.steps:
            credit = min(pace.most, credit + pace.per_ms * step.elapsed_ms)
            credit = min(pace.most, credit + step.refunds) - step.calls
            now = step.now
            is_free = credit >= 1 and not (max_active and now.inside >= max_active) \
                and not (max_called and now.called >= max_called)
            if not (is_free and now.waiting):
                idle = 0
            elif step.is_tick:
                idle += 1
            assert idle < 2, f"{now.waiting} wait, and {now.inside} are inside, {float(credit)} may be called: {step}"

    def assert_one_clock(self):
        """Time passes once for a room, as fast as the machine's, however many workers tick it."""
        ticks = self.ticks
        for before, tick in zip(ticks, ticks[1:]):
            passed_ms = tick.now.at - before.now.at
            assert passed_ms >= self.tick_least_ms, f"a tick too soon: {before} {tick}"
            assert tick.elapsed_ms == min(passed_ms, TICK_MOST_MS), (before, tick)
