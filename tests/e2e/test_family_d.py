# SPDX-License-Identifier: BSD-2-Clause
"""The concert queue: its contract, field by field, type by type, its ticket at the gate, and everything that is wrong."""

import time

import jwt
import pytest
from weirtest import Nginx, at_once, wait_until
from weirtest.contract import COUNT, TEXT, assert_fields
from weirtest.loss import Loss

FAST = "rate=100000 burst=100000"
ROOMS = {
    "concert": f"preset=concert {FAST}", "line": "preset=concert mode=hold batch=3 interval_sec=10", "shut": "preset=concert mode=closed",
    "full": "mode=hold max_waiting=1", "called": f"preset=concert {FAST} mode=hold", "rated": "mode=hold rate=2", "other": FAST,
    "lobby": f"tier=1 {FAST}", "slow": "rate=0.01 burst=1 max_eta_sec=1", "behind": FAST, "lobby:behind": f"tier=1 {FAST}",
}
SERVER = """
        location /api/v1/queue/ {{ weir_api concert; weir_cors https://shop.example; }}
        location /shared/queue/ {{ weir_api queue tier2 concert; weir_user $http_x_user_id from=127.0.0.1; }}
        location /named/ {{ weir_api concert; weir_user $http_x_user_id from=127.0.0.1; }}
        location ~ ^/line/queue/ {{ weir_api concert room=line; }}
        location /rated/ {{ weir_api concert room=rated; }}
        location /shut/ {{ weir_api concert room=shut; }}
        location /full/ {{ weir_api concert room=full; }}
        location /slow/ {{ weir_api concert room=slow; }}
        location /called/ {{ weir_api concert room=called; }}
        location /other/ {{ weir_api concert room=other; }}
        location /behind/ {{ weir_api queue concert room=behind; weir_lobby /vwr/; }}
        location /nowhere/ {{ weir_api concert room=nowhere; }}
        location /seats {{ weir_gate room=concert ticket=on; proxy_pass http://127.0.0.1:{shop}; }}
        location /tier2 {{ weir_gate tier=2 room=$http_x_room ticket=on; proxy_pass http://127.0.0.1:{shop}; }}
        location /lobby/ {{ weir_api concert room=lobby; }}
        location /service/ {{ allow 127.0.0.1; deny all; weir_api concert room=line user_id=trusted; }}
        location /known/ {{ weir_api concert room=line user_id=trusted; weir_user $http_x_user_id from=127.0.0.1; }}
        location = /verify {{ weir_verify $http_x_forwarded_uri redirect=off; }}
        location /passes {{ weir_gate room=concert; proxy_pass http://127.0.0.1:{shop}; }}
        location /mine {{
            weir_gate room=concert ticket=on;
            weir_user $http_x_user_id from=127.0.0.1;
            proxy_pass http://127.0.0.1:{shop};
        }}
"""
PREFIX = "/api/v1/queue/"
TOKEN = {"data": {"token": TEXT, "estimatedWaitingTime": COUNT}}
STATUS = {"data": {"position": COUNT, "estimatedWaitingTime": COUNT}}


@pytest.fixture(scope="module")
def server(tmp_path_factory, shop):
    server = Nginx(tmp_path_factory.mktemp("d") / "nginx", rooms=ROOMS, api=False, admin=["ops"], server=SERVER.format(shop=shop.port))
    yield server.start()
    server.stop()


class Fan:
    """Like a phone's app: no cookies, only its token."""

    def __init__(self, server, prefix=PREFIX, headers=None, cookies=False):
        self.client = server.client(cookies=cookies, headers=headers or {})
        self.prefix = prefix

    def join(self, user="1"):
        return self.client.post(self.prefix + "token", {"userId": user})

    def token(self):
        return assert_fields(self.join(), TOKEN)["data"]["token"]

    def status(self, token, query=""):
        return self.client.get(f"{self.prefix}status{query}", headers={"User-Token": token})

    def leave(self, token):
        return self.client.request("DELETE", self.prefix + "token", headers={"User-Token": token})


def assert_error(answer, status, code):
    assert_fields(answer, {"error": {"code": code, "message": TEXT}}, status)


# --- the table


def test_where_there_is_room_a_token_is_active_at_once(server):
    fan = Fan(server)
    told = assert_fields(fan.join(), TOKEN)["data"]
    assert told["estimatedWaitingTime"] == 0
    assert assert_fields(fan.status(told["token"]), STATUS)["data"] == {"position": 0, "estimatedWaitingTime": 0}


def test_the_wait_is_so_many_whole_batches(server):
    """ceil(position / batch) x interval"""
    fans = [Fan(server, "/line/queue/") for _ in range(7)]
    tokens = [fan.token() for fan in fans]
    told = [fan.status(token).json()["data"] for fan, token in zip(fans, tokens)]
    assert [one["position"] for one in told] == [1, 2, 3, 4, 5, 6, 7]
    assert [one["estimatedWaitingTime"] for one in told] == [10, 10, 10, 20, 20, 20, 30]
    assert Fan(server, "/line/queue/").join().json()["data"]["estimatedWaitingTime"] == 30


def test_a_room_with_another_pace_has_its_own_estimate(server):
    for _ in range(3):
        told = Fan(server, "/rated/").join().json()["data"]
    assert told["estimatedWaitingTime"] > 0


def test_a_poll_of_somebody_called_makes_them_active(server):
    fan = Fan(server, "/called/")
    token = fan.token()
    assert fan.status(token).json()["data"]["position"] == 1
    server.admin().patch("called", mode="queue")
    wait_until(lambda: fan.status(token).json()["data"] == {"position": 0, "estimatedWaitingTime": 0}, 5, "the call")
    assert server.admin().figures("called").json()["entered"] == 1


def test_leaving_ends_it_and_may_be_said_twice(server):
    fan = Fan(server, "/line/queue/")
    token = fan.token()
    for _ in range(2):
        assert_fields(fan.leave(token), {"data": {"status": "left"}})
    assert_error(fan.status(token), 400, "invalid_token")


@pytest.mark.local
def test_a_place_that_was_lost_is_given_back_to_its_token(weir):
    server = weir(rooms={"concert": "mode=hold"}, journal="journal", api=False, server="location /api/v1/queue/ { weir_api concert; }")
    fan = Fan(server)
    known, loss = fan.token(), Loss(server)
    tokens = [known, fan.token(), fan.token()]
    loss.happen()
    assert [fan.status(token).json()["data"]["position"] for token in tokens] == [1, 2, 3]


# --- who it is


def test_a_name_is_only_a_label(server):
    """Failure 23."""
    assert Fan(server).join("alice").json()["data"]["token"] != Fan(server).join("alice").json()["data"]["token"]


def test_one_visitor_has_one_ticket_whatever_they_call_themselves(server):
    fan = Fan(server, "/line/queue/", cookies=True)
    assert len({fan.join(name).json()["data"]["token"] for name in ("a", "b", "c")}) == 1


def test_one_identity_has_one_ticket_and_nobody_else_may_use_it(server):
    alice = [Fan(server, "/named/", headers={"X-User-Id": "alice"}) for _ in range(2)]
    token = alice[0].token()
    assert alice[1].join("bob").json()["data"]["token"] == token
    assert alice[1].status(token).status == 200
    for stranger in (Fan(server, "/named/", headers={"X-User-Id": "bob"}), Fan(server, "/named/")):
        assert_error(stranger.status(token), 400, "invalid_token")
        assert_error(stranger.leave(token), 400, "invalid_token")
    assert alice[0].status(token).status == 200


def test_a_hundred_joins_of_one_identity_at_once_are_one_ticket(server):
    request = ("POST", "/named/token", '{"userId":"1"}', {"X-User-Id": "impatient"})
    assert len({answer.json()["data"]["token"] for answer in at_once(server.port, [request] * 100)}) == 1


def test_where_the_operator_trusts_whoever_asks_there_is_one_ticket_for_each_name(server):
    service = [Fan(server, "/service/", cookies=cookies) for cookies in (False, True, True)]
    tokens = {name: {one.join(name).json()["data"]["token"] for one in service} for name in ("dora", "emil")}
    assert all(len(of_one) == 1 for of_one in tokens.values()) and tokens["dora"] != tokens["emil"]
    assert not service[1].client.cookies, "a service is no visitor"
    (token,) = tokens["dora"]
    assert_fields(Fan(server, "/line/queue/").status(token), STATUS)
    assert Fan(server, "/line/queue/").join("dora").json()["data"]["token"] != token, "elsewhere it is a label"
    assert service[0].join("").json()["data"]["token"] != service[0].join("").json()["data"]["token"]


def test_who_is_known_there_asks_for_themselves_whomever_they_name(server):
    erna, dora = Fan(server, "/known/", headers={"X-User-Id": "erna"}), Fan(server, "/service/").join("dora").json()["data"]["token"]
    tokens = {erna.join(name).json()["data"]["token"] for name in ("dora", "erna")}
    assert len(tokens) == 1 and dora not in tokens
    assert_error(Fan(server, "/known/", headers={"X-User-Id": "dora"}).status(*tokens), 400, "invalid_token")


# --- behind a lobby


def test_behind_a_lobby_a_token_is_taken_with_its_pass_and_one_alone(server):
    fan, visitor = Fan(server, "/behind/"), server.client()
    assert_fields(fan.join(), {"error": {"code": "token_not_processable", "message": TEXT}, "redirectTo": "/vwr/behind"}, 400)
    assert server.admin().figures("behind").json()["issued"] == 0
    ticket = visitor.post("/behind/join", {"event_id": "lobby:behind"}).json()["waiting_token"]
    fan.client.headers["x-queue-entry-token"] = visitor.post("/behind/enter", {"waiting_token": ticket}).json()["reservation_token"]
    answers = [fan.join(), fan.join("2")]
    assert len({assert_fields(answer, TOKEN)["data"]["token"] for answer in answers}) == 1
    assert not any(answer.cookies() for answer in answers), "no cookie of somebody who holds nothing"


# --- the gate


def test_the_token_opens_the_gate_while_its_holder_is_inside(server, shop):
    fan = Fan(server)
    token = fan.token()
    shop.seen.clear()
    assert fan.client.get("/seats", headers={"User-Token": token}).status == 200
    said = shop.seen[-1].of_weir()
    assert (said["x-weir-room"], said["x-weir-tier"]) == ("concert", "2") and said["x-weir-user"].startswith("v-")
    fan.leave(token)
    wait_until(lambda: fan.client.get("/seats", headers={"User-Token": token}).status == 400, 5, "the end")
    assert_error(fan.client.get("/seats", headers={"User-Token": token}), 400, "token_not_processable")


def test_a_token_that_waits_opens_nothing(server):
    server.admin().patch("concert", mode="hold")
    fan = Fan(server)
    token = fan.token()
    assert_error(fan.client.get("/seats", headers={"User-Token": token}), 400, "token_not_processable")
    server.admin().patch("concert", mode="queue")
    wait_until(lambda: fan.status(token).json()["data"]["position"] == 0, 5, "the call")
    assert fan.client.get("/seats", headers={"User-Token": token}).status == 200


def test_a_called_token_opens_nothing_until_its_holder_asks(server):
    server.admin().patch("concert", mode="hold")
    fan = Fan(server)
    token = fan.token()
    server.admin().advance("concert", 1)
    assert_error(fan.client.get("/seats", headers={"User-Token": token}), 400, "token_not_processable")
    server.admin().patch("concert", mode="queue")
    fan.status(token)
    assert fan.client.get("/seats", headers={"User-Token": token}).status == 200


@pytest.mark.parametrize("token", ["x", "A" * 100, "", "a.b.c"])
def test_what_is_no_token_opens_nothing(server, token):
    assert_error(server.client().get("/seats", headers={"User-Token": token}), 400, "invalid_token")
    assert_error(server.client().get("/seats"), 400, "invalid_token")


def test_a_token_of_another_room_or_of_a_lower_tier_opens_nothing(server):
    other, lobby, ours = Fan(server, "/other/").token(), Fan(server, "/lobby/").token(), Fan(server).token()
    client = server.client()
    assert_error(client.get("/seats", headers={"User-Token": other}), 400, "invalid_token")
    assert client.get("/tier2", headers={"User-Token": ours, "X-Room": "concert"}).status == 200
    assert client.get("/tier2", headers={"User-Token": lobby, "X-Room": "lobby"}).status == 400


def test_where_no_ticket_is_taken_a_token_is_none(server):
    token = Fan(server).token()
    answer = server.client().get("/passes", headers={"User-Token": token})
    assert (answer.status, answer.error_code) == (403, "ADMISSION_REQUIRED")


def test_the_token_of_an_identity_is_theirs_at_the_gate_too(server, shop):
    token = Fan(server, "/named/", headers={"X-User-Id": "carol"}).token()
    assert server.client().get("/mine", headers={"User-Token": token, "X-User-Id": "carol"}).status == 200
    assert shop.seen[-1].of_weir()["x-weir-user"] == "carol"
    for who in ({}, {"X-User-Id": "bob"}):
        assert_error(server.client().get("/mine", headers={"User-Token": token, **who}), 400, "invalid_token")
    assert_error(server.client().get("/seats", headers={"User-Token": token}), 400, "invalid_token")


def test_another_proxy_may_ask_about_a_token(server):
    token = Fan(server).token()
    asked = {"X-Forwarded-Uri": "/seats", "X-Forwarded-Method": "GET"}
    assert server.client().get("/verify", headers={**asked, "User-Token": token}).status == 200
    assert server.client().get("/verify", headers={**asked, "User-Token": "x"}).status == 401, "what proxies take for no"


def test_a_pass_opens_that_gate_as_well(server):
    api = server.api()
    joined = api.post("/shared/queue/join", {"event_id": "concert"}).json()["waiting_token"]
    token = api.post("/shared/queue/enter", {"waiting_token": joined}).json()["reservation_token"]
    assert server.client().get("/seats", headers={"x-queue-entry-token": token}).status == 200


def test_no_ticket_makes_a_lost_session_anew(weir):
    """A pass says that its holder was inside; a ticket says only where they stood."""
    server = weir(rooms={"concert": "mode=open"}, api=False, server="""
        location /api/v1/queue/ { weir_api queue concert; }
        location /seats { weir_gate room=concert ticket=on; empty_gif; }
    """)
    fan, api = Fan(server), server.api()
    token = fan.token()
    assert fan.client.get("/seats", headers={"User-Token": token}).status == 200
    entry = api.enter(api.ticket("concert")).json()["reservation_token"]
    given = jwt.decode(entry, options={"verify_signature": False})["iat"]
    wait_until(lambda: time.time() >= given + 1, 5, "a room that is younger than the pass")
    server.stop()
    server.forget()
    server.write_conf(rooms={"concert": "mode=queue"})
    server.start()
    assert server.client().get("/seats", headers={"User-Token": token}).status == 400
    assert server.client().get("/seats", headers={"x-queue-entry-token": entry}).status == 200


def test_a_browser_is_still_sent_to_the_page(server):
    server.admin().patch("concert", mode="hold")
    answer = server.client().get("/seats", headers={"Accept": "text/html"})
    server.admin().patch("concert", mode="queue")
    assert (answer.status, answer.header("location")) == (302, "/queue/concert?return=%2Fseats")


# --- what is wrong


@pytest.mark.parametrize("token", ["x", "00000000-0000-4000-8000-000000000000", "A" * 100, pytest.param("A" * 5000, id="5 KB"), "a.b.c"])
def test_a_token_of_nobody_is_invalid(server, token):
    for answer in (Fan(server).status(token), Fan(server).leave(token)):
        assert_error(answer, 400, "invalid_token")


def test_without_a_token_there_is_nothing_to_say(server):
    for answer in (server.client().get(PREFIX + "status"), server.client().get(PREFIX + "status?token=x"), Fan(server).status(""),
                   server.client().request("DELETE", PREFIX + "token")):
        assert_error(answer, 400, "invalid_token")


def test_a_token_of_another_room_is_invalid(server):
    assert_error(Fan(server).status(Fan(server, "/other/").token()), 400, "invalid_token")


@pytest.mark.parametrize("prefix", ["/shut/", "/full/", "/slow/", "/nowhere/"])
def test_a_room_that_takes_nobody_is_not_available(server, prefix):
    Fan(server, prefix).join()
    assert_error(Fan(server, prefix).join(), 400, "queue_not_available")


@pytest.mark.parametrize("body, status", [
    ("", 200), ("{}", 200), ('{"userId":null}', 200), ('{"userId":"a","x":{"y":1}}', 200), ('{"userId":1}', 400), ("[1]", 400), ("{", 400),
    pytest.param('{"userId":"' + "x" * 10240 + '"}', 400, id="10 KB"), pytest.param("x" * 20000, 413, id="20 KB"),
])
def test_a_body_is_a_json_object_with_a_name_or_without(server, body, status):
    answer = server.client().post(PREFIX + "token", body)
    if status == 200:
        assert_fields(answer, TOKEN)
    else:
        assert_error(answer, status, "invalid_request" if status == 400 else "body_too_large")


@pytest.mark.parametrize("method, path, allow", [("GET", "token", "POST, DELETE"), ("POST", "status", "GET, HEAD"), ("PUT", "token", "POST, DELETE")])
def test_other_methods_are_refused(server, method, path, allow):
    answer = server.client().request(method, PREFIX + path, "")
    assert_error(answer, 405, "method_not_allowed")
    assert answer.header("allow") == allow


def test_a_head_is_a_get_without_its_body(server):
    client, headers = server.client(), {"X-User-Id": "head", "User-Token": Fan(server).token()}
    for path in (PREFIX + "status", "/shared/queue/status", "/shared/queue/status/line"):
        told, head = client.get(path, headers=headers), client.request("HEAD", path, headers=headers)
        assert (head.status, head.body, head.header("content-length")) == (200, b"", str(len(told.body)))


@pytest.mark.parametrize("path", ["", "join", "token/", "token/x", "status/x", "enter"])
def test_other_paths_are_not_there(server, path):
    assert_error(server.client().post(PREFIX + path, ""), 404, "not_found")


def test_pages_of_a_named_origin_may_send_the_token(server):
    answer = server.client().request("OPTIONS", PREFIX + "status", headers={
        "Origin": "https://shop.example", "Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "user-token"})
    assert answer.status == 204 and "User-Token" in answer.header("access-control-allow-headers")


# --- beside the others


def test_what_nginx_refuses_is_told_in_the_shape_of_whoever_asked(weir):
    server = weir(api=False, http="limit_req_zone none zone=none:32k rate=1r/m;", server="""
        location /queue/ { weir_api queue tier2 concert; limit_req zone=none; }
    """)
    client, token = server.client(), {"User-Token": "x"}
    client.get("/queue/status")
    assert client.get("/queue/status?token=x", headers=token).error_code == "RATE_LIMITED"
    assert client.get("/queue/status").error_code == client.get("/queue/nothing").error_code == "RATE_LIMITED"
    assert client.get("/queue/status/42").json() == {"error": "Too many requests"}
    for answer in (client.get("/queue/status", headers=token), client.post("/queue/token", {}), client.get("/queue/token")):
        assert_error(answer, 429, "rate_limited")


def test_three_families_share_one_address(server):
    """What a request carries says whose it is."""
    fan, api = Fan(server, "/shared/queue/"), server.client()
    token = fan.token()
    assert_fields(fan.status(token), STATUS)
    ticket = api.post("/shared/queue/join", {"event_id": "line"}).json()["waiting_token"]
    assert "ready_for_entry" in api.get(f"/shared/queue/status?token={ticket}").json()
    both = fan.status(token, f"?token={ticket}")
    assert "ready_for_entry" in both.json(), "a token in the query is the queue API's"
    assert api.get("/shared/queue/status").error_code == "MISSING_TOKEN"
    assert api.get("/shared/queue/status/line", headers={"X-User-Id": "x"}).json()["status"] == "not_in_queue"
    assert api.get("/shared/queue/status/line").json() == {"error": "Authentication required"}
    assert_error(fan.status("x"), 400, "invalid_token")
    assert api.get("/shared/queue/nothing").error_code == "NOT_FOUND"


@pytest.mark.parametrize("words", ["concert room=", "concert room=a/b", "queue room=x", "queue user_id=trusted", "concert user_id=believed", "concert concert", "concert lobby", "concert tier=2"])
def test_what_does_not_go_together_is_refused(weir, words):
    accepted, said = weir(start=False, server=f"location /x/ {{ weir_api {words}; }}").check_conf()
    assert not accepted and ("weir_api" in said or "room name" in said)


@pytest.mark.parametrize("word", ["ticket=off", "ticket=", "ticket"])
def test_a_gate_takes_tickets_or_does_not(weir, word):
    accepted, said = weir(start=False, rooms=ROOMS, server=f"location /x/ {{ weir_gate room=concert {word}; }}").check_conf()
    assert not accepted and "weir_gate" in said
