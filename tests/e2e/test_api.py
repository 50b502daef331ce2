# SPDX-License-Identifier: BSD-2-Clause
"""The queue API, family A: every call, every field, every code, and the one envelope."""

import http.client
import re

import pytest
from weirtest import Nginx, Response, at_once, wait_until

JOIN = "/api/v1/queue/join"
ENTER = "/api/v1/queue/enter"
LEAVE = "/api/v1/queue/leave"
HEARTBEAT = "/api/v1/queue/heartbeat"

ROOMS = {
    "now": "rate=100000 burst=1000 max_active=0",
    "held": "mode=hold",
    "shut": "mode=closed",
    "full": "mode=hold max_waiting=1",
    "a:b": "rate=100000 burst=1000 max_active=0 session_max_sec=3600 arrive_ttl_sec=77",
    "slow": "rate=0.5 burst=1",
    "goodbye": "mode=hold seen_ttl_sec=60",
}
SERVER = """
        location /strict/ { weir_api queue; weir_idempotency required; }
        location /cors/ { weir_api queue; weir_cors https://shop.example http://localhost:3000; }
        location /limited/ { weir_api queue; limit_req zone=one; }
        location ~ ^/regex/[a-z]+$ { weir_api queue; }
        location = /exact/join { weir_api queue; }
        location /proxied/ { weir_api queue; set_real_ip_from 127.0.0.0/8; real_ip_header X-Forwarded-For;
                             weir_user $http_x_user_id from=127.0.0.2 from=10.0.0.0/8; }
        location /signed-in/ { weir_api queue; weir_user $http_x_user_id from=127.0.0.1/32; }
        location /vouched/ { weir_api queue; weir_user $arg_user; }
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Nginx(tmp_path_factory.mktemp("api") / "nginx", rooms=ROOMS, server=SERVER,
                   http="limit_req_zone $uri zone=one:1m rate=1r/m;")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def api(server):
    api = server.api()
    yield api
    api.close()


def assert_error(response, status, code):
    """The envelope, with nothing but what it may hold, and the headers that go with it."""
    assert (response.status, response.error_code) == (status, code), response
    error = response.json()["error"]
    assert set(response.json()) == {"error"}
    assert set(error) - {"retry_after"} == {"code", "message", "trace_id"}
    assert error["trace_id"] == response.header("x-request-id")
    assert response.header("content-type") == "application/json"
    assert response.header("cache-control") == "no-store"
    assert str(error.get("retry_after", "")) == response.header("retry-after", "")


# --- join


def test_join_gives_a_ticket_and_says_where_it_stands(api):
    response = api.join("held", fields={"user_id": "anonymous"})
    assert response.status == 202
    assert response.header("content-type") == "application/json"
    assert response.header("cache-control") == "no-store"
    answer = response.json()
    assert re.fullmatch(r"[A-Za-z0-9_-]+", answer.pop("waiting_token"))
    assert answer.pop("position_hint") >= 1
    assert answer.pop("next_poll_sec") >= 1
    assert answer == {"status": "waiting", "ready_for_entry": False}


def test_join_is_called_at_once_where_there_is_room(api):
    assert api.join("now").json()["ready_for_entry"] is True


def test_join_makes_a_visitor_known_by_a_cookie(api):
    (cookie,) = api.join("held").header_all("set-cookie")
    assert re.fullmatch(r"weir-visitor=[A-Za-z0-9_-]{46}; Path=/; Max-Age=31536000; HttpOnly; SameSite=Lax", cookie)


def test_joining_again_returns_the_same_ticket_and_sets_no_cookie(api):
    first = api.join("held")
    again = api.join("held")
    assert again.body == first.body
    assert again.header("set-cookie") is None
    assert again.header("x-idempotency-cached") is None


def test_one_cookie_has_one_ticket_a_room(api):
    assert api.ticket("held") != api.ticket("now")


def test_a_junk_visitor_cookie_before_the_real_one_makes_no_new_visitor(server, api):
    first = api.join("held")
    headers = {"Cookie": f"weir-visitor=junk; weir-visitor={api.cookies['weir-visitor']}"}
    again = server.api(cookies=False).join("held", headers=headers)
    assert again.body == first.body
    assert again.header("set-cookie") is None


def test_a_forged_visitor_cookie_is_replaced(api):
    api.cookies["weir-visitor"] = "A" * 46
    response = api.join("held")
    assert response.cookies()["weir-visitor"] != "A" * 46


def test_a_cookie_is_found_among_others(api):
    token = api.ticket("held")
    visitor = api.cookies["weir-visitor"]
    others = {"Cookie": f"xweir-visitor=a; weir-visitor2=b; c=d;weir-visitor={visitor}; weir-visitor=zzz"}
    assert api.ticket("held", headers=others) == token


def test_a_user_id_in_the_body_is_a_label_and_no_identity(server):
    tokens = [server.api().ticket("held", fields={"user_id": "alice"}) for _ in range(2)]
    assert tokens[0] != tokens[1]


@pytest.mark.parametrize("label", ["", "anonymous", None, "x" * 256, "\N{SNOWMAN}"])
def test_labels_that_are_accepted(api, label):
    assert api.join("held", fields={"user_id": label}).status == 202


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "nonsense", ""])
def test_a_json_body_counts_whatever_its_content_type_says(api, content_type):
    response = api.post(JOIN, b'{"event_id":"held"}', headers={"Content-Type": content_type})
    assert response.status == 202


def test_a_body_may_come_in_chunks_and_in_pieces(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    pieces = [b'{"event', b'_id":', b' "he', b'ld"', b" " * 9000, b"}"]
    connection.request("POST", JOIN, iter(pieces), {"Transfer-Encoding": "chunked"}, encode_chunked=True)
    assert connection.getresponse().status == 202
    connection.close()


def test_escapes_in_the_body_are_read(api):
    assert api.post(JOIN, b'{"event\\u005fid":"h\\u0065ld","x":"\\\\"}').status == 202


@pytest.mark.parametrize("room, status, code", [("shut", 503, "ROOM_CLOSED"), ("nowhere", 404, "ROOM_NOT_FOUND")])
def test_join_says_why_there_is_no_way_in(api, room, status, code):
    response = api.join(room)
    assert_error(response, status, code)
    assert (response.header("retry-after") is not None) == (code == "ROOM_CLOSED")


def test_a_full_line_says_when_to_come_back(server, api):
    server.api().join("full")
    response = api.join("full")
    assert_error(response, 429, "QUEUE_FULL")
    assert int(response.header("retry-after")) >= 1


def test_rooms_are_made_on_demand_only_as_far_as_they_have_place(weir):
    server = weir(auto=True, rooms_max=2)
    assert [server.api().join(name).status for name in ("one", "two", "one")] == [202, 202, 202]
    response = server.api().join("three")
    assert_error(response, 429, "QUEUE_FULL")


# --- status


def test_status_says_everything_and_counts_the_line(server):
    people = [server.api() for _ in range(3)]
    tokens = [person.ticket("slow") for person in people]
    assert people[0].status(tokens[0]).json()["ready_for_entry"] is True
    answer = people[2].status(tokens[2]).json()
    assert answer["position"] == 2
    assert 0 <= answer["eta_low_sec"] <= answer["eta_sec"] <= answer["eta_high_sec"]
    assert answer["eta_high_sec"] > 0
    assert answer["next_poll_sec"] >= 1
    assert answer["waiting_time"] < 5
    assert {key: answer[key] for key in ("status", "ready_for_entry")} == {"status": "waiting", "ready_for_entry": False}
    assert set(answer) == {"status", "position", "eta_sec", "eta_low_sec", "eta_high_sec", "waiting_time",
                           "ready_for_entry", "next_poll_sec"}


def test_status_is_waiting_until_entered_and_ready_inside(api):
    token = api.ticket("now")
    called = api.status(token).json()
    assert (called["status"], called["ready_for_entry"], called["position"]) == ("waiting", True, 1)
    assert api.enter(token).status == 200
    assert api.status(token).json()["status"] == "ready"


def test_status_answers_head_like_get(api):
    token = api.ticket("held")
    response = api.request("HEAD", f"/api/v1/queue/status?token={token}")
    assert (response.status, response.body) == (200, b"")
    assert int(response.header("content-length")) > 0


def test_other_parameters_and_escapes_beside_the_token_do_no_harm(api):
    token = api.ticket("held")
    for query in (f"a=b&token={token}&c=%zz", f"%74oken={token}", f"token={token[:5]}%{ord(token[5]):02x}{token[6:]}"):
        assert api.get(f"/api/v1/queue/status?{query}").status == 200


# --- enter


def test_enter_before_the_call_is_refused(api):
    assert_error(api.enter(api.ticket("held")), 403, "NOT_READY")


def test_enter_gives_a_pass_in_the_body_and_in_a_cookie(api):
    response = api.enter(api.ticket("a:b"))
    assert response.status == 200
    answer = response.json()
    assert set(answer) == {"admission", "reservation_token", "ttl_sec"}
    assert (answer["admission"], answer["ttl_sec"]) == ("granted", 77)
    (cookie,) = response.header_all("set-cookie")
    assert cookie == f"weir-pass-a~b={answer['reservation_token']}; Path=/; Max-Age=3600; HttpOnly; SameSite=Lax"


def test_entering_again_returns_the_same_bytes(api):
    token = api.ticket("now")
    answers = {api.enter(token).body for _ in range(3)}
    assert len(answers) == 1


def test_five_enters_at_once_are_one_pass(server, api):
    body = {"waiting_token": api.ticket("now")}
    answers = at_once(server.port, [("POST", ENTER, body)] * 5, connections=5)
    assert [answer.status for answer in answers] == [200] * 5
    assert len({answer.body for answer in answers}) == 1


# --- leave, heartbeat


def test_leave_ends_the_ticket_and_may_be_repeated(api):
    token = api.ticket("held")
    for _ in range(2):
        response = api.leave(token)
        assert (response.status, response.json()) == (200, {"status": "left"})
    gone = api.status(token)
    assert_error(gone, 404, "TOKEN_NOT_FOUND")
    assert gone.json()["error"]["message"] == "Waiting token not found or expired"


def test_leave_with_anything_is_left(api):
    assert api.leave("nonsense").json() == {"status": "left"}


def test_somebody_who_left_may_join_again(api):
    token = api.ticket("held")
    api.leave(token)
    assert api.ticket("held") != token


def test_a_beacon_takes_effect_after_its_grace_unless_a_poll_takes_it_back(api, server):
    leaver, stayer = server.api(), api
    tokens = [leaver.ticket("goodbye"), stayer.ticket("goodbye")]
    for person, token in zip((leaver, stayer), tokens):
        response = person.leave_beacon(token)
        assert (response.status, response.body) == (204, b"")
    before = stayer.status(tokens[1]).json()["position"]
    wait_until(lambda: stayer.status(tokens[1]).json()["position"] < before, 20, "the leaver gone", every_sec=0.2)
    assert_error(leaver.status(tokens[0]), 404, "TOKEN_NOT_FOUND")
    assert stayer.status(tokens[1]).status == 200


@pytest.mark.parametrize("body", [b"", b"{}", b"not json", b'{"waiting_token":"x"}'])
def test_a_beacon_may_carry_any_body_beside_its_token(api, body):
    token = api.ticket("held")
    assert api.post(f"{LEAVE}?token={token}", body, headers={"Content-Type": "text/plain"}).status == 204


def test_a_beacon_may_carry_its_token_in_the_body(api):
    token = api.ticket("held")
    assert api.post(LEAVE, {"waiting_token": token}, headers={"Content-Type": "text/plain"}).status == 204


def test_a_beacon_for_nobody_is_fine_but_one_without_a_token_is_not(api):
    assert api.leave_beacon("nonsense").status == 204
    assert_error(api.post(LEAVE, ""), 400, "MISSING_TOKEN")


def test_heartbeat_says_how_it_stands_and_when_to_come_back(api):
    answer = api.heartbeat(api.ticket("held")).json()
    assert answer.pop("next_poll_sec") >= 1
    assert answer == {"status": "waiting"}


# --- paths and methods


@pytest.mark.parametrize("method, path, allow", [
    ("GET", "join", "POST"), ("DELETE", "join", "POST"), ("PUT", "enter", "POST"), ("GET", "heartbeat", "POST"),
    ("POST", "status", "GET, HEAD"), ("GET", "leave", "DELETE, POST"), ("PATCH", "leave", "DELETE, POST"),
    ("FROB", "join", "POST"), ("OPTIONS", "join", "POST"),
])
def test_another_method_is_told_which_are_allowed(api, method, path, allow):
    response = api.request(method, f"/api/v1/queue/{path}")
    assert_error(response, 405, "METHOD_NOT_ALLOWED")
    assert response.header("allow") == allow


@pytest.mark.parametrize("path", ["", "nothing", "join/", "join/x", "Join", "joi", "joinx", "%2e"])
def test_another_path_is_not_found(api, path):
    assert_error(api.post(f"/api/v1/queue/{path}", {"event_id": "held"}), 404, "NOT_FOUND")


def test_the_path_counts_as_nginx_reads_it(api):
    for path in ("/api//v1/queue/join", "/api/v1/queue/%6aoin", "/x/../api/v1/queue/./join"):
        assert api.post(path, {"event_id": "held"}).status == 202


def test_exact_and_regex_locations_serve_by_their_last_segment(api):
    for path in ("/exact/join", "/regex/join"):
        assert api.post(path, {"event_id": "held"}).status == 202


def test_healthz_and_readyz(api):
    health, ready = api.get("/healthz"), api.get("/readyz")
    assert (health.status, health.json()) == (200, {"status": "ok"})
    assert (ready.status, ready.json()) == (200, {"status": "ready"})
    response = api.post("/healthz")
    assert_error(response, 405, "METHOD_NOT_ALLOWED")
    assert response.header("allow") == "GET, HEAD"


def test_the_page_is_served_for_rooms_that_exist(api):
    response = api.get("/queue/held")
    assert response.status == 200
    assert response.header("content-type") == "text/html; charset=utf-8"
    assert response.header("x-content-type-options") == "nosniff"
    assert response.header("referrer-policy") == "no-referrer"
    policy = response.header("content-security-policy")
    assert re.search(r"script-src 'sha256-[A-Za-z0-9+/]{43}=';", policy) and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    for path in ("/queue/nowhere", "/queue/", "/queue/held/", "/queue/he%20ld", "/queue/" + "x" * 65):
        assert api.get(path).status == 404


def test_the_page_is_served_for_any_room_where_a_join_would_make_it(weir):
    server = weir(auto=True)
    assert server.client().get("/queue/new").status == 200
    assert server.client().get("/queue/new%2f").status == 404


# --- request ids


@pytest.mark.parametrize("sent", ["a", "0af7651916cd43dd8448eb211c80319c", "x-Y_z.1:2/3+4=5@6,7~8", "q" * 128])
def test_a_request_id_is_kept(api, sent):
    response = api.get("/api/v1/queue/status", headers={"X-Request-ID": sent})
    assert response.header("x-request-id") == response.json()["error"]["trace_id"] == sent


@pytest.mark.parametrize("sent", ["", "q" * 129, 'a"b', "a b", "a\\b", "<a>", "\x7f"])
def test_an_unsafe_request_id_is_replaced(api, sent):
    response = api.get("/api/v1/queue/status", headers={"X-Request-ID": sent})
    assert re.fullmatch("[0-9a-f]{32}", response.header("x-request-id"))


def test_a_trace_is_followed(api):
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    response = api.get("/api/v1/queue/status", headers={"traceparent": parent})
    assert response.header("x-request-id") == "0af7651916cd43dd8448eb211c80319c"


def test_ids_that_we_make_are_distinct(api):
    ids = {api.get("/healthz").header("x-request-id") for _ in range(50)}
    assert len(ids) == 50


# --- idempotency keys


def test_a_key_repeats_its_answer_even_without_a_cookie(server):
    first, again = (server.api().join("held", headers={"Idempotency-Key": "repeat"}) for _ in range(2))
    assert first.header("x-idempotency-cached") is None
    assert again.header("x-idempotency-cached") == "true"
    assert again.body == first.body
    assert first.header("set-cookie") is not None
    assert again.header("set-cookie") is None, "a cookie for somebody who holds nothing"


def test_a_hundred_joins_at_once_with_one_key_are_one_ticket_and_equal_answers(server):
    request = ("POST", JOIN, {"event_id": "held"}, {"Idempotency-Key": "hundred"})
    answers = at_once(server.port, [request] * 100, connections=100)
    assert [answer.status for answer in answers] == [202] * 100
    assert len({answer.body for answer in answers}) == 1
    assert sum(answer.header("x-idempotency-cached") == "true" for answer in answers) == 99


def test_a_key_with_another_body_is_a_conflict(server):
    key = {"Idempotency-Key": "conflict"}
    api = server.api(cookies=False)
    assert api.join("held", headers=key).status == 202
    assert_error(api.join("held", fields={"user_id": "bob"}, headers=key), 409, "IDEMPOTENCY_CONFLICT")
    assert api.join("held", fields={"user_id": "anonymous"}, headers=key).status == 202, "no label is no label"


def test_keys_of_different_visitors_are_different(server):
    people = [server.api() for _ in range(2)]
    for person in people:
        person.join("now")
    tokens = {person.ticket("held", headers={"Idempotency-Key": "1"}) for person in people}
    assert len(tokens) == 2


def test_keys_of_different_addresses_are_different(server):
    answers = [join_from(server, "/api/v1/queue/", address, {"Idempotency-Key": "addr"})
               for address in ("127.0.0.1", "127.0.0.9")]
    assert answers[0].json()["waiting_token"] != answers[1].json()["waiting_token"]


def test_keys_of_different_rooms_and_operations_are_different(api):
    key = {"Idempotency-Key": "same"}
    tokens = [api.ticket("now", headers=key), api.ticket("held", headers=key)]
    assert tokens[0] != tokens[1]
    assert api.enter(tokens[0], headers=key).header("x-idempotency-cached") is None
    assert api.enter(tokens[0], headers=key).header("x-idempotency-cached") == "true"


@pytest.mark.parametrize("key", ["", "k" * 129, "tab\there", "caf\xe9"])
def test_a_key_that_cannot_be_used_is_refused(api, key):
    assert_error(api.join("held", headers={"Idempotency-Key": key}), 400, "INVALID_IDEMPOTENCY_KEY")


@pytest.mark.parametrize("key", ["1", "k" * 128, "not a uuid!", "123e4567-e89b-12d3-a456-426614174000"])
def test_any_printable_key_is_accepted(api, key):
    assert api.join("held", headers={"Idempotency-Key": key}).status == 202


def test_a_key_is_required_where_the_operator_says_so(api):
    token = api.ticket("now")
    assert_error(api.post("/strict/join", {"event_id": "held"}), 400, "IDEMPOTENCY_REQUIRED")
    assert_error(api.post("/strict/enter", {"waiting_token": token}), 400, "IDEMPOTENCY_REQUIRED")
    assert api.post("/strict/join", {"event_id": "held"}, headers={"Idempotency-Key": "1"}).status == 202
    assert api.post("/strict/heartbeat", {"waiting_token": token}).status == 200


# --- CORS


def preflight(api, origin):
    return api.request("OPTIONS", "/cors/join", headers={"Origin": origin, "Access-Control-Request-Method": "POST"})


@pytest.mark.parametrize("origin", ["https://shop.example", "http://localhost:3000"])
def test_a_named_origin_may_call(api, origin):
    response = preflight(api, origin)
    assert (response.status, response.body) == (204, b"")
    assert response.header("access-control-allow-origin") == origin
    assert response.header("access-control-allow-credentials") == "true"
    assert response.header("access-control-max-age") == "86400"
    allowed = {name.strip().lower() for name in response.header("access-control-allow-headers").split(",")}
    assert allowed == {"origin", "content-type", "accept", "authorization", "x-requested-with", "idempotency-key",
                       "x-trace-id", "x-request-id", "x-queue-entry-token"}
    assert {"GET", "POST", "DELETE"} <= set(response.header("access-control-allow-methods").split(", "))
    answer = api.post("/cors/join", {"event_id": "held"}, headers={"Origin": origin})
    assert answer.header("access-control-allow-origin") == origin
    assert answer.header("vary") == "Origin"


@pytest.mark.parametrize("origin", ["https://evil.example", "https://shop.example.evil.example", "null", "https://SHOP.example"])
def test_another_origin_may_not(api, origin):
    response = preflight(api, origin)
    assert response.status == 204
    answer = api.post("/cors/join", {"event_id": "held"}, headers={"Origin": origin})
    for each in (response, answer):
        assert each.header("access-control-allow-origin") is None
        assert each.header("access-control-allow-credentials") is None
        assert each.header("vary") == "Origin"


def test_errors_carry_cors_headers_too(api):
    response = api.get("/cors/status", headers={"Origin": "https://shop.example"})
    assert_error(response, 400, "MISSING_TOKEN")
    assert response.header("access-control-allow-origin") == "https://shop.example"


def test_without_weir_cors_there_is_none(api):
    response = api.join("held", headers={"Origin": "https://shop.example"})
    assert response.header("access-control-allow-origin") is None
    assert response.header("vary") is None


# --- identity


def join_from(server, prefix, address, headers, room="held"):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20, source_address=(address, 0))
    connection.request("POST", prefix + "join", f'{{"event_id":"{room}"}}', headers)
    answer = connection.getresponse()
    response = Response(answer.status, [(name.lower(), value) for name, value in answer.getheaders()], answer.read())
    connection.close()
    return response


def test_a_trusted_identity_has_one_ticket_from_everywhere(server):
    answers = [join_from(server, "/signed-in/", "127.0.0.1", {"X-User-Id": "alice"}) for _ in range(2)]
    assert answers[0].body == answers[1].body
    assert answers[0].header("set-cookie") is None


def test_an_identity_is_not_believed_from_another_peer(server):
    trusted = join_from(server, "/signed-in/", "127.0.0.1", {"X-User-Id": "bob"})
    spoofed = join_from(server, "/signed-in/", "127.0.0.3", {"X-User-Id": "bob"})
    assert spoofed.json()["waiting_token"] != trusted.json()["waiting_token"]
    assert spoofed.header("set-cookie") is not None, "just a visitor"


def test_realip_does_not_decide_who_is_believed(server):
    """The header names an address within the range, and the peer is none of them; and the other way round."""
    known = join_from(server, "/proxied/", "127.0.0.2", {"X-User-Id": "carol", "X-Forwarded-For": "192.0.2.1"})
    assert known.header("set-cookie") is None
    spoofed = join_from(server, "/proxied/", "127.0.0.3", {"X-User-Id": "carol", "X-Forwarded-For": "10.1.2.3"})
    assert spoofed.header("set-cookie") is not None
    assert spoofed.json()["waiting_token"] != known.json()["waiting_token"]


def test_the_client_address_of_a_key_is_realips(server):
    key = {"Idempotency-Key": "behind-a-proxy"}
    answers = [join_from(server, "/proxied/", "127.0.0.1", {**key, "X-Forwarded-For": address})
               for address in ("192.0.2.1", "192.0.2.2", "192.0.2.1")]
    tokens = [answer.json()["waiting_token"] for answer in answers]
    assert tokens[0] == tokens[2] != tokens[1]


def test_a_ticket_of_a_trusted_identity_works_for_that_identity_alone(server, api):
    alice, mallory = {"X-User-Id": "alice"}, {"X-User-Id": "mallory"}
    token = api.post("/signed-in/join", {"event_id": "now"}, headers=alice).json()["waiting_token"]
    for headers in (mallory, {}):
        assert_error(api.get(f"/signed-in/status?token={token}", headers=headers), 404, "TOKEN_NOT_FOUND")
        assert_error(api.post("/signed-in/enter", {"waiting_token": token}, headers=headers), 404, "TOKEN_NOT_FOUND")
        assert api.request("DELETE", f"/signed-in/leave?token={token}", headers=headers).status == 200
    assert api.get(f"/signed-in/status?token={token}", headers=alice).status == 200, "nobody else could leave for them"
    assert api.post("/signed-in/enter", {"waiting_token": token}, headers=alice).status == 200


def test_an_anonymous_ticket_is_a_bearer_token(server, api):
    token = api.ticket("held")
    assert server.api().status(token).status == 200


@pytest.mark.parametrize("user", ["", "x" * 257, "%ff", "a%0ab"])
def test_an_identity_that_cannot_be_one_is_nobody(api, user):
    """$arg_user is raw, so the escapes reach us as text; the empty and the long one do not count."""
    response = api.post(f"/vouched/join?user={user}", {"event_id": "held"})
    assert response.status == 202
    assert (response.header("set-cookie") is None) == ("%" in user)


# --- nginx's own refusals


def test_limit_req_speaks_the_envelope(api):
    statuses = [api.post("/limited/join", {"event_id": "held"}) for _ in range(2)]
    assert statuses[0].status == 202
    assert_error(statuses[1], 429, "RATE_LIMITED")
