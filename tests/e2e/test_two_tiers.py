# SPDX-License-Identifier: BSD-2-Clause
"""Ten people through both tiers of the sample matrix, as their clients do it: lobby, event, hall, reservation, done."""

import threading
from pathlib import Path

import jwt
import pytest
from weirtest import Nginx, wait_until

SAMPLE = Path(__file__).resolve().parents[2] / "samples" / "gate-matrix.conf"
PEOPLE = 10
ROOMS = {"site": "tier=1 mode=open max_active=0", "lobby:42": "preset=lobby rate=20 burst=1 pace=hall", "42": "preset=hall max_active=3 rate=100"}


@pytest.fixture
def server(tmp_path, shop):
    """The sample, but that whoever signs in does so from here."""
    matrix = tmp_path / "matrix.conf"
    matrix.write_text(SAMPLE.read_text().replace("from=10.0.0.0/8", "from=127.0.0.1"))
    shop.answer_headers["/api/v1/reservations"] = [("Weir-Session", "end")]
    server = Nginx(tmp_path / "nginx", rooms=ROOMS, api=False, admin=["ops"], http=f"upstream shop {{ server 127.0.0.1:{shop.port}; }}",
                   server=f"include {matrix};")
    yield server.start()
    server.stop()
    shop.answer_headers.clear()


class Visitor:
    """What a person's pages do, each with a refresh: what they keep is a requestId and two cookies that the pages set."""

    def __init__(self, server, number):
        self.client = server.client()
        self.name = f"person {number}"
        self.signed_in = {"X-User-Id": self.name}
        self.steps = []

    def go(self):
        assert self.client.get("/events/42").json()["redirectTo"] == "/vwr/42"
        self.wait_in_lobby()
        assert self.client.get("/events/42").status == 200
        assert self.client.post("/api/v1/reservations", {}, headers=self.signed_in).status == 403
        self.wait_in_hall()
        assert self.client.get("/api/v1/seats", headers=self.signed_in).status == 200
        assert self.client.get("/events/42").status == 200
        assert self.client.post("/api/v1/reservations", {"seat": 1}, headers=self.signed_in).status == 200
        wait_until(lambda: self.client.get("/api/v1/seats", headers=self.signed_in).status == 403, 5, "the visit's end")
        self.steps.append("done")

    def wait_in_lobby(self):
        assigned = self.assign()
        assert self.assign()["requestId"] == assigned["requestId"], "a refresh"

        def is_admitted():
            told = self.client.get(f"/vwr-api/vwr/check/42/{assigned['requestId']}").json()
            assert told["position"] == assigned["position"]
            return told.get("token")
        self.keep("urr-vwr-token", wait_until(is_admitted, 30, "the lobby", every_sec=0.1))

    def assign(self):
        return self.client.post("/vwr-api/vwr/assign/42", {"userId": "anon"}).json()

    def wait_in_hall(self):
        states, positions = [], []

        def is_active():
            told = self.check() if len(states) % 3 else self.status()
            states.append(told["status"])
            if told["queued"]:
                positions.append(told["position"])
            return told.get("entryToken")
        self.keep("urr-entry-token", wait_until(is_active, 30, "the hall", every_sec=0.1))
        assert positions == sorted(positions, reverse=True), "a refresh keeps the place, and nobody falls back"

    def check(self):
        return self.client.post("/api/queue/check/42", "", headers=self.signed_in).json()

    def status(self):
        told = self.client.get("/api/queue/status/42", headers=self.signed_in).json()
        return self.check() if told["status"] == "not_in_queue" else told

    def keep(self, name, token):
        claims = jwt.decode(token, options={"verify_signature": False})
        assert claims["sub"] == "42"
        self.client.cookies[name] = token
        self.steps.append(claims["tier"])


def test_ten_people_go_through_lobby_and_hall_and_three_at_most_are_inside(server, shop):
    people = [Visitor(server, number) for number in range(PEOPLE)]
    failures = []

    def go(person):
        try:
            person.go()
        except Exception as problem:  # of a thread: told below
            failures.append((person.name, person.steps, problem))
    threads = [threading.Thread(target=go, args=(person,)) for person in people]
    for thread in threads:
        thread.start()
    most = 0
    while any(thread.is_alive() for thread in threads):
        most = max(most, server.admin().figures("42").json()["inside"])
    for thread in threads:
        thread.join()
    assert not failures, failures
    assert all(person.steps == [1, 2, "done"] for person in people)
    assert 1 <= most <= 3
    bought = [visit.of_weir() for visit in shop.seen if visit.path == "/api/v1/reservations"]
    assert sorted(said["x-weir-user"] for said in bought) == sorted(person.name for person in people)
    assert {(said["x-weir-room"], said["x-weir-tier"]) for said in bought} == {("42", "2")}


def test_nobody_has_a_place_in_the_hall_without_signing_in(server):
    """With the pass of the lobby and by any family's way."""
    visitor = Visitor(server, 1)
    visitor.wait_in_lobby()
    for path, body in (("check/42", {}), ("join", {"event_id": "42"}), ("token", {"userId": "person 1"})):
        for prefix in ("/api/queue/", "/api/v1/queue/"):
            assert visitor.client.post(prefix + path, body).status in (401, 404), path
    assert visitor.client.post("/api/queue/check/42", headers=visitor.signed_in).json()["status"] == "active"
