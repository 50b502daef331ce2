# SPDX-License-Identifier: BSD-2-Clause
"""What docs/migrating.md tells an operator to write: nginx takes it, and during a switch-over each request goes where the page says."""

import re
import secrets
import textwrap
from pathlib import Path

import jwt
import pytest
from weirtest import Shop
from weirtest.nginx import FOLDERS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "migrating.md").read_text()
MATRIX = (ROOT / "samples" / "gate-matrix.conf").read_text()
UUID = "73bf3da3-04bb-47e2-9455-03bf5455ab81"
LOCATION = re.compile(r"^location (.+?) \{(?:.*\}\n|\n(?:.*\n)*?\}\n)", re.M)


def blocks(heading):
    (section,) = re.findall(rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    return [textwrap.dedent(text) for text in re.findall(r"^ *```nginx\n(.*?)^ *```$", section, re.M | re.S)]


QUEUE, QUEUE_DRAIN = blocks("A queue API on Redis")
CONCERT, CONCERT_DRAIN = blocks("A concert queue on Redis")
TIERS, IDENTITY, PAGES, STAYING, TIERS_DRAIN = blocks("A lobby and a hall")


def put_into(matrix, lines):
    """Locations stand in place of those of the same name; all the rest comes before the free ones."""
    for found in LOCATION.finditer(lines):
        same = [old[0] for old in LOCATION.finditer(matrix) if old[1] == found[1].rstrip()]
        if same:
            matrix = matrix.replace(same[0], found[0])
            lines = lines.replace(found[0], "")
    head, free, rest = matrix.partition("# Free.\n")
    assert free
    return head + lines + free + rest


def first_in_server(text, lines):
    assert text.count("    listen 80;\n") == 1
    return text.replace("    listen 80;\n", "    listen 80;\n" + lines)


@pytest.fixture
def old():
    shop = Shop()
    yield shop
    shop.close()


@pytest.fixture
def pasted(weir, old):
    """Makes an nginx of a page's http lines: only paths, ports and addresses differ, and where the rooms are kept. Every upstream is `old`."""

    def make(text, matrix=MATRIX, mode=None):
        server = weir(start=False, workers=1)
        for name, line in (("weir.secret", f"1 {secrets.token_hex(32)}\n"), ("weir.admin", f"ops {secrets.token_hex(32)}\n"),
                           ("vwr.key", "v" * 40 + "\n"), ("entry.key", "e" * 40 + "\n"), ("gate-matrix.conf", matrix)):
            (server.dir / name).touch(mode=0o600)
            (server.dir / name).write_text(line)
        if server.store:
            text, count = re.subn(r"weir_zone 64m(.*;)\nweir_journal /var/lib/weir;", rf"weir_store {server.parts['store']}\1", text)
            assert count == 1
        text = text.replace("/var/lib/weir;", f"{server.dir}/journal;").replace("listen 80;", f"listen 127.0.0.1:{server.port};")
        text = re.sub(r"127\.0\.0\.1:80\d\d;", f"127.0.0.1:{old.port};", text)
        if mode is not None:
            text = re.sub(r"^(weir_room (?!site).*?);", rf"\1 mode={mode};", text, flags=re.M)
        user = next((line for line in server.conf.splitlines() if line.startswith("user ")), "")
        (server.dir / "nginx.conf").write_text(
            f"{user}\ndaemon off;\nload_module {server.module};\npid {server.dir}/nginx.pid;\nerror_log {server.dir}/error.log info;\n"
            f"events {{}}\nhttp {{\n{FOLDERS.format(dir=server.dir)}{text}}}\n")
        return server

    return make


VARIANTS = {
    "queue": (QUEUE, MATRIX), "queue, the day": (first_in_server(QUEUE, QUEUE_DRAIN), MATRIX),
    "concert": (CONCERT, MATRIX), "concert, the day": (first_in_server(CONCERT, CONCERT_DRAIN), MATRIX),
    "tiers": (TIERS, MATRIX), "tiers, asking who": (TIERS, put_into(MATRIX, IDENTITY)),
    "tiers, own pages": (TIERS, put_into(MATRIX, PAGES)),
    "tiers, the day": (STAYING + TIERS, put_into(put_into(MATRIX, PAGES), TIERS_DRAIN)),
}


@pytest.mark.parametrize("which", VARIANTS)
def test_nginx_takes_what_the_page_says_without_a_warning(pasted, which):
    accepted, said = pasted(*VARIANTS[which]).check_conf()
    assert accepted, said
    assert "warn" not in said, said


def test_every_directive_and_setting_that_the_page_names_exists():
    directives = set(re.findall(r"^## (weir_\w+)$", (ROOT / "docs/reference/directives.md").read_text(), re.M))
    settings = set(re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/reference/settings.md").read_text(), re.M))
    assert set(re.findall(r"\bweir_[a-z_]+", PAGE)) <= directives
    assert set(re.findall(r"`([a-z]+(?:_[a-z]+)*_sec|max_\w+)`", PAGE)) - {"eta_sec", "ttl_sec", "next_poll_sec"} <= settings
    for line in re.findall(r"^weir_room \S+ (.*?);", PAGE, re.M):
        assert {word.partition("=")[0] for word in line.split()} <= settings


def test_every_failure_that_the_page_names_is_on_the_list():
    listed = (ROOT / "docs/GUARANTEES.md").read_text()
    known = {int(number) for number in re.findall(r"^\| (\d+) \|", listed, re.M)} | {*range(34, 39), *range(40, 44)}
    named = [int(n) for row in re.findall(r"^\| (\d+(?:, \d+)*) \|", PAGE, re.M) for n in row.split(", ")]
    assert len(named) > 40 and set(named) <= known


# --- the day


def test_the_old_line_of_the_queue_api_empties_where_it_is(pasted, old):
    server = pasted(first_in_server(QUEUE, QUEUE_DRAIN), mode="hold").start()
    visitor = server.api()
    ticket = visitor.ticket("evt_2025_1001")
    assert visitor.status(ticket).json()["ready_for_entry"] is False
    assert not old.seen
    for method, path in (("GET", f"/api/v1/queue/status?token={UUID}"), ("DELETE", f"/api/v1/queue/leave?token={UUID}"),
                         ("POST", "/api/v1/queue/enter"), ("POST", "/api/v1/reservations")):
        assert visitor.request(method, path, "{}" if method == "POST" else None).status == 200
        assert (old.seen[-1].method, old.seen[-1].path) == (method, path)
    assert visitor.get(f"/old/api/v1/queue/status?token={UUID}").status in (403, 404)
    assert visitor.get(f"/elsewhere?token={UUID}").status == 403
    assert len(old.seen) == 4


def test_afterwards_the_gate_of_the_queue_api_stands(pasted, old):
    server = pasted(QUEUE.replace("preset=queue", "preset=queue min_wait_sec=0")).start()
    visitor, stranger = server.api(), server.client()
    assert stranger.post("/api/v1/reservations", "{}").error_code == "ADMISSION_REQUIRED"
    assert stranger.get("/").status == 200
    token = visitor.enter(visitor.ticket("evt_2025_1001")).json()["reservation_token"]
    assert stranger.post("/api/v1/reservations", "{}", headers={"Authorization": f"Bearer {token}"}).status == 200
    assert old.seen[-1].of_weir()["x-weir-room"] == "evt_2025_1001"
    assert stranger.post("/api/v1/reservations", f'{{"reservation_token":"{token}"}}').status == 200
    assert stranger.get(f"/api/v1/queue/status?token={UUID}").error_code == "TOKEN_NOT_FOUND"


def test_the_old_line_of_the_concert_queue_empties_where_it_is(pasted, old):
    server = pasted(first_in_server(CONCERT, CONCERT_DRAIN), mode="hold").start()
    fan = server.client(cookies=False)
    token = fan.post("/api/v1/queue/token", {"userId": "7"}).json()["data"]["token"]
    assert fan.get("/api/v1/queue/status", headers={"User-Token": token}).json()["data"]["position"] == 1
    assert not old.seen
    for path in ("/api/v1/queue/status", "/api/v1/concerts"):
        assert fan.get(path, headers={"User-Token": UUID}).status == 200
        assert old.seen[-1].path == path and old.seen[-1].header_all("User-Token") == [UUID]


def test_afterwards_the_gate_of_the_concert_queue_stands(pasted, old):
    fan = pasted(CONCERT).start().client(cookies=False)
    for headers in ({}, {"User-Token": UUID}):
        answer = fan.get("/api/v1/concerts", headers=headers)
        assert (answer.status, answer.error_code) == (400, "invalid_token")
    assert not old.seen
    token = fan.post("/api/v1/queue/token", {"userId": "7"}).json()["data"]["token"]
    assert fan.get("/api/v1/concerts", headers={"User-Token": token}).status == 200


def test_an_event_that_stays_is_the_old_ones_and_any_other_is_ours(pasted, old):
    server = pasted(*VARIANTS["tiers, the day"]).start()
    visitor = server.client()
    for method, path in (("POST", "/vwr-api/vwr/assign/spring-2027"), ("GET", f"/vwr-api/vwr/check/spring-2027/{UUID}?userId=a"),
                         ("POST", "/api/queue/check/easter-2027"), ("GET", "/api/v1/queue/status/easter-2027"),
                         ("GET", "/events/spring-2027/seats"), ("GET", "/vwr/summer-2027"), ("POST", "/api/v1/reservations")):
        assert visitor.request(method, path, "{}" if method == "POST" else None).status == 200
        assert (old.seen[-1].method, old.seen[-1].path) == (method, path)
    count = len(old.seen)
    assert visitor.get("/events/summer-2027").json()["redirectTo"] == "/vwr/summer-2027"
    assert "requestId" in visitor.post("/vwr-api/vwr/assign/summer-2027", {"userId": "a"}).json()
    assert visitor.post("/api/queue/check/summer-2027", "").status == 401
    for path in ("/old/events/spring-2027", "/events/summer-2027/spring-2027", "/events/spring-2027/..;/..;/api/v1/admin/x"):
        assert visitor.get(path).status in (403, 404)
    assert len(old.seen) == count


def test_whoever_verified_the_old_tokens_takes_the_passes_of_both_tiers(pasted, old):
    """And a lobby's pass opens no hall."""
    server = pasted(TIERS, MATRIX.replace("from=10.0.0.0/8", "from=127.0.0.1")).start()
    visitor = server.client()
    ticket = visitor.post("/vwr-api/vwr/assign/summer-2027", {"userId": "anon-1"}).json()["requestId"]
    lobby = visitor.get(f"/vwr-api/vwr/check/summer-2027/{ticket}?userId=anon-1").json()["token"]
    claims = jwt.decode(lobby, b"v" * 40, ["HS256"])
    assert (claims["sub"], claims["tier"], claims["exp"] - claims["iat"]) == ("summer-2027", 1, 600)
    signed_in = {"X-User-Id": "7", "Cookie": f"urr-vwr-token={lobby}"}
    hall = server.client().post("/api/queue/check/summer-2027", "", headers=signed_in).json()["entryToken"]
    claims = jwt.decode(hall, b"e" * 40, ["HS256"])
    assert (claims["sub"], claims["uid"], claims["exp"] - claims["iat"]) == ("summer-2027", "7", 600)
    assert server.client().get("/events/summer-2027", headers={"Cookie": f"urr-vwr-token={lobby}"}).status == 200
    assert server.client().get("/api/v1/seats", headers={"x-queue-entry-token": lobby, "X-User-Id": "7"}).status == 403
    assert server.client().get("/api/v1/seats", headers={"x-queue-entry-token": hall, "X-User-Id": "7"}).status == 200
    assert server.client().get("/api/v1/seats", headers={"x-queue-entry-token": hall, "X-User-Id": "8"}).status == 403


def test_who_signed_in_may_be_asked_for(pasted, old):
    server = pasted(TIERS, put_into(MATRIX, IDENTITY)).start()
    old.answer_headers["/api/auth/who"] = [("X-User-Id", "7")]
    visitor = server.client()
    visitor.get("/events/summer-2027", headers={"Accept": "text/html"})
    hall = visitor.post("/api/queue/check/summer-2027", "").json()["entryToken"]
    assert server.client().get("/api/v1/seats", headers={"x-queue-entry-token": hall}).status == 200
    old.answer_headers.clear()
    assert visitor.post("/api/queue/check/summer-2027", "", headers={"X-User-Id": "7"}).status == 401
    assert server.client().get("/api/v1/seats", headers={"x-queue-entry-token": hall}).status == 403
