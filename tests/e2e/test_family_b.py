# SPDX-License-Identifier: BSD-2-Clause
"""The signed-in queue, "tier 2": its contract, call by call, field by field, type by type, and everything that is wrong."""

import re

import jwt
import pytest
from weirtest import Nginx, at_once, wait_until
from weirtest.contract import COUNT, FLAG, TEXT, assert_fields, assert_flat_error
from weirtest.loss import Loss
from weirtest.redis import Standalone

FAST = "rate=100000 burst=100000"
UUID = "3f2b8c1e-90ab-4cde-8f01-23456789abcd"
ROOMS = {
    UUID: f"preset=hall {FAST}", "line": f"preset=hall {FAST} mode=hold", "one": f"preset=hall {FAST} max_active=1",
    "crowd": "preset=hall mode=hold", "shut": "preset=hall mode=closed", "open": "preset=hall mode=open",
    "full": "preset=hall mode=hold max_waiting=1", "endless": f"preset=hall {FAST} max_active=0",
    "called": f"preset=hall {FAST} mode=hold", "gated": f"preset=hall {FAST}", "other": f"preset=hall {FAST}", "steered": "preset=hall",
    "behind": f"preset=hall {FAST}", "lobby:behind": f"preset=lobby {FAST}",
}
HTTP = """
    map $http_x_role $role_is_admin { admin 1; }
    limit_req_zone none zone=none:32k rate=1r/m;
"""
SERVER = """
        weir_user $http_x_user_id from=127.0.0.1;
        location /api/queue/ {{ weir_api tier2; weir_admin $role_is_admin; }}
        location /api/v1/queue/ {{ weir_api queue tier2; }}
        location ~ ^/pattern/queue/ {{ weir_api queue tier2; }}
        location /untrusted/ {{ weir_user $http_x_user_id from=10.0.0.0/8; weir_api tier2; }}
        location /asked/ {{ weir_api tier2; if ($http_x_role) {{ set $role $http_x_role; }} }}
        location /two/ {{ weir_api tier2; weir_lobby /vwr/; }}
        location /limited/ {{ weir_api tier2; limit_req zone=none; }}
        location /lobby/ {{ weir_user off; weir_api queue; }}
        location /shop/ {{ weir_gate tier=2 room=gated; proxy_pass http://127.0.0.1:{shop}; }}
        location /hall/ {{ weir_gate tier=2 room=behind; proxy_pass http://127.0.0.1:{shop}; }}
        location /events/ {{ weir_user off; weir_gate tier=1 room=lobby:behind room=behind; proxy_pass http://127.0.0.1:{shop}; }}
"""
QUEUED = {
    "queued": True, "status": "queued", "position": COUNT, "peopleAhead": COUNT, "peopleBehind": COUNT, "estimatedWait": COUNT,
    "nextPoll": COUNT, "threshold": COUNT, "currentUsers": COUNT, "queueSize": COUNT, "eventInfo": {"title": TEXT},
}
ACTIVE = {
    "queued": False, "status": "active", "currentUsers": COUNT, "nextPoll": 3, "threshold": COUNT, "entryToken": TEXT,
    "eventInfo": {"title": TEXT},
}
OUTSIDE = {"queued": False, "status": "not_in_queue", "currentUsers": COUNT, "nextPoll": 3, "message": TEXT}
ROOM = {"eventId": TEXT, "queueSize": COUNT, "currentUsers": COUNT, "threshold": COUNT, "available": COUNT}
PREFIX = "/api/queue/"


@pytest.fixture(scope="module")
def server(tmp_path_factory, shop):
    server = Nginx(tmp_path_factory.mktemp("b") / "nginx", rooms=ROOMS, api=False, admin=["ops"], http=HTTP,
                   server=SERVER.format(shop=shop.port))
    yield server.start()
    server.stop()


class Person:
    def __init__(self, server, name, prefix=PREFIX):
        self.client = server.client(headers={"X-User-Id": name} if name else {}, cookies=False)
        self.prefix = prefix

    def check(self, event, **kwargs):
        return self.client.post(f"{self.prefix}check/{event}", "", **kwargs)

    def status(self, event, **kwargs):
        return self.client.get(f"{self.prefix}status/{event}", **kwargs)

    def heartbeat(self, event):
        return self.client.post(f"{self.prefix}heartbeat/{event}", "")

    def leave(self, event):
        return self.client.post(f"{self.prefix}leave/{event}", "")


@pytest.fixture
def person(server, request):
    return Person(server, request.node.name)


def claims_of(token):
    return jwt.decode(token, options={"verify_signature": False})


# --- the table


def test_with_a_free_slot_and_an_empty_line_a_check_is_active_at_once(person):
    answer = assert_fields(person.check(UUID), ACTIVE)
    assert answer["eventInfo"] == {"title": UUID} and answer["threshold"] == 1000 and answer["currentUsers"] >= 1


def test_the_entry_token_is_a_pass_for_the_event_and_the_user(person, request):
    token = person.check(UUID).json()["entryToken"]
    claims = claims_of(token)
    assert (claims["sub"], claims["uid"], claims["tier"]) == (UUID, request.node.name, 2)
    assert claims["exp"] - claims["iat"] == 600 and jwt.get_unverified_header(token)["alg"] == "HS256"


def test_check_and_status_give_the_very_same_token(person):
    first = person.check(UUID).json()["entryToken"]
    assert assert_fields(person.check(UUID), ACTIVE)["entryToken"] == first
    assert assert_fields(person.status(UUID), ACTIVE)["entryToken"] == first


def test_whoever_has_to_wait_is_told_where_they_stand(server):
    people = [Person(server, f"waiting {i}") for i in range(3)]
    for i, person in enumerate(people):
        told = assert_fields(person.check("line"), QUEUED)
        assert (told["position"], told["peopleAhead"], told["peopleBehind"], told["queueSize"]) == (i + 1, i, 0, i + 1)
    told = assert_fields(people[0].status("line"), QUEUED)
    assert (told["position"], told["peopleAhead"], told["peopleBehind"], told["queueSize"]) == (1, 0, 2, 3)
    assert (told["nextPoll"], told["threshold"], told["currentUsers"]) == (1, 1000, 0)
    assert assert_fields(people[2].check("line"), QUEUED)["position"] == 3, "a check again is the same place"


def test_whoever_did_not_join_is_not_in_the_queue(person):
    assert_fields(person.status(UUID), OUTSIDE)
    assert_fields(person.status(UUID), OUTSIDE)


def test_a_poll_of_somebody_called_enters_them(server):
    first, second = Person(server, "first"), Person(server, "second")
    first.check("called"), second.check("called")
    server.admin().patch("called", mode="queue")
    wait_until(lambda: first.status("called").json()["status"] == "active", 5, "the call")
    told = assert_fields(first.status("called"), ACTIVE)
    assert claims_of(told["entryToken"])["uid"] == "first"
    assert assert_fields(second.check("called"), ACTIVE)["entryToken"] != told["entryToken"]


def test_a_heartbeat_says_whether_one_is_queued(server, person):
    fields = {"status": TEXT, "queued": FLAG}
    assert assert_fields(person.heartbeat("line"), fields) == {"status": "not_in_queue", "queued": False}
    person.check("line")
    assert assert_fields(person.heartbeat("line"), fields) == {"status": "queued", "queued": True}
    person.leave("line")
    person.check(UUID)
    assert assert_fields(person.heartbeat(UUID), fields) == {"status": "active", "queued": False}


def test_leaving_is_the_same_for_those_who_are_gone(person):
    person.check("line")
    for _ in range(2):
        assert_fields(person.leave("line"), {"message": "Left queue"})
    assert_fields(person.status("line"), OUTSIDE)


def test_leaving_frees_the_slot(server):
    inside, waiting = Person(server, "inside"), Person(server, "next")
    assert inside.check("one").json()["status"] == "active"
    assert waiting.check("one").json()["status"] == "queued"
    inside.leave("one")
    wait_until(lambda: waiting.status("one").json()["status"] == "active", 5, "the freed slot")


def test_an_open_room_lets_everybody_in(person):
    assert_fields(person.check("open"), ACTIVE)


def test_a_room_without_a_limit_still_says_numbers(server, person):
    assert assert_fields(person.check("endless"), ACTIVE)["threshold"] == 100000000
    admin = server.client(headers={"X-User-Id": "a", "X-Role": "admin"})
    room = assert_fields(admin.get(PREFIX + "admin/endless"), ROOM)
    assert room["available"] == room["threshold"] - room["currentUsers"]


def test_next_poll_follows_the_position(server):
    """The table itself is held by test_kinds.c; here the first of its steps."""
    client = server.client(cookies=False)
    polls = [client.post(PREFIX + "check/crowd", "", headers={"X-User-Id": f"crowd {i}"}).json()["nextPoll"] for i in range(1002)]
    assert polls == [1] * 1000 + [5] * 2


def test_both_prefixes_and_a_pattern_lead_to_the_same_room(server):
    tokens = {Person(server, "everywhere", prefix).check(UUID).json()["entryToken"]
              for prefix in (PREFIX, "/api/v1/queue/", "/pattern/queue/")}
    assert len(tokens) == 1


def test_an_if_is_the_location_it_stands_in(server):
    person = Person(server, "asked", "/asked/")
    assert person.check(UUID).json() == person.check(UUID, headers={"X-Role": "user"}).json()


def test_a_hundred_checks_at_once_are_one_place(server):
    answers = at_once(server.port, [("POST", PREFIX + "check/line", "", {"X-User-Id": "impatient"})] * 100)
    assert len({answer.json()["position"] for answer in answers}) == 1


# --- the ticket that a browser keeps for them


class Browser(Person):
    def __init__(self, server, name):
        super().__init__(server, name)
        self.client = server.client(headers={"X-User-Id": name})


def test_a_browser_keeps_the_ticket_and_is_given_it_once(server):
    person = Browser(server, "keeper")
    first = person.check("line")
    (cookie,) = first.header_all("set-cookie")
    assert re.fullmatch(r"weir-ticket-line=[\w-]+; Path=/; Max-Age=86400; HttpOnly; SameSite=Lax", cookie)
    for again in (person.check("line"), person.status("line"), person.heartbeat("line")):
        assert again.status == 200 and not again.cookies()
    assert person.status("line").json()["position"] == first.json()["position"]
    person.leave("line")
    assert_fields(person.status("line"), OUTSIDE)
    assert "weir-ticket-line" in person.check("line").cookies(), "another place, another ticket"
    person.leave("line")


def test_a_kept_ticket_of_somebody_else_or_of_nobody_is_passed_over(server):
    owner, thief = Browser(server, "ticket owner"), Browser(server, "ticket thief")
    owner.check("line")
    anonymous = server.client().post("/lobby/join", {"event_id": "line"}).json()["waiting_token"]
    elsewhere = thief.check(UUID).cookies()[f"weir-ticket-{UUID}"]
    for cookie in (owner.client.cookies["weir-ticket-line"], anonymous, elsewhere, "x", "A" * 100):
        thief.client.cookies["weir-ticket-line"] = cookie
        assert_fields(thief.status("line"), OUTSIDE)
        thief.leave("line")
    assert_fields(owner.status("line"), QUEUED)
    owner.leave("line")
    assert server.client().request("DELETE", f"/lobby/leave?token={anonymous}").status == 200


@pytest.mark.local
def test_a_place_that_was_lost_is_given_back_to_who_kept_their_ticket(weir):
    server = weir(rooms={"line": "preset=hall mode=hold"}, api=False, http="weir_journal journal;", server="""
        location /api/queue/ { weir_api tier2; weir_user $http_x_user_id from=127.0.0.1; }
    """)
    people = [Browser(server, f"person {i}") for i in range(3)]
    forgetful = Person(server, "forgetful")
    assert people[0].check("line").json()["position"] == 1
    loss = Loss(server)
    assert [person.check("line").json()["position"] for person in (*people[1:], forgetful)] == [2, 3, 4]
    loss.happen()
    assert_fields(forgetful.status("line"), OUTSIDE)
    assert people[2].heartbeat("line").json() == {"status": "queued", "queued": True}
    assert [people[i].status("line").json()["position"] for i in (0, 2)] == [1, 2]
    assert people[1].check("line").json()["position"] == 2
    assert people[2].status("line").json()["position"] == 2, "the shown position never rises"
    assert forgetful.check("line").json()["position"] == 4


def clock_ms(store):
    return int(store.only("HGET", "queue:room:{line}", "clock_ms"))


@pytest.mark.once
def test_a_place_that_a_store_forgot_is_given_back_to_who_kept_their_ticket(weir):
    with Standalone() as store:
        server = weir(rooms={"line": "preset=hall mode=hold"}, store=store.directive, workers=1, api=False, server="""
            location /api/queue/ { weir_api tier2; weir_user $http_x_user_id from=127.0.0.1; }
        """)
        people = [Browser(server, f"person {i}") for i in range(3)]
        forgetful = Person(server, "forgetful")
        assert [person.check("line").json()["position"] for person in (*people, forgetful)] == [1, 2, 3, 4]
        joined_ms = clock_ms(store)
        wait_until(lambda: clock_ms(store) > joined_ms + 1000, 30, "ticks, which tell what is to be kept in mind")
        store.wipe()
        assert_fields(forgetful.status("line"), OUTSIDE)
        assert [person.status("line").json()["position"] for person in people] == [1, 2, 3]
        assert forgetful.check("line").json()["position"] == 4
        server.stop()


# --- the gate


def test_the_token_opens_the_gate_in_its_header_and_in_its_cookie(server):
    token = Person(server, "buyer").check("gated").json()["entryToken"]
    who = {"X-User-Id": "buyer"}
    for sent in ({"x-queue-entry-token": token}, {"Cookie": f"a=b; urr-entry-token={token}"}):
        assert server.client().get("/shop/seats", headers={**who, **sent}).status == 200


def test_the_token_of_somebody_else_is_none(server):
    token = Person(server, "owner").check("gated").json()["entryToken"]
    for who in ({"X-User-Id": "thief"}, {}):
        for sent in ({"x-queue-entry-token": token}, {"Cookie": f"urr-entry-token={token}"}):
            assert server.client().get("/shop/seats", headers={**who, **sent}).status == 403


def test_the_token_of_another_event_is_none(server):
    token = Person(server, "wanderer").check("other").json()["entryToken"]
    assert server.client().get("/shop/x", headers={"X-User-Id": "wanderer", "x-queue-entry-token": token}).status == 403


# --- behind a lobby


def lobby_pass(server):
    client = server.client()
    token = client.post("/lobby/join", {"event_id": "lobby:behind"}).json()["waiting_token"]
    return client.post("/lobby/enter", {"waiting_token": token}).json()["reservation_token"]


def check_behind(server, name, token):
    return Person(server, name, "/two/").check("behind", headers={"Cookie": f"urr-vwr-token={token}"})


def test_a_place_in_the_hall_needs_a_pass_of_the_lobby(server):
    refused = Person(server, "hasty", "/two/").check("behind")
    assert_fields(refused, {"error": TEXT, "redirectTo": "/vwr/behind"}, 403)
    hall = Person(server, "hasty").check(UUID).json()["entryToken"]
    assert_fields(check_behind(server, "hasty", hall), {"error": TEXT, "redirectTo": "/vwr/behind"}, 403)
    assert_fields(check_behind(server, "hasty", lobby_pass(server)), ACTIVE)


def test_a_pass_of_the_lobby_serves_one_person(server):
    token = lobby_pass(server)
    first = assert_fields(check_behind(server, "the one", token), ACTIVE)["entryToken"]
    assert_fields(check_behind(server, "the other", token), {"error": TEXT, "redirectTo": "/vwr/behind"}, 403)
    assert check_behind(server, "the one", token).json()["entryToken"] == first
    assert Person(server, "the one", "/two/").check("behind").json()["entryToken"] == first, "who has a place needs no lobby"


def test_the_halls_pass_stands_for_both_tiers_and_the_lobbys_for_one(server):
    lobby = lobby_pass(server)
    hall = check_behind(server, "climber", lobby).json()["entryToken"]
    who = {"X-User-Id": "climber"}
    assert server.client().get("/events/x", headers={"Cookie": f"urr-entry-token={hall}"}).status == 200
    assert server.client().get("/events/x", headers={"Cookie": f"urr-vwr-token={lobby}"}).status == 200
    assert server.client().get("/hall/x", headers={**who, "Cookie": f"urr-entry-token={hall}"}).status == 200
    for name in ("urr-entry-token", "urr-vwr-token"):
        assert server.client().get("/hall/x", headers={**who, "Cookie": f"{name}={lobby}"}).status == 403


# --- what is wrong


@pytest.mark.parametrize("method, path", [
    ("POST", "check/line"), ("GET", "status/line"), ("POST", "heartbeat/line"), ("POST", "leave/line"), ("GET", "admin/line"),
    ("POST", "admin/clear/line"), ("POST", "admin/threshold/line?threshold=5"), ("POST", "check/not a room"),
])
def test_nobody_in_particular_is_told_to_sign_in(server, method, path):
    path = path.replace(" ", "%20")
    assert_flat_error(server.client().request(method, PREFIX + path, ""), 401, "Authentication required")
    liar = server.client(headers={"X-User-Id": "root", "X-Forwarded-For": "10.0.0.1", "X-Real-IP": "10.0.0.1"})
    assert_flat_error(liar.request(method, "/untrusted/" + path, ""), 401, "Authentication required")


@pytest.mark.parametrize("query", ["?vwrPosition=-1", "?vwrPosition=1&position=0", "?userId=somebody", "?threshold=0", "?token=x"])
def test_whatever_else_a_client_says_about_itself_is_not_heard(server, person, query):
    Person(server, "the first in line").check("line")
    joined = person.client.post(f"{PREFIX}check/line{query}", '{"position":-1,"userId":"the first in line"}')
    assert joined.json()["position"] > 1
    assert person.client.get(f"{PREFIX}status/line{query}").json()["position"] == joined.json()["position"]
    person.leave("line")


def test_an_unknown_event_is_not_found(person):
    for answer in (person.check("nowhere"), person.status("nowhere")):
        assert_flat_error(answer, 404, "There is no such room")


@pytest.mark.parametrize("event, status", [("a%20b", 400), ("x" * 65, 400), ("%E2%82%AC", 400), ("a%2Fb", 404), ("..%2f", 404)])
def test_a_malformed_event_is_refused(person, event, status):
    for answer in (person.check(event), person.status(event)):
        assert_flat_error(answer, status)


@pytest.mark.parametrize("path", ["", "check", "check/", "nothing/line", "check/line/", "check/line/x", "admin", "admin/", "admin/flush/line",
                                  "admin/clear/line/x"])
def test_other_paths_are_not_there(server, path):
    admin = server.client(headers={"X-User-Id": "a", "X-Role": "admin"})
    assert_flat_error(admin.post(PREFIX + path, ""), 404, "There is no such resource")


@pytest.mark.parametrize("method, path, allow", [
    ("GET", "check/line", "POST"), ("POST", "status/line", "GET, HEAD"), ("DELETE", "leave/line", "POST"), ("PUT", "admin/line", "GET, HEAD"),
])
def test_other_methods_are_refused(person, method, path, allow):
    answer = person.client.request(method, PREFIX + path, "")
    assert_flat_error(answer, 405)
    assert answer.header("allow") == allow


def test_a_room_that_is_closed_or_full_says_when_to_come_back(server):
    assert Person(server, "the only one").check("full").status == 200
    for event, status in (("shut", 503), ("full", 429)):
        answer = Person(server, "late").check(event)
        assert_flat_error(answer, status)
        assert int(answer.header("retry-after")) > 0


def test_a_body_is_not_read_and_may_be_anything(person):
    for body in ("", "{", "null", '{"userId":1}', "x" * 20000):
        assert person.client.post(PREFIX + "check/line", body).status == 200


def test_what_nginx_refuses_is_told_in_the_same_shape(server):
    assert_flat_error(server.client().get("/limited/status/line"), 401)
    assert_flat_error(server.client().get("/limited/status/line"), 429, "Too many requests")


# --- operators


@pytest.fixture
def operators(server):
    """An admin by the bearer token and one by the trusted variable."""
    return [server.client(headers={"Authorization": f"Bearer {server.admin_tokens['ops']}"}),
            server.client(headers={"X-User-Id": "alice", "X-Role": "admin"})]


def test_operators_see_steer_and_clear_a_room(server, operators):
    for i, admin in enumerate(operators):
        assert_fields(admin.post(f"{PREFIX}admin/threshold/steered?threshold={5 + i}", ""), {"eventId": "steered", "threshold": 5 + i})
        assert server.admin().room("steered").json()["settings"]["max_active"] == 5 + i
        Person(server, "somebody").check("steered")
        told = assert_fields(admin.get(PREFIX + "admin/steered"), ROOM)
        assert told == {"eventId": "steered", "queueSize": 0, "currentUsers": 1, "threshold": 5 + i, "available": 4 + i}
        assert_fields(admin.post(PREFIX + "admin/clear/steered", ""), {"message": TEXT})
        assert admin.get(PREFIX + "admin/steered").json()["currentUsers"] == 0
    log = server.log()
    assert 'admin "ops" changed room "steered": max_active 1000 -> 5' in log
    assert 'admin "alice" cleared room "steered"' in log


def test_of_many_who_steer_at_once_nobody_is_refused(server):
    """Somebody else's change in between is no reason: it is made again from there."""
    headers = {"X-User-Id": "alice", "X-Role": "admin"}
    requests = [("POST", f"{PREFIX}admin/threshold/steered?threshold={100 + i}", "", headers) for i in range(40)]
    assert {answer.status for answer in at_once(server.port, requests, connections=40)} == {200}
    assert 100 <= server.admin().room("steered").json()["settings"]["max_active"] < 140


@pytest.mark.parametrize("value", ["", "?threshold=", "?threshold=0", "?threshold=-1", "?threshold=1.5", "?threshold=x", "?threshold=100000001",
                                   "?threshold=99999999999999999999", "?threshold=5&threshold=6"])
def test_a_threshold_that_is_none_changes_nothing(server, operators, value):
    before = server.admin().room("line").json()
    assert_flat_error(operators[1].post(f"{PREFIX}admin/threshold/line{value}", ""), 400)
    assert server.admin().room("line").json() == before


@pytest.mark.parametrize("headers", [{}, {"X-Role": "user"}, {"X-Role": "0"}, {"Authorization": "Bearer wrong"}])
def test_nobody_else_is_an_operator(server, headers):
    before = server.admin().room("line").json()
    client = server.client(headers={"X-User-Id": "bob", **headers})
    for method, path in (("GET", "admin/line"), ("POST", "admin/clear/line"), ("POST", "admin/threshold/line?threshold=1")):
        assert_flat_error(client.request(method, PREFIX + path, ""), 403, "Admin access required")
    assert server.admin().room("line").json() == before


def test_where_no_variable_is_trusted_none_makes_an_operator(server):
    client = server.client(headers={"X-User-Id": "bob", "X-Role": "admin"})
    assert_flat_error(client.get("/api/v1/queue/admin/line"), 403, "Admin access required")


def test_an_operator_asks_about_a_room_that_is_not_there(operators):
    for method, path in (("GET", "admin/nowhere"), ("POST", "admin/clear/nowhere"), ("POST", "admin/threshold/nowhere?threshold=1")):
        assert_flat_error(operators[0].request(method, PREFIX + path, ""), 404, "There is no such room")


# --- beside the queue API


def test_both_families_answer_at_one_address(server):
    api, person = server.api(headers={"X-User-Id": "both"}), Person(server, "both", "/api/v1/queue/")
    token = api.ticket("line")
    told = assert_fields(person.status("line"), QUEUED)
    assert api.status(token).json()["position"] == told["position"], "it is one ticket"
    assert server.client().get("/api/v1/queue/status").error_code == "MISSING_TOKEN"
    assert server.client().get("/api/v1/queue/nothing").error_code == "NOT_FOUND"
    assert_flat_error(server.client().get("/api/v1/queue/status/line"), 401)
    assert server.client().get("/pattern/queue/status").error_code == "MISSING_TOKEN"
    for prefix in ("/api/v1/queue/", "/pattern/queue/"):
        assert server.client().get(prefix + "x/status").error_code == "NOT_FOUND", "its calls are one word each"
    api.leave(token)
    assert_fields(person.status("line"), OUTSIDE)


@pytest.mark.parametrize("words", ["", "tier3", "tier2 lobby", "lobby lobby", "admin tier2", "tier2 tier2", "tier2 room=x", "queue admin", "tier2 health"])
def test_what_does_not_go_together_is_refused(weir, words):
    accepted, said = weir(start=False, server=f"location /x/ {{ weir_api {words}; }}").check_conf()
    assert not accepted and "weir_api" in said


def test_a_queue_that_knows_nobody_is_warned_of(weir):
    server = weir(start=False, api=False, server="location /x/ { weir_api tier2; }")
    accepted, said = server.check_conf()
    assert accepted and re.search(r"\[warn\].*weir_api tier2.*/x/.*weir_user", said)
    server.write_conf(server="weir_user $remote_user; location /x/ { weir_api tier2; }")
    assert "[warn]" not in server.check_conf()[1]
