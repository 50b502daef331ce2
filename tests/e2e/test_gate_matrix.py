# SPDX-License-Identifier: BSD-2-Clause
"""The sample matrix, request by request: what the client gets and what the shop saw.

The table says both for every way of writing a path and every kind of visitor. Beside it stands a judge that knows nothing of nginx:
it reads what reached the shop as generously as any shop might (decoding twice, folding case, dropping ;parameters), and wants a
pass with everything that could be taken for a protected page.
"""

import itertools
import random
import re
import socket
from pathlib import Path
from urllib.parse import unquote

import jwt
import pytest
from weirtest import Nginx, Response, free_port

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
FAST = "rate=100000 burst=1000 max_active=0"
ROOMS = {
    "site": "tier=1 mode=open max_active=0",
    "lobby:42": f"tier=1 {FAST}", "42": FAST, "lobby:43": f"tier=1 {FAST}", "43": FAST,
    "lobby:44": "tier=1 mode=hold", "44": "mode=hold",
}
# The people of this test are nobody in particular, and come to their passes by the queue API.
QUEUE = "location ~* ^/api(?:/v1)?/queue/[a-z]+$ { weir_gate off; weir_api queue; weir_lobby /vwr/; }"
VERIFY = "location = /verify { weir_gate off; weir_verify $http_x_forwarded_uri redirect=off; }"
BROWSER = {"Accept": "text/html", "Sec-Fetch-Mode": "navigate"}


@pytest.fixture(scope="module")
def server(tmp_path_factory, shop):
    server = Nginx(tmp_path_factory.mktemp("matrix") / "nginx", rooms=ROOMS, api=False, admin=["ops"],
                   http=f"upstream shop {{ server 127.0.0.1:{shop.port}; }}", server=f"{QUEUE} include {SAMPLES}/gate-matrix.conf; {VERIFY}")
    yield server.start()
    server.stop()


@pytest.fixture(scope="module")
def people(server):
    """{name: headers} of everybody who tries."""
    passes = {room: entered(server, room) for room in ("lobby:42", "42", "lobby:43", "43")}
    over = server.api(headers={"x-queue-entry-token": passes["lobby:42"]})
    token = over.ticket("42")
    left = over.enter(token).json()["reservation_token"]
    over.leave(token)
    spoilt = passes["42"][:-6] + "AAAAAA"
    alone = jwt.encode(jwt.decode(passes["42"], options={"verify_signature": False}), "", algorithm="none", headers={"kid": "2.1"})

    def by_header(token):
        return {"x-queue-entry-token": token}
    return {
        "nobody": {}, "lobby 42": by_header(passes["lobby:42"]), "hall 42": by_header(passes["42"]),
        "site": by_header(entered(server, "site", lobby=False)), "looked around": {"Cookie": cookies_of_a_look_around(server)},
        "lobby 43": by_header(passes["lobby:43"]), "hall 43": by_header(passes["43"]), "left": by_header(left),
        "spoilt": by_header(spoilt), "unsigned": by_header(alone),
        "by cookie": {"Cookie": f"a=b; weir-pass-42={passes['42']}"}, "by bearer": {"Authorization": f"Bearer {passes['42']}"},
        "liar": {"X-Weir-User": "root", "X-Weir-Session": "x", "X-Weir-Tier": "2", "X-Weir-Room": "42", "X_Weir_Tier": "2"},
        "spoofer": {"X-User-Id": "root", "X-Forwarded-For": "10.0.0.1", "X-Real-IP": "10.0.0.1", "X-CloudFront-Verified": "1",
                    "X-Original-URL": "/health", "X-Rewrite-URL": "/health", "X-Forwarded-Uri": "/health"},
        "login": {"Authorization": "Bearer " + jwt.encode({"sub": "alice"}, "x" * 32)},
        "operator": {"Authorization": f"Bearer {server.admin_tokens['ops']}"},
    }


def entered(server, room, lobby=True):
    """Into a hall one comes through its lobby."""
    person = server.api()
    if lobby and not room.startswith("lobby:"):
        person.enter(person.ticket(f"lobby:{room}"))
    return person.enter(person.ticket(room)).json()["reservation_token"]


def cookies_of_a_look_around(server):
    """All that the site gives to somebody who comes to its front page."""
    given = server.client().get("/", headers=BROWSER).cookies()
    assert "weir-pass-site" in given
    return "; ".join(f"{name}={value}" for name, value in given.items())


def send(server, target, headers=None, method="GET", body="", version="HTTP/1.1"):
    """The request line as it is written here, over a connection of its own."""
    sent = {"Host": "shop.example", **(headers or {})}
    if body or method in ("POST", "PUT", "PATCH"):
        sent["Content-Length"] = str(len(body))
    lines = [f"{method} {target} {version}", *(f"{name}: {value}" for name, value in sent.items()), "Connection: close", "", body]
    return answer_of(exchange(server, "\r\n".join(lines).encode()))


def exchange(server, data):
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(data)
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
        return received


def answer_of(received):
    head, _, body = received.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    pairs = [line.partition(": ") for line in lines]
    return Response(int(status.split()[1]), [(name.lower(), value) for name, _, value in pairs], body)


# --- the judge


def meaning(path):
    """What a generous shop takes this for: (kind, event or None), or None if it is nothing that needs a pass."""
    path = re.split(r"[?#]", path)[0]
    path = re.sub(r"^[a-z]+://[^/]*", "", path)
    for _ in range(3):
        path = unquote(path, errors="replace")
    segments = []
    for segment in re.split(r"[/\\]+", path.lower()):
        segment = segment.partition(";")[0].strip()
        if segment == "..":
            segments = segments[:-1]
        elif segment.rstrip(". "):
            segments.append(segment.rstrip(". "))
    if segments[:1] == ["api"]:
        rest = segments[2:] if segments[1:2] == ["v1"] else segments[1:]
        if rest[:2] == ["reservations", "my"] and len(rest) == 2:
            return None
        if rest[:1] in (["reservations"], ["tickets"], ["seats"]):
            return ("hall", None)
        return ("admin", None) if rest[:1] == ["admin"] else None
    return ("event", segments[1]) if segments[:1] == ["events"] and len(segments) > 1 else None


def assert_gated(visit, operator_token):
    """What reached the shop had a pass, if it needed one."""
    kind, event = meaning(visit.path) or (None, None)
    said = visit.of_weir()
    if kind == "event":
        assert said.get("x-weir-session") and said["x-weir-room"].lower() in (event, f"lobby:{event}"), visit
    if kind == "hall":
        assert said.get("x-weir-session") and said["x-weir-tier"] == "2", visit
    if kind == "admin":
        assert visit.header_all("Authorization") == [f"Bearer {operator_token}"], visit
    assert "root" not in said.values(), visit


@pytest.fixture(autouse=True)
def nothing_ungated(server, shop):
    shop.seen.clear()
    yield
    for visit in shop.seen:
        assert_gated(visit, server.admin_tokens["ops"])


def test_the_judge_knows_a_protected_page_however_it_is_written():
    for path in ("/events/42", "/EVENTS/42/", "/a/..;/events/42", "/%2565vents/42", "/events;x/42", "/events\\42", "/events./42?x"):
        assert meaning(path) == ("event", "42"), path
    for path in ("/api/Seats", "/api/v1/tickets/1", "/api/v1/auth/..;/reservations", "/api/v1/reservations/my/1", "/api;a/v1;b/seats;c"):
        assert meaning(path) == ("hall", None), path
    for path in ("/", "/events", "/events/", "/api/reservations/my", "/eventsx/42", "/api/v1/events/42", "/queue/42"):
        assert meaning(path) is None, path


# --- the table

# Read as /events/42 by nginx and by the shop.
EVENT = ["/events/42", "/events/42/", "/events/42/seats", "/Events/42", "/EVENTS/42", "/eVeNtS/42/x", "//events/42", "///events///42",
         "/./events/42", "/events/./42", "/x/../events/42", "/events/x/../42", "/%65vents/42", "/e%56ents/42", "/events%2F42",
         "/%2Fevents/42", "/events/%34%32", "/events/42.", "/events/42?event=43", "/events/42?/health", "/events/42#/health",
         "/health/../events/42", "/health/%2e%2e/events/42", "/api/v1/auth/../../../events/42", "/events/42/../42",
         "http://shop.example/events/42", "http://evil.example/events/42", "HTTP://shop.example//Events/42"]
# Names no event, or is written in a way that the sample refuses: 404 for all.
NOTHING = ["/events/", "/events//", "/events/%20", "/events/.", "/events;x=1/42", "/events/;/42", "/events/42;x",
           "/events;/42", "/events\\42", "/events%5c42", "/%2565vents/42", "/events%252f42", "/events/%2534%2532", "/events./42",
           "/events%20/42", "/events/%2e%2e;/42", "/health/..;/events/42", "/api/v1/auth/..;/reservations", "/api/v1/auth/%2e%2e;/seats",
           "/api/v1;x/reservations", "/api;x/seats", "/api/v1/seats;x=1", "/api/v1/stats/..\\..\\seats", "/events/42..", "/events/ä",
           "/EVENTS/", "/events/42%00", "/events/Summer", "/events/SUMMER/seats", "/events/s%55mmer"]
HALL = ["/api/reservations", "/api/v1/reservations", "/api/v1/reservations/", "/api/v1/reservations/9", "/api/v1/tickets",
        "/api/tickets/9", "/api/v1/seats", "/api/seats/A-1", "/API/V1/Seats", "/api/V1/RESERVATIONS", "//api//v1//seats", "/api/./seats",
        "/api/v1/stats/../seats", "/%61pi/v1/s%65ats", "/api%2Fv1%2Fseats", "/api/v1/seats?my", "/api/v1/reservations/my/9",
        "/api/v1/reservations/mine", "/api/v1/reservations.json", "/api/v1/seats.", "http://shop.example/api/v1/seats"]
FREE = ["/health", "/actuator/info", "/api/auth/login", "/api/v1/auth/login", "/api/events", "/api/v1/events/42",
        "/api/v1/stats/x", "/api/reservations/my", "/api/v1/reservations/my", "/API/V1/Events/42"]
SITE = ["/", "/events/..%2f", "/index.html", "/assets/app.js", "/events", "/eventsx/42", "/api/v1/other", "/apix/v1/seats"]
OURS = {"/healthz": 200, "/readyz": 200, "/queue/42": 200, "/vwr/42": 200, "/VWR/42": 200, "/queue/nowhere": 404, "/vwr/nowhere": 404,
        "/api/v1/queue/status": 400, "/api/queue/status": 400, "/api/v1/queue/nothing": 404, "/api/v1/queue/status/42": 401,
        "/api/queue/status/42": 401, "/vwr-api/vwr/status/42": 200, "/vwr-api/vwr/status/nowhere": 404, "/api/admin/vwr/status/42": 401}
ADMIN = ["/api/admin", "/api/v1/admin/users", "/API/admin/", "/api/v1/stats/../admin"]

MAY_SEE_EVENT = {"lobby 42": ("lobby:42", "1"), "hall 42": ("42", "2"), "by cookie": ("42", "2"), "by bearer": ("42", "2")}
MAY_ENTER_HALL = {**{name: who for name, who in MAY_SEE_EVENT.items() if who[1] == "2"}, "hall 43": ("43", "2")}
WHO = ["nobody", "site", "looked around", "lobby 42", "hall 42", "lobby 43", "hall 43", "left", "spoilt", "unsigned", "by cookie", "by bearer", "liar", "spoofer",
       "login", "operator"]


def table():
    """(who, target, expected status, expected redirectTo, (room, tier) that the shop was told, whether it was reached)"""
    for who, target in itertools.product(WHO, EVENT):
        told = MAY_SEE_EVENT.get(who)
        yield who, target, 200 if told else 403, None if told else "/vwr/42", told, bool(told)
    for who, target in itertools.product(WHO, HALL):
        told = MAY_ENTER_HALL.get(who)
        yield who, target, 200 if told else 403, None if told else "/events/", told, bool(told)
    for who, target in itertools.product(("nobody", "hall 42", "liar"), NOTHING):
        yield who, target, 400 if "%00" in target else 404, None, None, False
    for who, target in itertools.product(("nobody", "liar", "spoofer"), FREE):
        yield who, target, 200, None, None, True
    for who, target in itertools.product(("nobody", "spoofer"), SITE):
        yield who, target, 200, None, ("site", None), True
    for target, status in OURS.items():
        yield "nobody", target, status, None, None, False
    for who, target in itertools.product(WHO, ADMIN):
        yield who, target, 200 if who == "operator" else 403, None, None, who == "operator"


def test_every_request_of_the_table_gets_what_it_says_and_the_shop_sees_no_more(server, shop, people):
    rows = list(table())
    assert len(rows) > 800
    wrong = []
    for who, target, status, where, told, reaches in rows:
        shop.seen.clear()
        answer = send(server, target, people[who])
        seen = [(visit.of_weir().get("x-weir-room"), visit.of_weir().get("x-weir-tier")) for visit in shop.seen]
        expected = ([told] if told else [(None, None)]) if reaches else []
        problems = [answer.status != status, seen != expected]
        problems += [where is not None and answer.json().get("redirectTo") != where]
        for visit in shop.seen:
            assert_gated(visit, server.admin_tokens["ops"])
        if any(problems):
            wrong.append(f"{who}: {target}: {answer.status} {answer.body[:80]!r}, the shop saw {seen}")
    assert not wrong, f"{len(wrong)} of {len(rows)}:\n" + "\n".join(wrong[:40])


# What may be put anywhere into a path: whatever two readers might disagree about.
ODD = ["%20", "%09", "%0a", "%0d", "%1f", "%7f", "%00", "%c2%a0", "%e3%80%80", "%e2%80%8b", "%c0%ae", ".", "..", "%2e", "%2e%2e", "/", "//", "/./",
       "/../", "%2f", "%5c", "\\", ";", ";a=b", "%3b", "%25", "%252f", "%2565", "?", "#", "%23", "%3f", "%u0065", "~", "*", "+", "@", ":", "A"]
BEFORE = ["/health", "/health/..", "/api/v1/auth", "/api/v1/auth/..", "/api/v1/stats/../../..", "/x/..", "/queue/..", "/events", "/."]
BEHIND = ["/my", "/../my", "/x", "/", "?a", "/%2e%2e/seats", ".json"]


def spoilt(dice, path):
    """Another way to write it, or something else."""
    for _ in range(dice.randint(1, 3)):
        at = dice.randrange(len(path) + 1)
        path = dice.choice([
            lambda: path[:at] + dice.choice(ODD) + path[at:], lambda: path[:at] + dice.choice(ODD) + path[at:],
            lambda: path[:at] + "".join(f"%{ord(c):02x}" for c in path[at:at + 1] if c.isalpha()) + path[at + 1:],
            lambda: "".join(dice.choice((c.upper(), c)) for c in path),
            lambda: dice.choice(BEFORE) + path, lambda: path + dice.choice(BEHIND),
        ])()
    return path if path.startswith("/") else "/" + path


def test_five_thousand_random_ways_to_write_a_protected_page_lead_nowhere(server, shop):
    dice = random.Random(42)
    for _ in range(5000):
        target = spoilt(dice, dice.choice(["/events/42", "/api/v1/seats", "/api/reservations", "/api/v1/tickets/9", "/api/v1/admin/x"]))
        exchange(server, f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    assert len(shop.seen) > 500, "those that were spoilt altogether"
    for visit in shop.seen:
        assert_gated(visit, server.admin_tokens["ops"])


def test_forward_auth_says_of_each_path_what_the_gate_does_with_it(server, shop):
    dice = random.Random(43)
    answers = {200: 200, 400: 400, 403: 401, 404: 404}
    for _ in range(1000):
        target = spoilt(dice, dice.choice(["/events/42", "/api/v1/seats", "/api/reservations/my", "/health", "/"]))
        status = send(server, target).status
        shop.seen.clear()
        said = send(server, "/verify", {"X-Forwarded-Uri": target}).status
        assert said == answers[status], (target, status, said)
        assert list(shop.seen) == []


def test_no_header_takes_another_path_than_the_requests(server, shop):
    for name in ("X-Original-URL", "X-Rewrite-URL", "x-original-url"):
        assert send(server, "/health", {name: "/events/42"}).status == 200
        assert shop.seen.pop().header_all(name) == []


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_every_method_is_gated(server, shop, people, method):
    for target in ("/events/42", "/api/v1/seats"):
        assert send(server, target, method=method).status == 403
        assert not shop.seen
        assert send(server, target, people["hall 42"], method=method).status == 200
        assert shop.seen.pop().method == method


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "FROB", "get"])
def test_odd_methods_reach_nothing(server, shop, method):
    assert send(server, "/events/42", method=method).status in (400, 403, 405)
    assert not shop.seen


@pytest.mark.parametrize("host", ["shop.example", "SHOP.EXAMPLE", "shop.example.", "shop.example:80", "evil.example", "127.0.0.1", "x" * 200])
def test_no_host_leads_around(server, shop, people, host):
    assert send(server, "/events/42", {"Host": host}).status == 403
    assert not shop.seen
    assert send(server, "/events/42", {"Host": host, **people["lobby 42"]}).status == 200


@pytest.mark.parametrize("lines", [b"", b"Host:\r\n", b"Host: a\r\nHost: b\r\n", b"Host: a b\r\n", b"Host: a/b\r\n", b"Host : a\r\n"])
def test_a_host_that_is_none_is_refused(server, shop, lines):
    received = exchange(server, b"GET /events/42 HTTP/1.1\r\n" + lines + b"Connection: close\r\n\r\n")
    assert answer_of(received).status in (400, 403)
    assert not shop.seen


def test_a_navigation_is_sent_to_the_lobby_or_its_hall_and_back(server, shop):
    away = send(server, "/Events/44/seats?a=b", BROWSER)
    assert (away.status, away.header("location")) == (302, "/vwr/44?return=%2FEvents%2F44%2Fseats%3Fa%3Db")
    assert away.header("cache-control") == "no-store"
    assert not shop.seen
    page = server.client().get("/vwr/44")
    assert page.status == 200 and b'data-contract="lobby"' in page.body
    assert b'data-contract="tier2"' in server.client().get("/queue/44").body


def test_a_place_in_a_hall_is_taken_with_a_pass_of_its_lobby(server):
    for prefix in ("/api/queue/", "/api/v1/queue/", "/API/V1/Queue/"):
        answer = server.api().post(prefix + "join", {"event_id": "42"})
        assert (answer.status, answer.json()["redirectTo"]) == (403, "/vwr/42")
    visitor = server.api()
    assert visitor.get("/events/42", headers=BROWSER).status == 200
    assert visitor.join("42").status == 202


def test_below_the_limit_an_event_is_seen_at_once(server, shop):
    visitor = server.client()
    first = visitor.get("/events/42", headers=BROWSER)
    assert first.status == 200 and "weir-pass-lobby~42" in first.cookies()
    assert visitor.get("/events/42/picture.png").status == 200
    assert visitor.get("/api/v1/seats").status == 403


def test_an_event_that_has_no_room_is_no_way_in(server, shop):
    assert send(server, "/events/nowhere").json()["redirectTo"] == "/vwr/nowhere"
    assert send(server, "/events/nowhere", BROWSER).status == 302
    assert not shop.seen


def test_a_reservation_with_its_pass_in_the_body(server, shop, people):
    token = people["hall 42"]["x-queue-entry-token"]
    body = f'{{"event_id":"42","seat_ids":["A-1"],"reservation_token":"{token}"}}'
    for headers in ({}, people["login"]):
        assert send(server, "/api/v1/reservations", headers, method="POST", body=body).status == 200
        visit = shop.seen.pop()
        assert visit.body == body and visit.of_weir()["x-weir-room"] == "42"
        assert visit.header_all("Authorization") == ([headers["Authorization"]] if headers else [])
    assert send(server, "/api/v1/reservations", method="POST", body=body.replace(token, "x")).status == 403


def test_a_preflight_goes_to_the_shop_and_nothing_else_does(server, shop):
    preflight = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    answer = send(server, "/health", preflight, method="OPTIONS")
    assert answer.status == 200
    shop.seen.clear()
    for missing in preflight:
        headers = {name: value for name, value in preflight.items() if name != missing}
        assert send(server, "/api/v1/seats", headers, method="OPTIONS").status == 403
    assert not shop.seen
    assert send(server, "/api/v1/seats", preflight, method="OPTIONS").status == 200
    [visit] = shop.seen
    assert visit.method == "OPTIONS" and visit.of_weir() == {}
    shop.seen.clear()  # the one thing that goes by


# --- smuggling

HIDDEN = b"GET /events/42/smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
CHUNKED_HIDDEN = b"0\r\n\r\n" + HIDDEN
LONG = b"%x\r\n" % len(HIDDEN) + HIDDEN + b"\r\n0\r\n\r\n"

SMUGGLED = {
    "both lengths": b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n" % len(CHUNKED_HIDDEN) + CHUNKED_HIDDEN,
    "both lengths, the other way": b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n" + LONG,
    "two lengths": b"Content-Length: 0\r\nContent-Length: %d\r\n\r\n" % len(HIDDEN) + HIDDEN,
    "one length twice": b"Content-Length: 0\r\nContent-Length: 0\r\n\r\n" + HIDDEN,
    "a list of lengths": b"Content-Length: 0, %d\r\n\r\n" % len(HIDDEN) + HIDDEN,
    "a signed length": b"Content-Length: +%d\r\n\r\n" % len(HIDDEN) + HIDDEN,
    "a negative length": b"Content-Length: -1\r\n\r\n" + HIDDEN,
    "a hexadecimal length": b"Content-Length: 0x10\r\n\r\n" + HIDDEN,
    "an endless length": b"Content-Length: 99999999999999999999\r\n\r\n" + HIDDEN,
    "a length before a colon": b"Content-Length : %d\r\n\r\n" % len(HIDDEN) + HIDDEN,
    "another coding": b"Transfer-Encoding: xchunked\r\n\r\n" + CHUNKED_HIDDEN,
    "two codings": b"Transfer-Encoding: gzip, chunked\r\n\r\n" + CHUNKED_HIDDEN,
    "a coding twice": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n" + CHUNKED_HIDDEN,
    "a coding with a tab": b"Transfer-Encoding:\tchunked\r\n\r\n" + CHUNKED_HIDDEN,
    "a coding before a colon": b"Transfer-Encoding : chunked\r\n\r\n" + CHUNKED_HIDDEN,
    "a folded coding": b"Transfer-Encoding:\r\n chunked\r\n\r\n" + CHUNKED_HIDDEN,
    "a chunk size that is none": b"Transfer-Encoding: chunked\r\n\r\nzz\r\n" + HIDDEN,
    "a negative chunk": b"Transfer-Encoding: chunked\r\n\r\n-1\r\n" + HIDDEN,
    "a chunk too long": b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff0\r\n" + HIDDEN,
    "a chunk that ends late": b"Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n" + CHUNKED_HIDDEN,
    "a bare carriage return": b"X: a\rTransfer-Encoding: chunked\r\n\r\n" + CHUNKED_HIDDEN,
    "line feeds alone": b"Content-Length: 0\n\n" + HIDDEN,
    "a header that is none": b"\x00Content-Length: 0\r\n\r\n" + HIDDEN,
    "a pipeline": b"\r\n" + HIDDEN,
}


@pytest.mark.parametrize("what", SMUGGLED)
@pytest.mark.parametrize("who", ["nobody", "hall 42"])
@pytest.mark.parametrize("target", [b"/api/v1/reservations", b"/health", b"/events/42"])
def test_nothing_is_smuggled_past_the_gate(server, shop, people, what, who, target):
    """Whatever of it nginx takes for a request of its own comes to the gate; whatever it does not is a body."""
    headers = "".join(f"{name}: {value}\r\n" for name, value in people[who].items()).encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(b"POST " + target + b" HTTP/1.1\r\nHost: x\r\n" + headers + SMUGGLED[what])
        connection.shutdown(socket.SHUT_WR)
        try:
            while connection.recv(65536):
                pass
        except ConnectionResetError:
            pass
    assert [visit.path for visit in shop.seen if "smuggled" in visit.path] == []
    assert len(shop.seen) <= 1


# --- the files


@pytest.mark.parametrize("rooms, auto, warns", [
    ({"site": "mode=open"}, False, True), ({"site": "mode=open tier=1"}, False, False), ({"site": "mode=queue"}, False, False),
    ({"site": "tier=1"}, True, True),
])
def test_a_gate_that_takes_a_pass_which_everybody_has_is_warned_of(weir, rooms, auto, warns):
    """In the sample everybody who saw the front page could reserve, had the room of the site been of tier 2."""
    server = weir(start=False, rooms=rooms, auto=auto, api=False, server="""
        location / { weir_gate room=site; empty_gif; }
        location /seats { weir_gate tier=2 room=*; empty_gif; }
    """)
    accepted, said = server.check_conf()
    assert accepted and (re.search(r"\[warn\].*weir_gate room=\*\"? in .*everybody", said) is not None) == warns, said


def test_the_sample_is_accepted_by_nginx(server, weir, tmp_path):
    """As it stands, but for where things lie on this machine."""
    folder = tmp_path / "etc"
    folder.mkdir()
    for name in ("weir.secret", "weir.admin"):
        (folder / name).touch(mode=0o600)
        (folder / name).write_text("1 " + "x" * 40 + "\n")
    (folder / "gate-matrix.conf").write_text((SAMPLES / "gate-matrix.conf").read_text())
    other = weir(start=False)
    text = (SAMPLES / "nginx.conf").read_text()
    for place, here in (("modules/ngx_http_weir_module.so", other.module), ("/var/log/nginx/access.log", f"{folder}/access.log"),
                        ("listen 80;", f"listen 127.0.0.1:{free_port()};")):
        assert place in text
        text = text.replace(place, str(here))
    folders = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (other.dir / "nginx.conf").write_text(f"pid {folder}/pid; error_log {folder}/error.log;" + text.replace("http {", "http {" + folders, 1)
                                          .replace("weir.secret", f"{folder}/weir.secret").replace("weir.admin", f"{folder}/weir.admin")
                                          .replace("gate-matrix.conf;", f"{folder}/gate-matrix.conf;"))
    accepted, said = other.check_conf()
    assert accepted, said
    assert "warn" not in said, said
