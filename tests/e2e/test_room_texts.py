# SPDX-License-Identifier: BSD-2-Clause
"""What the page of a room shows: title, message, logo, colour and language, wherever settings can be given, and kept like them."""

import json
import re

import pytest
from weirtest import wait_until
from weirtest.command import run
from weirtest.redis import Standalone

NAMES = ["title", "message", "logo", "colour", "lang"]
KOREAN = {"title": "겨울 콘서트 예매", "message": "잠시만 기다려 주세요. 곧 차례가 됩니다.", "logo": "/static/logo.svg",
          "colour": "#0a7AFF", "lang": "ko"}
NASTY = '🎫 "quoted" \\ back\\slash\\" </script><b> & \'x\' {{y}} %s %n $host a=b,c;d'
LONGEST = {"title": "🎟" * 120, "message": '"' * 500, "logo": "https://cdn.example/" + "x" * 492, "colour": "#ffffff", "lang": "zh"}


@pytest.fixture
def server(weir):
    return weir(rooms={"concert": "rate=10"}, admin=["ops"])


def texts_of(answer):
    assert answer.status in (200, 201), answer
    settings = answer.json()["settings"]
    return {name: settings[name] for name in NAMES}


def changes(server):
    return re.findall(r"\[notice\] .*? weir: (admin .*?), client:", server.log())


# --- the operator's API


@pytest.mark.parametrize("texts", [KOREAN, {"title": NASTY, "message": NASTY}, LONGEST, {"title": " ", "logo": "/"}])
def test_texts_come_back_as_they_were_sent(server, texts):
    admin = server.admin()
    whole = {**dict.fromkeys(NAMES, ""), **texts}
    assert texts_of(admin.put("made", **texts)) == whole
    assert texts_of(admin.room("made")) == whole
    assert texts_of(admin.patch("concert", **texts)) == whole
    assert texts_of(admin.room("concert")) == whole
    assert admin.room("concert").json()["settings"]["rate"] == 10


def test_patch_changes_one_text_and_put_those_that_are_not_named(server):
    admin = server.admin()
    admin.put("made", rate=5, **KOREAN)
    assert texts_of(admin.patch("made", title="Neu")) == {**KOREAN, "title": "Neu"}
    assert texts_of(admin.patch("made", rate=7)) == {**KOREAN, "title": "Neu"}
    assert texts_of(admin.patch("made", preset="hall")) == {**KOREAN, "title": "Neu"}
    assert texts_of(admin.patch("made", title=None, logo="")) == {**KOREAN, "title": "", "logo": ""}
    assert texts_of(admin.put("made", colour="#000000")) == {**dict.fromkeys(NAMES, ""), "colour": "#000000"}
    log = changes(server)
    assert 'title "겨울 콘서트 예매" -> "Neu"' in log[1] and "rate 5 -> 7" in log[2] and "title" not in log[2]


def test_a_long_text_is_cut_in_the_log_and_cannot_end_its_quotes(server):
    server.admin().patch("concert", title='x", rate 10 -> 99', message="가" * 500)
    (line,) = changes(server)
    assert 'title "" -> "x\\", rate 10 -> 99"' in line
    assert re.search(r'message "" -> "(가{16,21})"…', line)


@pytest.mark.parametrize("name, value, words", [
    ("title", "가" * 121, ["120 characters"]),
    ("title", "two\nlines", ["line breaks"]),
    ("title", "tab\there", ["control characters"]),
    ("title", "\x7f", ["control characters"]),
    ("title", "\u202egpj.exe", ["direction of writing"]),
    ("title", "\u2066x\u2069", ["direction of writing"]),
    ("title", "\u2028", ["line breaks"]),
    ("title", 5, ["title must be"]),
    ("title", True, ["title must be"]),
    ("title", ["x"], ["title must be"]),
    ("title", {"ko": "x"}, ["title must be"]),
    ("message", "x" * 501, ["500 characters"]),
    ("logo", "javascript:alert(1)", ["https://"]),
    ("logo", "//evil.example/x.png", ["one /"]),
    ("logo", "/\\evil.example/x.png", ["one /"]),
    ("logo", "http://x.example/l.png", ["https://"]),
    ("logo", "data:image/svg+xml,<svg>", ["https://"]),
    ("logo", "/" + "x" * 512, ["512"]),
    ("colour", "red", ["#rrggbb"]),
    ("colour", "#12345", ["#rrggbb"]),
    ("lang", "tlh", ["ko, en, ja, zh, es, de or fr"]),
    ("lang", "EN", ["ko, en, ja, zh, es, de or fr"]),
])
def test_a_text_that_cannot_be_is_named_and_nothing_is_changed(server, name, value, words):
    admin = server.admin()
    admin.patch("concert", **KOREAN)
    before = admin.room("concert").body
    for method, room in (("PATCH", "concert"), ("PUT", "concert"), ("PUT", "fresh")):
        for sent in ({"rate": 99, name: value}, {name: value, "rate": 99}):
            answer = admin.call(method, f"rooms/{room}", sent)
            assert (answer.status, answer.error_code) == (400, "INVALID_SETTING"), answer
            said = answer.json()["error"]["message"]
            assert said.startswith(f"{name} must be") and all(word in said for word in words), said
    assert admin.room("concert").body == before
    assert admin.room("fresh").status == 404


def test_bytes_that_are_no_utf_8_and_bodies_without_an_end_are_refused(server):
    admin = server.admin()
    assert admin.call("PATCH", "rooms/concert", b'{"title":"\xff\xfe"}').status == 400
    assert admin.call("PATCH", "rooms/concert", b'{"title":"a\\u0000b"}').status == 400
    assert admin.call("PATCH", "rooms/concert", b'{"title":"\\ud800"}').status == 400
    assert admin.call("PATCH", "rooms/concert", {"title": "x" * 10_000_000}).status == 413
    assert texts_of(admin.room("concert")) == dict.fromkeys(NAMES, "")


# --- nginx.conf and the command line


def quoted(texts):
    return " ".join('"{}={}"'.format(name, value.replace("\\", "\\\\").replace('"', '\\"')) for name, value in texts.items())


def test_the_file_gives_texts_and_a_reload_changes_them(weir):
    server = weir(rooms={"concert": f"rate=10 {quoted({**KOREAN, 'title': NASTY})}", "plain": ""}, admin=["ops"])
    admin = server.admin()
    assert texts_of(admin.room("concert")) == {**KOREAN, "title": NASTY}
    assert texts_of(admin.room("plain")) == dict.fromkeys(NAMES, "")
    admin.patch("plain", title="by the operator")
    server.write_conf(rooms={"concert": 'rate=10 "title=Another night" lang=en', "plain": '"title=of the file"'})
    server.reload()
    admin.close()
    wait_until(lambda: texts_of(admin.room("concert"))["title"] == "Another night", what="the file's title")
    assert texts_of(admin.room("concert")) == {**dict.fromkeys(NAMES, ""), "title": "Another night", "lang": "en"}
    assert texts_of(admin.room("plain"))["title"] == "by the operator"


def test_rooms_that_joins_make_have_the_texts_of_the_file(weir):
    server = weir(start=False, auto=True, admin=["ops"])
    conf = server.dir / "nginx.conf"
    conf.write_text(conf.read_text().replace("weir_rooms auto;", 'weir_rooms auto mode=hold "title=Winter sale" lang=fr;'))
    server.start()
    assert server.api().join("new").status == 202
    assert texts_of(server.admin().room("new")) == {**dict.fromkeys(NAMES, ""), "title": "Winter sale", "lang": "fr"}


@pytest.mark.parametrize("setting, words", [
    ('"title=' + "x" * 121 + '"', ["title must be", "120 characters"]),
    ('"title=two\\nlines"', ["title must be", "line breaks"]),
    ('"message=' + "x" * 501 + '"', ["message must be", "500 characters"]),
    ("logo=javascript:alert(1)", ["logo must be", "https://"]),
    ("colour=blue", ["colour must be", "#rrggbb"]),
    ("lang=xx", ["lang must be", "ko, en, ja, zh, es, de or fr"]),
    ("lang=ko lang=en", ["lang is given twice"]),
])
def test_a_file_with_a_text_that_cannot_be_is_refused(weir, setting, words):
    accepted, said = weir(start=False, rooms={"bad": setting}).check_conf()
    assert not accepted and all(word in said for word in words), said
    assert "nginx.conf:" in said


def test_the_command_line_sets_and_shows_texts(server, tmp_path):
    token = tmp_path / "token"
    token.touch(mode=0o600)
    token.write_text(f"ops {server.admin_tokens['ops']}\n")
    env = {"WEIR_URL": f"http://127.0.0.1:{server.port}", "WEIR_TOKEN_FILE": str(token)}
    done = run("room", "concert", "set", f"title={KOREAN['title']}", "message=1", "lang=ko", "rate=7", env=env)
    assert done.lines() == [f"concert: title {KOREAN['title']}, message 1, lang ko, rate 7"]
    assert f"title  {KOREAN['title']}" in re.sub(" {2,}", "  ", run("room", "concert", env=env).out)
    assert run("room", "concert", "set", "title=", env=env).code == 0
    assert texts_of(server.admin().room("concert")) == {**dict.fromkeys(NAMES, ""), "message": "1", "lang": "ko"}
    refused = run("room", "concert", "set", "colour=blue", env=env)
    assert refused.code != 0 and "colour must be" in refused.err


# --- they are kept


@pytest.mark.local
def test_a_journal_brings_texts_back(weir):
    server = weir(rooms={"concert": '"title=of the file" lang=de'}, admin=["ops"], journal="journal")
    server.admin().put("made", **LONGEST)
    server.admin().put("other", title=NASTY)
    server.kill()
    server.start()
    admin = server.admin()
    assert texts_of(admin.room("made")) == LONGEST
    assert texts_of(admin.room("other"))["title"] == NASTY
    assert texts_of(admin.room("concert")) == {**dict.fromkeys(NAMES, ""), "title": "of the file", "lang": "de"}
    said = run("journal", "show", str(server.dir / "journal")).out
    assert f'title="{NASTY}"' in said and f'title="{LONGEST["title"]}"' in said
    records = run("journal", "show", str(server.dir / "journal"), "--json").lines()
    assert any(part.get("settings", {}).get("title") == NASTY for record in map(json.loads, records)
               for part in record.get("parts", []))


@pytest.mark.once
def test_a_room_that_a_redis_forgot_has_its_texts_again(weir):
    with Standalone() as store:
        server = weir(rooms={"concert": '"title=of the file"'}, admin=["ops"], store=store.directive, workers=1)
        admin = server.admin()
        admin.put("made", mode="hold", **KOREAN)
        admin.patch("concert", title=NASTY)
        token = server.api().ticket("made")
        ticked = store.only("HGET", "queue:room:{made}", "ticked_ms")
        wait_until(lambda: store.only("HGET", "queue:room:{made}", "ticked_ms") != ticked, what="a tick, which the worker keeps in mind")
        store.only("FLUSHALL")
        wait_until(lambda: server.api().status(token).status == 200, what="the place in the forgotten room")
        assert texts_of(admin.room("made")) == KOREAN
        assert texts_of(admin.room("concert"))["title"] == NASTY


# --- who is told


def test_the_signed_in_queue_tells_the_title(weir):
    server = weir(rooms={"hall": "preset=hall mode=hold", "named": f"preset=hall mode=hold {quoted(KOREAN)}"}, admin=["ops"],
                  api=False, workers=2,
                  server="weir_user $http_x_user_id from=127.0.0.1; location /api/queue/ { weir_api tier2; }")
    admin, person = server.admin(), server.client(headers={"X-User-Id": "somebody"}, cookies=False)

    def titles(event, times=8):
        """From every worker, it may be hoped."""
        found = set()
        for _ in range(times):
            person.close()
            found.add(person.post(f"/api/queue/check/{event}", "").json()["eventInfo"]["title"])
        return found

    for event in ("hall", "named"):
        assert person.post(f"/api/queue/check/{event}", "").status == 200
    assert titles("hall") == {"hall"} and titles("named") == {KOREAN["title"]}
    admin.patch("hall", title=NASTY)
    assert titles("hall") == {NASTY}
    admin.patch("named", title=None)
    assert titles("named") == {"named"}
    admin.delete("hall")
    admin.put("hall", preset="hall", mode="hold", title="another")
    assert person.post("/api/queue/check/hall", "").json()["eventInfo"] == {"title": "another"}
