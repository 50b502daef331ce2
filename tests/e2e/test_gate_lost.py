# SPDX-License-Identifier: BSD-2-Clause
"""Passes after everything was forgotten, by a restart of an nginx that keeps no journal or by a store that lost it all: the rooms
know nobody any more, but the passes were signed."""

import json
import time

import pytest
from weirtest import Shop, wait_until

ROOMS = {
    "shop": "rate=100000 burst=1000 max_active=0",
    "small": "rate=100000 burst=1000 max_active=2",
}
SERVER = """
        location /shop/ {{ weir_gate room=shop; proxy_pass http://127.0.0.1:{shop}; }}
        location /small/ {{ weir_gate room=small; proxy_pass http://127.0.0.1:{shop}; }}
        location /user/ {{ weir_gate room=shop; weir_user $http_x_user_id from=127.0.0.1; proxy_pass http://127.0.0.1:{shop}; }}
        location /user-api/ {{ weir_api queue; weir_user $http_x_user_id from=127.0.0.1; }}
"""


@pytest.fixture(scope="module")
def shop():
    shop = Shop()
    shop.answer_headers["/shop/end"] = [("Weir-Session", "end")]
    yield shop
    shop.close()


@pytest.fixture
def server(weir, shop):
    return weir(rooms=ROOMS, server=SERVER.format(shop=shop.port), admin=["op"])


def restart(server):
    """In a later second than any pass was given in: that is how the old ones are told from the new."""
    server.stop()
    server.forget()
    second = int(time.time())
    wait_until(lambda: int(time.time()) > second, 3, "the next second")
    server.start()


def pass_of(server, room):
    person = server.api()
    return person.enter(person.ticket(room)).json()["reservation_token"]


def ask(server, token, path="/shop/", method="POST", **headers):
    return server.api().request(method, path, headers={"x-queue-entry-token": token, **headers})


def is_let_in(response):
    return response.status == 200 and response.json().get("shop") is True


def session_of(response):
    return [value for name, value in response.json()["headers"] if name.lower() == "x-weir-session"]


def everybody_is_out(server, token):
    """Whichever worker is asked."""
    return all(ask(server, token).error_code == "ADMISSION_REQUIRED" for _ in range(20))


def active(server, room="shop"):
    return server.admin().figures(room).json()["active"]


def test_a_pass_whose_session_was_lost_makes_it_anew(server):
    token = pass_of(server, "shop")
    first = ask(server, token)
    assert is_let_in(first)
    restart(server)
    assert active(server) == 0
    for _ in range(3):
        again = ask(server, token)
        assert is_let_in(again) and session_of(again) == session_of(first)
    assert active(server) == 1
    looked = server.admin().call("POST", "ticket", {"token": token}).json()
    assert looked["state"] == "active" and looked["kind"] == "pass"


@pytest.mark.parametrize("way", ["the shop", "the operator", "the operator, before it came back"])
def test_once_it_is_ended_it_stays_closed(server, way):
    token = pass_of(server, "shop")
    assert is_let_in(ask(server, token))
    restart(server)
    if way != "the operator, before it came back":
        assert is_let_in(ask(server, token))
    if way == "the shop":
        assert is_let_in(ask(server, token, "/shop/end"))
    else:
        revoked = server.admin().call("POST", "revoke", {"token": token}).json()
        assert revoked == {"room": "shop", "was": "active" if way == "the operator" else "none", "revoked": True}
    wait_until(lambda: everybody_is_out(server, token), 5, "the gate closed")
    assert active(server) == 0


def test_the_slots_hold(server):
    tokens = [pass_of(server, "small") for _ in range(2)]
    assert all(is_let_in(ask(server, token, "/small/")) for token in tokens)
    restart(server)
    newcomer = pass_of(server, "small")
    assert is_let_in(ask(server, newcomer, "/small/"))
    assert is_let_in(ask(server, tokens[0], "/small/"))
    assert ask(server, tokens[1], "/small/").error_code == "ADMISSION_REQUIRED"
    assert active(server, "small") == 2


def test_a_pass_that_was_given_since_and_is_over_is_not_lost(server):
    restart(server)
    token = pass_of(server, "shop")
    assert is_let_in(ask(server, token))
    assert is_let_in(ask(server, token, "/shop/end"))
    wait_until(lambda: everybody_is_out(server, token), 5, "the gate closed")
    assert active(server) == 0


def test_nobody_elses_pass_is_made_theirs_by_a_loss(server):
    ann = server.api()
    joined = ann.request("POST", "/user-api/join", json.dumps({"event_id": "shop"}), headers={"X-User-Id": "ann"}).json()
    entered = ann.request("POST", "/user-api/enter", json.dumps({"waiting_token": joined["waiting_token"]}), headers={"X-User-Id": "ann"})
    token = entered.json()["reservation_token"]
    restart(server)
    assert ask(server, token, "/user/", **{"X-User-Id": "bob"}).status == 403
    assert ask(server, token, "/user/").status == 403
    assert is_let_in(ask(server, token, "/user/", **{"X-User-Id": "ann"}))
    looked = server.admin().call("POST", "ticket", {"token": token}).json()
    assert looked["trusted"] is True


def test_a_reload_brings_nobody_back(server):
    token = pass_of(server, "shop")
    assert is_let_in(ask(server, token, "/shop/end"))
    wait_until(lambda: everybody_is_out(server, token), 5, "the gate closed")
    second = int(time.time())
    wait_until(lambda: int(time.time()) > second, 3, "the next second")
    server.reload()
    for _ in range(5):
        assert ask(server, token).error_code == "ADMISSION_REQUIRED"
