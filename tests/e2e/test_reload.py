# SPDX-License-Identifier: BSD-2-Clause
"""Reloads in the middle of it all: nobody loses anything, and what the file says holds from then on. (Failure N: see the
list of known failures of systems like this.)"""

import asyncio
import os
import random
import threading
from pathlib import Path

from weirtest import Caller, Person, at_once, place_of, wait_until

RELOADS = 5
OPEN = "rate=100000 burst=1000 seen_ttl_sec=300"


def test_reloads_under_load_lose_nobody(weir):
    """Failure 13 (a place that is lost), with five reloads while a crowd joins, polls, enters and leaves."""
    server = weir(workers=3, rooms={"hall": f"{OPEN} max_active=50"})
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    crowd = Crowd(server.port, seed)
    with crowd:
        for number in range(RELOADS):
            crowd.wait_for_joins(150)
            # Something else is said each time, so that each reload really changes the room.
            server.write_conf(rooms={"hall": f"{OPEN} max_active={50 + number}", f"new{number}": "mode=hold"})
            server.reload()
            assert server.api().join(f"new{number}").status == 202
    counts = sorted(person.count for person in crowd.people)
    assert counts == list(range(1, len(counts) + 1)), "a place was lost or given twice"
    wait_until(lambda: len(server._children()) == server.workers, 10, "the end of the old workers")


def test_everybody_finds_their_own_place_and_pass_after_reloads(weir):
    """Failures 4 (numbers that start again), 21 (an enter that cannot be repeated) and 49 (stale answers)."""
    server = weir(workers=3, rooms={"line": "mode=hold seen_ttl_sec=300", "hall": f"{OPEN} max_active=100"})
    line = tickets(server, "line", 200)
    hall = tickets(server, "hall", 120)
    passes = [server.api().enter(token).body for token in hall[:60]]
    for _ in range(3):
        server.reload()
        said = at_once(server.port, [("GET", f"/api/v1/queue/status?token={token}") for token in line])
        assert [answer.json()["position"] for answer in said] == list(range(1, 201))
    assert [server.api().enter(token).body for token in hall[:60]] == passes
    ready = [server.api().status(token).json()["ready_for_entry"] for token in hall]
    assert ready == [True] * 100 + [False] * 20
    assert place_of(server.api().ticket("line")).count == 201


def test_settings_that_change_hold_for_those_in_line(weir):
    """Failure 45 (a change that needs more than a reload), and a limit that is lowered turns nobody out."""
    server = weir(workers=3, rooms={"hall": f"{OPEN} max_active=10"})
    line = tickets(server, "hall", 40)

    def called():
        said = at_once(server.port, [("GET", f"/api/v1/queue/status?token={token}") for token in line])
        return [answer.json()["ready_for_entry"] for answer in said].count(True)

    assert called() == 10
    server.write_conf(rooms={"hall": f"{OPEN} max_active=25"})
    server.reload()
    wait_until(lambda: called() == 25, 5, "the calls for the new slots")
    server.write_conf(rooms={"hall": f"{OPEN} max_active=5"})
    server.reload()
    assert called() == 25
    gone = at_once(server.port, [("DELETE", f"/api/v1/queue/leave?token={token}") for token in line[:21]])
    assert {answer.status for answer in gone} == {200}
    line = line[21:]
    wait_until(lambda: called() == 5, 5, "four inside, and one more")
    server.write_conf(rooms={"hall": "mode=closed"})
    server.reload()
    assert server.api().join("hall").error_code == "ROOM_CLOSED"
    assert called() == 5


def test_a_ticket_and_a_pass_of_before_a_restart_are_over(weir):
    """Failure 49 (stale answers after a reset): what is not kept over a restart is not half there after it."""
    server = weir(workers=2, rooms={"hall": f"{OPEN} max_active=1"})
    person = server.api()
    line = [person.ticket("hall"), *tickets(server, "hall", 3)]
    assert person.enter(line[0]).status == 200
    server.stop()
    server.forget()
    server.start()
    assert place_of(server.api().ticket("hall")).count == 1
    for token in line:
        assert person.status(token).error_code == "TOKEN_NOT_FOUND"
        assert person.enter(token).error_code == "TOKEN_NOT_FOUND"
    # The visitor is the same, the place is a new one.
    assert place_of(person.ticket("hall")).count == 2


def test_reloads_leave_no_descriptor_behind_and_no_old_worker(weir):
    server = weir(workers=2, rooms={"hall": OPEN})
    before = descriptors(server.process.pid)
    for _ in range(RELOADS):
        server.reload()
        server.api().ticket("hall")
    wait_until(lambda: len(server._children()) == server.workers, 10, "the end of the old workers")
    assert descriptors(server.process.pid) == before


def tickets(server, room, people):
    """In the order of their places."""
    answers = at_once(server.port, [("POST", "/api/v1/queue/join", {"event_id": room})] * people)
    return sorted((answer.json()["waiting_token"] for answer in answers), key=place_of)


def descriptors(pid):
    return sorted(os.readlink(path).split(":")[0] for path in Path(f"/proc/{pid}/fd").iterdir())


class Crowd:
    """People who join, wait, enter and leave from `with` to its end; then all who are in line go in and leave."""

    def __init__(self, port, seed):
        self.port = port
        self.chance = random.Random(seed)
        self.is_over = False
        self.people = []
        self.problem = None
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def wait_for_joins(self, more):
        until = len(self.people) + more
        wait_until(lambda: len(self.people) >= until or self.problem, 20, f"{more} more people")
        assert not self.problem, self.problem

    def __exit__(self, kind, *_):
        self.is_over = True
        self.thread.join()
        if kind is None and self.problem:
            raise self.problem

    def run(self):
        try:
            asyncio.run(asyncio.wait_for(self.live(), 60))
        except BaseException as problem:
            self.problem = problem

    async def live(self):
        await asyncio.gather(*(self.visits(Caller(self.port)) for _ in range(80)))

    async def visits(self, caller):
        while not self.is_over:
            person = Person(caller, "hall", f"visitor {len(self.people)}")
            self.people.append(person)
            await person.join()
            while not person.is_ready:
                await person.poll()
            for _ in range(self.chance.randrange(1, 4)):
                assert await person.enter()
                await person.poll()
            await person.leave()
        caller.close()
