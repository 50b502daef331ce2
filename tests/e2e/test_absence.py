# SPDX-License-Identifier: BSD-2-Clause
"""People who are not there: they block nobody, and they find their place again.

A room's clock runs with the real one, and nobody is absent before ten seconds. So all scenes are set at once in rooms of
their own, and each test waits for what it is about; together they take little longer than one. (Failure N: see the list
of known failures of systems like this.)
"""

import time

import pytest
from weirtest import Nginx, at_once, place_of, wait_until

AT_ONCE = "rate=100000 burst=1000"
ROOMS = {
    # Nobody falls silent here: who is gone has left.
    "goodbyes": "mode=hold seen_ttl_sec=300",
    "nap": "mode=hold",
    "head": f"{AT_ONCE} max_active=1",
    "hundred": f"{AT_ONCE} max_active=1",
    "everybody": f"{AT_ONCE} max_active=1",
    "no-show": f"{AT_ONCE} max_active=1 claim_ttl_sec=2",
    "no-arrival": f"{AT_ONCE} max_active=1 arrive_ttl_sec=2",
}
SEEN_TTL_SEC = 10
GRACE_SEC = 10
# A tick is 100 ms; what is more is for a machine that has other things to do.
SOON_SEC = 1.0


class Scene:
    """A room whose only slot is taken, and a line before it."""

    def __init__(self, server, room):
        self.server = server
        self.room = room
        self.api = server.api(cookies=False)
        self.set_at = time.monotonic()
        self.holder = self.api.ticket(room)

    def line_up(self, people=1):
        requests = [("POST", "/api/v1/queue/join", {"event_id": self.room})] * people
        answers = at_once(self.server.port, requests)
        return sorted((answer.json()["waiting_token"] for answer in answers), key=place_of)

    def status(self, token):
        answer = self.api.status(token)
        assert answer.status == 200, answer
        return answer.json()

    def wait_for_position(self, token, position):
        """Keeps `token` polling until it is shown `position`; how long after the scene was set that was."""
        wait_until(lambda: self.status(token)["position"] == position, 25, f"position {position} in {self.room}", 0.05)
        return time.monotonic() - self.set_at

    def seconds_until_called(self, token):
        began = time.monotonic()
        wait_until(lambda: self.status(token)["ready_for_entry"], 10, f"a call in {self.room}", 0.01)
        return time.monotonic() - began

    def free_slot(self):
        assert self.api.leave(self.holder).status == 200


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Nginx(tmp_path_factory.mktemp("absence") / "nginx", rooms=ROOMS, workers=3)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module", autouse=True)
def scenes(server):
    """Every scene, set before the first test begins to wait."""
    return {name: set_scene(server) for name, set_scene in SCENES.items()}


def set_goodbyes(server):
    scene = Scene(server, "goodbyes")
    scene.closed, scene.refreshed, scene.second_tab, scene.behind = scene.line_up(4)
    for token in (scene.closed, scene.refreshed, scene.second_tab):
        assert scene.api.leave_beacon(token).status == 204
        assert scene.api.leave_beacon(token).status == 204  # pagehide and unload both fire in some browsers
    assert scene.status(scene.refreshed)["position"] == 3
    assert scene.api.heartbeat(scene.second_tab).status == 200
    return scene


def set_nap(server):
    scene = Scene(server, "nap")
    scene.sleeper, scene.behind = scene.line_up(2)
    assert scene.api.leave_beacon(scene.sleeper).status == 204
    assert scene.status(scene.sleeper)["position"] == 2
    return scene


def set_head(server):
    scene = Scene(server, "head")
    scene.head, scene.next, scene.last = (scene.line_up()[0] for _ in range(3))
    return scene


def set_hundred(server):
    scene = Scene(server, "hundred")
    scene.absent = scene.line_up(100)
    (scene.present,) = scene.line_up()
    return scene


def set_everybody(server):
    scene = Scene(server, "everybody")
    scene.line = scene.line_up(3)
    return scene


SCENES = {
    "goodbyes": set_goodbyes,
    "nap": set_nap,
    "head": set_head,
    "hundred": set_hundred,
    "everybody": set_everybody,
}


# --- those called, and gone


def test_a_turn_that_is_not_taken_goes_to_the_next(server):
    """Failures 9 (absent people hold slots) and 10 (cleanup only when the absent person polls)."""
    scene = Scene(server, "no-show")
    (behind,) = scene.line_up()
    assert not scene.status(behind)["ready_for_entry"]
    assert 1 < scene.seconds_until_called(behind) < 2 + SOON_SEC
    assert scene.api.status(scene.holder).error_code == "TOKEN_NOT_FOUND"
    assert scene.api.enter(scene.holder).error_code == "TOKEN_NOT_FOUND"


def test_a_pass_that_never_reaches_the_gate_gives_its_slot_back(server):
    scene = Scene(server, "no-arrival")
    assert scene.api.enter(scene.holder).status == 200
    (behind,) = scene.line_up()
    assert 1 < scene.seconds_until_called(behind) < 2 + SOON_SEC
    assert scene.api.enter(scene.holder).error_code == "TOKEN_NOT_FOUND"


# --- those in line, and silent


def test_an_absent_head_costs_the_next_no_more_than_a_tick(scenes):
    """Failures 8 (one absent head holds everybody) and 13 (a phone that slept lost its place)."""
    scene = scenes["head"]

    def is_next():
        scene.status(scene.last)
        return scene.status(scene.next)["position"] == 1

    wait_until(is_next, 25, "the absence of the head", 0.05)
    assert time.monotonic() - scene.set_at > SEEN_TTL_SEC - 0.5
    scene.free_slot()
    assert scene.seconds_until_called(scene.next) < SOON_SEC

    # The head wakes: it was passed by, so it is next, before those who came after it.
    standing = scene.status(scene.head)
    assert (standing["position"], standing["ready_for_entry"]) == (1, False)
    assert scene.api.leave(scene.next).status == 200
    assert scene.seconds_until_called(scene.head) < SOON_SEC
    assert not scene.status(scene.last)["ready_for_entry"]


def test_a_hundred_absent_at_the_head_do_not_stop_the_line(scenes):
    """Failure 8."""
    scene = scenes["hundred"]
    assert scene.wait_for_position(scene.present, 1) > SEEN_TTL_SEC - 0.5
    scene.free_slot()
    assert scene.seconds_until_called(scene.present) < SOON_SEC
    assert scene.api.enter(scene.present).status == 200
    # Their places are kept for them, in order.
    for token in (scene.absent[99], scene.absent[0]):
        assert scene.status(token)["position"] == 1
    assert scene.api.leave(scene.present).status == 200
    assert scene.seconds_until_called(scene.absent[0]) < SOON_SEC
    assert not scene.status(scene.absent[99])["ready_for_entry"]


def test_a_slot_that_becomes_free_while_all_are_absent_waits_for_the_first_to_return(scenes):
    scene = scenes["everybody"]
    (late,) = scene.line_up()
    scene.wait_for_position(late, 1)
    assert scene.api.leave(late).status == 200
    scene.free_slot()
    assert scene.seconds_until_called(scene.line[1]) < SOON_SEC


# --- those who said goodbye


def test_a_goodbye_takes_effect_after_its_grace_unless_the_page_is_back(scenes):
    """Failure 13 (a refresh or a second tab loses the place)."""
    scene = scenes["goodbyes"]
    # holder 1, closed 2, refreshed 3, second tab 4, behind 5: until the closed tab's grace is over.
    assert scene.wait_for_position(scene.behind, 4) > GRACE_SEC - 0.5
    assert scene.api.status(scene.closed).error_code == "TOKEN_NOT_FOUND"
    assert scene.status(scene.refreshed)["position"] == 2
    assert scene.status(scene.second_tab)["position"] == 3
    assert scene.status(scene.behind)["position"] == 4


def test_a_goodbye_that_was_taken_back_does_not_count_when_they_fall_silent_later(scenes):
    scene = scenes["nap"]
    scene.wait_for_position(scene.behind, 1)
    assert scene.status(scene.sleeper)["position"] == 1
