# SPDX-License-Identifier: BSD-2-Clause
"""People before several nodes of one room, while something happens to the Redis behind them, and an account of how they fared.

Each request goes to any of the nodes, or to the one that served before. Who is told "not now" (503), gets no answer or loses the
connection asks again, perhaps elsewhere, as a browser behind a load balancer would. They live in a process of their own (hall.py
tells why).

Where nothing may be lost the people are those of people.py, who hold the room to every word. Where a server may lose its last
moments they are Survivors: a turn may be taken back and a position may rise then, and what must not happen is counted.
"""

import asyncio
import json
import multiprocessing
import random
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from urllib.parse import quote

from .crowd import exchange
from .people import ANSWER_SEC, Person
from .ticket import place_of
from .wait import wait_until

ROOM = "hall"
MAX_ACTIVE, RATE, BURST = 6, 15, 5  # so that at times the slots are short, and at times the pace
ARRIVE_SEC, SESSION_SEC = 3, 60
SETTINGS = (f"rate={RATE} burst={BURST} max_active={MAX_ACTIVE} seen_ttl_sec=300 "
            f"arrive_ttl_sec={ARRIVE_SEC} session_ttl_sec={SESSION_SEC}")
GATE = "/shop/"  # gated by the room, and closed while its engine is away
IDENTITY = "X-User-Id"  # believed by the nodes

CONNECTIONS = 12
IN_LINE = 4  # people of each connection at a time
AWAY_SEC = 60
RETRY_SEC = 0.02
AVOIDED_SEC = 2
PROBE_SEC = 0.02
DRAIN_SEC = 45
RECENT_SEC = 1  # for so long a gate may go by what it was told before


@dataclass
class Account:
    """What became of everybody. Durations are in seconds."""

    tickets: int = 0
    lost: int = 0  # acknowledged, and unknown when it is over
    doubled: int = 0  # a number of two people, or two places of one
    double_passes: int = 0  # somebody got a second one
    passes: int = 0
    slots_exceeded: int = 0  # most people inside at a time, beyond the slots
    inside_most: int = 0
    taken_back: int = 0  # turns
    unknown: int = 0  # answers that a ticket or a pass is none, while it happened
    thrown_out: int = 0  # people whose pass did not open the gate any more when it was over
    refusals: int = 0  # requests that were told "not now"
    unanswered: int = 0  # requests that were given up
    refused_longest: float = 0.0  # joins: from the first try to the answer, where the first try was refused
    join_longest: float = 0.0  # the slowest join that was answered at once
    problems: list = field(default_factory=list)

    def __str__(self):
        return (f"{self.tickets} tickets, {self.passes} passes: lost {self.lost}, doubled {self.doubled}, "
                f"double passes {self.double_passes}, slots exceeded by {self.slots_exceeded} (most inside {self.inside_most}); "
                f"turns taken back {self.taken_back}, thrown out {self.thrown_out}; meanwhile unknown {self.unknown}, "
                f"{self.refusals} refusals, {self.unanswered} unanswered, joins refused for {self.refused_longest:.2f} s, "
                f"slowest other {self.join_longest:.2f} s")


class Visitors:
    """The people, from `with` to its end; then they all go in and leave, and `account` is there."""

    def __init__(self, doors, seed, may_lose=False, may_stay=False, answer_sec=ANSWER_SEC):
        self.answers = multiprocessing.Value("Q", 0)
        self.joins = multiprocessing.Value("Q", 0)
        self.is_over = multiprocessing.Event()
        self.ours, theirs = multiprocessing.Pipe()
        hall = (doors, seed, may_lose, may_stay, answer_sec, self.answers, self.joins, self.is_over)
        self.process = multiprocessing.Process(target=_live, args=(hall, theirs))
        self.account = None

    def __enter__(self):
        self.process.start()
        return self

    def wait_for_answers(self, more):
        until = self.answers.value + more
        self.wait_until(lambda: self.answers.value >= until, f"{more} answers")

    def wait_for_joins(self, more):
        until = self.joins.value + more
        self.wait_until(lambda: self.joins.value >= until, f"{more} joins")

    def wait_until(self, condition, what, timeout_sec=30):
        """The same as everywhere, but that it is over when one of the people has a complaint."""
        wait_until(lambda: self.ours.poll() or condition(), timeout_sec, what, 0.002)
        assert not self.ours.poll(), self.ours.recv()[0]

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self.is_over.set()
                assert self.ours.poll(DRAIN_SEC + AWAY_SEC), "the people hang"
                problem, self.account = self.ours.recv()
                assert not problem, problem
        finally:
            self.process.kill()
            self.process.join()


def _live(hall, pipe):
    hall = Hall(*hall)
    try:
        asyncio.run(hall.live())
        pipe.send((None, hall.account))
    except BaseException:
        pipe.send((traceback.format_exc(), hall.account))


class Roamer:
    """One browser: a connection to each node, one request at a time."""

    def __init__(self, hall):
        self.hall = hall
        self.streams = {}
        self.avoided = {}  # nodes that gave no answer: until when nothing is asked of them, as a load balancer would

    def choose_door(self):
        now, doors = time.monotonic(), self.hall.doors
        return self.hall.chance.choice([door for door in doors if self.avoided.get(door, now) <= now] or doors)

    async def attempt(self, door, method, path, body, headers):
        """None: not now."""
        try:
            answer = await asyncio.wait_for(self._exchange(door, method, path, body, headers), self.hall.answer_sec)
        except asyncio.TimeoutError:
            self.hall.account.unanswered += 1
            self._give_up(door)
            return None
        except (OSError, EOFError):
            self._give_up(door)
            return None
        if answer.status != 503:
            return answer
        assert answer.error_code == "ENGINE_UNAVAILABLE" and int(answer.header("retry-after")) > 0, (method, path, answer)
        self.hall.account.refusals += 1
        return None

    async def _exchange(self, door, method, path, body, headers):
        if door not in self.streams:
            self.streams[door] = await open_door(door)
        answer = await exchange(self.streams[door], method, path, body, headers)
        if answer.header("connection") == "close":
            self._close(door)
        return answer

    def _give_up(self, door):
        self._close(door)
        self.avoided[door] = time.monotonic() + AVOIDED_SEC

    def _close(self, door):
        streams = self.streams.pop(door, None)
        if streams:
            streams[1].close()


async def open_door(door):
    """A node is known by its port on this machine, or by the path of its socket."""
    if isinstance(door, int):
        return await asyncio.open_connection("127.0.0.1", door)
    return await asyncio.open_unix_connection(door)


class Visitor:
    """Who sits before the browser, known by name wherever they go: any node, or one that they stay with while it serves."""

    def __init__(self, roamer, name):
        self.roamer = roamer
        self.name = name
        self.door = None

    async def call(self, method, path, body=None, headers=None):
        until = time.monotonic() + AWAY_SEC
        while True:
            answer = await self.attempt(method, path, body, headers)
            if answer is not None:
                return answer
            assert time.monotonic() < until, f"{method} {path}: no answer but \"not now\" for {AWAY_SEC} s"
            await asyncio.sleep(RETRY_SEC)

    async def attempt(self, method, path, body=None, headers=None):
        door = self.door or self.roamer.choose_door()
        answer = await self.roamer.attempt(door, method, path, body, {**(headers or {}), IDENTITY: self.name})
        self.door = door if answer is not None and self.roamer.hall.may_stay else None
        return answer


class Survivor(Person):
    """Somebody whose server may lose its last moments: the ticket stays, and so does a pass that was handed out."""

    account = None
    is_unknown = False

    async def join(self):
        answer = await self.caller.call("POST", "/api/v1/queue/join", {"event_id": self.room}, {"Idempotency-Key": self.name})
        assert answer.status == 202, (self, answer)
        said = answer.json()
        if self.token is None:
            self.token = said["waiting_token"]
            self.count = place_of(self.token).count
            self.is_ready = said["ready_for_entry"]

    async def poll(self):
        answer = await self.caller.call("GET", f"/api/v1/queue/status?token={quote(self.token)}")
        if self._is_unknown(answer):
            return
        assert answer.status == 200, (self, answer)
        said = answer.json()
        if self.granted and said["status"] != "ready":
            return  # the gate will tell
        self._see(said["ready_for_entry"])
        self.position = said["position"]

    async def enter(self):
        answer = await self.caller.call("POST", "/api/v1/queue/enter", {"waiting_token": self.token})
        if self._is_unknown(answer):
            return False
        if answer.error_code == "NOT_READY":
            self._see(bool(self.granted))
            return False
        assert answer.status == 200, (self, answer)
        if self.granted not in (None, answer.body):
            self.account.double_passes += 1
            self.account.problems.append(f"{self} has two passes: {self.granted} {answer.body}")
        self.granted = answer.body
        self.is_ready = True
        return True

    def _see(self, is_ready):
        self.account.taken_back += self.is_ready and not is_ready
        self.is_ready = is_ready

    def _is_unknown(self, answer):
        """Who is asked may be cut off from who gave the ticket. When it is over that is no excuse."""
        self.is_unknown = answer.status == 404
        self.account.unknown += self.is_unknown
        return self.is_unknown


class Hall:
    def __init__(self, doors, seed, may_lose, may_stay, answer_sec, answers, joins, is_over):
        self.doors = doors
        self.chance = random.Random(seed)
        self.may_lose, self.may_stay = may_lose, may_stay
        self.answer_sec = answer_sec
        self.answers, self.joins, self.is_over = answers, joins, is_over
        self.account = Account()
        self.people, self.gone, self.probed = [], [], []
        self.inside_until = {}

    async def live(self):
        callers = [Roamer(self) for _ in range(CONNECTIONS)]
        await asyncio.gather(self.probe(), *(self.visits(caller) for caller in callers))
        try:
            await asyncio.wait_for(self.go_through(callers), DRAIN_SEC)
        except asyncio.TimeoutError:
            here = self.still_here()
            raise AssertionError(f"after {DRAIN_SEC} s {len(here)} are still here, such as {here[:3]}: {self.account}") from None
        self.count_tickets()

    # --- while it happens

    async def visits(self, caller):
        line = []
        while not self.is_over.is_set():
            if len(line) < IN_LINE:
                line.append(await self.newcomer(caller))
            person = self.chance.choice(line)
            await self.step(person)
            self.answers.value += 1
            if person.is_over:
                line.remove(person)

    async def newcomer(self, caller):
        name = f"visitor {len(self.people)}"
        person = (Survivor if self.may_lose else Person)(Visitor(caller, name), ROOM, name)
        person.account = self.account
        person.is_over = False
        self.people.append(person)
        await person.join()
        self.joins.value += 1
        return person

    async def step(self, person):
        what = self.chance.random()
        if person.granted:
            if what < 0.05:
                await self.leave(person)
            elif what < 0.35:
                await self.enter(person)
            elif what < 0.45:
                await person.poll()
            else:
                await self.visit_shop(person)
        elif what < 0.03:
            await self.leave(person)
        elif person.is_ready or what < 0.2:
            await self.enter(person)
        elif what < 0.3:
            await person.join()
        elif what < 0.35:
            await person.say_goodbye()
            await person.poll()
        else:
            await person.poll()

    async def enter(self, person):
        sent, had = time.monotonic(), person.granted
        if await person.enter() and not had:
            self.account.passes += 1
            self.is_inside(person, sent + ARRIVE_SEC)
            await self.visit_shop(person)

    async def visit_shop(self, person):
        sent = time.monotonic()
        token = json.loads(person.granted)["reservation_token"]
        answer = await person.caller.call("GET", GATE, None, {"x-queue-entry-token": token, "Accept": "application/json"})
        if answer.status == 200:
            self.is_inside(person, sent + SESSION_SEC - RECENT_SEC)
            return
        assert answer.status == 403, (person, answer)
        assert self.may_lose, f"{person} was inside: {answer}"
        self.account.unknown += 1
        self.inside_until.pop(person, None)

    def is_inside(self, person, until):
        """For so long nobody but themselves can have ended it: a room's clock is never faster than ours."""
        self.inside_until[person] = until
        now = time.monotonic()
        inside = sum(until > now for until in self.inside_until.values())
        self.account.inside_most = max(self.account.inside_most, inside)
        self.account.slots_exceeded = max(self.account.slots_exceeded, inside - MAX_ACTIVE)

    async def leave(self, person):
        self.inside_until.pop(person, None)  # from here on the server may have given the slot away
        person.is_over = True
        self.gone.append(person)
        await person.leave()

    async def probe(self):
        """Newcomers who leave again, and let nobody wait for that: how long are they refused?"""
        caller, probed = Roamer(self), asyncio.Queue()
        leaves = asyncio.create_task(self.see_off(probed))
        while not self.is_over.is_set():
            name = f"probe {len(self.probed)}"
            person = Person(Visitor(caller, name), ROOM, name)
            await self.join_at_last(person)
            self.probed.append(place_of(person.token))
            self.gone.append(person)
            probed.put_nowait(person)
            await asyncio.sleep(PROBE_SEC)
        probed.put_nowait(None)
        await leaves

    async def join_at_last(self, person):
        began, tries = time.monotonic(), 1
        while (answer := await person.caller.attempt("POST", "/api/v1/queue/join", {"event_id": ROOM})) is None:
            tries += 1
            await asyncio.sleep(RETRY_SEC)
        assert answer.status == 202, answer
        person.token = answer.json()["waiting_token"]
        took = time.monotonic() - began
        if tries > 1:
            self.account.refused_longest = max(self.account.refused_longest, took)
        else:
            self.account.join_longest = max(self.account.join_longest, took)

    async def see_off(self, probed):
        caller = Roamer(self)
        while person := await probed.get():
            person.caller.roamer = caller
            await person.leave()

    # --- when it is over

    async def go_through(self, callers):
        await self.settle(callers)
        await self.drain()

    async def settle(self, callers):
        """A leave may have been lost as well: whoever has gone says so again. Then everybody else asks once more."""
        if self.may_lose:
            await each_of(callers, self.gone, lambda person: person.leave())
        await each_of(callers, self.still_here(), self.ask_again)

    def still_here(self):
        return [person for person in self.people if not person.is_over]

    async def ask_again(self, person):
        """Their ticket is good, and so is their pass; and whatever they are given when they join once more is the same place."""
        await person.poll()
        if self.may_lose and person.is_unknown:
            self.account.lost += not person.granted
            self.account.thrown_out += bool(person.granted)
            self.account.problems.append(f"{person} is lost: {person.token}")
            person.is_over = True
            return
        answer = await person.caller.call("POST", "/api/v1/queue/join", {"event_id": ROOM})
        assert answer.status == 202, (person, answer)
        token = answer.json()["waiting_token"]
        if token == person.token:
            return
        assert self.may_lose, f"{person} was given a second ticket"
        standings = [(await self.standing(person, held)) for held in (token, person.token, token)]
        if standings[1] not in (standings[0], standings[2]):
            self.account.doubled += 1
            self.account.problems.append(f"{person} has two places: {standings}")

    async def standing(self, person, token):
        answer = await person.caller.call("GET", f"/api/v1/queue/status?token={quote(token)}")
        said = answer.json()
        return answer.status, said.get("status"), said.get("position"), said.get("ready_for_entry")

    async def drain(self):
        """Asks everybody, last place first. Who stands before somebody that was seen called must have been called, too."""
        while waiting := sorted(self.still_here(), key=lambda person: place_of(person.token), reverse=True):
            called = None
            for person in waiting:
                await person.poll()
                if not self.may_lose:
                    assert not called or person.is_ready, f"{called} was called before {person}"
                if person.is_ready:
                    called = called or person
                    await self.enter(person)
                    await self.leave(person)
            await asyncio.sleep(RETRY_SEC)

    def count_tickets(self):
        places = [place_of(person.token) for person in self.people] + self.probed
        self.account.tickets = len(places)
        twice = [place for place, times in Counter(places).items() if times > 1]
        self.account.doubled += len(twice)
        if twice:
            self.account.problems.append(f"given twice: {twice}")
        if self.may_lose:
            return
        assert len({place.epoch for place in places}) == 1, "a new epoch began though nothing was lost"
        # A join that its visitor gave up may be carried out when they have gone: a place that nobody knows of.
        if not self.account.unanswered:
            assert sorted(place.count for place in places) == list(range(1, len(places) + 1)), "a place was lost"


async def each_of(callers, people, what):
    """Everybody does it, as many at a time as there are connections: nobody shares theirs."""
    people = list(people)

    async def one(caller):
        while people:
            person = people.pop()
            person.caller.roamer = caller
            await what(person)

    await asyncio.gather(*(one(caller) for caller in callers))
