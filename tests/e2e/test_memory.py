# SPDX-License-Identifier: BSD-2-Clause
"""A line that is full stays what it is, however many more want in. (Failure 50: a queue that accepts without bound until
memory ends.)

WEIR_HAMMER_SEC says for how long joins are hammered; in the normal suite a few seconds each.
"""

import json
import os
import time

import pytest
from weirtest import at_once, place_of, wait_until
from weirtest.hammer import Hammer, cpu_ns, memory_bytes, request_of

HAMMER_SEC = float(os.environ.get("WEIR_HAMMER_SEC", "15"))
JOIN = "/api/v1/queue/join"
STATUS = "/api/v1/queue/status?token="
PATIENT = "seen_ttl_sec=3600"
AT_ONCE = "rate=100000 burst=100000 max_active=0"
# For what an allocator does of its own accord. Four bytes a request would be more.
GROWTH_MOST = 128 << 10
# Commands and replies of a store come and go on the heap, which takes some seconds to find its size.
GROWTH_MOST_WITH_STORE = 512 << 10


def join_request(room):
    return request_of("POST", JOIN, json.dumps({"event_id": room}))


def fill(server, hammer, room, most):
    """Joins until the room refuses. {count: token} of everybody who was told that they have a place."""
    tokens, refused = {}, 0
    while not refused:
        for status, _, body in hammer.strike(join_request(room)):
            refused += status == 429
            if status == 202:
                token = json.loads(body)["waiting_token"]
                tokens[place_of(token).count] = token
        assert len(tokens) <= most
    assert sorted(tokens) == list(range(1, len(tokens) + 1))
    return tokens


def assert_refused(responses):
    for status, head, body in responses:
        assert status == 429, (status, body)
        error = json.loads(body)["error"]
        assert error["code"] == "QUEUE_FULL" and error["retry_after"] > 0
        assert f"Retry-After: {error['retry_after']}\r\n".encode() in head


def assert_line_untouched(server, tokens):
    counts = sorted(tokens)
    answers = at_once(server.port, [("GET", STATUS + tokens[count]) for count in counts], 64)
    assert [answer.status for answer in answers] == [200] * len(counts)
    assert [answer.json()["position"] for answer in answers] == counts


def assert_drains(server, room, tokens, rooms):
    """Everybody is called and enters; then there is a place again."""
    server.write_conf(rooms=rooms)
    server.reload()
    api = server.api(cookies=False)
    wait_until(lambda: api.status(tokens[max(tokens)]).json()["ready_for_entry"], 20, "the call of the last")
    answers = at_once(server.port, [("POST", "/api/v1/queue/enter", {"waiting_token": token})
                                    for token in tokens.values()], 64)
    assert [answer.status for answer in answers] == [200] * len(tokens)
    answers = at_once(server.port, [("DELETE", f"/api/v1/queue/leave?token={token}") for token in tokens.values()], 64)
    assert [answer.status for answer in answers] == [200] * len(tokens)
    newcomer = api.join(room)
    assert newcomer.status == 202 and place_of(newcomer.json()["waiting_token"]).count == max(tokens) + 1


class Memory:
    """What the workers have, from the first look on: their own must not grow, and the zone's is the zone's."""

    def __init__(self, server, zone_bytes):
        self.pids = server.worker_pids()
        self.growth_most = GROWTH_MOST_WITH_STORE if server.store else GROWTH_MOST
        self.zone_bytes = zone_bytes
        self.own = {pid: memory_bytes(pid, "RssAnon") for pid in self.pids}

    def assert_flat(self):
        for pid in self.pids:
            assert memory_bytes(pid, "RssShmem") <= self.zone_bytes
            # The sanitizers' allocator keeps what was freed for a while, on purpose.
            if os.environ.get("WEIR_VARIANT") != "asan":
                assert memory_bytes(pid, "RssAnon") - self.own[pid] <= self.growth_most, self.own


@pytest.fixture
def hammer_of():
    hammers = []

    def make(server):
        hammers.append(Hammer(server.port))
        return hammers[-1]

    yield make
    for hammer in hammers:
        hammer.close()


def test_joins_hammered_against_max_waiting_leave_memory_and_the_line_as_they_are(weir, hammer_of):
    """And a refusal costs the workers no more than a join."""
    rooms = {"full": f"mode=hold max_waiting=3000 {PATIENT}", "roomy": f"mode=hold {PATIENT}"}
    server = weir(rooms=rooms, zone="256m", workers=4)
    hammer = hammer_of(server)
    tokens = fill(server, hammer, "full", 3000)
    assert len(tokens) == 3000
    for room in 50 * list(rooms):
        hammer.strike(join_request(room))
    memory = Memory(server, 256 << 20)

    cost, sent = {"full": 0, "roomy": 0}, {"full": 0, "roomy": 0}
    until = time.monotonic() + HAMMER_SEC / 2
    while time.monotonic() < until:
        # Turn by turn, so that whatever else the machine does comes to both. A minute of joins still has place in the zone.
        for room in cost:
            before = cpu_ns(memory.pids)
            responses = hammer.strike(join_request(room))
            cost[room] += cpu_ns(memory.pids) - before
            sent[room] += len(responses)
            if room == "full":
                assert_refused(responses)
            else:
                assert {status for status, _, _ in responses} == {202}
    memory.assert_flat()
    print(f"{sent['full']} refusals, each {cost['full'] / cost['roomy']:.2f} of the cost of a join")
    assert sent["full"] > 1000 and cost["full"] <= cost["roomy"]
    assert_line_untouched(server, tokens)
    assert_drains(server, "full", tokens, {**rooms, "full": f"{AT_ONCE} {PATIENT}"})


@pytest.mark.local
def test_joins_hammered_against_a_full_zone_leave_memory_and_the_line_as_they_are(weir, hammer_of):
    rooms = {"only": f"mode=hold {PATIENT}"}
    server = weir(rooms=rooms, zone="512k", rooms_max=1, workers=4)
    hammer = hammer_of(server)
    tokens = fill(server, hammer, "only", 20000)
    for _ in range(50):
        hammer.strike(join_request("only"))
    memory = Memory(server, 512 << 10)

    until, refusals = time.monotonic() + HAMMER_SEC / 2, 0
    while time.monotonic() < until:
        responses = hammer.strike(join_request("only"))
        assert_refused(responses)
        refusals += len(responses)
    memory.assert_flat()
    assert refusals > 1000
    assert_line_untouched(server, tokens)
    assert_drains(server, "only", tokens, {"only": f"{AT_ONCE} {PATIENT}"})
