# SPDX-License-Identifier: BSD-2-Clause
"""The gate while its engine is away, or slow. What makes it so is real: an upgrade in place, a store that is stopped, a disk that
fails or takes its time."""

import os
import re
import socket
import threading

import jwt
import pytest
from weirtest import at_once, wait_until
from weirtest.away import engine_away
from weirtest.disk import Disk

ROOMS = {"hall": "rate=100000 burst=1000 max_active=0", "other": "rate=100000 burst=1000"}
SERVER = """
        location /signed/ {{ weir_gate room=hall; proxy_pass http://127.0.0.1:{shop}; }}
        location /closed/ {{ weir_gate room=hall; weir_when_down closed; proxy_pass http://127.0.0.1:{shop}; }}
        location /open/ {{ weir_gate room=hall; weir_when_down open; proxy_pass http://127.0.0.1:{shop}; }}
        location /bypassed/ {{ weir_gate room=hall; weir_bypass $http_x_staff; proxy_pass http://127.0.0.1:{shop}; }}
"""
BROWSER = {"Accept": "text/html"}


def entered(server, room="hall"):
    person = server.api()
    person.waiting_token = person.ticket(room)
    person.reservation = person.enter(person.waiting_token).json()["reservation_token"]
    return person


def is_let_in(answer):
    return answer.status == 200 and answer.json().get("shop") is True


def weir_headers(answer):
    return {name.lower(): value for name, value in answer.json()["headers"] if name.lower().startswith("x-weir-")}


def assert_unavailable(answer):
    assert (answer.status, answer.error_code) == (503, "ENGINE_UNAVAILABLE"), answer
    assert int(answer.header("retry-after")) > 0


@pytest.fixture(scope="module")
def away(tmp_path_factory, shop):
    def let_people_in(server):
        server.insider, server.guest = entered(server), entered(server, "other")
        assert is_let_in(server.insider.get("/signed/"))

    with engine_away(tmp_path_factory.mktemp("away") / "nginx", before=let_people_in, rooms=ROOMS, admin=["ops"],
                     server=SERVER.format(shop=shop.port)) as server:
        yield server


# --- away


def test_a_signed_pass_goes_on_and_nobody_else(away):
    answer = away.insider.get("/signed/")
    claims = jwt.decode(away.insider.reservation, options={"verify_signature": False})
    assert weir_headers(answer) == {
        "x-weir-room": "hall", "x-weir-user": claims["uid"], "x-weir-session": claims["jti"], "x-weir-tier": "2"}
    assert_unavailable(away.api().get("/signed/"))
    assert_unavailable(away.api().post("/signed/", {"a": 1}))
    away_to = away.api().get("/signed/x", headers=BROWSER)
    assert (away_to.status, away_to.header("location")) == (302, "/queue/hall?return=%2Fsigned%2Fx")


def test_the_page_is_there_and_joins_are_told_to_wait(away):
    assert away.api().get("/queue/hall", headers=BROWSER).status == 200
    assert_unavailable(away.api().join("hall"))


@pytest.mark.parametrize("spoil", [
    lambda token: token[:-4] + "AAAA", lambda token: token[:-10], lambda token: "a.b.c",
    lambda token: jwt.encode(jwt.decode(token, options={"verify_signature": False}), "x" * 32, headers={"kid": "2.1"}),
])
def test_only_our_signature_counts_then(away, spoil):
    assert_unavailable(away.client(cookies=False).get("/signed/", headers={"x-queue-entry-token": spoil(away.insider.reservation)}))


def test_another_rooms_pass_is_none_then_either(away):
    assert_unavailable(away.client(cookies=False).get("/signed/", headers={"x-queue-entry-token": away.guest.reservation}))


def test_closed_is_closed_to_all(away):
    assert_unavailable(away.insider.get("/closed/"))
    assert away.insider.get("/closed/", headers=BROWSER).header("location").startswith("/queue/hall?return=")


def test_open_is_open_to_all(away):
    assert weir_headers(away.api().get("/open/")) == {"x-weir-room": "hall"}
    assert weir_headers(away.insider.get("/open/"))["x-weir-session"]
    assert is_let_in(away.api().get("/open/", headers=BROWSER))


def test_who_is_let_by_anyway_is_let_by(away):
    assert is_let_in(away.api().get("/bypassed/", headers={"X-Staff": "yes"}))
    assert_unavailable(away.api().get("/bypassed/"))
    headers = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST"}
    assert is_let_in(away.api().request("OPTIONS", "/signed/", headers=headers))


def test_it_is_said_once_and_counted_and_so_is_its_end(away):
    """The last of this server: its rooms are there again."""
    told = away.admin().call("GET", "gate").json()
    assert (told["engine_is_away"], told["engine_went_away"], told["engine_came_back"]) == (True, 1, 0)
    assert told["requests"]["signed"] >= 2 and told["requests"]["unguarded"] == 2 and told["requests"]["unavailable"] >= 5
    assert len(re.findall(r"\[error\].* weir: the gate goes on without its engine, as weir_when_down says: .+", away.log())) == 1
    away.come_back()
    wait_until(lambda: away.api().join("hall").status == 202, 10, "the rooms taken over")
    assert is_let_in(away.insider.get("/closed/"))
    told = away.admin().call("GET", "gate").json()
    assert (told["engine_is_away"], told["engine_went_away"], told["engine_came_back"]) == (False, 1, 1)
    wait_until(lambda: len(re.findall(r"\[notice\].* weir: the gate has its engine again", away.log())) == 1, 5, "the log to say so")
    away.insider.leave(away.insider.waiting_token)
    wait_until(lambda: away.insider.get("/signed/").status == 403, 2, "signatures alone count no more")


def test_no_client_can_make_the_engine_away(weir, shop):
    server = weir(rooms=ROOMS, server=SERVER.format(shop=shop.port), admin=["ops"])
    bad = [{"x-queue-entry-token": "x" * 3000}, {"Cookie": "weir-pass-hall=" + "x" * 3000}, {"Authorization": "Bearer a.b.c"}]
    at_once(server.port, [("GET", "/signed/", None, headers) for headers in bad] * 50)
    at_once(server.port, [("POST", "/api/v1/queue/join", "{", None)] * 50)
    told = server.admin().call("GET", "gate").json()
    assert told["engine_went_away"] == 0
    assert sum(told["requests"].values()) == told["requests"]["refused"] == 150


# --- a disk that fails


@pytest.fixture
def troubled(weir, tmp_path, shop):
    """A server whose disk can be told to fail or to take its time, and the disk."""
    def make(journal="", **kwargs):
        os.chmod(tmp_path, 0o755)
        server = weir(start=False, http=f"weir_journal journal {journal};", rooms=ROOMS, admin=["ops"],
                      server=SERVER.format(shop=shop.port), **kwargs)
        disk = Disk(tmp_path, server.dir / "journal")
        server.preload, server.env = disk.library, disk.env
        return server.start(), disk
    return make


@pytest.mark.local
def test_where_nothing_can_be_written_those_inside_go_on_and_nobody_new_comes_in(troubled):
    server, disk = troubled("sync=always")
    server.expect_in_log(r"\[(emerg|crit)\].*weir_journal")
    insider, gone = entered(server), entered(server)
    assert is_let_in(insider.get("/signed/")) and is_let_in(gone.get("/signed/"))
    gone.leave(gone.waiting_token)
    disk.set(fdatasync="EIO")
    assert_unavailable(server.api().join("hall"))
    for path in ("/signed/", "/closed/", "/open/"):
        assert is_let_in(insider.get(path)), "the engine knows the sessions still"
    wait_until(lambda: gone.get("/signed/").status == 403, 2, "a session that is over stays so")
    assert server.api().get("/signed/", headers=BROWSER).status == 302
    assert "weir-pass-hall" not in server.api().get("/open/", headers=BROWSER).cookies()
    assert server.admin().call("GET", "gate").json()["engine_is_away"] is True


# --- a disk that takes its time


@pytest.mark.local
def test_a_first_visit_waits_for_the_disk_and_holds_up_nobody(troubled):
    server, disk = troubled("sync=always", workers=1)
    insider = entered(server)
    assert is_let_in(insider.get("/signed/"))
    disk.set(fdatasync=500)
    answers = []
    visits = threading.Thread(target=lambda: answers.extend(at_once(server.port, [("GET", "/signed/", None, BROWSER)] * 30)))
    visits.start()
    wait_until(lambda: "500" in disk.calls("fdatasync"), 10, "a slow sync")
    for _ in range(20):
        assert is_let_in(insider.get("/signed/"))
    assert not answers
    visits.join()
    assert [answer.status for answer in answers] == [200] * 30
    assert len({answer.cookies()["weir-pass-hall"] for answer in answers}) == 30
    assert server.admin().figures("hall").json()["active"] == 31


@pytest.mark.local
def test_visitors_who_hang_up_before_they_are_let_in_harm_nobody(troubled):
    server, disk = troubled("sync=always", workers=1)
    disk.set(fdatasync=200)
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(b"GET /signed/ HTTP/1.1\r\nHost: x\r\nAccept: text/html\r\n\r\n")
    disk.heal()
    wait_until(lambda: server.admin().figures("hall").json()["issued"] == 20, 10, "all of them in the room")
    assert is_let_in(server.api().get("/signed/", headers=BROWSER))
