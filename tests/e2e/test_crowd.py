# SPDX-License-Identifier: BSD-2-Clause
"""Everybody at the same moment, over many connections and four workers. (Failure N: see the list of known failures of
systems like this, which each of these tests holds off.)"""

import asyncio
import random
import time
from collections import Counter, deque

import pytest
from weirtest import Caller, Nginx, Person, at_once, place_of, wait_until
from weirtest.order import assert_called_in_order

JOIN = "/api/v1/queue/join"
ENTER = "/api/v1/queue/enter"
STATUS = "/api/v1/queue/status?token="

AT_ONCE = "rate=100000 burst=1000"
ROOMS = {
    "replayed": "mode=hold",
    "keyed": "mode=hold",
    "conflicting": "mode=hold",
    "moving": "rate=1 max_active=0",
    "named": "mode=hold",
    "spacious": f"{AT_ONCE} max_active=100",
    "hall": f"{AT_ONCE} max_active=100 seen_ttl_sec=300",
    "tight": f"{AT_ONCE} max_active=10 seen_ttl_sec=300",
    "door": f"{AT_ONCE} max_active=0",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Nginx(tmp_path_factory.mktemp("crowd") / "nginx", rooms=ROOMS, workers=4)
    server.start()
    yield server
    server.stop()


def joins(room, people, headers=None, **fields):
    return [("POST", JOIN, {"event_id": room, **fields}, headers)] * people


def tokens_of(responses):
    assert Counter(response.status for response in responses) == {202: len(responses)}
    return [response.json()["waiting_token"] for response in responses]


def next_count(server, room):
    return place_of(server.api().ticket(room)).count


# --- order


def test_two_thousand_at_once_get_the_places_1_to_2000_and_are_called_in_that_order(weir):
    """Failures 1 (timestamps as order), 4 (a number given twice), 5 (a position that rises), 7 (order decided later)."""
    people, connections = 2000, 200
    server = weir(workers=4, rooms={"crowd": "mode=hold seen_ttl_sec=300"})
    answers = at_once(server.port, joins("crowd", people), connections)
    tokens = tokens_of(answers)
    places = [place_of(token) for token in tokens]

    assert sorted(place.count for place in places) == list(range(1, people + 1))
    assert len({place.epoch for place in places}) == 1
    assert [answer.json()["position_hint"] for answer in answers] == [place.count for place in places]
    # Whoever asks after another was answered stands behind them: seen here on every single connection.
    for first in range(connections):
        counts = [place.count for place in places[first::connections]]
        assert counts == sorted(counts)

    server.write_conf(rooms={"crowd": "rate=500 burst=50 max_active=0 seen_ttl_sec=300"})
    server.reload()
    by_count = {place.count: token for place, token in zip(places, tokens)}
    assert_called_in_order([server], by_count)


# --- one person, many requests


def test_one_visitor_cookie_replayed_10000_times_has_one_ticket(server):
    """Failures 13 (a second tab loses the place) and 22 (replaying one cookie mints places)."""
    visitor = server.api()
    token = visitor.ticket("replayed")
    headers = {"Cookie": f"weir-visitor={visitor.cookies['weir-visitor']}"}
    answers = at_once(server.port, joins("replayed", 10000, headers))
    assert set(tokens_of(answers)) == {token}
    assert len({answer.body for answer in answers}) == 1
    assert next_count(server, "replayed") == 2


def test_a_hundred_joins_with_one_key_are_one_ticket_and_equal_answers(server):
    answers = at_once(server.port, joins("keyed", 100, {"Idempotency-Key": "one"}))
    assert len(set(tokens_of(answers))) == 1
    assert len({answer.body for answer in answers}) == 1
    # One of them did it and is the visitor now; the others are told that it had been done.
    assert Counter(answer.header("x-idempotency-cached") for answer in answers) == {"true": 99, None: 1}
    assert sum(bool(answer.cookies()) for answer in answers) == 1
    assert next_count(server, "keyed") == 2

    answers = at_once(server.port, joins("keyed", 100, {"Idempotency-Key": "one"}, user_id="somebody else"))
    assert Counter((answer.status, answer.error_code) for answer in answers) == {(409, "IDEMPOTENCY_CONFLICT"): 100}
    assert next_count(server, "keyed") == 3


def test_one_key_with_two_bodies_at_once_is_one_ticket_and_a_conflict_for_the_other(server):
    headers = {"Idempotency-Key": "two"}
    two = [joins("conflicting", 1, headers, user_id=name)[0] for name in ("alice", "bob")]
    answers = at_once(server.port, two * 50)
    assert Counter(answer.status for answer in answers) == {202: 50, 409: 50}
    winner = 0 if answers[0].status == 202 else 1
    assert {answer.status for answer in answers[winner::2]} == {202}
    assert len({answer.body for answer in answers[winner::2]}) == 1
    assert next_count(server, "conflicting") == 2


def test_a_repeated_join_says_what_the_first_said_although_the_line_has_moved(server):
    api = server.api(cookies=False)
    first = [api.join("moving", headers={"Idempotency-Key": str(n)}) for n in range(100)]
    for answer in first[:90]:
        assert api.leave(answer.json()["waiting_token"]).status == 200
    assert api.status(first[99].json()["waiting_token"]).json()["position"] <= 10
    for n in range(90, 100):
        assert api.join("moving", headers={"Idempotency-Key": str(n)}).body == first[n].body


def test_naming_a_user_fetches_nobodys_ticket(server):
    """Failure 23."""
    tokens = tokens_of(at_once(server.port, joins("named", 100, user_id="alice")))
    assert sorted(place_of(token).count for token in tokens) == list(range(1, 101))


@pytest.mark.parametrize("times", [5, 50])
@pytest.mark.parametrize("key", [None, "k"])
def test_enter_sent_many_times_at_once_is_one_pass_and_equal_answers(server, times, key):
    """Failure 21 (two enters both granted; an enter whose answer was lost cannot be repeated)."""
    token = server.api().ticket("door")
    headers = {"Idempotency-Key": f"{key}{times}"} if key else None
    request = ("POST", ENTER, {"waiting_token": token}, headers)
    answers = at_once(server.port, [request] * times)
    assert {answer.status for answer in answers} == {200}
    assert len({(answer.body, answer.header("set-cookie")) for answer in answers}) == 1

    # Nor does it matter when: the pass is not of the second in which it is asked for.
    second = int(time.time())
    wait_until(lambda: int(time.time()) > second, 2, "the next second")
    assert at_once(server.port, [request])[0].body == answers[0].body


# --- limits


def test_nobody_waits_where_there_is_room(server):
    """Failure 57 (everyone sees a waiting page though nobody waits)."""
    answers = at_once(server.port, joins("spacious", 100))
    assert [answer.json()["ready_for_entry"] for answer in answers] == [True] * 100


def test_512_at_once_against_100_slots_are_exactly_100_inside(server):
    """Failures 14 (check, then act: 255 let in) and 20 (polls that spend; "ready" that is refused at enter)."""
    answers = at_once(server.port, joins("hall", 512), 512)
    tokens = {place_of(token).count: token for token in tokens_of(answers)}
    ready = [place_of(answer.json()["waiting_token"]).count for answer in answers if answer.json()["ready_for_entry"]]
    assert sorted(ready) == list(range(1, 101))

    in_order = [tokens[count] for count in sorted(tokens)]
    for _ in range(4):
        polled = at_once(server.port, [("GET", STATUS + token) for token in in_order])
        assert [answer.json()["ready_for_entry"] for answer in polled] == [True] * 100 + [False] * 412
    entered = at_once(server.port, [("POST", ENTER, {"waiting_token": token}) for token in in_order], 512)
    assert [(answer.status, answer.error_code) for answer in entered] == [(200, None)] * 100 + [(403, "NOT_READY")] * 412

    # A slot that becomes free is the next one's, and not one more.
    gone = at_once(server.port, [("DELETE", f"/api/v1/queue/leave?token={token}") for token in in_order[:30]])
    assert {answer.status for answer in gone} == {200}
    api = server.api()
    wait_until(lambda: api.status(in_order[129]).json()["ready_for_entry"], 5, "the call of the 130th")
    polled = at_once(server.port, [("GET", STATUS + token) for token in in_order[30:]])
    assert [answer.json()["ready_for_entry"] for answer in polled] == [True] * 100 + [False] * 382


def test_the_slots_hold_at_every_instant_while_people_come_and_go(server):
    """Failure 14 again, for the whole life of a line: 300 people through 10 slots, counted as they are told and leave."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    outside = deque(range(300))
    inside, entered = set(), []

    async def visit(person):
        await person.join()
        while not person.is_ready:
            await person.poll()
        inside.add(person)
        assert len(inside) <= 10, inside
        assert await person.enter()
        entered.append(person.count)
        for _ in range(chance.randrange(3)):
            await person.poll()
        inside.remove(person)  # from here on the server may have given the slot away
        await person.leave()

    async def visitor():
        caller = Caller(server.port)
        while outside:
            await visit(Person(caller, "tight", f"visitor {outside.popleft()}"))
        assert caller.broken == 0
        caller.close()

    async def everybody():
        await asyncio.gather(*(visitor() for _ in range(40)))

    asyncio.run(asyncio.wait_for(everybody(), 60))
    assert sorted(entered) == list(range(1, 301))
