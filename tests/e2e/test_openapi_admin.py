# SPDX-License-Identifier: BSD-2-Clause
"""docs/openapi-admin.yaml says what the operator's API does: every documented call is made, and its answer held to its schema."""

import re
from pathlib import Path

import pytest
from weirtest import Nginx
from weirtest.openapi import Document

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = Document(ROOT / "docs" / "openapi-admin.yaml")
PREFIX = "/weir/api/"

# Documented answers that are not made here.
NOT_PROVOKED = {
    ("put", "/weir/api/rooms/{id}", "409", "CONFLICT"),  # needs somebody who is faster sixteen times in a row
    ("patch", "/weir/api/rooms/{id}", "409", "CONFLICT"),
    ("get", "/weir/api/stream", "200", None),  # never ends: test_admin.py
}
SERVER = """
        location /limited/ { weir_api admin; limit_req zone=none; }
        location /broken/ { weir_api admin; return 503; }
"""


def body(**fields):
    return dict(body=fields)


def ticket(server):
    return {"token": server.api().ticket("held")}


def a_pass(server):
    person = server.api()
    return {"token": person.enter(person.ticket("now")).json()["reservation_token"]}


HUGE = body(mode="x" * 20000)

# (method, path, what makes it, expected status, expected code)
CALLS = [
    ("get", "rooms", {}, 200, None),
    ("get", "rooms/{id}", {}, 200, None),
    ("get", "rooms/{id}", dict(id="nobody"), 404, "ROOM_NOT_FOUND"),
    ("put", "rooms/{id}", body(rate=0.5, mode="hold"), 200, None),
    ("put", "rooms/{id}", dict(id="fresh", body={"preset": "lobby", "smooth": False, "batch": None}), 201, None),
    ("put", "rooms/{id}", body(rate=0), 400, "INVALID_SETTING"),
    ("put", "rooms/{id}", dict(body="nonsense"), 400, "INVALID_REQUEST"),
    ("put", "rooms/{id}", dict(id="a%20b", body={}), 400, "INVALID_EVENT_ID"),
    ("put", "rooms/{id}", HUGE, 413, "BODY_TOO_LARGE"),
    ("put", "rooms/{id}", dict(id="one-too-many", body={}), 429, "QUEUE_FULL"),
    ("patch", "rooms/{id}", body(mode="hold", rate=None), 200, None),
    ("patch", "rooms/{id}", body(rate=1, batch=1), 400, "INVALID_SETTING"),
    ("patch", "rooms/{id}", dict(body="[]"), 400, "INVALID_REQUEST"),
    ("patch", "rooms/{id}", dict(id="nobody", body={"rate": 1}), 404, "ROOM_NOT_FOUND"),
    ("patch", "rooms/{id}", HUGE, 413, "BODY_TOO_LARGE"),
    ("get", "rooms/{id}/figures", {}, 200, None),
    ("get", "rooms/{id}/figures", dict(id="nobody"), 404, "ROOM_NOT_FOUND"),
    ("post", "rooms/{id}/advance", body(count=1), 200, None),
    ("post", "rooms/{id}/advance", body(count=0), 400, "INVALID_REQUEST"),
    ("post", "rooms/{id}/advance", dict(id="nobody", body={"count": 1}), 404, "ROOM_NOT_FOUND"),
    ("post", "rooms/{id}/advance", HUGE, 413, "BODY_TOO_LARGE"),
    ("post", "ticket", dict(body=ticket), 200, None),
    ("post", "ticket", dict(body=a_pass), 200, None),
    ("post", "ticket", dict(body="{"), 400, "INVALID_REQUEST"),
    ("post", "ticket", body(), 400, "MISSING_TOKEN"),
    ("post", "ticket", body(token="x" * 60), 404, "TOKEN_NOT_FOUND"),
    ("post", "ticket", HUGE, 413, "BODY_TOO_LARGE"),
    ("post", "revoke", dict(body=ticket), 200, None),
    ("post", "revoke", dict(body=a_pass), 200, None),
    ("post", "revoke", dict(body="{"), 400, "INVALID_REQUEST"),
    ("post", "revoke", body(), 400, "MISSING_TOKEN"),
    ("post", "revoke", body(token="x" * 60), 404, "TOKEN_NOT_FOUND"),
    ("post", "revoke", HUGE, 413, "BODY_TOO_LARGE"),
    ("post", "rooms/{id}/clear", {}, 200, None),
    ("post", "rooms/{id}/clear", dict(id="nobody"), 404, "ROOM_NOT_FOUND"),
    ("delete", "rooms/{id}", dict(id="fresh"), 200, None),
    ("delete", "rooms/{id}", dict(id="nobody"), 404, "ROOM_NOT_FOUND"),
    ("get", "journal", {}, 200, None),
    ("get", "gate", {}, 200, None),
    ("get", "breakers", {}, 200, None),
    ("get", "{other}", {}, 404, "NOT_FOUND"),
    *(("options", path, {}, 405, "METHOD_NOT_ALLOWED")
      for path in ("rooms", "rooms/{id}", "rooms/{id}/figures", "rooms/{id}/advance", "rooms/{id}/clear", "ticket", "revoke",
                   "stream", "journal", "gate", "breakers")),
]
EVERYWHERE = [(method, path.removeprefix(PREFIX), how, status, code)
              for method, path in DOCUMENT.operations()
              for how, status, code in ((dict(token="x" * 40), 401, "UNAUTHORIZED"),
                                        (dict(at="/limited/"), 429, "RATE_LIMITED"),
                                        (dict(at="/broken/"), 503, "ENGINE_UNAVAILABLE"))
              if str(status) in DOCUMENT.operations()[method, path]["responses"]]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Nginx(tmp_path_factory.mktemp("openapi") / "nginx", rooms={"held": "mode=hold", "now": "rate=100000"},
                   rooms_max=3, journal="journal", admin=["ops"], server=SERVER,
                   http="limit_req_zone $request_method$uri zone=none:1m rate=1r/m;"
                        "upstream shop { server 127.0.0.1:1; weir_breaker; }")
    yield server.start()
    server.stop()


def send(server, method, path, how):
    client = server.admin()
    if "token" in how:
        client.headers["Authorization"] = f"Bearer {how['token']}"
    sent = how.get("body")
    sent = sent(server) if callable(sent) else sent
    path = how.get("at", PREFIX) + path.replace("{id}", how.get("id", "held"))
    if how.get("at") == "/limited/":
        client.request(method.upper(), path, {})
    if "token" not in how and "at" not in how and "one-too-many" in path:
        server.admin().put("fresh")
    return client.request(method.upper(), path, sent)


def name_of(call):
    return f"{call[0]}-{call[1]}-{call[3]}-{call[4]}"


@pytest.mark.parametrize("call", CALLS + EVERYWHERE, ids=name_of)
def test_an_answer_is_as_documented(server, call):
    method, path, how, status, code = call
    if status == 429 and (method, path) == ("get", "stream"):
        # The first of two would be a stream that never ends: somebody without a token uses up the limit.
        server.client().get("/limited/stream")
    answer = send(server, method, path, how) if (status, path) != (429, "stream") else server.admin().get("/limited/stream")
    assert (answer.status, answer.error_code) == (status, code), answer
    DOCUMENT.assert_as_documented(DOCUMENT.operations()[method, PREFIX + path], answer)


def test_every_documented_answer_is_tried():
    tried = {(method, PREFIX + path, str(status), code) for method, path, _, status, code in CALLS + EVERYWHERE}
    assert tried == DOCUMENT.documented() - NOT_PROVOKED
    assert NOT_PROVOKED <= DOCUMENT.documented()


def test_the_file_is_openapi_and_its_parts_fit():
    DOCUMENT.assert_is_openapi()
    DOCUMENT.assert_references_lead_somewhere_and_all_is_used()
    DOCUMENT.assert_examples_fit()


def test_the_settings_are_those_of_the_reference_with_their_ranges():
    page = (ROOT / "docs" / "reference" / "settings.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|", page, re.M)
    schema = DOCUMENT.file["components"]["schemas"]["Changes"]["properties"]
    assert list(schema) == [name for name, _ in rows]
    assert DOCUMENT.file["components"]["schemas"]["Room"]["properties"]["settings"]["required"] == list(schema)
    for name, told in rows:
        row = schema[name]
        assert told == (f"{row['minimum']} to {row['maximum']}" if "minimum" in row
                        else f"up to {row['maxLength']} characters" if "maxLength" in row else "–"), name
