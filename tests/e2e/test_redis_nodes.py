# SPDX-License-Identifier: BSD-2-Clause
"""Three nginx masters on one Redis are one waiting room: order, one ticket and one pass, slots and pace, and positions that never
rise, over all nodes together. (Failure N: see the list of known failures of systems like this.)"""

import itertools
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from weirtest import at_once, place_of, visitors, wait_until
from weirtest.nodes import Nodes
from weirtest.order import assert_called_in_order
from weirtest.redis import Cluster, Standalone
from weirtest.visitors import Visitors
from weirtest.watch import Watch

pytestmark = pytest.mark.once

JOIN = "/api/v1/queue/join"
ENTER = "/api/v1/queue/enter"
STATUS = "/api/v1/queue/status?token="

AT_ONCE = "rate=100000 burst=1000"
ROOMS = {
    visitors.ROOM: visitors.SETTINGS,
    "crowd": "mode=hold max_active=0 seen_ttl_sec=300",
    "full": f"{AT_ONCE} max_active=100 seen_ttl_sec=300",
    "keyed": "mode=hold",
    "known": "mode=hold",
    "door": f"{AT_ONCE} max_active=0",
}


@pytest.fixture(scope="module", params=[Standalone, Cluster])
def store(request):
    with request.param() as store:
        yield store


@pytest.fixture(scope="module")
def nodes(store, tmp_path_factory):
    with Nodes(tmp_path_factory.mktemp("nodes"), store.directive, 3, rooms=ROOMS, admin=["op"]) as nodes:
        yield nodes


def primary_of(store, room):
    return store.owner(room) if isinstance(store, Cluster) else store.only


def everywhere(nodes, requests, connections=60):
    """Sends every request at the same time, each to the next node; the responses in that order."""
    shares = [requests[number::len(nodes.all)] for number in range(len(nodes.all))]
    with ThreadPoolExecutor(len(shares)) as pool:
        answers = list(pool.map(lambda node, share: at_once(node.port, share, connections), nodes, shares))
    return [answer for turn in itertools.zip_longest(*answers) for answer in turn if answer is not None]


def joins(room, people, headers=None):
    return [("POST", JOIN, {"event_id": room}, headers)] * people


def tokens_of(answers):
    assert Counter(answer.status for answer in answers) == {202: len(answers)}
    return [answer.json()["waiting_token"] for answer in answers]


def test_two_thousand_at_once_get_the_places_1_to_2000_and_are_called_in_that_order_at_the_pace(store, nodes):
    """Failures 1, 4, 5, 7 and 17 (every node runs its own scheduler: so many times the pace)."""
    people, connections, rate, burst = 2000, 60, 500, 50
    answers = everywhere(nodes, joins("crowd", people), connections)
    places = [place_of(token) for token in tokens_of(answers)]
    assert sorted(place.count for place in places) == list(range(1, people + 1))
    assert len({place.epoch for place in places}) == 1
    assert [answer.json()["position_hint"] for answer in answers] == [place.count for place in places]
    # Whoever asks after another was answered stands behind them: seen here on every single connection.
    for first in range(len(nodes.all) * connections):
        counts = [place.count for place in places[first::len(nodes.all) * connections]]
        assert counts == sorted(counts)

    assert nodes[1].admin().patch("crowd", mode="queue", rate=rate, burst=burst).status == 200
    waiting = {place_of(answer.json()["waiting_token"]).count: answer.json()["waiting_token"] for answer in answers}
    with Watch(lambda: primary_of(store, "crowd"), "crowd") as watch:
        assert_called_in_order(nodes, waiting)
        wait_until(lambda: watch.last.calls >= people, 5, "a look after the last call")
    watch.assert_pace(rate, burst)
    assert watch.last.calls == people


def test_512_at_once_against_100_slots_are_exactly_100_inside(store, nodes):
    """Failures 14 (check, then act: 255 let in) and 20 (polls that spend; "ready" that is refused at enter)."""
    answers = everywhere(nodes, joins("full", 512), 171)
    tokens = {place_of(token).count: token for token in tokens_of(answers)}
    ready = [place_of(answer.json()["waiting_token"]).count for answer in answers if answer.json()["ready_for_entry"]]
    assert sorted(ready) == list(range(1, 101))
    in_order = [tokens[count] for count in sorted(tokens)]
    for _ in range(2):
        polled = everywhere(nodes, [("GET", STATUS + token) for token in in_order])
        assert [answer.json()["ready_for_entry"] for answer in polled] == [True] * 100 + [False] * 412
    entered = everywhere(nodes, [("POST", ENTER, {"waiting_token": token}) for token in in_order], 171)
    assert [(answer.status, answer.error_code) for answer in entered] == [(200, None)] * 100 + [(403, "NOT_READY")] * 412

    # A slot that becomes free is the next one's, and not one more.
    gone = everywhere(nodes, [("DELETE", f"/api/v1/queue/leave?token={token}") for token in in_order[:30]])
    assert {answer.status for answer in gone} == {200}
    api = nodes[0].api()
    wait_until(lambda: api.status(in_order[129]).json()["ready_for_entry"], 5, "the call of the 130th")
    polled = everywhere(nodes, [("GET", STATUS + token) for token in in_order[30:]])
    assert [answer.json()["ready_for_entry"] for answer in polled] == [True] * 100 + [False] * 382
    called, entered, active = primary_of(store, "full")("HMGET", "queue:room:{full}", "called", "entered", "active")
    assert int(called) + int(entered) + int(active) == 100


@pytest.mark.parametrize("room, headers", [("keyed", {"Idempotency-Key": "one"}), ("known", {visitors.IDENTITY: "alice"})])
def test_one_visitor_who_joins_everywhere_at_once_has_one_ticket(nodes, room, headers):
    """Failures 13, 22 and 39 (a dedupe key set before the rest), from several nodes."""
    answers = everywhere(nodes, joins(room, 300, headers), 100)
    assert len(set(tokens_of(answers))) == 1
    for node in nodes:
        assert node.api(cookies=False).join(room, headers=headers).json() == answers[0].json()
    assert place_of(nodes[0].api().ticket(room)).count == 2


def test_enter_sent_everywhere_at_once_is_one_pass_and_equal_answers(nodes):
    """Failure 21 (two enters both granted; an enter whose answer was lost cannot be repeated)."""
    token = nodes[0].api().ticket("door")
    answers = everywhere(nodes, [("POST", ENTER, {"waiting_token": token})] * 60, 20)
    assert {answer.status for answer in answers} == {200}
    assert len({answer.body for answer in answers}) == 1
    for node in nodes:
        assert node.api(cookies=False).enter(token).body == answers[0].body


def test_people_who_go_to_any_node_are_told_one_story_and_the_limits_hold(store, nodes):
    """Promises 1, 2, 3 and 5, for people who come, go in and leave for a while: visitors.py holds the room to every word."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    with Watch(lambda: primary_of(store, visitors.ROOM), visitors.ROOM) as watch:
        with Visitors(nodes.doors, seed) as crowd:
            crowd.wait_for_answers(4000)
    print(crowd.account)
    watch.assert_pace(visitors.RATE, visitors.BURST)
    assert watch.most_inside <= visitors.MAX_ACTIVE
    assert (crowd.account.slots_exceeded, crowd.account.refusals, crowd.account.unanswered) == (0, 0, 0)
