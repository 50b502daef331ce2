# SPDX-License-Identifier: BSD-2-Clause
"""The operator's API: who may use it, what it changes, how fast everybody follows, and what the log says of it."""

import json
import os
import re
import secrets
import signal
import socket
import threading
import time
from pathlib import Path

import pytest
from weirtest import Admin, Nginx, at_once, place_of, raw, wait_until
from weirtest.redis_pool import pool

FIGURES = ["id", "mode", "epoch", "issued", "waiting", "away", "called", "entered", "active", "inside", "done",
           "max_active", "rate", "pace", "pace_reason", "shop_ms", "shop_target_ms", "shop_failed_percent", "calls", "refunds",
           "last_called", "joined_per_sec", "called_per_sec", "eta_sec", "eta_inside_band", "eta_checked", "keys_dropped"]
# Says which worker answered.
PID = "add_header X-Pid $pid always;"


@pytest.fixture
def server(weir):
    return weir(rooms={"concert": "rate=10 burst=1", "held": "mode=hold"}, gate="concert", admin=["ops", "night.shift"])


def changes(server):
    """What the log says of changes, without nginx's own words around it."""
    return re.findall(r"\[notice\] .*? weir: (admin .*?), client:", server.log())


def assert_refused(answer, code, *parts):
    assert answer.error_code == code, answer
    for part in parts:
        assert part in answer.json()["error"]["message"], answer


def enter(person, token):
    """Their pass, once they are called."""
    return wait_until(lambda: person.enter(token).json().get("reservation_token"), what="the call")


# --- who may use it


def test_without_a_valid_token_every_request_gets_one_answer(server):
    token = server.admin_tokens["ops"]
    wrong = [None, "", "Bearer", "Bearer ", f"Basic {token}", token, f"Bearer {token}x", f"Bearer {token[:-1]}",
             f"Bearer  {token}", f"Bearer {token.upper()}!", "Bearer " + "x" * 64, "Bearer " + "x" * 9000, "Bearer ops",
             f"Bearer ops {token}", "Bearer \x01"]
    answers = set()
    for value in wrong:
        for method, path in [("GET", "rooms"), ("PATCH", "rooms/concert"), ("GET", "nothing"), ("OPTIONS", "rooms"),
                             ("GET", "stream"), ("POST", "rooms/concert/clear")]:
            headers = {} if value is None else {"Authorization": value}
            answer = server.client(cookies=False).request(method, f"/weir/api/{path}", headers={"X-Request-ID": "1", **headers})
            if value == "Bearer \x01" and answer.status == 400:
                continue  # nginx itself turns a control character away
            kept = [(name, value) for name, value in answer.headers if name != "date"]
            answers.add((answer.status, str(kept), answer.body))
    assert len(answers) == 1, answers
    answer = server.client().get("/weir/api/rooms")
    assert (answer.status, answer.error_code) == (401, "UNAUTHORIZED")
    assert answer.header("www-authenticate") == "Bearer"
    assert not changes(server)


def test_the_scheme_may_be_written_in_any_case_and_a_cookie_opens_nothing(server):
    token = server.admin_tokens["ops"]
    for scheme in ("Bearer", "bearer", "BEARER"):
        assert server.client().get("/weir/api/rooms", headers={"Authorization": f"{scheme} {token}"}).status == 200
    for name in ("token", "weir-admin", "Authorization"):
        assert server.client().get("/weir/api/rooms", headers={"Cookie": f"{name}={token}"}).status == 401
        assert server.client().get(f"/weir/api/rooms?{name}={token}").status == 401


def test_without_a_token_file_there_is_no_api(weir):
    server = weir(start=False, server="location /weir/api/ { weir_api admin; }")
    accepted, said = server.check_conf()
    assert accepted and "answers 404 to everybody" in said and "weir_admin_token_file" in said
    server.start()
    for token in (None, "", "x" * 64):
        answer = Admin(server.port, token).rooms()
        assert (answer.status, answer.error_code) == (404, "NOT_FOUND")
    assert weir().client().get("/weir/api/rooms").status == 404


def test_a_token_file_can_be_changed_by_a_reload(server):
    old = server.admin()
    assert old.rooms().status == 200
    server.admin_tokens = {"new": secrets.token_urlsafe(40)}
    server.write_admin_tokens()
    server.reload()
    old.close()
    assert old.rooms().status == 401
    assert server.admin("new").rooms().status == 200


@pytest.mark.parametrize("text, word", [
    ("ops short\n", "32 characters"), ("", "no token"), ("ops " + "x" * 257, "256"), ("o/s " + "x" * 40, "A-Z"),
    ("x" * 40, "A-Z"), ("a " + "x" * 40 + "\na " + "y" * 40, "taken"), ("a " + "x" * 40 + "\nb " + "x" * 40, "earlier"),
    ("\n".join(f"n{i} {i:040}" for i in range(17)), "16"), ("a " + "y" * 20000, "16384"),
])
def test_a_token_file_that_is_none_is_refused_and_not_quoted(weir, text, word):
    server = weir(start=False, admin=["ops"])
    server.admin_token_file.write_text(text)
    accepted, said = server.check_conf()
    assert not accepted and "admin token file" in said and word in said, said
    assert "xxxx" not in said and "yyyy" not in said and "short\n" not in said


def test_a_token_file_that_others_can_read_is_refused(weir):
    server = weir(start=False, admin=["ops"])
    server.admin_token_file.chmod(0o640)
    accepted, said = server.check_conf()
    assert not accepted and "chmod 600" in said and "admin token file" in said


@pytest.mark.parametrize("location", ["location = /weir/api { weir_api admin; }", "location ~ /weir/ { weir_api admin; }",
                                      "location /weir { weir_api admin; }", "weir_api admin;"])
def test_the_api_needs_a_location_of_its_own(weir, location):
    accepted, said = weir(start=False, server=location).check_conf()
    assert not accepted and "weir_api" in said


def test_failed_logins_are_limited_by_address_and_operators_are_not(weir):
    server = weir(admin=["ops"], http="""
        map $weir_admin $stranger { "" $binary_remote_addr; default ""; }
        limit_req_zone $stranger zone=logins:1m rate=1r/m;
        """, server="location /limited/ { weir_api admin; limit_req zone=logins burst=4 nodelay; }")
    stranger = server.client()
    codes = [stranger.get("/limited/rooms", headers={"Authorization": "Bearer " + "x" * 40}).error_code for _ in range(8)]
    assert codes == ["UNAUTHORIZED"] * 5 + ["RATE_LIMITED"] * 3
    assert all(server.admin().get("/limited/rooms").status == 200 for _ in range(20))


def test_the_lines_of_the_document_are_accepted_and_limit_strangers(weir):
    text = (Path(__file__).resolve().parents[2] / "docs" / "admin.md").read_text()
    (block,) = re.findall(r"^```nginx\n(.*?)^```$", text, re.M | re.S)
    http = "".join(re.findall(r"^    (?:map|limit_req_zone) .*\n", block, re.M))
    (location,) = re.findall(r"^        location .*?^        }\n", block, re.M | re.S)
    server = weir(admin=["ops"], http=http, server=location.replace("/weir/api/", "/documented/"))
    codes = {server.client().get("/documented/rooms").error_code for _ in range(20)}
    assert codes == {"UNAUTHORIZED", "RATE_LIMITED"}
    assert all(server.admin().get("/documented/rooms").status == 200 for _ in range(20))


def test_no_other_site_is_let_in(weir):
    server = weir(admin=["ops"], http="weir_cors https://shop.example;")
    preflight = {"Origin": "https://shop.example", "Access-Control-Request-Method": "PATCH"}
    assert server.client().request("OPTIONS", "/weir/api/rooms", headers=preflight).status == 401
    for answer in (server.admin().request("OPTIONS", "/weir/api/rooms", headers=preflight),
                   server.admin().get("/weir/api/rooms", headers={"Origin": "https://shop.example"})):
        assert answer.status in (200, 405)
        assert not [name for name, _ in answer.headers if name.startswith("access-control") or name == "vary"]
    assert server.api().get("/api/v1/queue/status", headers=preflight).header("access-control-allow-origin")


# --- what it shows


def test_the_figures_of_all_rooms_come_sorted_and_whole(server):
    admin = server.admin()
    for _ in range(3):
        server.api().ticket("held")
    rooms = admin.rooms().json()["rooms"]
    assert [room["id"] for room in rooms] == ["concert", "held"]
    assert all(list(room) == FIGURES for room in rooms)
    held = admin.figures("held").json()
    assert held == rooms[1]
    assert (held["mode"], held["issued"], held["waiting"], held["inside"], held["rate"]) == ("hold", 3, 3, 0, 50)
    assert admin.call("HEAD", "rooms").body == b""


def test_figures_count_everybody_once(server):
    admin = server.admin()
    admin.patch("concert", rate=1000, burst=100, max_active=2)
    people = [server.api() for _ in range(4)]
    tokens = [person.ticket("concert") for person in people]
    enter(people[0], tokens[0])
    enter(people[1], tokens[1])
    assert people[1].get("/").status == 200
    figures = admin.figures("concert").json()
    assert {name: figures[name] for name in ("issued", "waiting", "called", "entered", "active", "inside", "done")} == dict(
        issued=4, waiting=2, called=0, entered=1, active=1, inside=2, done=0)
    assert figures["calls"] == 2 and figures["last_called"] == 2 and figures["max_active"] == 2


def test_the_rate_is_told_for_batches_too(server):
    admin = server.admin()
    admin.put("b", batch=1449, interval_sec=10)
    assert admin.figures("b").json()["rate"] == 144.9
    admin.patch("b", rate=0.125)
    assert admin.figures("b").json()["rate"] == 0.125


def test_a_room_is_shown_with_all_its_settings(server):
    answer = server.admin().room("held").json()
    assert (answer["id"], answer["source"]) == ("held", "file")
    page = (server.admin().room("concert").json()["settings"])
    assert page["rate"] == 10 and page["burst"] == 1 and page["smooth"] is True and page["mode"] == "queue"
    assert list(page) == list(answer["settings"]) and len(page) >= 21


@pytest.mark.parametrize("path, allow", [
    ("rooms", "GET, HEAD"), ("rooms/held", "GET, HEAD, PUT, PATCH, DELETE"), ("rooms/held/figures", "GET, HEAD"),
    ("rooms/held/advance", "POST"), ("rooms/held/clear", "POST"), ("ticket", "POST"), ("stream", "GET"),
])
def test_another_method_is_told_which_are_allowed(server, path, allow):
    for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"} - set(allow.split(", ")):
        answer = server.admin().call(method, path)
        assert (answer.status, answer.header("allow")) == (405, allow)
        assert method == "HEAD" or answer.error_code == "METHOD_NOT_ALLOWED"


@pytest.mark.parametrize("path", ["", "room", "rooms/", "rooms/held/", "rooms/held/nothing",
                                  "rooms/held/figures/", "rooms/held/figures/x", "ticket/x", "stream/", "streams"])
def test_a_path_that_is_none_is_404(server, path):
    assert server.admin().call("GET", path).error_code == "NOT_FOUND"


@pytest.mark.parametrize("name", ["nobody", "x" * 65, "a%20b", "%00", "x" * 5000, "..%2e"])
def test_a_room_that_is_none_is_404_for_every_call(server, name):
    admin = server.admin()
    if name == "%00":
        assert admin.room(name).status == 400  # nginx itself
        return
    for answer in (admin.room(name), admin.figures(name), admin.patch(name, rate=1), admin.delete(name),
                   admin.advance(name, 1), admin.clear(name)):
        assert answer.error_code == "ROOM_NOT_FOUND"
    assert admin.rooms().json() == server.admin().rooms().json()
    assert not changes(server)


# --- settings


def test_patch_changes_what_is_named_and_nothing_else(server):
    admin = server.admin()
    before = admin.room("concert").json()["settings"]
    answer = admin.patch("concert", rate=500, burst=20, session_renew=False, mode="hold")
    assert answer.status == 200
    assert answer.json() == {"id": "concert", "source": "api",
                             "settings": {**before, "rate": 500, "burst": 20, "session_renew": False, "mode": "hold"}}
    assert admin.room("concert").json() == answer.json()
    assert changes(server) == [
        'admin "ops" changed room "concert": mode queue -> hold, rate 10 -> 500, burst 1 -> 20, session_renew true -> false']


def test_put_starts_from_the_defaults_and_makes_what_is_missing(server):
    admin = server.admin()
    plain = admin.put("fresh")
    assert plain.status == 201 and plain.json()["source"] == "api"
    assert admin.put("fresh", rate=5).status == 200
    assert admin.put("fresh", max_active=7).json()["settings"] == {**plain.json()["settings"], "max_active": 7}
    assert server.api().join("fresh").status == 202
    lobby = admin.put("fresh", preset="lobby", interval_sec=20).json()["settings"]
    assert (lobby["tier"], lobby["batch"], lobby["interval_sec"], lobby["max_active"]) == (1, 500, 20, 0)
    assert changes(server)[0] == 'admin "ops" made room "fresh": every setting as it was'
    assert changes(server)[1] == 'admin "ops" changed room "fresh": rate 50 -> 5'


def test_null_goes_back_to_the_default_or_to_the_presets_value(server):
    admin = server.admin()
    plain = admin.put("room").json()["settings"]
    admin.patch("room", rate=5, burst=3, max_active=9, smooth=False)
    assert admin.patch("room", burst=None, smooth=None).json()["settings"] == {**plain, "rate": 5, "max_active": 9}
    assert admin.patch("room", rate=None, max_active=None).json()["settings"] == plain
    lobby = admin.put("room", preset="lobby").json()["settings"]
    admin.patch("room", rate=5, tier=2, max_active=3)
    assert admin.patch("room", rate=None, tier=None, max_active=None).json()["settings"] == lobby
    assert admin.patch("room", rate=None, batch=7).json()["settings"] == {**lobby, "batch": 7}
    assert admin.patch("room", rate=5, batch=None).json()["settings"] == {**lobby, "rate": 5, "batch": 0}
    assert admin.patch("room", preset=None).json()["settings"] == plain
    assert admin.put("room", rate=None).json()["settings"] == plain


@pytest.mark.parametrize("body, parts", [
    ({"speed": 3}, ["speed"]),
    ({"speed": None}, ["speed"]),
    ({"rate": 0}, ["rate", "0.001", "100000"]),
    ({"rate": 100001}, ["rate", "0.001", "100000"]),
    ({"rate": -1}, ["rate"]),
    ({"rate": 1.0001}, ["rate", "three decimals"]),
    ({"rate": 1e300}, ["rate"]),
    ({"rate": "10"}, ["rate", "number"]),
    ({"rate": True}, ["rate", "number"]),
    ({"rate": [10]}, ["rate"]),
    ({"rate": {"value": 10}}, ["rate"]),
    ({"max_active": 1.5}, ["max_active", "whole number", "100000000"]),
    ({"max_active": 2**63 - 1}, ["max_active"]),
    ({"max_active": ""}, ["max_active"]),
    ({"smooth": 1}, ["smooth", "true"]),
    ({"smooth": "true"}, ["smooth", "true"]),
    ({"mode": "shut"}, ["mode", "queue", "hold", "open", "closed"]),
    ({"mode": 1}, ["mode"]),
    ({"mode": True}, ["mode"]),
    ({"mode": "hold "}, ["mode"]),
    ({"preset": "none"}, ["preset", "lobby"]),
    ({"rate": 5, "batch": 5}, ["rate", "batch", "exclude"]),
    ({"tier": 3}, ["tier", "1", "2"]),
    ({"": 1}, []),
    ({"\u202e\x1b[2J\n": 1}, ["?"]),
    ({"x" * 10000: 1}, ["xxx"]),
    ({"mode": "é" * 1000}, ["mode"]),
    ({"ü" * 1000: 1}, ["?"]),
    ('{"rate":5,"rate":5}', ["rate"]),
    ('{"rate":5,"mode":"hold","r\\u0061te":6}', ["r\\u0061te"]),
])
def test_one_wrong_setting_is_named_and_none_is_changed(server, body, parts):
    admin = server.admin()
    before = admin.rooms().body, admin.room("concert").body
    others = {"max_called": 4, "min_wait_sec": 1, "claim_ttl_sec": 30, "away_ttl_sec": 60}
    if isinstance(body, dict):
        bodies = [{**others, **body}, {**body, **others}]
    else:
        bodies = [body]
    for sent in bodies:
        for method, name in (("PATCH", "concert"), ("PUT", "concert"), ("PUT", "fresh")):
            answer = admin.call(method, f"rooms/{name}", sent)
            assert answer.status == 400
            assert_refused(answer, "INVALID_SETTING", *parts)
            assert not re.search("[\x00-\x1f\x7f-\uffff]", answer.body.decode())
    assert (admin.rooms().body, admin.room("concert").body) == before
    assert not changes(server)


@pytest.mark.parametrize("body", ["", "nonsense", "[]", "5", "null", "{", '{"rate":5} x', '{"rate":}', '{"a\\u0000b":1}',
                                  '{"rate":1e999}', "{'rate':5}", b'{"mode":"\xff"}', "[" * 8000, '{"a":' * 3000])
def test_a_body_that_is_no_object_is_400(server, body):
    admin = server.admin()
    before = admin.room("concert").body
    for method in ("PATCH", "PUT"):
        answer = admin.call(method, "rooms/concert", body)
        assert (answer.status, answer.error_code) == (400, "INVALID_REQUEST"), answer
    assert admin.call("POST", "rooms/concert/advance", body).error_code == "INVALID_REQUEST"
    assert admin.call("POST", "ticket", body).error_code == "INVALID_REQUEST"
    assert admin.room("concert").body == before


def test_a_body_over_the_limit_is_413(server):
    assert server.admin().call("PATCH", "rooms/concert", json.dumps({"mode": "x" * 20000})).error_code == "BODY_TOO_LARGE"


def test_a_room_id_that_cannot_be_is_refused_where_a_room_would_be_made(server):
    for name in ("a%20b", "x" * 65, "caf%C3%A9"):
        assert_refused(server.admin().put(name), "INVALID_EVENT_ID", "1 to 64")
    assert server.admin().put("a%3Ab").json()["id"] == "a:b"


def test_there_are_no_more_rooms_than_there_may_be(weir):
    server = weir(rooms={"one": ""}, rooms_max=2, admin=["ops"])
    admin = server.admin()
    assert admin.put("two").status == 201
    answer = admin.put("three")
    assert answer.status == 429 and answer.header("retry-after")
    assert_refused(answer, "QUEUE_FULL", "room")
    assert admin.delete("two").status == 200
    assert admin.put("three").status == 201


def test_settings_of_the_api_survive_a_reload_and_win_over_the_file(server):
    admin = server.admin()
    admin.patch("concert", rate=77)
    admin.put("made", max_active=3)
    server.write_conf(rooms={"concert": "rate=20 burst=9", "held": "mode=hold rate=33", "made": "max_active=8"})
    server.reload()
    admin.close()
    concert, held, made = (admin.room(name).json() for name in ("concert", "held", "made"))
    assert (concert["source"], concert["settings"]["rate"], concert["settings"]["burst"]) == ("api", 77, 1)
    assert (held["source"], held["settings"]["rate"]) == ("file", 33)
    assert (made["source"], made["settings"]["max_active"]) == ("api", 3)


def patches(server, operator, name, values):
    """One request behind the other on one connection, so that the server has no pause between them."""
    requests = b""
    for value in values:
        sent = json.dumps({name: value})
        requests += (f"PATCH /weir/api/rooms/concert HTTP/1.1\r\nHost: x\r\nContent-Length: {len(sent)}\r\n"
                     f"Authorization: Bearer {server.admin_tokens[operator]}\r\n\r\n{sent}").encode()
    return raw(server.port, requests)


def test_operators_who_change_different_settings_at_once_lose_nothing(weir):
    server = weir(rooms={"concert": ""}, admin=["ops", "night.shift"], workers=4)
    names = ["max_active", "burst", "max_waiting", "max_called", "min_wait_sec", "max_eta_sec"]
    rounds = [range(start, start + 200) for start in range(2000, 4000, 200)]
    refused = []

    def operate(name, operator):
        for values in rounds:  # each on a new connection, and so to any worker
            answers = patches(server, operator, name, values)
            refused.extend(re.findall(rb"HTTP/1.1 (?!200)\d+", answers))

    threads = [threading.Thread(target=operate, args=(name, operator))
               for name, operator in zip(names, ["ops", "night.shift"] * 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    settings = server.admin().room("concert").json()["settings"]
    assert [settings[name] for name in names] == [3999] * len(names)
    log = changes(server)
    assert not refused and len(log) == 12000
    assert len([line for line in log if line.startswith('admin "night.shift" changed')]) == 6000
    # Nobody ever undid another's change: each one goes on from the value of the one before, and names no other setting.
    for name in names:
        steps = [re.findall(r"(\w+) (\d+) -> (\d+)", line) for line in log if f" {name} " in line]
        assert [step[0][2] for step in steps] == [str(value) for value in range(2000, 4000)]
        assert [step[0][1] for step in steps[1:]] == [step[0][2] for step in steps[:-1]]
        assert all(len(step) == 1 for step in steps)


# --- every worker, at once


@pytest.fixture
def workers(weir):
    return weir(rooms={"concert": "rate=10 burst=1 max_active=0 seen_ttl_sec=600", "held": "mode=hold"}, gate="concert",
                admin=["ops"], workers=3, server=PID)


def ask_every_worker(server, method, path, headers=None):
    """{pid: answer} of all workers, over as many connections as it takes."""
    answers = {}

    def all_answered():
        for answer in at_once(server.port, [(method, path, None, headers)] * 30, connections=30):
            answers[int(answer.header("x-pid"))] = answer
        return set(answers) == set(server.worker_pids())

    wait_until(all_answered, 20, "an answer of every worker")
    return answers


def test_a_faster_pace_is_there_within_a_second_on_every_worker(workers):
    admin = workers.admin()
    headers = {"Authorization": f"Bearer {workers.admin_tokens['ops']}"}
    join = ("POST", "/api/v1/queue/join", {"event_id": "concert"})
    at_once(workers.port, [join] * 1500)
    assert admin.patch("concert", rate=500, burst=50).status == 200
    for answer in ask_every_worker(workers, "GET", "/weir/api/rooms/concert/figures", headers).values():
        assert answer.json()["rate"] == 500
    began, calls = time.monotonic(), admin.figures("concert").json()["calls"]
    wait_until(lambda: admin.figures("concert").json()["calls"] >= calls + 400, 5, "400 more calls")
    took = time.monotonic() - began
    assert took < 2, "at 10/s these were 40 seconds"
    calls = admin.figures("concert").json()["calls"] - calls
    assert calls <= 50 + 500 * (time.monotonic() - began) + 1


def test_after_a_clear_no_worker_knows_anybody_and_numbering_goes_on(workers):
    admin = workers.admin()
    admin.patch("concert", rate=1000, burst=10, max_active=3)
    people = [workers.api() for _ in range(6)]
    tokens = [person.ticket("concert") for person in people]
    for person, token in zip(people[:2], tokens):
        enter(person, token)
        assert person.get("/").status == 200
    wait_until(lambda: admin.figures("concert").json()["inside"] == 3, what="the third call")
    assert admin.clear("concert").json() == {"id": "concert", "cleared": 6}
    for token in tokens:
        for answer in ask_every_worker(workers, "GET", f"/api/v1/queue/status?token={token}").values():
            assert (answer.status, answer.error_code) == (404, "TOKEN_NOT_FOUND")
    for person, token in zip(people, tokens):
        wait_until(lambda: person.get("/").status == 403, 1, "a pass from before opens nothing")
        assert person.enter(token).error_code == "TOKEN_NOT_FOUND"
        assert admin.ticket(token).error_code == "TOKEN_NOT_FOUND"
    figures = admin.figures("concert").json()
    assert (figures["waiting"], figures["inside"], figures["done"], figures["issued"]) == (0, 0, 6, 6)
    newcomer = workers.api().ticket("concert")
    assert place_of(newcomer).count == 7 and place_of(newcomer).epoch == place_of(tokens[0]).epoch
    assert changes(workers)[-1] == 'admin "ops" cleared room "concert": waiting 3 -> 0, away 0 -> 0, inside 3 -> 0'


def test_a_deleted_room_is_gone_everywhere_and_made_again_it_is_another(workers):
    admin = workers.admin()
    token = workers.api().ticket("held")
    epoch = admin.figures("held").json()["epoch"]
    assert admin.delete("held").json() == {"id": "held", "deleted": True}
    for answer in ask_every_worker(workers, "GET", f"/api/v1/queue/status?token={token}").values():
        assert answer.error_code == "TOKEN_NOT_FOUND"
    assert admin.delete("held").error_code == "ROOM_NOT_FOUND"
    assert [room["id"] for room in admin.rooms().json()["rooms"]] == ["concert"]
    assert workers.api().join("held").error_code == "ROOM_NOT_FOUND"
    assert admin.put("held").status == 201
    assert admin.figures("held").json()["epoch"] > epoch
    assert workers.api().status(token).error_code == "TOKEN_NOT_FOUND"
    assert workers.api().join("held").status == 202
    assert 'admin "ops" deleted room "held": waiting 1 -> 0, away 0 -> 0, inside 0 -> 0' in changes(workers)


def test_a_deleted_room_of_the_file_comes_back_with_a_reload(workers):
    admin = workers.admin()
    admin.patch("held", rate=99)
    admin.delete("held")
    workers.reload()
    admin.close()
    held = admin.room("held").json()
    assert (held["source"], held["settings"]["rate"], held["settings"]["mode"]) == ("file", 50, "hold")


def test_advance_calls_the_next_now_and_never_beyond_the_slots(workers):
    admin = workers.admin()
    people = [workers.api() for _ in range(8)]
    tokens = [person.ticket("held") for person in people]
    admin.patch("held", max_active=5)
    assert admin.advance("held", 3).json() == {"id": "held", "called": 3}
    ready = [person.status(token).json()["ready_for_entry"] for person, token in zip(people, tokens)]
    assert ready == [True] * 3 + [False] * 5
    assert admin.advance("held", 4294967295).json() == {"id": "held", "called": 2}
    assert admin.figures("held").json()["inside"] == 5
    assert changes(workers)[-1] == (
        'admin "ops" advanced room "held": asked for 4294967295, called 2 at once, waiting 5 -> 3, away 0 -> 0, inside 3 -> 5')
    assert admin.advance("held", 3).json()["called"] == 0


def test_advance_keeps_nothing_for_those_who_come_later(workers):
    admin = workers.admin()
    first = workers.api().ticket("held")
    assert admin.advance("held", 100).json()["called"] == 1
    assert workers.api().status(first).json()["ready_for_entry"]
    assert not workers.api().join("held").json()["ready_for_entry"]


@pytest.mark.parametrize("body", [{}, {"count": 0}, {"count": -1}, {"count": 1.5}, {"count": "1"}, {"count": None},
                                  {"count": 2**32}, {"count": [1]}, '{"count":1,"count":1}'])
def test_advance_needs_a_count(server, body):
    answer = server.admin().call("POST", "rooms/held/advance", body)
    assert answer.status == 400
    assert_refused(answer, "INVALID_REQUEST", "count")
    assert not changes(server)


# --- a ticket


def test_a_ticket_and_a_pass_are_shown_as_the_server_knows_them(server):
    admin = server.admin()
    admin.patch("concert", rate=1000, burst=100)
    waiting = server.api().ticket("held")
    told = admin.ticket(waiting).json()
    assert told == {"kind": "ticket", "room": "held", "state": "waiting", "epoch": place_of(waiting).epoch, "count": 1,
                    "position": 1, "issued_at": told["issued_at"], "trusted": False, "waited_sec": 0, "eta_sec": 1,
                    "eta_low_sec": told["eta_low_sec"], "eta_high_sec": told["eta_high_sec"], "ready_for_entry": False}
    assert abs(told["issued_at"] - time.time()) < 60
    person = server.api()
    called = person.ticket("concert")
    wait_until(lambda: admin.ticket(called).json()["ready_for_entry"], what="the call")
    assert admin.ticket(called).json()["state"] == "called" and admin.ticket(called).json()["ready_for_entry"]
    its_pass = person.enter(called).json()["reservation_token"]
    for token, kind in ((called, "ticket"), (its_pass, "pass")):
        told = admin.ticket(token).json()
        assert (told["kind"], told["state"], told["count"]) == (kind, "entered", 1)
    assert admin.ticket(its_pass).json()["expires_at"] > time.time() + 40000
    assert person.get("/").status == 200
    assert admin.ticket(its_pass).json()["state"] == "active"
    person.leave(called)
    assert admin.ticket(called).error_code == admin.ticket(its_pass).error_code == "TOKEN_NOT_FOUND"


def test_looking_at_a_ticket_is_not_being_seen(weir):
    server = weir(rooms={"held": "mode=hold seen_ttl_sec=10"}, admin=["ops"])
    admin, token = server.admin(), server.api().ticket("held")

    def is_away():
        return admin.ticket(token).json()["state"] == "away"

    wait_until(is_away, 20, "the ticket to be away though it is looked at all the time")
    assert admin.ticket(token).json()["state"] == "away", "nor does looking bring anybody back"
    assert server.api().status(token).status == 200
    assert admin.ticket(token).json()["state"] == "waiting"


@pytest.mark.parametrize("token, code", [
    ("x" * 60, "TOKEN_NOT_FOUND"), ("x" * 10000, "TOKEN_NOT_FOUND"), ("a.b.c", "TOKEN_NOT_FOUND"), ("é", "TOKEN_NOT_FOUND"),
    ("", "MISSING_TOKEN"), (None, "MISSING_TOKEN"), (5, "MISSING_TOKEN"), (["x"], "MISSING_TOKEN"),
])
def test_what_is_no_ticket_is_not_found(server, token, code):
    assert server.admin().ticket(token).error_code == code


# --- the stream


class Stream:
    """One stream over a connection of its own."""

    def __init__(self, server, path="/weir/api/stream", size=65536):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
        self.socket.settimeout(20)
        self.socket.connect(("127.0.0.1", server.port))
        token = server.admin_tokens["ops"]
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        self.file = self.socket.makefile("rb")
        self.status = int(self.file.readline().split()[1])
        self.headers = {}
        while line := self.file.readline().strip():
            name, value = line.decode().split(": ", 1)
            self.headers[name.lower()] = value

    def chunk(self):
        """The next chunk, b"" at the end."""
        size = int(self.file.readline(), 16)
        return self.file.read(size + 2)[:-2]

    def event(self):
        text = self.chunk()
        while not text.endswith(b"\n\n"):
            text += self.chunk()
        name, data = re.fullmatch(rb"event: (\w+)\ndata: ([^\n]*)\n\n", text).groups()
        assert name == b"figures"
        return json.loads(data)

    def close(self):
        self.file.close()
        self.socket.close()


def test_the_stream_tells_the_figures_once_a_second(server):
    stream = Stream(server)
    assert stream.status == 200 and stream.headers["content-type"] == "text/event-stream"
    assert stream.headers["cache-control"] == "no-store" and "x-request-id" in stream.headers
    first = stream.event()
    assert [list(room) for room in first["rooms"]] == [FIGURES] * 2
    began = time.monotonic()
    server.api().ticket("held")
    assert stream.event()["rooms"][1]["waiting"] == 1
    server.admin().delete("held")
    server.admin().put("zoo")
    assert [room["id"] for room in stream.event()["rooms"]] == ["concert", "zoo"]
    assert 1 < time.monotonic() - began < 4
    stream.close()


def test_a_stream_ends_well_when_its_worker_leaves(server):
    for stop in (server.reload, lambda: server.send(signal.SIGQUIT)):
        stream = Stream(server)
        stream.event()
        stop()
        while stream.chunk():
            pass
        assert stream.file.read() == b"\r\n"[2:], "the last chunk, then the end"
        stream.close()
    assert server.process.wait(10) == 0


def test_there_are_16_streams_a_worker_and_one_that_is_gone_makes_place(weir):
    server = weir(rooms={"held": ""}, admin=["ops"], workers=1)
    streams = [Stream(server) for _ in range(16)]
    assert all(stream.status == 200 for stream in streams)
    refused = Stream(server)
    assert refused.status == 429 and "retry-after" in refused.headers
    assert b"RATE_LIMITED" in refused.file.read(int(refused.headers["content-length"]))
    assert server.admin().rooms().status == 200
    streams.pop().close()

    def is_open_again():
        stream = Stream(server)
        (streams if stream.status == 200 else [stream.close()]).append(stream)
        return stream.status == 200

    wait_until(is_open_again, 10, "the place of the one that is gone", every_sec=0.2)
    for stream in streams:
        stream.event()
        stream.close()


# To a store each of them is a command of its own, once a second.
ROOMS = [f"room-{number:05}" for number in range(1000 if pool.has_stores else 3000)]


@pytest.fixture(scope="module")
def many_rooms(tmp_path_factory):
    server = Nginx(tmp_path_factory.mktemp("rooms") / "nginx", zone="400m", rooms_max=len(ROOMS), admin=["ops"], workers=1)
    try:
        server.start()
        headers = {"Authorization": f"Bearer {server.admin_tokens['ops']}"}
        puts = [("PUT", f"/weir/api/rooms/{name}", {}, headers) for name in reversed(ROOMS)]
        assert {answer.status for answer in at_once(server.port, puts)} == {201}
        yield server
    finally:
        server.stop()


def memory_kib(server):
    (pid,) = server.worker_pids()
    text = open(f"/proc/{pid}/status").read()
    return int(re.search(r"RssAnon:\s+(\d+)", text)[1])


def test_thousands_of_rooms_are_told_in_bounded_time_and_memory(many_rooms):
    admin = many_rooms.admin()
    for _ in range(3):
        assert [room["id"] for room in admin.rooms().json()["rooms"]] == ROOMS
    frame_kib = len(admin.rooms().body) // 1024
    before = memory_kib(many_rooms)
    slow = [Stream(many_rooms, size=4096) for _ in range(4)]
    quick = Stream(many_rooms)
    for _ in range(5):
        assert [room["id"] for room in quick.event()["rooms"]] == ROOMS
        began = time.monotonic()
        assert many_rooms.client().get("/healthz").status == 200
        assert time.monotonic() - began < 1, "others are served in between"
    # Those who do not read have one frame each and no more. (The sanitizer keeps what was freed.)
    assert memory_kib(many_rooms) - before < 5 * 2 * frame_kib or os.environ.get("WEIR_VARIANT") == "asan"
    for stream in [*slow, quick]:
        stream.close()
    assert admin.rooms().status == 200


def test_a_slow_reader_gets_whole_frames(many_rooms):
    stream = Stream(many_rooms, size=4096)
    for _ in range(3):
        assert [room["id"] for room in stream.event()["rooms"]] == ROOMS
    stream.close()


def test_a_client_that_goes_away_in_the_middle_is_no_trouble(many_rooms):
    for _ in range(20):
        stream = Stream(many_rooms, size=4096)
        stream.socket.recv(1000)
        stream.close()
        raw(many_rooms.port, f"GET /weir/api/rooms HTTP/1.1\r\nAuthorization: Bearer {many_rooms.admin_tokens['ops']}\r\n"
                             f"Host: x\r\n\r\n".encode()[:-2])
    assert many_rooms.admin().rooms().status == 200


# --- the log


def test_no_token_is_ever_logged(weir):
    server = weir(rooms={"held": "mode=hold"}, admin=["ops"],
                  http='log_format all "$request $http_user_agent $weir_admin"; access_log access.log all;')
    admin, ticket = server.admin(), server.api().ticket("held")
    wrong = secrets.token_hex(30)
    admin.patch("held", rate=5)
    admin.ticket(ticket)
    Admin(server.port, wrong).patch("held", rate=5)
    server.client().get(f"/weir/api/rooms?token={wrong}")
    server.stop()
    everything = "".join(path.read_text(errors="replace") for path in server.dir.glob("*.log"))
    assert 'weir: admin "ops" changed room "held": rate 50 -> 5' in everything
    for token in (server.admin_tokens["ops"], wrong, ticket):
        assert token not in everything
