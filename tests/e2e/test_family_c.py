# SPDX-License-Identifier: BSD-2-Clause
"""The anonymous lobby, "tier 1", and its operators: the contract, field by field, type by type, and everything that is wrong."""

import json
import re
import subprocess

import jwt
import pytest
from weirtest import Nginx, raw, wait_until
from weirtest.contract import COUNT, FLAG, TEXT, assert_fields, assert_flat_error
from weirtest.loss import Loss

FAST = "rate=100000 burst=100000"
ROOMS = {
    "lobby:42": f"preset=lobby {FAST}", "lobby:43": f"preset=lobby {FAST}", "lobby:line": "preset=lobby mode=hold",
    "lobby:crowd": "preset=lobby mode=hold", "lobby:off": "preset=lobby mode=open", "lobby:shut": "preset=lobby mode=closed",
    "lobby:switched": "preset=lobby mode=hold", "lobby:three": "preset=lobby mode=hold", "lobby:gone": "preset=lobby mode=hold",
    "lobby:logged": "preset=lobby mode=hold", "lobby:counted": "preset=lobby mode=hold",
    "42": FAST, "plain": FAST,
}
EVERYTHING = "log_format everything '$request|$request_uri|$uri|$document_uri|$args|$request_filename';"
HTTP = "map $http_x_role $role_is_admin { admin 1; }" + EVERYTHING
SERVER = """
        location /vwr-api/vwr/ {{ weir_api lobby; access_log access.log everything; }}
        location ~* ^/pattern/VWR/ {{ weir_api lobby; access_log access.log everything; }}
        location /api/admin/vwr/ {{
            weir_api admin lobby;
            weir_user $http_x_user_id from=127.0.0.1;
            weir_admin $role_is_admin;
        }}
        location /api/v1/queue/ {{ weir_api queue; }}
        location ~ ^/events/(?<event>[a-z0-9]+) {{
            weir_gate tier=1 room=lobby:$event page=/vwr/$event;
            proxy_pass http://127.0.0.1:{shop};
        }}
        location /hall/ {{ weir_gate tier=2 room=*; proxy_pass http://127.0.0.1:{shop}; }}
"""
ASSIGNED = {"requestId": TEXT, "position": COUNT, "estimatedWait": COUNT, "servingCounter": COUNT}
WAITING = {
    "admitted": False, "position": COUNT, "servingCounter": COUNT, "totalInQueue": COUNT, "ahead": COUNT, "estimatedWait": COUNT,
    "nextPoll": COUNT,
}
ADMITTED = {"admitted": True, "position": COUNT, "servingCounter": COUNT, "token": TEXT}
STATUS = {"eventId": TEXT, "isActive": FLAG, "totalInQueue": COUNT, "serving": COUNT, "waitingCount": COUNT}
CHANGED = {**STATUS, "message": TEXT}


@pytest.fixture(scope="module")
def server(tmp_path_factory, shop):
    server = Nginx(tmp_path_factory.mktemp("c") / "nginx", rooms=ROOMS, api=False, admin=["ops"], http=HTTP,
                   server=SERVER.format(shop=shop.port))
    yield server.start()
    server.stop()


class Visitor:
    """As the page is: it keeps cookies, and its requestId."""

    def __init__(self, server, cookies=True, prefix="/vwr-api/vwr/"):
        self.client = server.client(cookies=cookies)
        self.prefix = prefix

    def assign(self, event, user="anon-1", **kwargs):
        return self.client.post(f"{self.prefix}assign/{event}", {"userId": user}, **kwargs)

    def check(self, event, request_id, user="anon-1"):
        return self.client.get(f"{self.prefix}check/{event}/{request_id}?userId={user}")

    def place(self, event):
        return self.assign(event).json()["requestId"]


@pytest.fixture
def visitor(server):
    return Visitor(server)


@pytest.fixture
def admin(server):
    return Operator(server, {"Authorization": f"Bearer {server.admin_tokens['ops']}"})


class Operator:
    def __init__(self, server, headers):
        self.client = server.client(headers=headers, cookies=False)

    def post(self, deed, event, body="", query=""):
        return self.client.post(f"/api/admin/vwr/{deed}/{event}{query}", body)

    def status(self, event):
        return self.client.get(f"/api/admin/vwr/status/{event}")


def claims_of(token):
    return jwt.decode(token, options={"verify_signature": False})


# --- the table


def test_an_assign_gives_a_number(server):
    for i in range(3):
        told = assert_fields(Visitor(server).assign("counted"), ASSIGNED)
        assert (told["position"], told["servingCounter"]) == (i + 1, 0)
        assert re.fullmatch(r"[A-Za-z0-9_-]+", told["requestId"]), "it stands in a path"


def test_who_waits_is_told_how_many_are_ahead(server):
    people = [(visitor := Visitor(server), visitor.place("line")) for _ in range(3)]
    total = server.admin().figures("lobby:line").json()["issued"]
    for visitor, request_id in people:
        told = assert_fields(visitor.check("line", request_id), WAITING)
        assert (told["servingCounter"], told["totalInQueue"], told["nextPoll"]) == (0, total, 2)
    ahead = [visitor.check("line", request_id).json()["ahead"] for visitor, request_id in people]
    assert ahead == list(range(ahead[0], ahead[0] + 3))
    people[0][0].client.request("DELETE", f"/api/v1/queue/leave?token={people[0][1]}")
    told = people[1][0].check("line", people[1][1]).json()
    assert told["ahead"] == ahead[0], "people really waiting"


def test_the_serving_counter_is_the_highest_number_called_and_not_how_many_were(server, admin):
    server.admin().put("lobby:gap", preset="lobby", mode="hold")
    people = [(visitor := Visitor(server), visitor.place("gap")) for _ in range(3)]
    people[1][0].client.request("DELETE", f"/api/v1/queue/leave?token={people[1][1]}")
    assert admin.post("advance", "gap", query="?batchSize=2").json()["serving"] == 3
    assert people[2][0].check("gap", people[2][1]).json()["servingCounter"] == 3


def test_who_is_admitted_gets_the_same_token_each_time(visitor):
    request_id = visitor.place("42")
    first = assert_fields(visitor.check("42", request_id), ADMITTED)
    again = assert_fields(visitor.check("42", request_id), ADMITTED)
    assert first["token"] == again["token"] and first["servingCounter"] >= first["position"]


def test_the_token_names_the_event_and_who_was_assigned(visitor):
    token = visitor.check("42", visitor.place("42")).json()["token"]
    claims = claims_of(token)
    assert (claims["sub"], claims["tier"], claims["exp"] - claims["iat"]) == ("42", 1, 600)
    assert claims["uid"].startswith("v-") and jwt.get_unverified_header(token)["alg"] == "HS256"


def test_the_status_of_a_room_is_public(server):
    told = assert_fields(server.client().get("/vwr-api/vwr/status/42"), STATUS)
    assert (told["eventId"], told["isActive"]) == ("42", True)
    for event, is_active in (("off", False), ("line", True), ("shut", True)):
        assert assert_fields(server.client().get(f"/vwr-api/vwr/status/{event}"), STATUS)["isActive"] is is_active


def test_a_refresh_keeps_the_place(visitor):
    first = visitor.assign("line").json()
    assert visitor.assign("line", user="another name").json() == first


@pytest.mark.local
def test_a_place_that_was_lost_is_given_back_to_its_request_id(weir):
    """A check is being seen, not only being told: with the room's first word on it the place is theirs again."""
    server = weir(rooms={"lobby:1": "preset=lobby mode=hold"}, journal="journal", api=False, server="location /vwr-api/vwr/ { weir_api lobby; }")
    known = Visitor(server)
    known_id, loss = known.place("1"), Loss(server)
    people = [(visitor := Visitor(server), visitor.place("1")) for _ in range(2)]
    loss.happen()
    assert known.check("1", known_id).json()["ahead"] == 0
    assert [visitor.check("1", request_id).json()["ahead"] for visitor, request_id in people] == [1, 2]


def test_where_nobody_queues_there_is_nothing_to_assign(server, visitor):
    before = server.admin().figures("lobby:off").json()["issued"]
    assert_flat_error(visitor.assign("off"), 404)
    assert_flat_error(visitor.assign("nowhere"), 404)
    assert server.admin().figures("lobby:off").json()["issued"] == before


def test_a_pattern_leads_there_too(server):
    visitor = Visitor(server, prefix="/Pattern/vwr/")
    assert_fields(visitor.check("42", visitor.place("42")), ADMITTED)


def test_next_poll_follows_how_many_are_ahead(server):
    """The table itself is held by test_kinds.c; here the first of its steps."""
    polls = []
    for _ in range(502):
        visitor = Visitor(server, cookies=False)
        polls.append(visitor.check("crowd", visitor.place("crowd")).json()["nextPoll"])
        visitor.client.close()
    assert polls == [2] * 501 + [5]


# --- the gate


def test_the_token_opens_tier_1_in_the_cookie_that_the_page_sets(server, visitor):
    token = visitor.check("42", visitor.place("42")).json()["token"]
    for sent in ({"Cookie": f"urr-vwr-token={token}"}, {"x-queue-entry-token": token}):
        assert server.client().get("/events/42", headers=sent).status == 200
        assert server.client().get("/events/43", headers=sent).status == 403, "another event"
        assert server.client().get("/hall/seats", headers=sent).status == 403, "another tier"


# --- what is wrong


@pytest.mark.parametrize("request_id", ["x", "1", "00000000-0000-4000-8000-000000000000", "A" * 96, pytest.param("A" * 5000, id="5 KB"), "..", "%00", "%E2%82%AC"])
def test_a_request_id_of_nobody_is_not_found(visitor, request_id):
    answer = visitor.check("42", request_id)
    assert answer.status in (400, 404)
    if answer.status == 404:
        assert_flat_error(answer, 404)


def test_a_request_id_of_another_event_is_not_found(visitor, server):
    request_id = visitor.place("42")
    assert_flat_error(visitor.check("43", request_id), 404)
    visitor.place("43")
    assert_flat_error(visitor.check("43", request_id), 404)
    plain = server.api().ticket("plain")
    assert_flat_error(visitor.check("42", plain), 404)
    assert_flat_error(visitor.check("plain", plain), 404)


def test_a_request_id_that_is_over_is_not_found(server, visitor):
    request_id = visitor.place("gone")
    server.admin().clear("lobby:gone")
    assert_flat_error(visitor.check("gone", request_id), 404)
    assert visitor.place("gone") != request_id, "the page assigns again"


def test_a_pass_is_no_request_id(visitor):
    token = visitor.check("42", visitor.place("42")).json()["token"]
    assert_flat_error(visitor.check("42", token), 404)


@pytest.mark.parametrize("name", ["root", "anon-2", "", pytest.param("x" * 10000, id="10 KB")])
def test_no_name_in_a_query_changes_whose_token_it_is(server, visitor, name):
    request_id = visitor.place("42")
    uid = claims_of(visitor.check("42", request_id).json()["token"])["uid"]
    assert claims_of(visitor.check("42", request_id, user=name).json()["token"])["uid"] == uid
    other = Visitor(server)
    assert claims_of(other.check("42", other.assign("42", user="anon-1").json()["requestId"]).json()["token"])["uid"] != uid


@pytest.mark.parametrize("body, status", [
    ("", 200), ("{}", 200), ('{"userId":null}', 200), ('{"userId":""}', 200), ('{"userId":"a","more":[1]}', 200),
    ('{"userId":1}', 400), ('{"userId":["a"]}', 400), ("[]", 400), ("{", 400), ("null", 400), ("userId=a", 400),
    ('{"userId":"a","userId":"b"}', 400), pytest.param('{"userId":"' + "x" * 10240 + '"}', 400, id="10 KB"),
    pytest.param('{"userId":"' + "x" * 20000 + '"}', 413, id="20 KB"),
    ('{"userId":"\\ud800"}', 400),
])
def test_a_body_is_a_json_object_with_a_name_or_without(visitor, body, status):
    answer = visitor.client.post("/vwr-api/vwr/assign/42", body)
    assert_fields(answer, ASSIGNED) if status == 200 else assert_flat_error(answer, status)


def test_one_cookie_is_one_place_however_often_it_is_used(server, visitor):
    """Failure 22."""
    visitor.place("line")
    before = server.admin().figures("lobby:line").json()["issued"]
    assert len({visitor.place("line") for _ in range(50)}) == 1
    assert server.admin().figures("lobby:line").json()["issued"] == before


@pytest.mark.parametrize("event", ["a%20b", "x" * 59, "x" * 65, "%E2%82%AC"])
def test_a_malformed_event_is_refused(visitor, admin, event):
    assert_flat_error(visitor.assign(event), 400)
    assert_flat_error(visitor.client.get(f"/vwr-api/vwr/status/{event}"), 400)
    assert_flat_error(admin.post("activate", event), 400)


@pytest.mark.parametrize("path", ["", "assign", "assign/", "assign/42/x", "check/42", "check/42/", "check/42/a/b", "activate/42",
                                  "deactivate/42", "advance/42", "nothing/42"])
def test_other_paths_are_not_there(visitor, path):
    for method in ("GET", "POST"):
        assert_flat_error(visitor.client.request(method, "/vwr-api/vwr/" + path, ""), 404)


@pytest.mark.parametrize("method, path, allow", [("GET", "assign/42", "POST"), ("POST", "check/42/x", "GET, HEAD"), ("PUT", "status/42", "GET, HEAD")])
def test_other_methods_are_refused(visitor, method, path, allow):
    answer = visitor.client.request(method, "/vwr-api/vwr/" + path, "")
    assert_flat_error(answer, 405)
    assert answer.header("allow") == allow


def test_a_closed_lobby_says_when_to_come_back(visitor):
    answer = visitor.assign("shut")
    assert_flat_error(answer, 503)
    assert int(answer.header("retry-after")) > 0


def test_a_request_id_is_in_no_log(server, visitor):
    """An anonymous ticket is a bearer token."""
    request_id = visitor.place("logged")
    written = [request_id, request_id.replace(request_id[5], f"%{ord(request_id[5]):02x}"), request_id + "?userId=x", request_id + "#x"]
    for text in written:
        assert visitor.client.get(f"/vwr-api/vwr/check/logged/{text}").status == 200
    for path in (f"/vwr-api/vwr/x/../check/logged/{request_id}", f"/vwr-api//vwr/check/logged/{request_id}",
                 f"/vwr-api/vwr/che%63k/logged/{request_id}", f"/vwr-api/vwr/check/logged/{request_id}/", f"/Pattern/vwr/check/logged/{request_id}"):
        visitor.client.get(path)
    wait_until(lambda: "/Pattern/vwr/check/logged/" in server.log("access.log"), 5, "the last line")
    for log in ("access.log", "error.log"):
        assert request_id[8:40] not in server.log(log)


def test_a_request_id_that_nginx_refuses_to_read_on_is_not_in_the_access_log(server, visitor):
    """A browser with too many cookies is enough."""
    request_id = visitor.place("logged")
    for headers in ("Cookie: " + "a" * 40000, "Content-Length: x", "Host: x y"):
        sent = f"GET /vwr-api/vwr/check/logged/{request_id}?n={len(headers)} HTTP/1.1\r\nHost: x\r\n{headers}\r\n\r\n"
        assert b" 400 " in raw(server.port, sent.encode())
        wait_until(lambda: f"?n={len(headers)} " in server.log("access.log"), 5, "the line")
    assert request_id[8:40] not in server.log("access.log")
    assert "GET /vwr-api/vwr/check/logged/****" in server.log("access.log")


def test_a_request_id_is_in_no_log_over_http2_either(weir):
    server = weir(rooms={"lobby:1": "preset=lobby mode=hold"}, api=False, listen="http2",
                  http=EVERYTHING,
                  server="location /vwr-api/vwr/ { weir_api lobby; access_log access.log everything; }")

    def curl(*args):
        done = subprocess.run(["curl", "-sS", "--http2-prior-knowledge", *args], capture_output=True, timeout=20, check=True)
        return json.loads(done.stdout)
    url = f"http://127.0.0.1:{server.port}/vwr-api/vwr/"
    request_id = curl("-d", "{}", url + "assign/1")["requestId"]
    assert curl(f"{url}check/1/{request_id}?userId=x")["position"] == 1
    wait_until(lambda: "/check/1/****" in server.log("access.log"), 5, "the line")
    assert request_id not in server.log("access.log") + server.log()


# --- operators


def test_activating_makes_a_lobby_with_its_usual_pace(server, admin):
    assert assert_fields(admin.post("activate", "new"), CHANGED) == {
        "eventId": "new", "isActive": True, "totalInQueue": 0, "serving": 0, "waitingCount": 0, "message": "VWR activated"}
    settings = server.admin().room("lobby:new").json()["settings"]
    assert (settings["preset"], settings["tier"], settings["batch"], settings["interval_sec"]) == ("lobby", 1, 500, 10)
    assert (settings["max_active"], settings["session_max_sec"]) == (0, 600)
    assert 'admin "ops" made room "lobby:new"' in server.log()


def answer_after_change(server, ask, status):
    """What is answered from the next request on, on every worker. Those of a store ask it again after half a second."""
    answers = []

    def is_heard():
        answers.append(ask())
        return answers[-1].status == status

    if server.store:
        wait_until(is_heard, 30, f"an answer with {status}")
    else:
        assert is_heard(), answers
    return answers[-1]


def test_it_takes_effect_at_the_gate_at_once(server, admin):
    visitor, gate = Visitor(server), server.client()
    assert gate.get("/events/switched").status == 403
    assert assert_fields(admin.post("deactivate", "switched"), CHANGED)["isActive"] is False
    answer_after_change(server, lambda: gate.get("/events/switched"), 200)
    assert_flat_error(answer_after_change(server, lambda: visitor.assign("switched"), 404), 404)
    admin.post("activate", "switched")
    answer_after_change(server, lambda: gate.get("/events/switched"), 403)
    assert_fields(answer_after_change(server, lambda: visitor.assign("switched"), 200), ASSIGNED)


def test_deactivating_lets_everybody_who_waits_through_with_a_pass(server, admin):
    server.admin().put("lobby:through", preset="lobby", mode="hold")
    people = [(visitor := Visitor(server), visitor.place("through")) for _ in range(5)]
    assert not any(visitor.check("through", request_id).json()["admitted"] for visitor, request_id in people)
    admin.post("deactivate", "through")
    for visitor, request_id in people:
        token = assert_fields(visitor.check("through", request_id), ADMITTED)["token"]
        admin.post("activate", "through")
        assert server.client().get("/events/through", headers={"Cookie": f"urr-vwr-token={token}"}).status == 200


def test_activating_again_goes_on_counting(server, admin):
    """Failure 4."""
    admin.post("activate", "again")
    numbers = [Visitor(server).assign("again").json()["position"] for _ in range(3)]
    for deed in ("activate", "deactivate", "activate", "activate"):
        admin.post(deed, "again")
        if deed == "activate":
            numbers.append(answer_after_change(server, lambda: Visitor(server).assign("again"), 200).json()["position"])
    assert numbers == list(range(1, len(numbers) + 1))


def test_an_advance_of_500_admits_the_three_who_wait_and_nobody_else(server, admin):
    """Failure 15."""
    people = [(visitor := Visitor(server), visitor.place("three")) for _ in range(3)]
    told = assert_fields(admin.post("advance", "three", query="?batchSize=500"), CHANGED)
    assert (told["serving"], told["waitingCount"], told["totalInQueue"]) == (3, 0, 3)
    assert all(visitor.check("three", request_id).json()["admitted"] for visitor, request_id in people)
    for _ in range(5):
        late = Visitor(server)
        assert late.check("three", late.place("three")).json()["admitted"] is False
    assert admin.status("three").json()["serving"] == 3


@pytest.mark.parametrize("body, query, called", [("", "", 500), ("", "?batchSize=2", 2), ('{"batchSize":2}', "", 2), ("{}", "", 500)])
def test_an_advance_calls_as_many_as_it_says_or_a_batch(server, admin, body, query, called):
    name = f"advance{abs(hash((body, query)))}"
    server.admin().put(f"lobby:{name}", preset="lobby", mode="hold")
    for _ in range(3):
        Visitor(server).place(name)
    assert assert_fields(admin.post("advance", name, body, query), CHANGED)["serving"] == min(called, 3)


@pytest.mark.parametrize("body, query", [("", "?batchSize=0"), ("", "?batchSize=-1"), ("", "?batchSize=x"), ("", "?batchSize="),
                                         ("", "?batchSize=100000001"), ('{"batchSize":"5"}', ""), ('{"batchSize":0}', ""), ("[", "")])
def test_an_advance_by_what_is_no_number_calls_nobody(server, admin, body, query):
    before = admin.status("line").json()["serving"]
    assert_flat_error(admin.post("advance", "line", body, query), 400)
    assert admin.status("line").json()["serving"] == before


@pytest.mark.parametrize("headers, status", [
    ({}, 401), ({"Authorization": "Bearer wrong"}, 401), ({"X-Role": "admin-of-nothing"}, 401), ({"X-User-Id": "bob"}, 403),
    ({"X-User-Id": "bob", "X-Role": "user"}, 403), ({"X-User-Id": "bob", "Authorization": "Bearer wrong"}, 403),
])
def test_nobody_else_is_an_operator(server, headers, status):
    before = server.admin().room("lobby:line").json()
    client = Operator(server, headers)
    for answer in (*(client.post(deed, "line") for deed in ("activate", "deactivate", "advance")), client.status("line")):
        assert_flat_error(answer, status)
    assert server.admin().room("lobby:line").json() == before


def test_a_trusted_variable_makes_an_operator(server):
    alice = Operator(server, {"X-User-Id": "alice", "X-Role": "admin"})
    assert_fields(alice.post("activate", "hers"), CHANGED)
    assert_fields(alice.status("hers"), STATUS)
    assert 'admin "alice" made room "lobby:hers"' in server.log()


def test_what_was_never_activated_cannot_be_steered(admin):
    for answer in (admin.post("advance", "nowhere"), admin.status("nowhere")):
        assert_flat_error(answer, 404)


def test_an_event_without_a_lobby_is_closed_until_it_is_said_to_need_none(server, admin):
    assert server.client().get("/events/fresh").status == 403
    assert assert_fields(admin.post("deactivate", "fresh"), CHANGED)["isActive"] is False
    answer_after_change(server, lambda: server.client().get("/events/fresh"), 200)
    admin.post("activate", "fresh")
    answer_after_change(server, lambda: server.client().get("/events/fresh"), 403)
