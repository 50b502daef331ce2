# SPDX-License-Identifier: BSD-2-Clause
"""docs/openapi-families.yaml says what the families' APIs do: every documented call is made, and its answer held to its schema."""

from pathlib import Path

import pytest
from weirtest import Nginx
from weirtest.openapi import Document

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = Document(ROOT / "docs" / "openapi-families.yaml")

FAST = "rate=100000 burst=100000"
ROOMS = {
    "now": f"preset=hall {FAST}", "held": "preset=hall mode=hold", "behind": "preset=hall", "lobby:behind": "preset=lobby",
    "full": "mode=hold max_waiting=1", "shut": "mode=closed", "lobby:door": f"preset=lobby {FAST}", "lobby:other-door": "preset=lobby mode=hold",
    "lobby:shut-door": "mode=closed tier=1", "lobby:full-door": "tier=1 mode=hold max_waiting=1", "concert": f"preset=concert {FAST}",
}
LOCATIONS = {"/api/queue/": "tier2", "/vwr-api/vwr/": "lobby", "/api/admin/vwr/": "admin lobby", "/api/v1/queue/": "concert"}
HTTP = "map $http_x_role $role_is_admin { admin 1; }"
SERVER = """
        weir_user $http_x_user_id from=127.0.0.1;
        weir_admin $role_is_admin;
        weir_lobby /vwr/;
""" + "".join(f"""
        location {path} {{ weir_api {words}; }}
        location /broken{path} {{ weir_api {words}; return 503; }}
""" for path, words in LOCATIONS.items()) + """
        location /shut/queue/ { weir_api concert room=shut; }
"""
ALICE, ADMIN = {"X-User-Id": "alice"}, {"X-User-Id": "alice", "X-Role": "admin"}
HUGE = '{"userId":"' + "x" * 20000 + '"}'


def assigned(server):
    return server.client().post("/vwr-api/vwr/assign/door", {}, headers=ALICE).json()["requestId"]


def token(server):
    return {"User-Token": server.client().post("/api/v1/queue/token", {}).json()["data"]["token"]}


def b(method, path, *rows, headers=ALICE):
    """Rows of a call that the signed-in make: the usual refusals, and these."""
    return [(method, path, dict(headers=headers, **how), status, None) for how, status in rows] + [
        (method, path, dict(event="a%20b", headers=headers), 400, None), (method, path, {}, 401, None),
        (method, path, dict(at="/broken"), 503, None)]


def by_operators(method, path, *rows):
    return b(method, path, *rows, headers=ADMIN) + [(method, path, dict(headers=ALICE), 403, None)]


NOWHERE = (dict(event="nowhere"), 404)
# (method, path, what makes it, expected status, expected code)
CALLS = [
    *b("post", "/api/queue/check/{event}", ({}, 200), (dict(event="held"), 200), (dict(event="behind"), 403), NOWHERE,
       (dict(event="full"), 429)),
    *b("get", "/api/queue/status/{event}", ({}, 200), (dict(event="held"), 200), (dict(event="shut"), 200), NOWHERE),
    *b("post", "/api/queue/heartbeat/{event}", ({}, 200), (dict(event="held"), 200), (dict(event="nowhere"), 200)),
    *b("post", "/api/queue/leave/{event}", ({}, 200)),
    *by_operators("get", "/api/queue/admin/{event}", ({}, 200), NOWHERE),
    *by_operators("post", "/api/queue/admin/threshold/{event}", (dict(query="?threshold=7"), 200), ({}, 400),
                  (dict(query="?threshold=7", event="nowhere"), 404)),
    *by_operators("post", "/api/queue/admin/clear/{event}", ({}, 200), NOWHERE),
    *((method, path, how, status, None) for method, path, how, status in (
        ("post", "/vwr-api/vwr/assign/{event}", dict(body={"userId": "anon"}), 200), ("post", "/vwr-api/vwr/assign/{event}", dict(body="{"), 400),
        ("post", "/vwr-api/vwr/assign/{event}", dict(event="nowhere"), 404), ("post", "/vwr-api/vwr/assign/{event}", dict(body=HUGE), 413),
        ("post", "/vwr-api/vwr/assign/{event}", dict(event="full-door"), 429),
        ("post", "/vwr-api/vwr/assign/{event}", dict(event="shut-door"), 503),
        ("get", "/vwr-api/vwr/check/{event}/{requestId}", dict(request_id=assigned, headers=ALICE), 200),
        ("get", "/vwr-api/vwr/check/{event}/{requestId}", dict(event="a%20b"), 400), ("get", "/vwr-api/vwr/check/{event}/{requestId}", {}, 404),
        ("get", "/vwr-api/vwr/check/{event}/{requestId}", dict(at="/broken"), 503),
        ("get", "/vwr-api/vwr/status/{event}", {}, 200), ("get", "/vwr-api/vwr/status/{event}", dict(event="a%20b"), 400),
        ("get", "/vwr-api/vwr/status/{event}", dict(event="nowhere"), 404), ("get", "/vwr-api/vwr/status/{event}", dict(at="/broken"), 503),
    )),
    *by_operators("post", "/api/admin/vwr/activate/{event}", ({}, 200), (dict(event="one-too-many"), 429)),
    *by_operators("post", "/api/admin/vwr/deactivate/{event}", (dict(event="other-door"), 200), (dict(event="one-too-many"), 429)),
    *by_operators("post", "/api/admin/vwr/advance/{event}", ({}, 200), (dict(body={"batchSize": 1}), 200), NOWHERE, (dict(body=HUGE), 413)),
    *by_operators("get", "/api/admin/vwr/status/{event}", ({}, 200), NOWHERE),
    ("post", "/api/v1/queue/token", dict(body={"userId": "1"}), 200, None),
    ("post", "/api/v1/queue/token", dict(body="{"), 400, "invalid_request"),
    ("post", "/api/v1/queue/token", dict(instead="/shut/queue/token"), 400, "queue_not_available"),
    ("post", "/api/v1/queue/token", dict(body=HUGE), 413, "body_too_large"),
    ("get", "/api/v1/queue/status", dict(headers=token), 200, None), ("get", "/api/v1/queue/status", {}, 400, "invalid_token"),
    ("delete", "/api/v1/queue/token", dict(headers=token), 200, None), ("delete", "/api/v1/queue/token", {}, 400, "invalid_token"),
    *((method, path, dict(at="/broken"), 500, "internal_server_error") for method, path in (
        ("post", "/api/v1/queue/token"), ("get", "/api/v1/queue/status"), ("delete", "/api/v1/queue/token"))),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Nginx(tmp_path_factory.mktemp("openapi") / "nginx", rooms=ROOMS, rooms_max=len(ROOMS), api=False, admin=["ops"],
                   http=HTTP, server=SERVER)
    server.start()
    server.client().post("/api/queue/check/full", "", headers={"X-User-Id": "the first"})
    server.client().post("/vwr-api/vwr/assign/full-door", "")
    yield server
    server.stop()


def send(server, method, path, how):
    headers = how.get("headers", {})
    request_id = how.get("request_id", lambda server: "nobody")(server)
    event = how.get("event", "door" if "/vwr/" in path else "now")
    path = how.get("instead") or how.get("at", "") + path.replace("{event}", event).replace("{requestId}", request_id)
    return server.client().request(method.upper(), path + how.get("query", ""), how.get("body", ""),
                                   headers=headers(server) if callable(headers) else headers)


def name_of(call):
    return f"{call[0]}-{call[1]}-{call[3]}-{call[4]}-{call[2].get('event')}"


def test_the_file_is_openapi():
    DOCUMENT.assert_is_openapi()
    DOCUMENT.assert_references_lead_somewhere_and_all_is_used()


@pytest.mark.parametrize("call", CALLS, ids=name_of)
def test_an_answer_is_as_documented(server, call):
    method, path, how, status, code = call
    answer = send(server, method, path, how)
    assert (answer.status, answer.error_code) == (status, code), answer
    DOCUMENT.assert_as_documented(DOCUMENT.operations()[method, path], answer)


def test_every_documented_answer_is_tried():
    assert {(method, path, str(status), code) for method, path, _, status, code in CALLS} == DOCUMENT.documented()
