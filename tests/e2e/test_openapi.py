# SPDX-License-Identifier: BSD-2-Clause
"""docs/openapi.yaml says what the server does: every documented call is made, and its answer held to its schema.

The table of calls below is checked against the file from both sides. An answer that the file does not document fails, be it
a status, a code, a header or a field; so does a documented answer that no call got.
"""

import base64
import json
import re
from pathlib import Path

import pytest
from weirtest import Nginx, at_once, wait_until
from weirtest.away import engine_away
from weirtest.openapi import Document

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = Document(ROOT / "docs" / "openapi.yaml")
PREFIX = "/api/v1/queue/"

# Codes of errors.md that the queue API never gives: they belong to the operator's API.
OTHER_CODES = {"INVALID_SETTING", "UNAUTHORIZED"}

# Documented answers that cannot be provoked from outside.
NOT_PROVOKED = {
    ("post", "/api/v1/queue/join", "409", "CONFLICT"),  # needs a room that is removed between two instructions
}

ROOMS = {
    "now": "rate=100000 burst=1000 max_active=0",
    "held": "mode=hold",
    "lobby:now": "tier=1",
    "shut": "mode=closed",
    "full": "mode=hold max_waiting=1",
    "long": "rate=0.001 burst=1 max_eta_sec=1",
}
SERVER = """
        location /behind/ { weir_api queue; weir_lobby /vwr/; }
        location /strict/ { weir_api queue; weir_idempotency required; }
        location /named/ { weir_api queue; weir_cors https://shop.example; }
        location /limited/ { weir_api queue; limit_req zone=none; }
        location /broken/ { weir_api queue; return 503; }
        location = /.well-known/jwks.json { weir_api jwks; }
        location /dead/ { proxy_pass http://dead; }
        location = /verify { weir_gate off; weir_verify $http_x_forwarded_uri; }
        location /gated/ { weir_gate room=now; proxy_pass http://dead; }
"""
CORS = {"Origin": "https://shop.example", "Access-Control-Request-Method": "POST"}
BROWSER = {"Accept": "text/html"}
ASKED = {"X-Forwarded-Uri": "/gated/"}


# --- the file


def test_the_file_is_openapi():
    DOCUMENT.assert_is_openapi()


def test_every_reference_leads_somewhere_and_everything_is_used():
    DOCUMENT.assert_references_lead_somewhere_and_all_is_used()


def test_every_schema_is_one_and_every_example_fits_it():
    DOCUMENT.assert_examples_fit()


def test_every_code_of_the_queue_api_is_documented():
    errors = (ROOT / "docs" / "reference" / "errors.md").read_text()
    rows = dict(re.findall(r"^\| `([A-Z_]+)` \| (\d+) \|", errors, re.M))
    # Forward auth says 401 where the gate says 403: proxies take it for "no".
    listed = {(code, status) for _, path, status, code in DOCUMENT.documented() if code and (path, status) != ("/verify", "401")}
    wanted = {(code, status) for code, status in rows.items() if code not in OTHER_CODES}
    assert listed == wanted


# --- the server


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Nginx(tmp_path_factory.mktemp("openapi") / "nginx", rooms=ROOMS, gate="held", server=SERVER,
                   http="limit_req_zone $request_method$uri zone=none:1m rate=1r/m; weir_pass eddsa tier=1;"
                        "upstream dead { server 127.0.0.1:1; weir_breaker requests=1; }")
    yield server.start()
    server.stop()


@pytest.fixture(scope="module")
def server_without_engine(tmp_path_factory):
    with engine_away(tmp_path_factory.mktemp("openapi") / "away", rooms=ROOMS, gate="held", server=SERVER,
                     http="upstream dead { server 127.0.0.1:1; } limit_req_zone $uri zone=none:1m rate=1r/m;") as server:
        yield server


@pytest.fixture(scope="module")
def full_server(tmp_path_factory):
    """The zone is full, and somebody in it has been called."""
    server = Nginx(tmp_path_factory.mktemp("openapi") / "full", rooms={"held": "rate=0.001 burst=1"}, zone="800k", rooms_max=1)
    server.start()
    server.called = server.api().ticket("held")
    join = ("POST", PREFIX + "join", {"event_id": "held"})
    while all(response.status == 202 for response in at_once(server.port, [join] * 500)):
        pass
    yield server
    server.stop()


def ticket(room="held"):
    return lambda server: server.api().ticket(room)


def new_pass(server):
    return server.api().enter(ticket("now")(server)).json()["reservation_token"]


def body(**fields):
    return lambda server: {name: value(server) if callable(value) else value for name, value in fields.items()}


def query(token):
    return lambda server: f"?token={token(server) if callable(token) else token}"


HUGE = {"waiting_token": "x" * 20000}
GONE = "A" * 60

# (method, path, what makes it, expected status, expected code); what makes it: at = another location, query, body, headers,
# first = the same request before, with these differences.
CALLS = [
    ("post", "join", dict(body=body(event_id="held")), 202, None),
    ("post", "join", dict(body=body(event_id="now", user_id="anonymous")), 202, None),
    ("post", "join", dict(body=body(event_id="now"), headers={"Idempotency-Key": "1"}, first={}), 202, None),
    ("post", "join", dict(body="nonsense"), 400, "INVALID_REQUEST"),
    ("post", "join", dict(body=body()), 400, "MISSING_EVENT_ID"),
    ("post", "join", dict(body=body(event_id="a/b")), 400, "INVALID_EVENT_ID"),
    ("post", "join", dict(at="/strict/", body=body(event_id="now")), 400, "IDEMPOTENCY_REQUIRED"),
    ("post", "join", dict(body=body(event_id="now"), headers={"Idempotency-Key": "k" * 129}), 400,
     "INVALID_IDEMPOTENCY_KEY"),
    ("post", "join", dict(at="/behind/", body=body(event_id="now")), 403, "ADMISSION_REQUIRED"),
    ("post", "join", dict(body=body(event_id="nowhere")), 404, "ROOM_NOT_FOUND"),
    ("post", "join", dict(body=body(event_id="now"), headers={"Idempotency-Key": "2"},
                          first=dict(body=body(event_id="now", user_id="x"))), 409, "IDEMPOTENCY_CONFLICT"),
    ("post", "join", dict(body=HUGE), 413, "BODY_TOO_LARGE"),
    ("post", "join", dict(body=body(event_id="full"), first={}), 429, "QUEUE_FULL"),
    ("post", "join", dict(body=body(event_id="long"), first={}), 429, "WAIT_TOO_LONG"),
    ("post", "join", dict(at="/limited/", body=body(event_id="now"), first={}), 429, "RATE_LIMITED"),
    ("post", "join", dict(body=body(event_id="shut")), 503, "ROOM_CLOSED"),
    ("post", "join", dict(at="/broken/", body=body(event_id="now")), 503, "ENGINE_UNAVAILABLE"),

    ("get", "status", dict(query=query(ticket())), 200, None),
    ("get", "status", dict(query=query(ticket("now"))), 200, None),
    ("get", "status", dict(query="?token=%zz"), 400, "INVALID_REQUEST"),
    ("get", "status", dict(), 400, "MISSING_TOKEN"),
    ("get", "status", dict(query=query(GONE)), 404, "TOKEN_NOT_FOUND"),
    ("get", "status", dict(at="/limited/", query=query(GONE), first={}), 429, "RATE_LIMITED"),
    ("get", "status", dict(at="/broken/"), 503, "ENGINE_UNAVAILABLE"),
    ("head", "status", dict(query=query(ticket())), 200, None),
    ("head", "status", dict(), 400, None),
    ("head", "status", dict(query=query(GONE)), 404, None),
    ("head", "status", dict(at="/limited/", first={}), 429, None),
    ("head", "status", dict(at="/broken/"), 503, None),

    ("post", "enter", dict(body=body(waiting_token=ticket("now"))), 200, None),
    ("post", "enter", dict(body="[]"), 400, "INVALID_REQUEST"),
    ("post", "enter", dict(body=body()), 400, "MISSING_TOKEN"),
    ("post", "enter", dict(at="/strict/", body=body(waiting_token=ticket("now"))), 400, "IDEMPOTENCY_REQUIRED"),
    ("post", "enter", dict(body=body(waiting_token=ticket("now")), headers={"Idempotency-Key": "\t"}), 400,
     "INVALID_IDEMPOTENCY_KEY"),
    ("post", "enter", dict(body=body(waiting_token=ticket())), 403, "NOT_READY"),
    ("post", "enter", dict(body=body(waiting_token=GONE)), 404, "TOKEN_NOT_FOUND"),
    ("post", "enter", dict(body=body(waiting_token=ticket("now")), headers={"Idempotency-Key": "3"}, first={}), 409,
     "IDEMPOTENCY_CONFLICT"),
    ("post", "enter", dict(body=HUGE), 413, "BODY_TOO_LARGE"),
    ("post", "enter", dict(at="/limited/", body=body(), first={}), 429, "RATE_LIMITED"),
    ("post", "enter", dict(at="/broken/", body=body()), 503, "ENGINE_UNAVAILABLE"),

    ("post", "heartbeat", dict(body=body(waiting_token=ticket())), 200, None),
    ("post", "heartbeat", dict(body="{"), 400, "INVALID_REQUEST"),
    ("post", "heartbeat", dict(body=body(waiting_token="")), 400, "MISSING_TOKEN"),
    ("post", "heartbeat", dict(body=body(waiting_token=GONE)), 404, "TOKEN_NOT_FOUND"),
    ("post", "heartbeat", dict(body=HUGE), 413, "BODY_TOO_LARGE"),
    ("post", "heartbeat", dict(at="/limited/", body=body(), first={}), 429, "RATE_LIMITED"),
    ("post", "heartbeat", dict(at="/broken/", body=body()), 503, "ENGINE_UNAVAILABLE"),

    ("delete", "leave", dict(query=query(ticket())), 200, None),
    ("delete", "leave", dict(query=query(GONE)), 200, None),
    ("delete", "leave", dict(query="?token=a&token=b"), 400, "INVALID_REQUEST"),
    ("delete", "leave", dict(), 400, "MISSING_TOKEN"),
    ("delete", "leave", dict(at="/limited/", query=query(GONE), first={}), 429, "RATE_LIMITED"),
    ("delete", "leave", dict(at="/broken/"), 503, "ENGINE_UNAVAILABLE"),
    ("post", "leave", dict(query=query(ticket())), 204, None),
    ("post", "leave", dict(body=body(waiting_token=ticket())), 204, None),
    ("post", "leave", dict(body="nonsense"), 400, "INVALID_REQUEST"),
    ("post", "leave", dict(), 400, "MISSING_TOKEN"),
    ("post", "leave", dict(body=HUGE), 413, "BODY_TOO_LARGE"),
    ("post", "leave", dict(at="/limited/", query=query(GONE), first={}), 429, "RATE_LIMITED"),
    ("post", "leave", dict(at="/broken/"), 503, "ENGINE_UNAVAILABLE"),

    *(("options", name, dict(at="/named/", headers=CORS), 204, None)
      for name in ("join", "status", "enter", "heartbeat", "leave")),
    *(("options", name, dict(headers=CORS), 405, "METHOD_NOT_ALLOWED")
      for name in ("join", "status", "enter", "heartbeat", "leave")),
    ("get", "{other}", dict(), 404, "NOT_FOUND"),

    ("post", "/api/v1/reservations", dict(headers=BROWSER), 302, None),
    ("post", "/api/v1/reservations", dict(), 403, "ADMISSION_REQUIRED"),
    ("post", "/api/v1/reservations", dict(at="/dead", first={}), 503, "SERVICE_UNAVAILABLE"),
    ("get", "/api/v1/reservations", dict(headers=BROWSER), 302, None),
    ("get", "/queue/held", dict(), 200, None),
    ("head", "/queue/held", dict(), 200, None),
    ("get", "/queue/nowhere", dict(), 404, None),
    ("get", "/verify", dict(headers=lambda server: {**ASKED, "x-queue-entry-token": new_pass(server)}), 200, None),
    ("get", "/verify", dict(headers={"X-Forwarded-Uri": "/healthz"}), 200, None),
    ("get", "/verify", dict(headers={**ASKED, **BROWSER}), 302, None),
    ("get", "/verify", dict(), 400, "INVALID_REQUEST"),
    ("get", "/verify", dict(headers=ASKED), 401, "ADMISSION_REQUIRED"),
    ("get", "/.well-known/jwks.json", dict(), 200, None),
    ("head", "/.well-known/jwks.json", dict(), 200, None),
    ("options", "/.well-known/jwks.json", dict(), 405, "METHOD_NOT_ALLOWED"),
    ("get", "/healthz", dict(), 200, None),
    ("head", "/healthz", dict(), 200, None),
    ("options", "/healthz", dict(), 405, "METHOD_NOT_ALLOWED"),
    ("get", "/readyz", dict(), 200, None),
    ("head", "/readyz", dict(), 200, None),
    ("options", "/readyz", dict(), 405, "METHOD_NOT_ALLOWED"),
]
CALLS_OF_A_FULL_SERVER = [
    ("post", "join", dict(body=body(event_id="held")), 429, "QUEUE_FULL"),
    ("get", "status", dict(query=query(lambda server: server.called)), 200, None),
    ("post", "enter", dict(body=body(waiting_token=lambda server: server.called), headers={"Idempotency-Key": "1"}), 200,
     None),
]
CALLS_WITHOUT_ENGINE = [
    ("post", "join", dict(body=body(event_id="now")), 503, "ENGINE_UNAVAILABLE"),
    ("post", "/api/v1/reservations", dict(), 503, "ENGINE_UNAVAILABLE"),
    ("get", "/api/v1/reservations", dict(headers=BROWSER), 302, None),
    ("get", "/queue/held", dict(), 200, None),
    ("get", "/verify", dict(headers=ASKED), 503, "ENGINE_UNAVAILABLE"),
    ("get", "/healthz", dict(), 200, None),
    ("get", "/readyz", dict(), 503, None),
    ("head", "/readyz", dict(), 503, None),
]


def path_of(name):
    return re.sub("^/queue/.*", "/queue/{room}", name) if name.startswith("/") else PREFIX + name


def send(server, client, method, name, how):
    if "first" in how:
        before = {key: value for key, value in how.items() if key != "first"}
        send(server, client, method, name, {**before, **how["first"]})
    path = how["at"] + name if "at" in how else name if name.startswith("/") else PREFIX + name
    parts = {key: value(server) if callable(value) else value for key, value in how.items() if key in ("query", "body", "headers")}
    return client.request(method.upper(), path + parts.get("query", ""), parts.get("body"), headers=parts.get("headers"))


def name_of(call):
    return f"{call[0]}-{call[1].strip('{/}')}-{call[3]}-{call[4]}"


@pytest.mark.parametrize("call", CALLS, ids=name_of)
def test_an_answer_is_as_documented(server, call):
    method, name, how, status, code = call
    answer = send(server, server.api(cookies=False), method, name, how)
    assert (answer.status, answer.error_code) == (status, code), answer
    DOCUMENT.assert_as_documented(DOCUMENT.operations()[method, path_of(name)], answer)


@pytest.mark.local
@pytest.mark.parametrize("call", CALLS_OF_A_FULL_SERVER, ids=name_of)
def test_an_answer_of_a_full_server_is_as_documented(full_server, call):
    method, name, how, status, code = call
    answer = send(full_server, full_server.api(cookies=False), method, name, how)
    assert (answer.status, answer.error_code) == (status, code), answer
    DOCUMENT.assert_as_documented(DOCUMENT.operations()[method, path_of(name)], answer)


@pytest.mark.parametrize("call", CALLS_WITHOUT_ENGINE, ids=name_of)
def test_an_answer_without_an_engine_is_as_documented(server_without_engine, call):
    method, name, how, status, code = call
    answer = send(server_without_engine, server_without_engine.api(cookies=False), method, name, how)
    assert (answer.status, answer.error_code) == (status, code), answer
    DOCUMENT.assert_as_documented(DOCUMENT.operations()[method, path_of(name)], answer)


def test_every_documented_answer_is_tried():
    calls = CALLS + CALLS_OF_A_FULL_SERVER + CALLS_WITHOUT_ENGINE
    tried = {(method, path_of(name), str(status), code) for method, name, _, status, code in calls}
    wanted = {answer for answer in DOCUMENT.documented() if answer[2] != "default"}
    assert tried == wanted - NOT_PROVOKED
    assert NOT_PROVOKED <= wanted


def test_the_jwt_of_the_example_is_a_pass():
    schema = DOCUMENT.resolved(DOCUMENT.file["components"]["schemas"]["Entered"])["properties"]["reservation_token"]
    operation = DOCUMENT.file["paths"][PREFIX + "enter"]["post"]
    (example,) = operation["responses"]["200"]["content"]["application/json"]["examples"].values()
    token = example["value"]["reservation_token"]
    DOCUMENT.validate(token, schema)
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert set(claims) == {"iss", "sub", "uid", "tier", "jti", "iat", "exp"}
