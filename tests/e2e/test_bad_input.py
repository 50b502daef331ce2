# SPDX-License-Identifier: BSD-2-Clause
"""Every byte sequence gets an answer, and nothing else happens: the line is as it was, the server goes on, no log tells."""

import base64
import json
import re
import subprocess

import pytest
from weirtest import Nginx, Response, raw, wait_until

JOIN = "/api/v1/queue/join"
ENTER = "/api/v1/queue/enter"
HEARTBEAT = "/api/v1/queue/heartbeat"
LEAVE = "/api/v1/queue/leave"
BODY_MAX = 16384

ROOMS = {"room": "mode=hold seen_ttl_sec=3600", "other": "mode=hold seen_ttl_sec=3600", "now": "rate=1000 burst=100"}

# Everything a server can log of a request, and a rewrite that copies the query.
HTTP = """
    log_format everything '$request|$request_uri|$args|$query_string|$uri|$arg_token|$http_referer|$status';
    access_log {dir}/everything.log everything;
"""
SERVER = """
        location /limited/ { weir_api queue; limit_req zone=one; }
        location /rewritten/ { rewrite ^/rewritten/(.*)$ /api/v1/queue/$1?copied=1&$args? last; }
        location /small/ { weir_api queue; client_max_body_size 10; client_body_buffer_size 1k; }
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bad") / "nginx"
    server = Nginx(folder, rooms=ROOMS, gate="now", server=SERVER, log_level="info",
                   http=HTTP.format(dir=folder) + "limit_req_zone $server_port zone=one:1m rate=1r/m;")
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def watcher(server):
    """Somebody in line, by whom one sees whether the line changed: their place, and how many places there are."""
    api = server.api()
    api.token = api.ticket("room")
    return api


@pytest.fixture(autouse=True)
def line_unchanged(server, watcher):
    before = line_of(server, watcher)
    yield
    after = line_of(server, watcher)
    # The last thing line_of did before was to come and go once.
    assert after == (before[0], before[1] + 1)
    assert server.client().get("/healthz").status == 200


def line_of(server, watcher):
    """(the watcher's position, the count of a place given now): a stray join shows in the second, a stray leave in the first."""
    newcomer = server.api()
    token = newcomer.ticket("room")
    assert newcomer.leave(token).status == 200
    return watcher.status(watcher.token).json()["position"], count_of(token)


def count_of(token):
    data = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    return int.from_bytes(data[7:11], "big")


def assert_refused(response, status, code):
    assert (response.status, response.error_code) == (status, code), response
    assert response.header("content-type") == "application/json"
    assert response.header("x-request-id") == response.json()["error"]["trace_id"]


# --- bodies

NOT_JSON = {
    "nothing": b"",
    "a space": b" ",
    "no object": b"[]",
    "a string": b'"event_id"',
    "null": b"null",
    "cut off": b'{"event_id":"room"',
    "cut off in a string": b'{"event_id":"ro',
    "two objects": b'{"event_id":"room"}{}',
    "trailing bytes": b'{"event_id":"room"}x',
    "a trailing comma": b'{"event_id":"room",}',
    "single quotes": b"{'event_id':'room'}",
    "no quotes": b"{event_id:room}",
    "a comment": b'{"event_id":"room"/**/}',
    "a byte order mark": b'\xef\xbb\xbf{"event_id":"room"}',
    "a NUL": b'{"event_id":"room"}\0',
    "a NUL within": b'{"event_id":"ro\0om"}',
    "an escaped NUL": b'{"event_id":"room","x":"\\u0000"}',
    "a control character": b'{"event_id":"room","x":"\n"}',
    "invalid UTF-8": b'{"event_id":"room","x":"\xff\xfe"}',
    "an overlong UTF-8": b'{"event_id":"room","x":"\xc0\xaf"}',
    "a lone surrogate": b'{"event_id":"room","x":"\\ud800"}',
    "a name twice": b'{"event_id":"room","event_id":"other"}',
    "a name twice, once escaped": b'{"event_id":"room","event\\u005fid":"other"}',
    "a bad escape": b'{"event_id":"room","x":"\\x"}',
    "deep nesting": b'{"event_id":"room","x":' + b"[" * 5000 + b"]" * 5000 + b"}",
    "deep nesting, not closed": b'{"a":' * 2000,
    "a form": b"event_id=room&user_id=a",
    "XML": b"<event_id>room</event_id>",
    "noise": bytes(range(256)) * 8,
}


@pytest.mark.parametrize("path", [JOIN, ENTER, HEARTBEAT])
@pytest.mark.parametrize("body", NOT_JSON.values(), ids=NOT_JSON.keys())
def test_a_body_that_is_not_one_json_object_is_refused(server, path, body):
    assert_refused(server.client().post(path, body), 400, "INVALID_REQUEST")


@pytest.mark.parametrize("value", [1, 1.5, True, [], {}, ["room"], {"a": "room"}])
def test_wrong_types_are_refused(server, value):
    client = server.client()
    assert_refused(client.post(JOIN, {"event_id": value}), 400, "INVALID_REQUEST")
    assert_refused(client.post(JOIN, {"event_id": "room", "user_id": value}), 400, "INVALID_REQUEST")
    assert_refused(client.post(ENTER, {"waiting_token": value}), 400, "INVALID_REQUEST")
    assert_refused(client.post(HEARTBEAT, {"waiting_token": value}), 400, "INVALID_REQUEST")


def test_a_label_over_256_bytes_is_refused(server):
    assert_refused(server.api().join("room", fields={"user_id": "x" * 257}), 400, "INVALID_REQUEST")


@pytest.mark.parametrize("body", [{}, {"event_id": ""}, {"event_id": None}, {"room": "room"}])
def test_a_join_without_a_room_is_refused(server, body):
    assert_refused(server.client().post(JOIN, body), 400, "MISSING_EVENT_ID")


@pytest.mark.parametrize("room", ["x" * 65, "a/b", "a b", "room\n", "../room", "r\u00f6om", "a\\b", "room?", "%72oom", "*", ".", ".."])
def test_a_room_id_that_cannot_exist_is_refused(server, room):
    assert_refused(server.api().join(room), 400, "INVALID_EVENT_ID")


@pytest.mark.parametrize("body", [{}, {"waiting_token": ""}, {"waiting_token": None}, {"token": "x"}])
def test_a_missing_token_is_refused(server, body):
    client = server.client()
    assert_refused(client.post(ENTER, body), 400, "MISSING_TOKEN")
    assert_refused(client.post(HEARTBEAT, body), 400, "MISSING_TOKEN")


@pytest.mark.parametrize("query", ["", "?", "?token", "?token=", "?Token=x", "?x=token", "?tokens=x"])
def test_a_missing_token_in_the_query_is_refused(server, query):
    client = server.client()
    assert_refused(client.get(f"/api/v1/queue/status{query}"), 400, "MISSING_TOKEN")
    assert_refused(client.request("DELETE", f"{LEAVE}{query}"), 400, "MISSING_TOKEN")
    assert_refused(client.post(f"{LEAVE}{query}"), 400, "MISSING_TOKEN")


@pytest.mark.parametrize("query", ["token=%", "token=%zz", "token=a%00b", "token=a&token=a", "token=a&%74oken=b"])
def test_a_broken_query_is_refused(server, query):
    assert_refused(server.client().get(f"/api/v1/queue/status?{query}"), 400, "INVALID_REQUEST")


# --- sizes


@pytest.mark.parametrize("path", [JOIN, ENTER, HEARTBEAT, LEAVE, "/small/join"])
@pytest.mark.parametrize("size", [BODY_MAX + 1, 1 << 20])
def test_a_body_over_the_limit_is_refused_however_it_is_framed(server, path, size):
    body = b'{"event_id":"room","x":"' + b"x" * (size - 26) + b'"}'
    assert_refused(server.client().post(path, body), 413, "BODY_TOO_LARGE")
    assert_refused(chunked(server, path, body, 4096), 413, "BODY_TOO_LARGE")


@pytest.mark.parametrize("path", [JOIN, "/small/join"])
def test_a_body_at_the_limit_is_read_however_it_is_framed(server, path):
    body = b'{"event_id":"nowhere","x":"' + b"x" * (BODY_MAX - 29) + b'"}'
    assert len(body) == BODY_MAX
    assert_refused(server.client().post(path, body), 404, "ROOM_NOT_FOUND")
    for piece in (1, 1000, BODY_MAX):
        assert_refused(chunked(server, path, body, piece), 404, "ROOM_NOT_FOUND")


def test_no_body_is_ever_spooled_to_disk(server):
    test_a_body_at_the_limit_is_read_however_it_is_framed(server, JOIN)
    test_a_body_over_the_limit_is_refused_however_it_is_framed(server, JOIN, 1 << 20)
    assert "buffered to a temporary file" not in server.log()


def chunked(server, path, body, piece):
    client = server.client()
    pieces = (body[at : at + piece] for at in range(0, len(body), piece))
    framed = b"".join(b"%x;ext=1\r\n%s\r\n" % (len(part), part) for part in pieces) + b"0\r\n\r\n"
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    return parse(raw(client.port, head + framed))


def parse(data):
    """The first answer in `data`."""
    head, _, rest = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    pairs = [line.split(":", 1) for line in lines[1:]]
    headers = [(name.lower(), value.strip()) for name, value in pairs]
    response = Response(int(lines[0].split()[1]), headers)
    response.body = rest[: int(response.header("content-length", "0"))]
    return response


# --- tokens


def tampered(token):
    yield "x"
    yield "x" * 10000
    yield token[:-1]
    yield token + "A"
    yield token + "="
    yield token.swapcase()
    yield ("B" if token[10] != "B" else "C").join((token[:10], token[11:]))
    yield "." + token


def test_a_token_that_is_not_a_living_ticket_has_one_answer(server, watcher):
    client = server.client()
    for token in tampered(watcher.token):
        assert_refused(watcher.status(token), 404, "TOKEN_NOT_FOUND")
        assert_refused(client.post(ENTER, {"waiting_token": token}), 404, "TOKEN_NOT_FOUND")
        assert_refused(client.post(HEARTBEAT, {"waiting_token": token}), 404, "TOKEN_NOT_FOUND")
        assert watcher.leave(token).status == 200
        assert watcher.leave_beacon(token).status == 204


def test_a_token_of_another_kind_is_no_ticket(server):
    person = server.api()
    ticket = person.ticket("now")
    reservation = person.enter(ticket).json()["reservation_token"]
    for token in (reservation, person.cookies["weir-visitor"], reservation.split(".")[1]):
        assert_refused(person.status(token), 404, "TOKEN_NOT_FOUND")
        assert_refused(person.enter(token), 404, "TOKEN_NOT_FOUND")


def test_a_ticket_of_another_server_is_no_ticket(server, weir):
    stranger = weir(rooms=ROOMS).api().ticket("room")
    assert_refused(server.api().status(stranger), 404, "TOKEN_NOT_FOUND")


def test_a_ticket_is_worth_nothing_as_a_pass(server):
    person = server.api()
    ticket = person.ticket("now")
    response = person.get("/", headers={"x-queue-entry-token": ticket})
    assert_refused(response, 403, "ADMISSION_REQUIRED")


# --- requests that are hardly any


@pytest.mark.parametrize("request_text, status, code", [
    (b"TRACE /api/v1/queue/join HTTP/1.1\r\nHost: x\r\n\r\n", 405, "METHOD_NOT_ALLOWED"),
    (b"get /api/v1/queue/status HTTP/1.1\r\nHost: x\r\n\r\n", 400, "INVALID_REQUEST"),
    (b"\x00\x01\x02 / HTTP/1.1\r\n\r\n", 400, "INVALID_REQUEST"),
    (b"GET /api/v1/queue/status HTTP/1.1\r\n\r\n", 400, "INVALID_REQUEST"),
    (b"GET /api/v1/queue/status HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "INVALID_REQUEST"),
    (b"POST /api/v1/queue/join HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n", 400, "INVALID_REQUEST"),
    (b"POST /api/v1/queue/join HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400, "INVALID_REQUEST"),
    (b"POST /api/v1/queue/join HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
     400, "INVALID_REQUEST"),
    (b"POST /api/v1/queue/join HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 400, "INVALID_REQUEST"),
    (b"GET /api/v1/queue/%00 HTTP/1.1\r\nHost: x\r\n\r\n", 400, "INVALID_REQUEST"),
    (b"GET /../api HTTP/1.1\r\nHost: x\r\n\r\n", 400, "INVALID_REQUEST"),
    (b"GET /api/v1/queue/status?token=" + b"x" * 20000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 400, "INVALID_REQUEST"),
    (b"GET /api/v1/queue/status HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 20000 + b"\r\n\r\n", 400, "INVALID_REQUEST"),
    (b"FROB /api/v1/queue/status HTTP/1.1\r\nHost: x\r\n\r\n", 405, "METHOD_NOT_ALLOWED"),
])
def test_what_nginx_itself_turns_away_speaks_the_envelope(server, request_text, status, code):
    assert_refused(parse(raw(server.port, request_text)), status, code)


def test_a_client_that_stops_in_the_middle_of_its_body_disturbs_nobody(server):
    for text in (b"Content-Length: 100\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n5\r\n{", b"Content-Length: 9999999\r\n\r\n{"):
        raw(server.port, b"POST /api/v1/queue/join HTTP/1.1\r\nHost: x\r\n" + text)


def test_pipelined_requests_are_each_answered(server):
    bad = b"POST /api/v1/queue/join HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n["
    good = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    answers = raw(server.port, bad * 5 + good)
    assert answers.count(b"HTTP/1.1 400 ") == 5
    assert answers.count(b"HTTP/1.1 200 ") == 1


# --- logs

SECRET = "S3CRETt0k3n"


def everything_logged(server):
    return server.log("everything.log") + server.log("error.log") + server.log("access.log") + server.log("stderr.log")


@pytest.mark.parametrize("path", [
    "/api/v1/queue/status?token={}", "/api/v1/queue/status?a=b&token={}&c=d", "/api/v1/queue/status?%74oken={}",
    "/api/v1/queue/status?token={}&token={}", "/api/v1/queue/nothing?token={}", "/api/v1/queue/status?waiting_token={}",
    "/rewritten/status?token={}", "/limited/status?token={}", "/limited/status?token={}#x", "/x/../api/v1/queue/status?token={}",
])
def test_a_token_in_the_query_is_in_no_log(server, path):
    client = server.client()
    for method in ("GET", "POST", "DELETE", "PUT"):
        for body in (b"", b"x" * 100000):
            client.request(method, path.replace("{}", SECRET), body)
    assert SECRET not in everything_logged(server)


@pytest.mark.parametrize("rest", [b"TRACE", b"GET", b"POST"])
def test_a_token_in_a_request_that_nginx_turns_away_is_in_no_access_log(server, rest):
    for headers in (b"Host: a\r\nHost: b\r\n", b"", b"Host: x\r\nContent-Length: x\r\n", b"Host: x\r\nX: " + b"x" * 20000):
        raw(server.port, rest + b" /api/v1/queue/status?token=" + SECRET.encode() + b" HTTP/1.1\r\n" + headers + b"\r\n\r\n")
    assert SECRET not in server.log("everything.log")


def test_the_masked_token_still_works(server, watcher):
    assert watcher.get(f"/rewritten/status?token={watcher.token}").status == 200
    assert watcher.token not in everything_logged(server)
    assert re.search(r"token=\*+", server.log("everything.log"))


def test_a_shops_own_token_parameter_is_left_alone(server):
    person = server.api()
    person.enter(person.ticket("now"))
    assert person.get("/shop?token=theirs").json()["uri"] == "/shop?token=theirs"


def test_no_token_and_no_cookie_is_in_a_log_after_a_whole_visit(server):
    person = server.api()
    ticket = person.ticket("now", headers={"Idempotency-Key": "in-no-log-either"})
    reservation = person.enter(ticket).json()["reservation_token"]
    person.status(ticket)
    person.heartbeat(ticket)
    person.get("/", headers={"x-queue-entry-token": reservation})
    person.leave(ticket)
    logged = everything_logged(server)
    for secret in (ticket, reservation, person.cookies["weir-visitor"]):
        assert secret not in logged


def test_http2_is_read_and_masked_alike(weir, tmp_path):
    server = weir(rooms=ROOMS, listen="http2", http=HTTP.format(dir=tmp_path / "nginx0"))
    url = f"http://127.0.0.1:{server.port}/api/v1/queue/"

    def curl(*args):
        done = subprocess.run(["curl", "-sS", "--http2-prior-knowledge", *args], capture_output=True, timeout=20, check=True)
        return json.loads(done.stdout)

    token = curl("-d", '{"event_id":"room"}', url + "join")["waiting_token"]
    assert curl(f"{url}status?a=b&token={token}")["position"] == 1
    assert curl("-d", json.dumps({"waiting_token": token}), url + "heartbeat")["status"] == "waiting"
    assert curl("-d", "x" * 16000, url + "join")["error"]["code"] == "INVALID_REQUEST"
    assert curl(f"{url}status?token={'x' * 10000}")["error"]["code"] == "TOKEN_NOT_FOUND"
    # Told before it has sent everything, this curl drops the answer; the log has what it was told.
    subprocess.run(["curl", "-s", "--http2-prior-knowledge", "-d", "x" * 100000, url + "join"], timeout=20, check=False)
    wait_until(lambda: "POST /api/v1/queue/join HTTP/2.0|/api/v1/queue/join|-|-|/api/v1/queue/join|-|-|413" in
               server.log("everything.log"))
    assert token not in everything_logged(server)
    assert "token=*" in server.log("everything.log")
