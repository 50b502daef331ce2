# SPDX-License-Identifier: BSD-2-Clause
"""What becomes of people when something happens to the Redis that keeps their room, or to one of the nodes before it.

People come, go in, visit the shop and leave before two nodes all the while (visitors.py), and the room itself is watched in Redis
(watch.py). In every case no ticket is lost that was acknowledged, and none is doubled. Where nothing may be lost, everything
else holds as well: order, turns, positions. Where a primary may lose its last moments, with replicas that confirm every enter
nobody has two passes and the slots hold; a lone server can do less, and how much less is printed. So is for how long joins were
refused.
(Failures 34 to 43: see the list of known failures of systems like this.)
"""

import random
import time
from contextlib import contextmanager

import pytest

from weirtest import visitors
from weirtest.netns import Split
from weirtest.nodes import Busy, Memory, Nodes
from weirtest.people import ANSWER_SEC
from weirtest.proxy import SlowWay
from weirtest.redis import Cluster, Sentinel, Standalone, Store
from weirtest.visitors import MAX_ACTIVE, ROOM, SESSION_SEC, Visitors
from weirtest.watch import Watch

pytestmark = pytest.mark.once

ROOM_KEY = f"queue:room:{{{ROOM}}}"
BEFORE, AFTER = 600, 600  # answers that people get before it happens, and when it is over


class Scene:
    """What a test sees of the people while it does something to them."""

    def __init__(self, crowd, watch):
        self.crowd, self.watch = crowd, watch
        self.wait_for_answers, self.wait_for_joins, self.wait_until = (
            crowd.wait_for_answers, crowd.wait_for_joins, crowd.wait_until)

    @property
    def account(self):
        return self.crowd.account


@contextmanager
def people_before(nodes, find, record_property, may_lose=False, may_stay=False, answer_sec=ANSWER_SEC):
    """People before these nodes; `find` finds the primary of their room. Afterwards what always holds is checked."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    with Watch(find, ROOM) as watch:
        with Visitors(nodes.doors, seed, may_lose, may_stay, answer_sec) as crowd:
            scene = Scene(crowd, watch)
            scene.wait_for_answers(BEFORE)
            memory = Memory(nodes)
            yield scene
            scene.wait_for_answers(AFTER)
    account = scene.account
    print(f"{account}; memory grew by {memory.growth >> 10} KiB")
    for name in ("lost", "doubled", "double_passes", "slots_exceeded", "refused_longest"):
        record_property(name, getattr(account, name))
    assert (account.lost, account.doubled) == (0, 0), (account.problems, watch.epochs)
    watch.assert_pace(visitors.RATE, visitors.BURST)
    memory.assert_flat()
    if answer_sec == ANSWER_SEC:
        assert account.unanswered == 0, f"{account.unanswered} requests had no answer within {answer_sec} s"


def assert_limits(scene):
    """Of people who were let in, and as the room itself counts. Nobody's pass is worth nothing afterwards."""
    account = scene.account
    assert account.thrown_out == 0, account.problems
    assert (account.double_passes, account.slots_exceeded) == (0, 0), account.problems
    assert scene.watch.most_inside <= MAX_ACTIVE


def assert_excess_is_bounded(scene):
    """What a lone server may cost: the passes that it gave and forgot, each once."""
    account = scene.account
    excess = max(account.slots_exceeded, scene.watch.most_inside - MAX_ACTIVE)
    print(f"excess of a lone server: {account.double_passes} double passes, {excess} slots")
    assert account.double_passes <= MAX_ACTIVE and excess <= MAX_ACTIVE, account.problems


# --- the primary ends, and another takes over


def kill(server, scene):
    server.kill()


def kill_with_what_it_did_alone(server, scene):
    send_replicas_away(server, scene)
    server.kill()


def sleep_with_what_it_did_alone(server, scene):
    send_replicas_away(server, scene)
    server.pause()


def send_replicas_away(server, scene):
    """They are not let in again while it runs: what it says from now on nobody else knows."""
    with server.client() as client:
        client("CONFIG", "SET", "requirepass", "nobody knows")
        assert client("CLIENT", "KILL", "TYPE", "replica") > 0
        issued = figure(client, "issued")
        scene.wait_until(lambda: figure(client, "issued") > issued + 60, "tickets that no replica knows")
        client("CONFIG", "SET", "requirepass", "")


ENDS = [kill, kill_with_what_it_did_alone, sleep_with_what_it_did_alone]


# One that wakes is a primary until the sentinels have told it: people who reach it are cut off meanwhile, and time goes on without them.
@pytest.mark.parametrize("end", [kill, kill_with_what_it_did_alone])
def test_a_primary_of_sentinels_that_ends_takes_nobody_with_it(tmp_path, record_property, end):
    store = Sentinel(replicas=2, down_after_ms=2000, failover_timeout_ms=2000)
    store.replicas = 1  # there is another to confirm when one is the primary
    with store, Nodes(tmp_path, store.directive) as nodes:
        with people_before(nodes, lambda: store.primary, record_property, may_lose=True) as scene:
            first = store.primary
            end(first, scene)
            scene.wait_until(lambda: first not in map(store.named_by, store.sentinels), "another primary")
            # It is not started again: it would come back as an empty primary, until the sentinels take it in.
            assert_served_again(scene)
        assert_limits(scene)
        assert_an_epoch_each(scene)


@pytest.mark.parametrize("end", ENDS)
def test_a_primary_of_a_cluster_that_ends_takes_nobody_with_it(tmp_path, record_property, end):
    with Cluster(node_timeout_ms=2000) as store, Nodes(tmp_path, store.directive) as nodes:
        with people_before(nodes, lambda: store.owner(ROOM), record_property, may_lose=True) as scene:
            first = store.owner(ROOM)
            end(first, scene)
            scene.wait_until(lambda: has_other_owner(store, first), "another primary")
            # A replica from now on, without which nobody could be let in.
            first.resume() if first.process else first.start()
            assert_served_again(scene)
        assert_limits(scene)
        assert_an_epoch_each(scene)


def has_other_owner(store, former):
    return any(server.is_primary and owns_room(server) for server in store.servers if server is not former)


def owns_room(server):
    try:
        return server("EXISTS", ROOM_KEY) == 1
    except Exception as refusal:
        assert "MOVED" in str(refusal) or "CLUSTERDOWN" in str(refusal), refusal
        return False


def assert_an_epoch_each(scene):
    """Each process that took over began one. (On a machine that is busy they may have taken over more than once.)"""
    epochs, primaries = map(set, zip(*scene.watch.epochs))
    assert len(epochs) == len(primaries) == len(scene.watch.epochs) > 1, scene.watch.epochs


def assert_served_again(scene):
    scene.wait_for_joins(5)
    scene.wait_for_answers(AFTER)


@pytest.mark.parametrize("log", ["yes", "no"])
def test_a_lone_server_that_is_killed_and_started_again_has_lost_nobody_who_asks_again(tmp_path, record_property, log):
    """With its log, and without."""
    with Standalone(appendonly=log, appendfsync="everysec") as store, Nodes(tmp_path, store.directive) as nodes:
        with people_before(nodes, lambda: store.only, record_property, may_lose=True) as scene:
            store.only.kill()
            store.only.start()
            assert_served_again(scene)
        assert_excess_is_bounded(scene)


def test_a_room_that_is_flushed_is_rebuilt_by_those_who_stand_in_line(tmp_path, record_property):
    with Standalone() as store, Nodes(tmp_path, store.directive) as nodes:
        with people_before(nodes, lambda: store.only, record_property, may_lose=True) as scene:
            store.only("FLUSHALL")
            assert_served_again(scene)
        assert_excess_is_bounded(scene)


# --- the network is cut in two


class SplitSentinel(Sentinel):
    """The primary and one of three sentinels on the left, two replicas and the majority on the right."""

    replicas = 1

    def __init__(self, split):
        Store.__init__(self)
        left, right = split.left, split.right
        self.first = self.server(host=left.host, prefix=left.prefix, protected_mode="no")
        self.followers = [
            self.server(host=right.host, prefix=right.prefix, protected_mode="no", replicaof=f"{left.host} {self.first.port}",
                        repl_timeout=5)
            for _ in range(2)
        ]
        watch = (f"sentinel monitor {self.name} {left.host} {self.first.port} 2\n"
                 f"sentinel down-after-milliseconds {self.name} 2000\nsentinel failover-timeout {self.name} 2000\n")
        self.sentinels = [
            self.server(is_sentinel=True, host=side.host, prefix=side.prefix, protected_mode="no", config=watch)
            for side in (right, right, left)
        ]


def test_a_primary_cut_off_with_a_node_gives_no_pass_and_its_tickets_are_good_afterwards(tmp_path, record_property):
    """Failure 43 (a primary in a minority keeps acknowledging). Whoever joined there is no worse off than the others."""
    with Split() as split, SplitSentinel(split) as store:
        with Nodes(tmp_path, store.directive, sides=[split.left, split.right]) as nodes:
            with people_before(nodes, lambda: store.primary, record_property, may_lose=True, may_stay=True) as scene:
                split.pull()
                scene.wait_until(lambda: store.primary is not store.first, "another primary on the right")
                issued, calls = figure(store.first, "issued"), figure(store.primary, "calls")
                scene.wait_until(lambda: figure(store.first, "issued") > issued + 20, "tickets of the one that was cut off")
                # If those inside all stay on the left, their slots are free here when their sessions are over.
                scene.wait_until(lambda: figure(store.primary, "calls") > calls + 10, "calls of the other", SESSION_SEC + 30)
                split.plug()
                scene.wait_until(lambda: not store.first.is_primary, "one primary again")
                assert_served_again(scene)
            assert_limits(scene)


def figure(server, name):
    return int(server("HGET", ROOM_KEY, name))


# --- the server is slow, away for a while, or forgets its scripts


def test_a_server_that_pauses_costs_time_and_nothing_else(tmp_path, record_property):
    with Standalone() as store, Nodes(tmp_path, store.directive) as nodes:
        with people_before(nodes, lambda: store.only, record_property) as scene:
            store.only("CLIENT", "PAUSE", 4000, "ALL")
            began = time.monotonic()
            for node in nodes:
                assert node.client().get("/healthz").status == 200
            assert time.monotonic() - began < 4, "the nodes paused, too"
            assert_served_again(scene)
        assert_limits(scene)


def test_a_server_that_forgets_its_scripts_is_told_them_again(tmp_path, record_property):
    with Standalone() as store, Nodes(tmp_path, store.directive) as nodes:
        with people_before(nodes, lambda: store.only, record_property) as scene:
            for _ in range(20):
                store.only("SCRIPT", "FLUSH", "SYNC")
                scene.wait_for_answers(30)
        assert_limits(scene)
        assert scene.account.refusals == 0


def test_replies_half_a_second_late_are_waited_for(tmp_path, record_property):
    with Standalone() as store, SlowWay(store.only.port) as way:
        directive = f"redis://127.0.0.1:{way.port}"
        with Nodes(tmp_path, directive) as nodes:
            with people_before(nodes, lambda: store.only, record_property) as scene:
                way.delay_sec = 0.5
                scene.wait_for_answers(150)
                way.delay_sec = 0
            assert_limits(scene)
            assert scene.account.refusals == 0


def test_a_busy_neighbour_takes_time_and_nothing_else(tmp_path, record_property):
    with Standalone() as store, Nodes(tmp_path, store.directive) as nodes:
        with people_before(nodes, lambda: store.only, record_property) as scene:
            with Busy(store.only.process.pid):
                scene.wait_for_answers(AFTER)
        assert_limits(scene)


# --- slots move, a node stands still


def test_slots_that_move_while_people_come_and_go_move_the_room_as_it_is(tmp_path, record_property):
    with Cluster() as store, Nodes(tmp_path, store.directive) as nodes:
        with people_before(nodes, lambda: store.owner(ROOM), record_property) as scene:
            for _ in range(4):
                store.move(ROOM, next(server for server in store.primaries if server is not store.owner(ROOM)))
                scene.wait_for_answers(150)
        assert_limits(scene)
        assert len({epoch for epoch, _ in scene.watch.epochs}) == 1


def test_a_node_that_stands_still_stops_nobody_and_exceeds_nothing_when_it_goes_on(tmp_path, record_property):
    """Failure 42 (a paused node that wakes after its lease and still calls people). Each of the two stands still once."""
    with Standalone() as store, Nodes(tmp_path, store.directive) as nodes:
        leases = []
        with people_before(nodes, lambda: store.only, record_property, answer_sec=1) as scene:
            for node in nodes:
                leases.append(store.only("HGET", ROOM_KEY, "lease_node"))
                node.freeze()
                began, calls = time.monotonic(), scene.watch.last.calls
                # What it called last was perhaps under way: so more than that.
                scene.wait_until(lambda: scene.watch.last.calls > calls + 5, "calls of the other node", 10)
                print(f"others went on calling after {time.monotonic() - began:.2f} s")
                leases.append(store.only("HGET", ROOM_KEY, "lease_node"))
                scene.wait_for_answers(100)
                node.thaw()
                scene.wait_for_answers(300)
        assert_limits(scene)
        assert leases[0] != leases[1] or leases[2] != leases[3], "neither held the lease"
