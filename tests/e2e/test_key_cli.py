# SPDX-License-Identifier: BSD-2-Clause
"""`weir key` and `weir pass`: the secret file and passes, from the command line. A JWT library and the server judge what they make."""

import base64
import hmac
import json
import re
import secrets
import stat
import time
from concurrent.futures import ThreadPoolExecutor

import jwt
import pytest
from test_cli import assert_one_line, run
from test_passes import ROOMS, SERVER, entered, hs256_key, jwks_of, status_at_gate, unbase64, verify_with_set

pytestmark = pytest.mark.once

A, B, C = (secrets.token_hex(32) for _ in range(3))


@pytest.fixture
def file(tmp_path):
    """Writes a secret file and returns its path."""

    def write(text, mode=0o600):
        path = tmp_path / "weir.secret"
        path.touch(mode=0o600)
        path.write_text(text)
        path.chmod(mode)
        return path

    return write


def secrets_in(path):
    """{first word: rest of the line} of the lines that are keys."""
    lines = (line.split(None, 1) for line in path.read_text().splitlines() if line.strip() and not line.startswith("#"))
    return {words[0]: words[1] for words in lines}


# --- show


def test_show_says_ids_roles_and_purposes_and_no_secret(file):
    path = file(f"# the shop's\n3 {A} next\n2 {B}\n1 {C}\n")
    shown = run("key", "show", path)
    cells = shown.cells()
    assert cells["3"][0] == "next" and cells["2"][0] == "signs" and cells["1"][0] == "verifies"
    assert cells["2"][1] == "ticket, pass 1, pass 2, visitor" and cells["1"][1].endswith(", holder")
    told = run("key", "show", path, "--json").json()["keys"]
    assert [(key["id"], key["role"]) for key in told] == [(3, "next"), (2, "signs"), (1, "verifies")]
    assert told[2]["purposes"] == ["ticket", "pass 1", "pass 2", "visitor", "holder"]
    for secret in (A, B, C):
        assert secret not in shown.out and secret[:8] not in json.dumps(told)
    path = file(f"2 {B}\nholder {C}\n")
    told = run("key", "show", path, "--json").json()["keys"]
    assert told[1] == {"role": "holder", "purposes": ["holder"]} and "holder" not in told[0]["purposes"]


def test_a_fingerprint_tells_keys_apart_and_finds_the_same_one_again(file):
    first = run("key", "show", file(f"2 {A}\n1 {B}\n"), "--json").json()["keys"]
    second = run("key", "show", file(f"9 {A}\n"), "--json").json()["keys"]
    assert first[0]["fingerprint"] == second[0]["fingerprint"] != first[1]["fingerprint"]
    assert re.fullmatch(r"[0-9a-f]{16}", first[0]["fingerprint"])


# --- export


def test_the_exported_secret_key_verifies_what_the_server_signs(weir):
    server = weir(rooms=ROOMS)
    _, _, token = entered(server)
    (line,) = run("key", "export", server.secret_file, "--tier", 2, "--secret").lines()
    kid, key = line.split()
    assert kid == jwt.get_unverified_header(token)["kid"]
    assert jwt.decode(token, base64.b64decode(key), algorithms=["HS256"], issuer="weir")["sub"] == "shop"
    keys = run("key", "export", server.secret_file, "--tier", 2, "--secret", "--json").json()
    assert jwt.decode(token, jwt.PyJWKSet.from_dict(keys)[kid].key, algorithms=["HS256"])["sub"] == "shop"
    (other,) = run("key", "export", server.secret_file, "--tier", 1, "--secret").lines()
    with pytest.raises(jwt.InvalidSignatureError):
        jwt.decode(token, base64.b64decode(other.split()[1]), algorithms=["HS256"])


def test_the_exported_public_keys_are_those_of_the_server(weir):
    server = weir(rooms=ROOMS, start=False)
    server.write_secret(f"2 {A} next\n1 {B}\n")
    server.write_conf(http="weir_pass eddsa;", server=SERVER.format(shop=server.shop_port))
    server.start()
    exported = run("key", "export", server.secret_file, "--alg", "eddsa", "--json").json()
    assert exported == jwks_of(server)
    assert verify_with_set(entered(server)[2], exported)["sub"] == "shop"
    lines = run("key", "export", server.secret_file, "--alg=eddsa", "--tier=2").lines()
    assert [line.split()[0] for line in lines] == ["2.2", "2.1"]
    assert base64.b64decode(lines[0].split()[1]) == unbase64(exported["keys"][2]["x"])
    (only,) = run("key", "export", server.secret_file, "--alg=eddsa", "--tier=2", "--id=1").lines()
    assert only == lines[1]


def test_a_secret_is_given_away_only_by_name(file):
    path = file(f"1 {A}\n")
    assert_one_line(run("key", "export", path, "--tier", 2), 2, "--secret", "--alg eddsa")
    assert_one_line(run("key", "export", path, "--tier", 2, "--json"), 2, "--secret")
    assert_one_line(run("key", "export", path, "--tier", 2, "--alg", "eddsa", "--secret"), 2, "public half")


# --- rotate


def test_a_rotation_puts_a_new_random_key_in_front_and_leaves_the_rest(file):
    path = file(f"# keys of the shop\n\n1 {A}   \n# the end, without a line end")
    done = run("key", "rotate", path)
    assert done.code == 0 and "key 2 signs" in done.out and ": 2, 1" in done.out
    first, *rest = path.read_text().splitlines()
    assert first == "# keys of the shop" and rest[0] == "" and rest[2:] == [f"1 {A}   ", "# the end, without a line end"]
    id, secret = rest[1].split()
    assert id == "2" and re.fullmatch(r"[0-9a-f]{64}", secret)
    assert A not in done.out and secret not in done.out
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = run("key", "rotate", path, "--json").json()
    assert again == {"file": str(path), "new": 3, "signs": 3, "verify": [3, 2, 1]}
    assert secrets_in(path)["3"] not in (secret, A)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_key_can_be_published_before_it_signs(file):
    path = file(f"1 {A}\n")
    assert run("key", "rotate", path, "--next", "--json").json() == {"file": str(path), "new": 2, "signs": 1, "verify": [2, 1]}
    before = secrets_in(path)
    assert before["2"].endswith(" next")
    assert_one_line(run("key", "rotate", path, "--next"), 1, "key 2 is next already")
    assert run("key", "rotate", path, "--json").json() == {"file": str(path), "new": 2, "signs": 2, "verify": [2, 1]}
    assert secrets_in(path) == {"2": before["2"].removesuffix(" next"), "1": A}


def test_a_next_key_that_stands_behind_comes_to_the_front(file):
    path = file(f"1 {A}\n2 {B} next\n")
    assert run("key", "rotate", path, "--json").json()["signs"] == 2
    assert path.read_text() == f"2 {B}\n1 {A}\n"


def test_the_oldest_key_is_dropped_and_the_holders_stay(file):
    path = file(f"2 {B}\n1 {A}\n")
    assert run("key", "rotate", path, "--drop-oldest", "--json").json() == {
        "file": str(path), "new": 3, "signs": 3, "verify": [3, 2], "dropped": 1}
    third = secrets_in(path)["3"]
    assert path.read_text() == f"3 {third}\n2 {B}\nholder {A}\n"
    assert run("key", "rotate", path, "--drop-oldest", "--json").json()["verify"] == [4, 3]
    assert path.read_text() == f"4 {secrets_in(path)['4']}\n3 {third}\nholder {A}\n"


def test_the_only_key_is_never_dropped(file):
    for text in (f"1 {A}\n", f"1 {A}\nholder {B}\n", f"2 {B} next\n1 {A}\n"):
        path = file(text)
        assert_one_line(run("key", "rotate", path, "--drop-oldest"), 1, "key 1 is the only one")
        assert path.read_text() == text


def test_ids_go_up_and_come_around(file):
    for ids, new in (((7, 200), 201), ((255,), 1), ((255, 1, 2, 4), 3)):
        path = file("".join(f"{id} {id}-{A}\n" for id in ids))
        assert run("key", "rotate", path, "--json").json()["new"] == new


def test_a_ninth_key_needs_the_oldest_to_go(file):
    path = file("".join(f"{id} {id}-{A}\n" for id in range(8, 0, -1)))
    assert_one_line(run("key", "rotate", path), 1, "8 keys", "--drop-oldest")
    assert run("key", "rotate", path, "--drop-oldest", "--json").json()["verify"] == [9, 8, 7, 6, 5, 4, 3, 2]


def test_rotations_at_once_are_each_done_or_refused(file):
    path = file(f"1 {A}\n")
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda _: run("key", "rotate", path), range(6)))
    said = [one.err for one in done if one.code]
    assert all(one.code in (0, 1) for one in done) and all("another rotation" in text for text in said)
    keys = secrets_in(path)
    assert len(keys) == 1 + sum(one.code == 0 for one in done) and keys["1"] == A
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_rotation_that_was_cut_short_stops_the_next_and_harms_nothing(file):
    path = file(f"1 {A}\n")
    beside = path.with_name(path.name + ".new")
    beside.write_text("half")
    assert_one_line(run("key", "rotate", path), 1, str(beside), "remove it")
    assert path.read_text() == f"1 {A}\n" and beside.read_text() == "half"


def test_a_link_stays_a_link(file, tmp_path):
    path = file(f"1 {A}\n")
    link = tmp_path / "link"
    link.symlink_to(path)
    assert run("key", "rotate", link).code == 0
    assert link.is_symlink() and secrets_in(path)["1"] == A and len(secrets_in(path)) == 2


@pytest.mark.parametrize("verb", [("key", "show"), ("key", "rotate"), ("key", "export", "--tier=2", "--secret"),
                                  ("pass", "mint", "--room=shop")], ids=lambda verb: " ".join(verb[:2]))
def test_a_file_that_is_no_secret_file_is_one_line_without_what_it_holds(file, verb, tmp_path):
    for text, part in (("1 short\n", "32 characters"), ("", "no key"), (A, "id"), ("x" * 20000, "16384")):
        path = file(text)
        done = run(*verb, path)
        assert_one_line(done, 1, part, str(path))
        assert A not in done.err and "xxx" not in done.err and path.read_text() == text
    assert_one_line(run(*verb, file(f"1 {A}\n", 0o640)), 1, "chmod 600")
    assert_one_line(run(*verb, tmp_path / "nothing"), 1, "No such file")
    assert_one_line(run(*verb, tmp_path), 1, "regular file")
    assert [entry.name for entry in tmp_path.iterdir()] == ["weir.secret"]


def test_people_in_line_and_inside_notice_nothing_of_a_rotation(weir):
    """The command and the server together, step by step, with people in line and inside."""
    server = weir(start=False, rooms=ROOMS)
    server.write_conf(http="weir_pass eddsa;", server=SERVER.format(shop=server.shop_port))
    server.start()
    visitor, ticket, token = entered(server)
    waiting = server.api()
    place = waiting.ticket("held")
    for arguments in ((), ("--next",), (), ()):
        assert run("key", "rotate", server.secret_file, *arguments).code == 0
        server.reload()
        waiting.close()
        assert status_at_gate(server, token) == 200
        assert visitor.enter(ticket).json()["reservation_token"] == token
        assert waiting.status(place).json()["position"] == 1
        assert waiting.ticket("held") == place
        late = entered(server)[2]
        assert verify_with_set(late, jwks_of(server))["sub"] == "shop"
    assert jwt.get_unverified_header(late)["kid"] == "2.4"
    assert run("key", "rotate", server.secret_file, "--drop-oldest").code == 0
    server.reload()
    assert status_at_gate(server, token) == 403
    assert status_at_gate(server, late) == 200


# --- mint and verify


@pytest.mark.parametrize("algorithm", ["hs256", "eddsa"])
@pytest.mark.parametrize("tier", [1, 2])
def test_a_minted_pass_is_what_a_library_expects(file, algorithm, tier):
    path = file(f"7 {A}\n3 {B}\n")
    before = int(time.time())
    made = run("pass", "mint", path, "--room", "concert:42", "--tier", tier, "--uid", "Zoë", "--ttl", 90, "--alg", algorithm,
               "--json").json()
    token = made["token"]
    if algorithm == "hs256":
        claims = jwt.decode(token, hs256_key(A, tier), algorithms=["HS256"], issuer="weir")
    else:
        claims = verify_with_set(token, run("key", "export", path, "--alg", "eddsa", "--json").json())
    assert jwt.get_unverified_header(token)["kid"] == f"{tier}.7"
    assert (claims["sub"], claims["uid"], claims["tier"]) == ("concert:42", "Zoë", tier)
    assert claims["exp"] - claims["iat"] == 90 and claims["exp"] == made["expires_at"]
    assert before <= claims["iat"] <= time.time()
    older = run("pass", "mint", path, "--room", "a", "--tier", tier, "--id", 3, "--alg", algorithm).out.strip()
    assert jwt.get_unverified_header(older)["kid"] == f"{tier}.3"


def test_a_minted_pass_without_a_name_is_somebody_anonymous_and_each_is_another(file):
    path = file(f"1 {A}\n")
    both = [jwt.decode(run("pass", "mint", path, "--room", "a").out.strip(), hs256_key(A), algorithms=["HS256"]) for _ in "ab"]
    assert all(re.fullmatch(r"v-[A-Za-z0-9_-]{16}", claims["uid"]) for claims in both)
    assert both[0]["uid"] != both[1]["uid"] and both[0]["jti"] != both[1]["jti"]
    assert both[0]["exp"] - both[0]["iat"] == 3600 and both[0]["tier"] == 2


def test_a_pass_of_the_server_is_verified_and_shown(weir):
    server = weir(rooms=ROOMS)
    for room, tier in (("shop", 2), ("lobby", 1)):
        _, _, token = entered(server, room)
        claims = jwt.decode(token, options={"verify_signature": False})
        shown = run("pass", "verify", server.secret_file, "-", "--json", stdin=token + "\n").json()
        assert shown == {"room": room, "tier": tier, "uid": claims["uid"], "session": claims["jti"], "issued_at": claims["iat"],
                         "expires_at": claims["exp"], "kid": f"{tier}.1", "alg": "HS256"}
        cells = run("pass", "verify", server.secret_file, token).cells()
        assert cells["room"] == [room] and cells["uid"] == [claims["uid"]] and cells["expires"][0].endswith("UTC")


def mint(path, *options):
    return run("pass", "mint", path, "--room", "shop", *options).out.strip()


def test_each_reason_to_refuse_a_pass_is_one_clear_line(file):
    path = file(f"2 {B}\n1 {A}\n")
    fine, lobby, older = mint(path, "--uid", "ann"), mint(path, "--tier", 1), mint(path, "--id", 1)
    eddsa = mint(path, "--alg", "eddsa")
    key = hs256_key(B)
    claims = jwt.decode(fine, key, algorithms=["HS256"])

    def signed(**changes):
        text = json.dumps({**claims, **changes}, separators=(",", ":")).encode()
        part = fine.split(".")[0] + "." + base64.urlsafe_b64encode(text).decode().rstrip("=")
        mac = hmac.new(key, part.encode(), "sha256").digest()
        return part + "." + base64.urlsafe_b64encode(mac).decode().rstrip("=")

    changed = fine[:-6] + ("A" if fine[-6] != "A" else "B") + fine[-5:]
    refusals = [
        ("hello", [], "not a pass of Weir's"),
        (fine[:-1], [], "signature is wrong"),
        (changed, [], "signature is wrong"),
        (signed(exp=int(time.time()) - 5), [], "it expired at 2"),
        (signed(iat=int(time.time()) + 500), [], "not valid yet"),
        (signed(nbf=int(time.time()) + 500), [], "not valid yet"),
        (signed(exp=None), [], "claims"),
        (signed(iss="shop"), [], "claims"),
        (lobby, ["--tier", "2"], "the other tier"),
        (fine, ["--tier", "1"], "the other tier"),
        (fine, ["--room", "other"], "for the room shop"),
        (fine, ["--uid", "bob"], "somebody else's"),
        (fine, ["--alg", "eddsa"], "not signed with EdDSA"),
        (eddsa, [], "not signed with HS256"),
    ]
    for token, options, part in refusals:
        for more in ([], ["--json"]):
            assert_one_line(run("pass", "verify", path, token, *options, *more), 1, "the pass is refused: ", part)
    for token, options in ((fine, ["--room=shop", "--uid=ann", "--tier=2"]), (lobby, []), (lobby, ["--tier=1"]), (older, []),
                           (eddsa, ["--alg=eddsa"])):
        assert run("pass", "verify", path, token, *options).code == 0
    path = file(f"2 {B}\n")
    assert_one_line(run("pass", "verify", path, older), 1, "no key 1 in the secret file")


def test_a_given_key_signs_and_verifies_on_the_command_line_too(weir, tmp_path):
    server = weir(start=False, rooms=ROOMS)
    key = tmp_path / "pass.key"
    key.touch(mode=0o600)
    key.write_text("the-key-that-our-services-have-had-for-years\n")
    server.write_conf(http=f"weir_pass_key tier=2 file={key};")
    server.start()
    _, _, token = entered(server)
    options = ("--tier", "2", "--key-file", key)
    assert run("pass", "verify", server.secret_file, token, *options).code == 0
    assert_one_line(run("pass", "verify", server.secret_file, token), 1, "signature is wrong")
    minted = run("pass", "mint", server.secret_file, "--room", "shop", *options).out.strip()
    jwt.decode(minted, b"the-key-that-our-services-have-had-for-years", algorithms=["HS256"])
    assert_one_line(run("pass", "verify", server.secret_file, token, "--key-file", key), 2, "--tier")
    assert_one_line(run("pass", "verify", server.secret_file, token, *options, "--alg=eddsa"), 1, "EdDSA")
    key.chmod(0o644)
    assert_one_line(run("pass", "verify", server.secret_file, token, *options), 1, "chmod 600")


def test_a_minted_pass_has_no_session_and_the_gate_wants_one(weir):
    server = weir(rooms=ROOMS, gate="shop")
    minted = mint(server.secret_file)
    assert run("pass", "verify", server.secret_file, minted, "--room=shop").code == 0
    answer = server.client().get("/", headers={"x-queue-entry-token": minted})
    assert (answer.status, answer.error_code) == (403, "ADMISSION_REQUIRED")


@pytest.mark.parametrize("words, part", [
    (["key"], "show, export or rotate"),
    (["key", "show"], "show, export or rotate"),
    (["key", "delete", "FILE"], "show, export or rotate"),
    (["key", "show", "FILE", "more"], "show, export or rotate"),
    (["key", "show", "FILE", "--secret"], "key show does not take --secret"),
    (["key", "rotate", "FILE", "--tier", "2"], "key rotate does not take --tier"),
    (["key", "export", "FILE", "--next"], "key export does not take --next"),
    (["key", "export", "FILE", "--secret"], "--tier"),
    (["key", "export", "FILE", "--tier", "3", "--secret"], "--tier must be 1 or 2"),
    (["key", "export", "FILE", "--tier", "2", "--alg", "rs256"], "hs256 or eddsa"),
    (["key", "export", "FILE", "--tier", "2", "--secret", "--id", "0"], "1 to 255"),
    (["pass"], "mint FILE"),
    (["pass", "mint"], "mint FILE"),
    (["pass", "verify", "FILE"], "verify FILE TOKEN"),
    (["pass", "mint", "FILE"], "--room"),
    (["pass", "mint", "FILE", "--room", "a/b"], "--room"),
    (["pass", "mint", "FILE", "--room", "a", "--ttl", "0"], "--ttl"),
    (["pass", "mint", "FILE", "--room", "a", "--ttl", "31536001"], "--ttl"),
    (["pass", "mint", "FILE", "--room", "a", "--uid", "x" * 257], "--uid"),
    (["pass", "mint", "FILE", "--room", "a", "--url", "http://x"], "--url"),
    (["pass", "verify", "FILE", "token", "--ttl", "5"], "pass verify does not take --ttl"),
    (["pass", "verify", "FILE", "two words"], "printable"),
    (["pass", "verify", "FILE", "x" * 5000], "characters"),
    (["pass", "verify", "FILE", "-"], "stdin"),
], ids=lambda words: " ".join(words)[:40] if isinstance(words, list) else None)
def test_wrong_usage_is_one_line_and_exit_2(file, words, part):
    path = file(f"1 {A}\n")
    assert_one_line(run(*(str(path) if word == "FILE" else word for word in words)), 2, part)
    assert path.read_text() == f"1 {A}\n"


def test_an_id_that_is_not_there_is_one_line(file):
    path = file(f"1 {A}\n")
    for words in (["key", "export", path, "--tier=2", "--secret", "--id=7"], ["pass", "mint", path, "--room=a", "--id=7"]):
        assert_one_line(run(*words), 1, "there is no key 7")
