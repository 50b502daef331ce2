# SPDX-License-Identifier: BSD-2-Clause
"""The gate: a living pass of this room goes through, nothing else does, by whatever door."""

import base64
import hashlib
import hmac
import json
import re
import socket
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from weirtest import Nginx, Response, Shop, at_once, raw, wait_until

ROOMS = {
    "shop": "rate=1000 burst=100",
    "other": "rate=1000 burst=100",
    "one": "rate=1000 burst=100 tier=1",
    "short": "rate=1000 burst=100 session_ttl_sec=5",
    "late": "rate=1000 burst=100 arrive_ttl_sec=1",
    "open": "mode=open",
    "shut": "mode=closed",
    "held": "mode=hold",
    "a:b": "rate=1000 burst=100",
}

# What it is about is /in/ (gated by "shop"); the rest are doors beside it.
SERVER = """
        root {dir}/html;
        location /in/ {{ weir_gate room=shop; proxy_pass http://127.0.0.1:{echo}; }}
        location /other/ {{ weir_gate room=other; proxy_pass http://127.0.0.1:{echo}; }}
        location /one/ {{ weir_gate room=one; proxy_pass http://127.0.0.1:{echo}; }}
        location /short/ {{ weir_gate room=short; proxy_pass http://127.0.0.1:{echo}; }}
        location /late/ {{ weir_gate room=late; proxy_pass http://127.0.0.1:{echo}; }}
        location /open/ {{ weir_gate room=open; proxy_pass http://127.0.0.1:{echo}; }}
        location /held/ {{ weir_gate room=held; proxy_pass http://127.0.0.1:{echo}; }}
        location /shut/ {{ weir_gate room=shut; proxy_pass http://127.0.0.1:{echo}; }}
        location /colon/ {{ weir_gate room=a:b page=/wait/; proxy_pass http://127.0.0.1:{echo}; }}
        location ~ ^/by-name/(?<event>.*)$ {{ weir_gate room=$event; proxy_pass http://127.0.0.1:{echo}; }}
        location /chained/ {{ weir_gate room=shop; proxy_pass http://unix:{dir}/second.sock; }}
        location /free/ {{ proxy_pass http://127.0.0.1:{echo}; }}
        location /nested/ {{
            weir_gate room=shop;
            location /nested/free/ {{ weir_gate off; proxy_pass http://127.0.0.1:{echo}; }}
            location /nested/deep/ {{ proxy_pass http://127.0.0.1:{echo}; }}
        }}
        location /satisfied/ {{ weir_gate room=shop; satisfy any; allow all; proxy_pass http://127.0.0.1:{echo}; }}
        location /static/ {{ weir_gate room=shop; }}
        location /tried/ {{ weir_gate room=shop; try_files /static/secret.txt =404; }}
        location /tries/ {{ try_files /nothing /in/$uri; }}
        location /named/ {{ try_files /nothing @gated; }}
        location @gated {{ weir_gate room=shop; proxy_pass http://127.0.0.1:{echo}; }}
        location /erring/ {{ error_page 404 =200 /in/error; return 404; }}
        location /erring-named/ {{ error_page 404 =200 @gated; return 404; }}
        location /rewritten/ {{ rewrite ^ /in/rewritten last; }}
        location /accel/ {{ proxy_pass http://127.0.0.1:{echo}; }}
        location /included/ {{ ssi on; ssi_types *; }}
        location /added/ {{ addition_types *; add_before_body /in/added; }}
        location /asks/ {{ weir_gate room=shop; auth_request /auth/check; proxy_pass http://127.0.0.1:{echo}; }}
        location /asks-held/ {{ weir_gate room=held; auth_request /auth/held; proxy_pass http://127.0.0.1:{echo}; }}
        location = /auth/held {{ weir_gate room=held; proxy_pass http://127.0.0.1:{echo}; }}
        location /asks-who/ {{
            weir_gate room=shop;
            auth_request /who;
            auth_request_set $who $upstream_http_x_who;
            weir_user $who;
            proxy_pass http://127.0.0.1:{echo};
        }}
        location = /who {{ weir_gate off; proxy_pass http://127.0.0.1:{echo}; }}
        location /auth/ {{ weir_gate room=shop; proxy_pass http://127.0.0.1:{echo}; }}
        location /broken/ {{ weir_gate room=shop; error_page 502 =200 /in/oops; proxy_pass http://127.0.0.1:1; }}
        location /hall/ {{ weir_gate tier=2 room=shop; proxy_pass http://127.0.0.1:{echo}; }}
        location /lobby/ {{ weir_gate tier=1 room=one room=shop; proxy_pass http://127.0.0.1:{echo}; }}
        location /any/ {{ weir_gate room=*; proxy_pass http://127.0.0.1:{echo}; }}
        location /any-hall/ {{ weir_gate tier=2 room=* page=/events/; proxy_pass http://127.0.0.1:{echo}; }}
        location /body/ {{ weir_gate room=shop body=reservation_token; proxy_pass http://127.0.0.1:{echo}; }}
        location /spooled/ {{
            weir_gate room=shop body=reservation_token;
            client_body_buffer_size 100;
            proxy_pass http://127.0.0.1:{echo};
        }}
        location /bypass/ {{
            weir_gate room=shop;
            weir_bypass $http_x_staff $arg_monitor;
            location /bypass/none/ {{ weir_bypass off; proxy_pass http://127.0.0.1:{echo}; }}
            proxy_pass http://127.0.0.1:{echo};
        }}
        location /in-part/ {{ ssi on; ssi_types *; }}
        location /user/ {{ weir_gate room=shop; weir_user $http_x_user_id from=127.0.0.1; proxy_pass http://127.0.0.1:{echo}; }}
        location /signed-in/ {{ weir_api queue; weir_user $http_x_user_id from=127.0.0.1; }}
"""


# Another server of the same nginx, as a shop may be.
SECOND = """
    server {{ listen unix:{dir}/second.sock; location / {{ proxy_pass http://127.0.0.1:{echo}; }} }}
"""


@pytest.fixture(scope="module")
def echo():
    shop = Shop()
    shop.answer_headers["/who"] = [("X-Who", "alice")]
    shop.answer_headers["/accel/"] = [("X-Accel-Redirect", "/static/secret.txt")]
    yield shop.port
    shop.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory, echo):
    folder = tmp_path_factory.mktemp("gate") / "nginx"
    for name, text in (("static/secret.txt", "secret"), ("included/page", '<!--#include virtual="/in/part" -->'),
                       ("included/file", '<!--#include virtual="/static/secret.txt" -->'), ("added/page", "page"),
                       ("in-part/page", '[<!--#include virtual="/in/a" -->,<!--#include virtual="/other/b" -->]')):
        path = folder / "html" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    server = Nginx(folder, rooms=ROOMS, server=SERVER.format(dir=folder, echo=echo), admin=["ops"],
                   http="underscores_in_headers on; ignore_invalid_headers off; proxy_ignore_client_abort on; log_format gate '$request $weir_gate';"
                        f"access_log {folder}/gate.log gate;" + SECOND.format(dir=folder, echo=echo))
    server.expect_in_log("connect\\(\\) failed .* 127.0.0.1:1")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def visitor(server):
    """Somebody without a pass, a script."""
    client = server.api()
    yield client
    client.close()


@pytest.fixture
def insider(server):
    """Somebody with a pass for the shop, in the cookie."""
    client = enter(server, "shop")
    yield client
    client.close()


def enter(server, room, prefix="/api/v1/queue/", headers=None):
    client = server.api()
    joined = client.post(prefix + "join", {"event_id": room}, headers=headers)
    client.ticket_token = joined.json()["waiting_token"]
    entered = client.post(prefix + "enter", {"waiting_token": client.ticket_token}, headers=headers)
    assert entered.status == 200, entered
    client.reservation = entered.json()["reservation_token"]
    return client


def bare(server):
    return server.client(cookies=False)


def is_let_in(response):
    return response.status == 200 and b"shop" in response.body


def assert_turned_away(response, room="shop"):
    assert (response.status, response.error_code) == (403, "ADMISSION_REQUIRED"), response
    assert response.json()["redirectTo"] == f"/queue/{room}"
    assert response.header("cache-control") == "no-store"
    assert response.header("x-request-id") == response.json()["error"]["trace_id"]


def headers_at_shop(response):
    assert is_let_in(response), response
    return response.json()["headers"]


def of_weir(response):
    return {name.lower(): value for name, value in headers_at_shop(response) if "weir" in name.lower().replace("_", "-")
            and name.lower() != "cookie"}


# --- passes


def test_without_a_pass_nobody_gets_in(visitor):
    for method in ("GET", "POST", "PUT", "HEAD", "DELETE", "OPTIONS", "FROB"):
        assert visitor.request(method, "/in/x").status == 403
    assert_turned_away(visitor.get("/in/x"))


def test_a_pass_in_the_cookie_or_in_the_header_gets_in(server, insider):
    assert is_let_in(insider.get("/in/x"))
    assert is_let_in(bare(server).get("/in/x", headers={"x-queue-entry-token": insider.reservation}))
    assert is_let_in(bare(server).post("/in/x", b"a body", headers={"X-Queue-Entry-Token": insider.reservation}))


def bearer(token, scheme="Bearer"):
    return {"Authorization": f"{scheme} {token}"}


def test_a_pass_as_bearer_gets_in_and_goes_to_the_shop_as_it_came(server, insider):
    for scheme in ("Bearer", "bearer", "BEARER"):
        headers = bearer(insider.reservation, scheme)
        assert ["Authorization", headers["Authorization"]] in headers_at_shop(bare(server).get("/in/x", headers=headers))
    assert_turned_away(bare(server).get("/in/x", headers=bearer(insider.reservation, "Basic")))
    assert_turned_away(bare(server).get("/in/x", headers=bearer(insider.ticket_token)))


LOGINS = [
    jwt.encode({"sub": "alice", "iss": "https://login.example", "exp": 1 << 40}, "x" * 32, headers={"kid": "2.1"}),
    jwt.encode({"sub": "alice", "iss": "weir", "exp": 1 << 40}, "x" * 32, headers={"kid": "login-7"}),
    "dev-super-key-local-testing", "a.b.c", "", "x" * 7000,
]


@pytest.mark.parametrize("login", LOGINS, ids=range(len(LOGINS)))
def test_a_login_token_beside_the_pass_is_left_alone(server, insider, login):
    header = {"x-queue-entry-token": insider.reservation}
    for response in (insider.get("/in/", headers=bearer(login)),
                     bare(server).get("/in/", headers={**header, **bearer(login)}),
                     bare(server).post("/body/", {"reservation_token": insider.reservation}, headers=bearer(login))):
        assert dict(headers_at_shop(response))["Authorization"] == bearer(login)["Authorization"].strip()
    assert_turned_away(bare(server).get("/in/", headers=bearer(login)))


# --- a pass in the body


@pytest.mark.parametrize("path", ["/body/", "/spooled/"])
@pytest.mark.parametrize("kind", ["application/json", "text/plain", None])
def test_a_pass_in_the_body_gets_in_where_the_location_says_so(server, insider, path, kind):
    """And the shop gets the body byte for byte, whatever else is in it."""
    seats = [{"seat": n, "row": "\u00e9", "price": {"amount": 1.5, "currency": "KRW"}} for n in range(60)]
    text = json.dumps({"event_id": "shop", "seats": seats, "reservation_token": insider.reservation}, indent=1)
    headers = {"Content-Type": kind} if kind else {}
    response = bare(server).post(path, text, headers=headers)
    assert is_let_in(response), response
    assert response.json()["body"] == text
    assert of_weir(response)["x-weir-room"] == "shop"


def test_a_body_is_read_nowhere_else(server, insider):
    assert_turned_away(bare(server).post("/in/", {"reservation_token": insider.reservation}))


BODIES = {
    "no field": '{"other":"%s"}', "another type": '{"reservation_token":["%s"]}', "twice": '{"reservation_token":"%s","reservation_token":"x"}',
    "deeper": '{"a":{"reservation_token":"%s"}}', "an array": '["%s"]', "cut off": '{"reservation_token":"%s"',
    "more behind": '{"reservation_token":"%s"}{}', "no JSON": "reservation_token=%s", "longer": '{"reservation_token":"%s"}' + " " * 16384,
    "a number": '{"reservation_token":12}', "null": '{"reservation_token":null}', "deep": "[" * 16000, "empty": "",
}


@pytest.mark.parametrize("what", BODIES)
def test_a_body_without_a_pass_in_its_field_opens_nothing_and_closes_nothing(server, insider, what):
    body = BODIES[what] % insider.reservation if "%s" in BODIES[what] else BODIES[what]
    assert_turned_away(bare(server).post("/body/", body))
    response = insider.post("/body/", body)
    assert is_let_in(response) and response.json()["body"] == body


def test_a_body_in_chunks_is_not_looked_at_and_arrives(server, insider):
    body = json.dumps({"reservation_token": insider.reservation})
    text = f"POST /body/ HTTP/1.1\r\nHost: x\r\n%sTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n{len(body):x}\r\n{body}\r\n0\r\n\r\n"
    assert b" 403 " in raw(server.port, (text % "").encode())
    answer = raw(server.port, (text % f"x-queue-entry-token: {insider.reservation}\r\n").encode())
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["body"] == body


def test_a_body_that_comes_in_pieces_is_waited_for(server, insider):
    body = json.dumps({"reservation_token": insider.reservation}).encode()
    head = b"POST /body/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(head)
        for at in range(0, len(body), 40):
            connection.sendall(body[at:at + 40])
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["body"] == body.decode()


def test_a_client_that_asks_before_it_sends_is_told_to_go_on(server, insider):
    body = json.dumps({"reservation_token": insider.reservation}).encode()
    head = b"POST /body/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body)
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(head)
        assert connection.recv(65536).startswith(b"HTTP/1.1 100 ")
        connection.sendall(body)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert b" 200 " in answer.split(b"\r\n")[0]


# --- tokens that do not count


@pytest.mark.parametrize("cookies", [
    "weir-pass-shop=junk; weir-pass-shop={}",
    "weir-pass-shop=; weir-pass-shop=a.b.c; other=1; weir-pass-shop={}; weir-pass-shop=junk",
    "weir-pass-shop={0}; weir-pass-shop={0}",
])
def test_junk_under_the_cookies_name_does_not_lock_anybody_out(server, insider, cookies):
    headers = {"Cookie": cookies.format(insider.reservation)}
    assert is_let_in(bare(server).get("/in/x", headers=headers))


def test_a_pass_is_looked_for_among_eight_cookies_of_its_name(server, insider):
    junk = "weir-pass-shop=junk; "
    headers = {"Cookie": junk * 7 + f"weir-pass-shop={insider.reservation}"}
    assert is_let_in(bare(server).get("/in/x", headers=headers))
    headers = {"Cookie": junk * 8 + f"weir-pass-shop={insider.reservation}"}
    assert_turned_away(bare(server).get("/in/x", headers=headers))


def test_a_pass_of_a_room_with_a_colon_gets_in_by_its_cookie(server):
    assert is_let_in(enter(server, "a:b").get("/colon/"))
    response = bare(server).get("/colon/")
    assert response.json()["redirectTo"] == "/wait/a:b"


def key_of(server, tier):
    """The key of a tier, as docs tell a back-end developer to derive it: HKDF-SHA256 of the secret."""
    secret = server.secret_file.read_text().split()[1].encode()
    extracted = hmac.digest(b"\0" * 32, secret, "sha256")
    return hmac.digest(extracted, f"weir pass {tier}".encode() + b"\1", hashlib.sha256)


def test_any_jwt_library_verifies_a_pass(server, insider):
    claims = jwt.decode(insider.reservation, key_of(server, 2), algorithms=["HS256"], issuer="weir")
    assert (claims["sub"], claims["tier"]) == ("shop", 2)
    assert claims["exp"] - claims["iat"] == 12 * 3600
    assert claims["uid"].startswith("v-")
    with pytest.raises(jwt.InvalidSignatureError):
        jwt.decode(insider.reservation, key_of(server, 1), algorithms=["HS256"])


def forged(server, token, change=None, key=None, header=None, algorithm="HS256"):
    """The same pass with something else about it, signed with the true key unless told otherwise."""
    claims = jwt.decode(token, options={"verify_signature": False})
    claims.update(change or {})
    claims = {name: value for name, value in claims.items() if value is not None}
    headers = dict(jwt.get_unverified_header(token), alg=algorithm, **(header or {}))
    return jwt.encode(claims, key if key is not None else key_of(server, 2), algorithm=algorithm, headers=headers)


def test_a_pass_that_is_not_ours_or_not_for_here_does_not_get_in(server, insider):
    token = insider.reservation
    head, body, signature = token.split(".")
    passes = {
        "another key": forged(server, token, key="x" * 32),
        "the key of the other tier": forged(server, token, key=key_of(server, 1)),
        "no algorithm": forged(server, token, key="", algorithm="none"),
        "another algorithm": forged(server, token, algorithm="HS512", key=key_of(server, 2)),
        "no signature": f"{head}.{body}.",
        "another key id": forged(server, token, header={"kid": "2.9"}),
        "another room": forged(server, token, {"sub": "other"}),
        "no room": forged(server, token, {"sub": None}),
        "another issuer": forged(server, token, {"iss": "else"}),
        "no expiry": forged(server, token, {"exp": None}),
        "expired": forged(server, token, {"exp": 1}),
        "from the future": forged(server, token, {"iat": 1 << 40, "exp": 1 << 41}),
        "another tier": forged(server, token, {"tier": 1}),
        "another place": forged(server, token, {"jti": base64.urlsafe_b64encode(b"\0" * 20).rstrip(b"=").decode()}),
        "garbage": "garbage",
        "nothing": "",
        "too long": "x" * 8000,
        "its ticket": insider.ticket_token,
    }
    for what, value in passes.items():
        assert not is_let_in(bare(server).get("/in/x", headers={"x-queue-entry-token": value})), what
        assert not is_let_in(bare(server).get("/in/x", headers={"Cookie": f"weir-pass-shop={value}"})), what
    assert is_let_in(bare(server).get("/in/x", headers={"x-queue-entry-token": token})), "the forgeries started from a good one"


def test_no_character_of_a_pass_that_was_just_seen_can_be_changed(server, insider):
    """Every worker has seen the true one a moment ago."""
    token = insider.reservation
    true = ("GET", "/in/", None, {"x-queue-entry-token": token})
    assert {answer.status for answer in at_once(server.port, [true] * 40, connections=20)} == {200}
    others = {"A": "B", ".": "_"}
    forged = [token[:at] + others.get(token[at], "A") + token[at + 1:] for at in range(len(token))]
    forged += [token[:-1], token + "A", token[1:], token.swapcase(), token + ".", token.rpartition(".")[0], token + "=" * 3]
    answers = at_once(server.port, [("GET", "/in/", None, {"x-queue-entry-token": one}) for one in forged], connections=20)
    assert {answer.status for answer in answers} == {403}
    assert {answer.status for answer in at_once(server.port, [true] * 40, connections=20)} == {200}


def test_a_pass_opens_its_own_room_only(server, insider):
    header = {"x-queue-entry-token": insider.reservation}
    assert_turned_away(bare(server).get("/other/", headers=header), "other")
    cookie = {"Cookie": f"weir-pass-other={insider.reservation}"}
    assert_turned_away(bare(server).get("/other/", headers=cookie), "other")


def test_a_pass_of_one_tier_is_nothing_to_the_other(server):
    first = enter(server, "one")
    assert is_let_in(first.get("/one/"))
    jwt.decode(first.reservation, key_of(server, 1), algorithms=["HS256"])


def test_a_gate_of_tier_2_takes_no_pass_of_tier_1(server, insider):
    first = enter(server, "one")
    assert is_let_in(insider.get("/hall/"))
    assert_turned_away(first.get("/hall/"))
    assert is_let_in(first.get("/any/"))
    header = {"x-queue-entry-token": first.reservation}
    assert not is_let_in(bare(server).get("/any-hall/", headers=header))
    assert is_let_in(insider.get("/any-hall/"))


def test_a_gate_of_several_rooms_takes_a_pass_of_each_and_tells_which(server, insider):
    first = enter(server, "one")
    assert of_weir(first.get("/lobby/"))["x-weir-room"] == "one"
    assert of_weir(insider.get("/lobby/"))["x-weir-room"] == "shop"
    assert_turned_away(enter(server, "other").get("/lobby/"), "one")
    both = {"Cookie": f"weir-pass-one={first.reservation}; weir-pass-shop={insider.reservation}"}
    seen = of_weir(bare(server).get("/lobby/", headers=both))
    assert (seen["x-weir-room"], seen["x-weir-tier"]) == ("shop", "2"), "the higher tier stands for both"


def test_where_the_better_pass_is_over_the_other_one_still_opens(server):
    first, second = enter(server, "one"), enter(server, "shop")
    second.leave(second.ticket_token)
    both = {"Cookie": f"weir-pass-one={first.reservation}; weir-pass-shop={second.reservation}"}
    assert of_weir(bare(server).get("/lobby/", headers=both))["x-weir-room"] == "one"
    renewed = enter(server, "shop")
    old_and_new = {"Cookie": f"weir-pass-shop={renewed.reservation}", "x-queue-entry-token": second.reservation}
    assert_turned_away(bare(server).get("/in/", headers=old_and_new)), "they are two people"


def test_any_room_is_the_room_of_the_pass(server, insider):
    other = enter(server, "other")
    for client, room in ((insider, "shop"), (other, "other")):
        assert of_weir(client.get("/any/"))["x-weir-room"] == room
        assert of_weir(bare(server).get("/any/", headers={"x-queue-entry-token": client.reservation}))["x-weir-room"] == room
    for path, where in (("/any/", {}), ("/any-hall/", {"redirectTo": "/events/"})):
        for accept in ("text/html", "*/*"):
            response = bare(server).get(path, headers={"Accept": accept})
            assert (response.status, response.error_code) == (403, "ADMISSION_REQUIRED")
            assert {name: value for name, value in response.json().items() if name != "error"} == where
    junk = {"Cookie": f"weir-pass-=x; weir-pass-shop; weir-pass-other=; xweir-pass-shop={other.reservation}"}
    assert bare(server).get("/any/", headers=junk).status == 403


def test_two_headers_with_passes_are_both_looked_at(server, insider):
    other = enter(server, "shop")
    for tokens, is_in in (([insider.reservation], True), (["junk", insider.reservation], True),
                          ([insider.reservation, insider.reservation], True), ([insider.reservation, other.reservation], False),
                          ([other.reservation, "junk", insider.reservation], False)):
        lines = "".join(f"x-queue-entry-token: {token}\r\n" for token in tokens)
        answer = raw(server.port, f"GET /in/ HTTP/1.0\r\n{lines}\r\n".encode())
        assert (b'"shop": true' in answer) == is_in, tokens


def test_passes_that_disagree_are_none_wherever_they_are(server, insider):
    other = enter(server, "shop")
    places = [
        lambda token: ({"x-queue-entry-token": token}, {}), lambda token: (bearer(token), {}),
        lambda token: ({"Cookie": f"weir-pass-shop={token}"}, {}), lambda token: ({}, {"reservation_token": token}),
    ]
    for one in range(4):
        for two in range(4):
            if one == two:
                continue
            for second, is_in in ((insider, True), (other, False)):
                headers, body = places[one](insider.reservation)
                more_headers, more_body = places[two](second.reservation)
                response = bare(server).post("/body/", {**body, **more_body}, headers={**headers, **more_headers})
                assert is_let_in(response) == is_in, (one, two, response)


def test_two_passes_of_different_people_are_none(server, insider):
    other = enter(server, "shop")
    assert not is_let_in(insider.get("/in/", headers={"x-queue-entry-token": other.reservation}))
    assert is_let_in(insider.get("/in/", headers={"x-queue-entry-token": insider.reservation}))
    assert is_let_in(insider.get("/in/", headers={"x-queue-entry-token": "garbage"})), "that one is not presented"


def test_a_pass_ends_with_its_session(server):
    left = enter(server, "shop")
    assert is_let_in(left.get("/in/"))
    left.leave(left.ticket_token)
    wait_until(lambda: left.get("/in/").status == 403, 1, "the gate closed within a second")
    assert_turned_away(left.get("/in/"))


def test_a_session_that_nobody_uses_ends_and_requests_renew_it(server):
    used, idle = enter(server, "short"), enter(server, "short")
    assert is_let_in(idle.get("/short/"))
    token = idle.ticket_token

    def idle_is_over():
        assert is_let_in(used.get("/short/"))
        return idle.status(token).status == 404
    wait_until(idle_is_over, 20, "the idle session over", every_sec=0.1)
    assert not is_let_in(idle.get("/short/"))
    assert is_let_in(used.get("/short/"))


def test_a_pass_that_never_arrives_is_over(server):
    late = enter(server, "late")
    wait_until(lambda: late.status(late.ticket_token).status == 404, 10, "the slot given to another")
    assert not is_let_in(late.get("/late/"))


# --- rooms and modes


def test_an_open_room_lets_everybody_by_and_still_reads_passes(server, visitor):
    assert of_weir(visitor.get("/open/")) == {"x-weir-room": "open"}
    holder = enter(server, "open")
    assert set(of_weir(holder.get("/open/"))) == {"x-weir-room", "x-weir-user", "x-weir-session", "x-weir-tier"}


def test_a_closed_room_still_wants_a_pass(visitor):
    assert_turned_away(visitor.get("/shut/"), "shut")


def test_a_room_by_variable(server, insider):
    assert is_let_in(insider.get("/by-name/shop"))
    assert_turned_away(insider.get("/by-name/other"), "other")


@pytest.mark.parametrize("name", ["", "a/b", "x" * 65, "sh%20op", "shop/"])
def test_a_path_without_a_room_is_no_way_in(insider, name):
    for accept in ("text/html", "*/*"):
        response = insider.get("/by-name/" + name, headers={"Accept": accept})
        assert (response.status, response.error_code) == (403, "ADMISSION_REQUIRED")
        assert "redirectTo" not in response.json()


def test_an_unknown_room_is_no_way_in(insider):
    assert_turned_away(insider.get("/by-name/nowhere"), "nowhere")


# --- who goes by


def test_who_is_let_by_goes_by_without_a_pass_and_is_counted(server, visitor):
    before = server.admin().call("GET", "gate").json()["requests"]
    for path, headers in (("/bypass/", {"X-Staff": "1"}), ("/bypass/", {"X-Staff": "no"}), ("/bypass/?monitor=ping", {})):
        assert of_weir(visitor.get(path, headers=headers)) == {"x-weir-room": "shop"}
        assert visitor.get(path, headers={**headers, "Accept": "text/html"}).cookies() == {}, "nor do they take a slot"
    for path, headers in (("/bypass/", {}), ("/bypass/", {"X-Staff": "0"}), ("/bypass/", {"X-Staff": ""}), ("/bypass/?monitor", {}),
                          ("/bypass/none/", {"X-Staff": "1"}), ("/in/", {"X-Staff": "1"})):
        assert_turned_away(visitor.get(path, headers=headers))
    after = server.admin().call("GET", "gate").json()["requests"]
    assert {word: after[word] - before[word] for word in after if after[word] != before[word]} == {"bypassed": 6, "refused": 6}


# --- navigation


@pytest.mark.parametrize("headers", [
    {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}, {"Sec-Fetch-Mode": "navigate", "Accept": "*/*"},
])
def test_a_navigation_is_sent_to_the_waiting_page_and_back_afterwards(visitor, headers):
    for method in ("GET", "HEAD"):
        response = visitor.request(method, "/held/seats?row=3&seat=%C3%BC#x", headers=headers)
        assert response.status == 302
        assert response.header("cache-control") == "no-store"
        target = urlsplit(response.header("location"))
        assert (target.scheme, target.netloc, target.path) == ("", "", "/queue/held")
        assert parse_qs(target.query)["return"][0].startswith("/held/seats?row=3&seat=%C3%BC")


@pytest.mark.parametrize("headers", [{"Accept": "text/html"}, {"Sec-Fetch-Mode": "navigate", "Accept": "*/*"}])
def test_whoever_sends_a_form_is_sent_to_the_waiting_page_and_takes_no_slot(server, visitor, headers):
    """They see a page, not JSON; and come back to the site, for what a form goes to need not be a page."""
    before = server.admin().figures("shop").json()["issued"]
    response = visitor.post("/in/buy", {"seat": 1}, headers=headers)
    assert (response.status, response.header("location")) == (302, "/queue/shop")
    assert response.header("cache-control") == "no-store"
    assert server.admin().figures("shop").json()["issued"] == before


@pytest.mark.parametrize("method, headers", [
    ("PUT", {"Accept": "text/html"}), ("DELETE", {"Sec-Fetch-Mode": "navigate"}), ("GET", {"Accept": "application/json"}), ("GET", {}),
    ("GET", {"Accept": "text/html", "Sec-Fetch-Mode": "cors"}), ("POST", {"Accept": "*/*"}), ("POST", {"Sec-Fetch-Mode": "cors"}),
])
def test_anything_else_is_told_where_the_line_is(visitor, method, headers):
    assert_turned_away(visitor.request(method, "/in/", headers=headers))


@pytest.mark.parametrize("path", ["//evil.example/in/", "/\\evil.example", "http://evil.example//in/"])
def test_the_way_back_never_leaves_the_site(weir, path):
    server = weir(rooms=ROOMS, gate="held")
    answer = raw(server.port, f"GET {path} HTTP/1.1\r\nHost: x\r\nAccept: text/html\r\nConnection: close\r\n\r\n".encode())
    location = next(line for line in answer.decode().split("\r\n") if line.lower().startswith("location:"))
    back = parse_qs(urlsplit(location.split(": ", 1)[1]).query).get("return", ["/"])[0]
    assert back.startswith("/") and back[1:2] not in ("/", "\\")


def test_a_very_long_address_is_not_taken_along(visitor):
    response = visitor.get("/held/?" + "x" * 4000, headers={"Accept": "text/html"})
    assert response.header("location") == "/queue/held"


def test_a_preflight_goes_through_and_says_nothing_of_anybody(server, visitor):
    headers = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST", "X-Weir-User": "mallory"}
    assert of_weir(visitor.request("OPTIONS", "/in/", headers=headers)) == {}


# --- what the shop is told


def test_the_shop_is_told_who_passed(server, insider):
    claims = jwt.decode(insider.reservation, options={"verify_signature": False})
    assert of_weir(insider.get("/in/x?y=z")) == {
        "x-weir-room": "shop", "x-weir-user": claims["uid"], "x-weir-session": claims["jti"], "x-weir-tier": "2",
    }


FORGED = ["X-Weir-User", "X.Weir.User", "X-Weir_Tier", "X~Weir!Room", "x-weir-room", "X-WEIR-TIER", "X-Weir-Session", "X-Weir-Anything", "X_Weir_User", "x-weir-"]


@pytest.mark.parametrize("count", [0, 1, 7, 19, 20, 21, 60])
def test_headers_of_that_name_from_a_client_are_removed_and_all_others_arrive(server, insider, count):
    """Wherever they stand among the others: nginx keeps headers in arrays of twenty."""
    others = [(f"X-Other-{n}", str(n)) for n in range(count)]
    for spread in (1, 3, 10):
        lines = [f"Cookie: weir-pass-shop={insider.reservation}", "Host: the-host"]
        for at, (name, value) in enumerate(others):
            lines.append(f"{name}: {value}")
            if at % spread == 0:
                lines.append(f"{FORGED[at % len(FORGED)]}: forged")
        lines += [f"{name}: forged" for name in FORGED] + ["X-Last: last"]
        text = "GET /in/ HTTP/1.1\r\n" + "\r\n".join(lines) + "\r\nConnection: close\r\n\r\n"
        answer = raw(server.port, text.encode()).partition(b"\r\n\r\n")[2]
        seen = json.loads(answer)["headers"]
        assert not [name for name, value in seen if value == "forged"]
        assert [(name, value) for name, value in seen if name.startswith("X-Other")] == others
        assert ("X-Last", "last") in [tuple(pair) for pair in seen]
        assert len([name for name, _ in seen if name.lower().startswith("x-weir-")]) == 4


def test_a_request_of_nothing_but_forged_headers_survives(server):
    answer = raw(server.port, b"GET /open/ HTTP/1.0\r\nX-Weir-User: forged\r\nX-Weir-Tier: forged\r\n\r\n")
    assert b"forged" not in answer and b'"shop": true' in answer


@pytest.mark.parametrize("path", ["/free/", "/nested/free/"])
def test_on_a_free_path_beside_the_gate_nobody_says_who_passed_either(visitor, path):
    """The shop believes these headers, and it does not know which of its paths are gated."""
    forged = {name: "forged" for name in ("X-Weir-User", "x_weir_room", "X-WEIR-TIER")}
    assert of_weir(visitor.get(path, headers=forged)) == {}


def test_a_server_without_a_gate_hands_on_what_the_gate_before_it_said(insider):
    assert len(of_weir(insider.get("/chained/"))) == 4


def test_the_access_log_says_how_everybody_fared(server, insider):
    insider.get("/in/fared/passed")
    bare(server).get("/in/fared/refused")
    bare(server).get("/open/fared/open")
    bare(server).get("/free/fared/-")
    headers = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST"}
    bare(server).request("OPTIONS", "/in/fared/preflight", headers=headers)

    def fared():
        return dict(re.findall(r"/fared/(\S+) HTTP\S* (\S+)\n", server.log("gate.log")))
    wait_until(lambda: len(fared()) == 5, 5, "five lines in the log")
    assert all(word == seen for word, seen in fared().items()), fared()


# --- identity


def test_a_pass_of_an_identity_is_theirs_alone(server):
    alice, mallory = {"X-User-Id": "alice"}, {"X-User-Id": "mallory"}
    client = enter(server, "shop", "/signed-in/", alice)
    assert jwt.decode(client.reservation, options={"verify_signature": False})["uid"] == "alice"
    assert of_weir(client.get("/user/", headers=alice))["x-weir-user"] == "alice"
    assert_turned_away(client.get("/user/", headers=mallory))
    assert_turned_away(client.get("/user/"))


def test_what_an_auth_module_finds_out_is_known_to_the_gate(server, insider, visitor):
    alice = enter(server, "shop", "/signed-in/", {"X-User-Id": "alice"})
    assert of_weir(alice.get("/asks-who/"))["x-weir-user"] == "alice"
    assert_turned_away(insider.get("/asks-who/"))
    assert of_weir(visitor.get("/asks-who/", headers={"Accept": "text/html"}))["x-weir-user"] == "alice"


def test_an_anonymous_pass_is_nobodys_who_is_signed_in(insider):
    assert is_let_in(insider.get("/user/"))
    assert_turned_away(insider.get("/user/", headers={"X-User-Id": "mallory"}))


# --- other doors


@pytest.mark.parametrize("path", [
    "/in", "//in/", "/./in/", "/free/../in/", "/%69n/", "/in/%2e%2e/in/", "/nested/", "/nested/deep/x", "/satisfied/",
    "/static/secret.txt", "/tried/", "/tries/x", "/named/x", "/erring/", "/erring-named/", "/rewritten/", "/accel/",
    "/asks/", "/auth/", "/broken/",
])
def test_no_other_door_leads_in_without_a_pass(visitor, path):
    response = visitor.get(path)
    assert response.status in (301, 403, 404), response
    assert b"secret" not in response.body and b"shop\": true" not in response.body


@pytest.mark.parametrize("path", [
    "/nested/deep/x", "/satisfied/", "/static/secret.txt", "/tried/", "/tries/x", "/named/x", "/erring/",
    "/erring-named/", "/rewritten/", "/accel/", "/asks/", "/auth/", "/broken/",
])
def test_every_such_door_is_open_with_a_pass(insider, path):
    response = insider.get(path)
    assert response.status == 200, response
    assert b"secret" in response.body or b"shop" in response.body


def test_the_gate_can_be_off_within(visitor):
    assert is_let_in(visitor.get("/nested/free/x"))


@pytest.mark.parametrize("path", ["/included/page", "/included/file", "/added/page"])
def test_a_page_in_front_of_the_gate_includes_nothing_from_behind_it(visitor, insider, path):
    response = visitor.get(path)
    assert b"secret" not in response.body and b"shop\": true" not in response.body
    response = insider.get(path)
    assert b"secret" in response.body or b"shop" in response.body


def test_each_part_of_a_page_says_its_own_room_to_the_shop(server):
    """Parts are judged one by one; they begin with the same list of headers, and none may hear of another's room."""
    client = enter(server, "shop")
    other = enter(server, "other")
    headers = {"Cookie": f"weir-pass-shop={client.reservation}; weir-pass-other={other.reservation}", "X-Weir-User": "forged"}
    parts = bare(server).get("/in-part/page", headers=headers).json()
    seen = [[value for name, value in part["headers"] if name == "X-Weir-Room"] for part in parts]
    assert seen == [["shop"], ["other"]]
    assert all(len([name for name, _ in part["headers"] if name.startswith("X-Weir-")]) == 4 for part in parts)


def test_a_visitor_before_an_auth_request_is_sent_to_the_line(visitor):
    """The question to the auth server is let by, being part of a request that is judged itself."""
    response = visitor.get("/asks-held/", headers={"Accept": "text/html"})
    assert response.status == 302


def test_what_goes_to_an_auth_server_has_no_forged_headers_either(server, insider):
    assert is_let_in(insider.get("/asks/", headers={"X-Weir-User": "forged"}))


def test_an_error_page_behind_the_gate_knows_who_passed(insider):
    seen = of_weir(insider.get("/broken/"))
    assert seen["x-weir-room"] == "shop" and set(seen) == {"x-weir-room", "x-weir-user", "x-weir-session", "x-weir-tier"}


def test_a_shop_that_does_not_answer_is_nginxs_own_matter(weir):
    server = weir(rooms=ROOMS, server="location / { weir_gate room=shop; proxy_pass http://127.0.0.1:1; }")
    server.expect_in_log("connect\\(\\) failed")
    client = enter(server, "shop")
    response = client.get("/")
    assert isinstance(response, Response) and response.status == 502
    assert response.error_code is None
