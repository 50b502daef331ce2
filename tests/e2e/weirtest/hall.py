# SPDX-License-Identifier: BSD-2-Clause
"""A hall and the people who go through it while something happens to the server.

They live in a process of their own, so that they are not slowed down by what is done to the server; they check all that they are
told (people.py), and together they watch the limits.
"""

import asyncio
import multiprocessing
import random
import time
import traceback

from .people import Caller, Person
from .wait import wait_until

ROOM = "hall"
MAX_ACTIVE, RATE, BURST = 20, 150, 20
SETTINGS = f"rate={RATE} burst={BURST} max_active={MAX_ACTIVE} seen_ttl_sec=300"
CONNECTIONS = 30
DRAIN_SEC = 60


class Crowd:
    """The people, in a process of their own from `with` to its end. Then they all go in, in order, and leave."""

    def __init__(self, port, seed, caller=Caller):
        self.answers = multiprocessing.Value("Q", 0)
        self.is_over = multiprocessing.Event()
        self.ours, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=live, args=(port, seed, caller, self.answers, self.is_over, theirs))

    def __enter__(self):
        self.process.start()
        return self

    def wait_for_answers(self, more):
        """Somebody is answered within seconds, always: else a lock is held for ever."""
        until = self.answers.value + more
        wait_until(lambda: self.answers.value >= until or self.ours.poll(), 20, f"{more} answers", 0.0005)
        assert not self.ours.poll(), self.ours.recv()

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self.is_over.set()
                assert self.ours.poll(DRAIN_SEC), f"the line did not drain within {DRAIN_SEC} s"
                problem, self.broken = self.ours.recv()
                assert not problem, problem
        finally:
            self.process.kill()
            self.process.join()


def live(port, seed, caller, answers, is_over, pipe):
    """What the process does. Sends (what went wrong or None, connections that broke)."""
    hall = Hall(port, seed, caller, answers, is_over)
    try:
        asyncio.run(hall.live())
        pipe.send((None, sum(caller.broken for caller in hall.callers)))
    except BaseException:
        pipe.send((traceback.format_exc(), 0))


class Hall:
    def __init__(self, port, seed, caller, answers, is_over):
        self.chance = random.Random(seed)
        self.answers, self.is_over = answers, is_over
        self.callers = [caller(port) for _ in range(CONNECTIONS)]
        self.people, self.inside, self.calls = [], set(), 0
        self.began = time.monotonic()

    async def live(self):
        await asyncio.gather(*(self.visits(caller) for caller in self.callers))
        await self.drain()
        counts = sorted(person.count for person in self.people)
        assert counts == list(range(1, len(counts) + 1)), "a place was lost or given twice"

    async def visits(self, caller):
        """One after the other over this connection, four in line at a time."""
        line = []
        while not self.is_over.is_set():
            if len(line) < 4:
                line.append(await self.newcomer(caller))
            person = self.chance.choice(line)
            await self.step(person)
            self.answers.value += 1
            if person.has_left:
                line.remove(person)

    async def newcomer(self, caller):
        person = Person(caller, ROOM, f"visitor {len(self.people)}")
        person.has_left = False
        self.people.append(person)
        await person.join()
        self.note(person)
        return person

    async def step(self, person):
        """Mostly what changes much: a poll that was cut short would hardly show."""
        what = self.chance.random()
        if what < 0.4:
            await self.leave(person)
        elif person.is_ready or what < 0.5:
            await person.enter()
        elif what < 0.6:
            await person.join()
        elif what < 0.7:
            await person.say_goodbye()
            await person.poll()
        else:
            await person.poll()
        self.note(person)

    async def leave(self, person):
        self.calls -= person in self.inside and not person.granted  # the turn is given back to the pace
        self.inside.discard(person)  # from here on the server may have given the slot away
        person.has_left = True
        await person.leave()

    def note(self, person):
        """The limits, as far as they can be seen from outside: of those told, and not yet gone."""
        if person.has_left or not person.is_ready or person in self.inside:
            return
        self.inside.add(person)
        self.calls += 1
        assert len(self.inside) <= MAX_ACTIVE, self.inside
        elapsed = time.monotonic() - self.began
        assert self.calls <= BURST + RATE * elapsed + 1, f"{self.calls} calls in {elapsed} s"

    async def drain(self):
        """Asks everybody, last place first. Who stands before somebody that was seen called must have been called, too."""
        waiting = {person.count: person for person in self.people if not person.has_left}
        while waiting:
            called = 0
            for count in sorted(waiting, reverse=True):
                person = waiting[count]
                await person.poll()
                assert not called or person.is_ready, f"{called} was called before {person}"
                self.note(person)
                if person.is_ready:
                    called = max(called, count)
                    assert await person.enter()
                    await self.leave(waiting.pop(count))
