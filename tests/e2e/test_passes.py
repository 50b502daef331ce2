# SPDX-License-Identifier: BSD-2-Clause
"""Passes, as those see them who did not make them: a JWT library judges what the server signs, and signs what it must not take.

Keys are derived here once more, from the words of src/token/keyring.h, with nothing of ours: HKDF by the text of RFC 5869,
Ed25519 by the library that PyJWT uses.
"""

import base64
import hashlib
import hmac
import json
import secrets
import time

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from weirtest import Nginx

ROOMS = {
    "shop": "rate=1000 burst=100",
    "other": "rate=1000 burst=100",
    "lobby": "rate=1000 burst=100 tier=1",
    "held": "mode=hold",
}
SERVER = """
        location /in/ {{ weir_gate room=shop; proxy_pass http://127.0.0.1:{shop}; }}
        location /other/ {{ weir_gate room=other; proxy_pass http://127.0.0.1:{shop}; }}
        location /lobby/ {{ weir_gate room=lobby; proxy_pass http://127.0.0.1:{shop}; }}
        location = /.well-known/jwks.json {{ weir_api jwks; }}
        location = /hall/jwks.json {{ weir_api jwks tier=2; }}
        location = /lobby/jwks.json {{ weir_api jwks tier=1; if ($arg_x) {{ set $y 1; }} }}
"""
GATES = {"shop": "/in/", "other": "/other/", "lobby": "/lobby/"}


# --- keys, made without us


def hkdf(secret, info):
    prk = hmac.new(bytes(32), secret.encode(), hashlib.sha256).digest()
    return hmac.new(prk, info.encode() + b"\1", hashlib.sha256).digest()


def hs256_key(secret, tier=2):
    return hkdf(secret, f"weir pass {tier}")


def eddsa_key(secret, tier=2):
    return Ed25519PrivateKey.from_private_bytes(hkdf(secret, f"weir pass {tier} ed25519"))


def public_bytes(key):
    return key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)


def unbase64(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def header_of(token):
    return jwt.get_unverified_header(token)


# --- servers and visitors


def make(weir, http="", keys=None, start=True):
    """A server whose secret file has these keys, {id: secret}, the first one signing."""
    server = weir(start=False, rooms=ROOMS)
    server.keys = keys or {1: secrets.token_hex(32)}
    server.write_secret("".join(f"{id} {secret}\n" for id, secret in server.keys.items()))
    server.write_conf(http=http, server=SERVER.format(shop=server.shop_port))
    return server.start() if start else server


def entered(server, room="shop"):
    """A visitor with a pass: (visitor, ticket, pass). No cookies, so that what is shown is what is sent."""
    visitor = server.api(cookies=False)
    ticket = visitor.ticket(room)
    answer = visitor.enter(ticket)
    assert answer.status == 200, answer
    return visitor, ticket, answer.json()["reservation_token"]


def status_at_gate(server, token, room="shop"):
    return server.client().get(GATES[room], headers={"x-queue-entry-token": token}).status


def jwks_of(server):
    answer = server.client().get("/.well-known/jwks.json")
    assert answer.status == 200, answer
    return answer.json()


def verify_with_set(token, keys, **kwargs):
    """As a service does: the key by its id, the algorithm by decision."""
    key = jwt.PyJWKSet.from_dict(keys)[header_of(token)["kid"]]
    return jwt.decode(token, key.key, algorithms=["EdDSA"], issuer="weir", options={"require": ["exp", "iat"]}, **kwargs)


# --- both algorithms, judged by a library


def test_an_hs256_pass_is_verified_by_a_library_with_the_derived_key(weir):
    server = make(weir)
    for room, tier in (("shop", 2), ("lobby", 1)):
        _, _, token = entered(server, room)
        assert header_of(token) == {"alg": "HS256", "kid": f"{tier}.1", "typ": "JWT"}
        claims = jwt.decode(token, hs256_key(server.keys[1], tier), algorithms=["HS256"], issuer="weir")
        assert (claims["sub"], claims["tier"]) == (room, tier)
        assert status_at_gate(server, token, room) == 200


def test_an_eddsa_pass_is_verified_by_a_library_with_nothing_but_the_key_set(weir):
    server = make(weir, "weir_pass eddsa;")
    for room, tier in (("shop", 2), ("lobby", 1)):
        _, _, token = entered(server, room)
        assert header_of(token) == {"alg": "EdDSA", "kid": f"{tier}.1", "typ": "JWT"}
        claims = verify_with_set(token, jwks_of(server))
        assert (claims["sub"], claims["tier"]) == (room, tier)
        assert claims["exp"] - claims["iat"] == 12 * 3600
        for _ in range(3):
            assert status_at_gate(server, token, room) == 200


def test_the_key_set_has_the_keys_that_an_independent_derivation_gives(weir):
    server = make(weir, "weir_pass eddsa;", {9: secrets.token_hex(32), 4: secrets.token_hex(20)})
    keys = jwks_of(server)["keys"]
    assert [key["kid"] for key in keys] == ["1.9", "1.4", "2.9", "2.4"]
    for key in keys:
        tier, id = map(int, key["kid"].split("."))
        assert unbase64(key.pop("x")) == public_bytes(eddsa_key(server.keys[id], tier))
        key.pop("kid")
        assert key == {"kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA"}


def test_a_key_set_of_one_tier_has_no_key_of_the_other(weir):
    server = make(weir, "weir_pass eddsa;")
    client = server.client()
    for path, kid in (("/hall/jwks.json", "2.1"), ("/lobby/jwks.json", "1.1"), ("/lobby/jwks.json?x=1", "1.1")):
        assert [key["kid"] for key in client.get(path).json()["keys"]] == [kid]
    with pytest.raises(KeyError):
        verify_with_set(entered(server, "lobby")[2], client.get("/hall/jwks.json").json())


def test_the_key_set_may_be_kept_by_caches_and_is_read_only(weir):
    server = make(weir, "weir_pass eddsa;")
    client = server.client()
    answer = client.get("/.well-known/jwks.json")
    assert answer.header("content-type") == "application/jwk-set+json"
    assert answer.header_all("cache-control") == ["public, max-age=300"]
    head = client.request("HEAD", "/.well-known/jwks.json")
    assert (head.status, head.body, head.header("content-length")) == (200, b"", str(len(answer.body)))
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        refused = client.request(method, "/.well-known/jwks.json", "{}")
        assert (refused.status, refused.error_code, refused.header("allow")) == (405, "METHOD_NOT_ALLOWED", "GET, HEAD")
        assert refused.header_all("cache-control") == ["no-store"]


@pytest.mark.parametrize("http, kids", [
    ("", []),
    ("weir_pass hs256;", []),
    ("weir_pass eddsa tier=1;", ["1.2", "1.1"]),
    ("weir_pass eddsa id=2;", ["1.2", "2.2"]),
    ("weir_pass eddsa; weir_pass hs256 id=1;", ["1.2", "2.2"]),
    ("weir_pass hs256 id=1; weir_pass eddsa;", ["1.2", "2.2"]),
    ("weir_pass eddsa; weir_pass hs256 tier=1;", ["2.2", "2.1"]),
    ("weir_pass eddsa tier=2; weir_pass hs256 id=1;", ["2.2"]),
    ("weir_pass hs256 tier=2; weir_pass eddsa id=1;", ["1.1", "2.1"]),
    ("weir_pass hs256; weir_pass eddsa tier=2 id=1; weir_pass hs256 tier=2; weir_pass hs256 id=1;", ["2.1"]),
])
def test_the_most_precise_line_decides_and_no_symmetric_key_is_ever_shown(weir, http, kids):
    server = make(weir, http, {2: secrets.token_hex(32), 1: secrets.token_hex(32)})
    text = server.client().get("/.well-known/jwks.json").body.decode()
    keys = json.loads(text)["keys"]
    assert [key["kid"] for key in keys] == kids
    assert {key["kty"] for key in keys} <= {"OKP"} and not any("k" in key or "d" in key for key in keys)
    for secret in server.keys.values():
        for tier in (1, 2):
            for bytes_ in (secret.encode(), hs256_key(secret, tier), hkdf(secret, f"weir pass {tier} ed25519")):
                assert base64.urlsafe_b64encode(bytes_).decode().rstrip("=") not in text
    _, _, token = entered(server)
    assert header_of(token)["alg"] == ("EdDSA" if "2.2" in kids else "HS256")
    assert status_at_gate(server, token) == 200


def test_a_repeated_enter_gives_the_very_same_bytes(weir):
    for http in ("weir_pass hs256;", "weir_pass eddsa;"):
        server = make(weir, http)
        visitor, ticket, token = entered(server)
        for _ in range(10):
            assert visitor.enter(ticket).json()["reservation_token"] == token


# --- rotation


def test_a_rotation_keeps_tickets_passes_and_bytes_over_reloads(weir):
    """The old key, both, the new one alone: each step is a reload under people who are in line and inside."""
    for http in ("weir_pass hs256;", "weir_pass eddsa;"):
        old, new = secrets.token_hex(32), secrets.token_hex(32)
        server = make(weir, http, {1: old})
        visitor, ticket, token = entered(server)
        waiting = server.api(cookies=False)
        place = waiting.ticket("held")
        assert status_at_gate(server, token) == 200

        server.write_secret(f"2 {new} next\n1 {old}\n")
        server.reload()
        assert header_of(entered(server)[2])["kid"] == "2.1"
        assert [key["kid"] for key in jwks_of(server)["keys"]] == ([] if "hs256" in http else ["1.2", "1.1", "2.2", "2.1"])

        server.write_secret(f"2 {new}\n1 {old}\n")
        server.reload()
        late_visitor, late_ticket, late = entered(server)
        assert header_of(late)["kid"] == "2.2"
        for one in (token, late):
            assert status_at_gate(server, one) == 200
        assert visitor.enter(ticket).json()["reservation_token"] == token
        assert late_visitor.enter(late_ticket).json()["reservation_token"] == late
        assert waiting.status(place).json()["position"] == 1

        server.write_secret(f"2 {new}\nholder {old}\n")
        server.reload()
        assert status_at_gate(server, token) == 403
        assert status_at_gate(server, late) == 200
        assert late_visitor.enter(late_ticket).json()["reservation_token"] == late
        assert waiting.status(place).error_code == "TOKEN_NOT_FOUND"


def test_another_algorithm_comes_with_a_new_key_and_ends_no_pass(weir):
    old, new = secrets.token_hex(32), secrets.token_hex(32)
    server = make(weir, "", {1: old})
    visitor, ticket, token = entered(server)
    server.write_secret(f"2 {new}\n1 {old}\n")
    server.write_conf(http="weir_pass eddsa; weir_pass hs256 id=1;")
    server.reload()
    _, _, late = entered(server)
    assert (header_of(token)["alg"], header_of(late)["alg"]) == ("HS256", "EdDSA")
    assert verify_with_set(late, jwks_of(server))["sub"] == "shop"
    assert status_at_gate(server, token) == status_at_gate(server, late) == 200
    assert visitor.enter(ticket).json()["reservation_token"] == token


def test_another_algorithm_for_the_same_key_ends_its_passes(weir):
    server = make(weir)
    visitor, ticket, token = entered(server)
    server.write_conf(http="weir_pass eddsa;")
    server.reload()
    assert status_at_gate(server, token) == 403
    again = visitor.enter(ticket).json()["reservation_token"]
    assert header_of(again)["alg"] == "EdDSA" and status_at_gate(server, again) == 200


# --- what is refused at the gate


def compact(token, header=None, **changes):
    """(what is signed, as we write it) of a token with other claims: no spaces, our order."""
    claims = jwt.decode(token, options={"verify_signature": False})
    claims.update(changes)
    claims = {name: value for name, value in claims.items() if value is not None}
    parts = (header or header_of(token), claims)
    return ".".join(base64.urlsafe_b64encode(json.dumps(part, separators=(",", ":")).encode()).decode().rstrip("=")
                    for part in parts)


def signed(part, signature):
    return part + "." + base64.urlsafe_b64encode(signature).decode().rstrip("=")


@pytest.fixture(scope="module", params=["hs256", "eddsa"])
def judged(request, tmp_path_factory):
    """A server, a living pass of it, and what signs bytes with the key of that pass."""
    server = Nginx(tmp_path_factory.mktemp(request.param) / "nginx", rooms=ROOMS)
    secret = secrets.token_hex(32)
    server.write_secret(f"1 {secret}\n")
    server.write_conf(http=f"weir_pass {request.param};", server=SERVER.format(shop=server.shop_port))
    server.start()
    server.algorithm = request.param
    _, _, server.token = entered(server)
    key = hs256_key(secret)
    server.secret = secret
    server.sign = (eddsa_key(secret).sign if request.param == "eddsa" else
                   lambda data: hmac.new(key, data, hashlib.sha256).digest())
    yield server
    server.stop()


def resign(server, part):
    return signed(part, server.sign(part.encode()))


def test_what_the_library_signs_as_we_do_is_taken(judged):
    """Or the refusals below would say nothing."""
    assert resign(judged, compact(judged.token)) == judged.token
    assert status_at_gate(judged, judged.token) == 200
    assert status_at_gate(judged, resign(judged, compact(judged.token, iat=int(time.time()) + 30))) == 200


@pytest.mark.parametrize("changes", [
    {"exp": 1}, {"exp": lambda: int(time.time()) - 1}, {"exp": None}, {"exp": "9999999999"}, {"exp": -1}, {"exp": 1e300},
    {"iat": lambda: int(time.time()) + 120}, {"iat": None}, {"nbf": lambda: int(time.time()) + 120},
    {"sub": "other"}, {"sub": ""}, {"sub": None}, {"sub": "shop\0"}, {"tier": 1}, {"tier": None}, {"tier": "2"},
    {"iss": "shop"}, {"iss": None}, {"jti": None}, {"jti": "AAAA"}, {"uid": None}, {"uid": 7},
], ids=lambda changes: " ".join(f"{name}={'now' if callable(value) else value!r}" for name, value in changes.items()))
def test_claims_that_are_wrong_do_not_pass_though_rightly_signed(judged, changes):
    changes = {name: value() if callable(value) else value for name, value in changes.items()}
    assert status_at_gate(judged, resign(judged, compact(judged.token, **changes))) == 403


@pytest.mark.parametrize("header", [
    {"alg": "none", "kid": "2.1", "typ": "JWT"}, {"alg": "None", "kid": "2.1", "typ": "JWT"}, {"alg": "HS512", "kid": "2.1", "typ": "JWT"},
    {"alg": "ES256", "kid": "2.1", "typ": "JWT"}, {"kid": "2.1", "typ": "JWT"}, {"alg": "", "kid": "2.1", "typ": "JWT"},
    {"alg": "right", "kid": "2.2", "typ": "JWT"}, {"alg": "right", "kid": "1.1", "typ": "JWT"}, {"alg": "right", "kid": "2.0", "typ": "JWT"},
    {"alg": "right", "kid": "2.257", "typ": "JWT"}, {"alg": "right", "kid": "2.01", "typ": "JWT"}, {"alg": "right", "typ": "JWT"},
    {"alg": "right", "kid": "../../etc/passwd", "typ": "JWT"}, {"alg": "right", "kid": "2.1", "typ": "JWT", "jku": "http://x/"},
    {"alg": "other", "kid": "2.1", "typ": "JWT"},
], ids=str)
def test_a_header_that_we_do_not_write_does_not_pass_though_rightly_signed(judged, header):
    right, other = ("EdDSA", "HS256") if judged.algorithm == "eddsa" else ("HS256", "EdDSA")
    header = {**header, **({"alg": {"right": right, "other": other}.get(header["alg"], header["alg"])} if "alg" in header else {})}
    part = compact(judged.token, header)
    assert status_at_gate(judged, resign(judged, part)) == 403
    assert status_at_gate(judged, part + ".") == 403


def test_a_token_of_the_other_algorithm_or_of_a_public_key_does_not_pass(judged):
    """The classic: the public key, as bytes, as text or as PEM, taken for the secret of an HMAC."""
    private = eddsa_key(judged.secret)
    pem = private.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    part = compact(judged.token, {"alg": "HS256", "kid": "2.1", "typ": "JWT"})
    if judged.algorithm == "eddsa":
        assert status_at_gate(judged, signed(part, hmac.new(hs256_key(judged.secret), part.encode(), "sha256").digest())) == 403
    for key in (public_bytes(private), base64.urlsafe_b64encode(public_bytes(private)).rstrip(b"="), pem, pem.strip(), b""):
        assert status_at_gate(judged, signed(part, hmac.new(key, part.encode(), "sha256").digest())) == 403
    stranger = Ed25519PrivateKey.generate()
    part = compact(judged.token, {"alg": "EdDSA", "kid": "2.1", "typ": "JWT"})
    assert status_at_gate(judged, signed(part, stranger.sign(part.encode()))) == 403
    if judged.algorithm == "hs256":
        assert status_at_gate(judged, signed(part, private.sign(part.encode()))) == 403


def test_a_token_cut_anywhere_does_not_pass(judged):
    client = judged.client()
    for length in range(0, len(judged.token), 7):
        assert client.get("/in/", headers={"x-queue-entry-token": judged.token[:length]}).status == 403


def test_a_token_of_100_kilobytes_is_refused_at_once(judged):
    begun = time.monotonic()
    for token in (judged.token + "A" * 102400, "A" * 102400, "." * 102400):
        assert status_at_gate(judged, token) in (400, 403, 414, 494)
    for token in (judged.token + "A" * 8000, "." * 8000):  # as long as nginx takes a header
        assert status_at_gate(judged, token) == 403
    assert time.monotonic() - begun < 5
    assert status_at_gate(judged, judged.token) == 200


@pytest.mark.parametrize("what", ["forged", "expired", "junk"])
def test_a_request_costs_no_more_than_four_checks_for_nothing(judged, what):
    """An Ed25519 check costs a tenth of a millisecond, and a request may bring dozens of tokens. What has another form costs none."""
    _, _, token = entered(judged)

    def bad(n):
        part = compact(token, exp=int(time.time()) - n) if what == "expired" else compact(token, iat=n)
        return {"forged": signed(part, bytes(len(judged.sign(b"")))), "expired": resign(judged, part), "junk": f"a.b.{n}"}[what]

    def is_let_in(many):
        _, _, fresh = entered(judged)  # which no worker has seen yet
        cookies = "".join(f"weir-pass-shop={bad(n)}; " for n in range(1, many + 1))
        return judged.client().get("/in/", headers={"Cookie": f"{cookies}weir-pass-shop={fresh}"}).status == 200

    assert is_let_in(3)
    assert is_let_in(4) == is_let_in(7) == (what == "junk")


def test_a_living_pass_is_for_its_room_alone(judged):
    assert status_at_gate(judged, judged.token, "other") == 403
    assert status_at_gate(judged, judged.token, "lobby") == 403
    _, _, lobby = entered(judged, "lobby")
    assert status_at_gate(judged, lobby, "lobby") == 200
    assert status_at_gate(judged, lobby) == 403


# --- a key of the operator's own


def key_file(server, name, data):
    path = server.dir / name
    path.touch(mode=0o600)
    path.write_bytes(data)
    return path


def refusal(server):
    accepted, said = server.check_conf()
    lines = [line for line in said.splitlines() if "[emerg]" in line]
    assert not accepted and len(lines) == 1, said
    return lines[0]


@pytest.mark.parametrize("data, key", [
    (b"the-key-that-our-services-have-had-for-years", b"the-key-that-our-services-have-had-for-years"),
    (b"the-key-that-our-services-have-had-for-years\n", b"the-key-that-our-services-have-had-for-years"),
    (b"the-key-that-our-services-have-had-for-years\r\n", b"the-key-that-our-services-have-had-for-years"),
    (bytes(range(200, 232)), bytes(range(200, 232))),
    (bytes(range(200, 231)) + b"\n\n", bytes(range(200, 231)) + b"\n"),
    (bytes(range(256)) * 4, bytes(range(256)) * 4),
], ids=["text", "line", "dos line", "32 bytes", "ends in a line end", "1024 bytes"])
def test_a_given_key_verifies_in_a_library_as_it_stands_in_its_file(weir, data, key):
    server = make(weir, start=False)
    path = key_file(server, "pass.key", data)
    server.write_conf(http=f"weir_pass_key tier=2 file={path};")
    server.start()
    visitor, ticket, token = entered(server)
    claims = jwt.decode(token, key, algorithms=["HS256"], issuer="weir")
    assert claims["sub"] == "shop" and status_at_gate(server, token) == 200
    assert visitor.enter(ticket).json()["reservation_token"] == token
    _, _, lobby = entered(server, "lobby")
    jwt.decode(lobby, hs256_key(server.keys[1], 1), algorithms=["HS256"])
    part = compact(token)
    assert status_at_gate(server, signed(part, hmac.new(hs256_key(server.keys[1]), part.encode(), "sha256").digest())) == 403


def test_a_given_key_is_replaced_with_overlap_too(weir):
    old, new = secrets.token_hex(32), secrets.token_hex(32)
    server = make(weir, keys={1: old}, start=False)
    first, second = key_file(server, "first.key", b"first " * 8), key_file(server, "second.key", b"second " * 8)
    server.write_conf(http=f"weir_pass_key tier=2 file={first};")
    server.start()
    visitor, ticket, token = entered(server)
    server.write_secret(f"2 {new}\n1 {old}\n")
    server.reload()
    jwt.decode(entered(server)[2], b"first " * 8, algorithms=["HS256"])
    lines = [f"weir_pass_key tier=2 file={first} id=1;", f"weir_pass_key tier=2 file={second};"]
    for order in (lines, lines[::-1]):
        server.write_conf(http=" ".join(order))
        server.reload()
        late = entered(server)[2]
        jwt.decode(late, b"second " * 8, algorithms=["HS256"])
        assert status_at_gate(server, token) == status_at_gate(server, late) == 200
        assert visitor.enter(ticket).json()["reservation_token"] == token


@pytest.mark.parametrize("lines, words", [
    ("weir_pass_key tier=2 file=short.key;", ["32 bytes"]),
    ("weir_pass_key tier=2 file=empty.key;", ["32 bytes"]),
    ("weir_pass_key tier=2 file=long.key;", ["1024 bytes"]),
    ("weir_pass_key tier=2 file=open.key;", ["chmod 600", "open.key"]),
    ("weir_pass_key tier=2 file=none.key;", ["none.key"]),
    ("weir_pass_key tier=2 file=secret.key;", ["a secret of the secret file"]),
    ("weir_pass_key tier=1 file=a.key; weir_pass_key tier=2 file=a.key;", ["another purpose"]),
    ("weir_pass_key tier=1 file=a.key; weir_pass_key tier=2 file=a2.key;", ["another purpose"]),
    ("weir_pass_key tier=1 file=tier2.key;", ["another purpose"]),
    ("weir_pass_key tier=2 file=a.key; weir_pass_key tier=2 file=b.key;", ["duplicate"]),
    ("weir_pass_key tier=2 file=a.key id=7;", ["no key 7"]),
    ("weir_pass_key tier=2 file=a.key id=0;", ["1 to 255"]),
    ("weir_pass_key tier=2 file=a.key id=256;", ["1 to 255"]),
    ("weir_pass_key tier=3 file=a.key;", ["tier=1 or tier=2"]),
    ("weir_pass_key tier=2 tier=1;", ["twice"]),
    ("weir_pass_key tier=2 key=a.key;", ["tier=1", "id=K"]),
    ("weir_pass_key file=a.key id=1;", ["tier=N", "file=PATH"]),
    ("weir_pass_key tier=2 id=1;", ["tier=N", "file=PATH"]),
    ("weir_pass eddsa; weir_pass_key tier=2 file=a.key;", ["EdDSA", "HS256"]),
    ("weir_pass rs256;", ["hs256", "eddsa"]),
    ("weir_pass none;", ["hs256", "eddsa"]),
    ("weir_pass eddsa tier=3;", ["tier=1 or tier=2"]),
    ("weir_pass eddsa room=shop;", ["tier=1", "id=K"]),
    ("weir_pass eddsa id=9;", ["no key 9"]),
    ("weir_pass eddsa; weir_pass hs256;", ["duplicate"]),
    ("server { location /j { weir_api jwks tier=3; } }", ["tier=1 or tier=2"]),
    ("server { location /j { weir_api jwks id=1; } }", ["tier=1 or tier=2"]),
    ("server { location /j/ { weir_api queue tier=1; } }", ["tier=1 or tier=2"]),
    ("weir_pass eddsa tier=1; weir_pass hs256 tier=1;", ["duplicate"]),
])
def test_what_cannot_work_is_refused_with_its_line_and_without_the_key(weir, lines, words):
    server = make(weir, start=False)
    files = {"short.key": b"x" * 31, "empty.key": b"", "long.key": b"y" * 1025, "open.key": b"z" * 40, "a.key": b"a" * 40,
             "a2.key": b"a" * 40 + b"\n", "b.key": b"b" * 40, "secret.key": server.keys[1].encode(),
             "tier2.key": hs256_key(server.keys[1])}
    for name, data in files.items():
        key_file(server, name, data)
    (server.dir / "open.key").chmod(0o644)
    server.write_conf(http=lines)
    said = refusal(server)
    for word in words:
        assert word in said, said
    assert f"{server.dir}/nginx.conf" in said
    for quoted in ("xxxx", "yyyy", "zzzz", "aaaa", server.keys[1]):
        assert quoted not in said


def test_the_lines_may_stand_before_the_secret_file(weir):
    server = make(weir, start=False)
    conf = server.dir / "nginx.conf"
    key = key_file(server, "a.key", b"a" * 40)
    lines = f"weir_pass eddsa tier=1; weir_pass_key tier=2 file={key};"
    conf.write_text(conf.read_text().replace("weir_secret_file", lines + " weir_secret_file", 1))
    server.start()
    jwt.decode(entered(server)[2], b"a" * 40, algorithms=["HS256"])
    assert header_of(entered(server, "lobby")[2])["alg"] == "EdDSA"


@pytest.mark.parametrize("line", ["weir_pass eddsa;", "weir_pass_key tier=2 file=a.key;"])
def test_without_a_secret_file_they_are_refused(weir, line):
    server = weir(start=False, api=False)
    key_file(server, "a.key", b"a" * 40)
    conf = server.dir / "nginx.conf"
    conf.write_text(conf.read_text().replace(f"weir_secret_file {server.secret_file};", line))
    assert "weir_secret_file" in refusal(server)
