# SPDX-License-Identifier: BSD-2-Clause
"""nginx -t refuses what cannot work, with the file, the line and what is allowed; a reload never forgets anybody."""

import re

import pytest
from weirtest import wait_until

ROOMS = {"room": "mode=hold"}


def refusal(server):
    """What nginx -t said, which must be a refusal in one [emerg] line."""
    accepted, said = server.check_conf()
    lines = [line for line in said.splitlines() if "[emerg]" in line]
    assert not accepted and len(lines) == 1, said
    return lines[0]


def line_of(server, text):
    """Where the configuration says this: what a refusal must name."""
    lines = (server.dir / "nginx.conf").read_text().splitlines()
    return f"{server.dir}/nginx.conf:{next(n for n, line in enumerate(lines, 1) if text in line)}"


def test_a_whole_configuration_is_accepted_and_nothing_is_left_behind(weir):
    server = weir(start=False, rooms=ROOMS, gate="room", http="weir_cors https://a.example; weir_idempotency required;")
    before = set(server.dir.iterdir())
    accepted, said = server.check_conf()
    assert accepted, said
    assert {path.name for path in set(server.dir.iterdir()) - before} <= {"error.log", "access.log", "body", "proxy",
                                                                           "fastcgi", "uwsgi", "scgi", "nginx.pid"}


# --- rooms


@pytest.mark.parametrize("settings, words", [
    ("rate=0", ["rate", "0.001", "100000"]),
    ("rate=100001", ["rate", "0.001", "100000"]),
    ("rate=fast", ["rate"]),
    ("rate=1.0001", ["rate"]),
    ("max_active=-1", ["max_active", "0", "100000000"]),
    ("seen_ttl_sec=9", ["seen_ttl_sec", "10", "86400"]),
    ("tier=3", ["tier", "1", "2"]),
    ("mode=shut", ["mode", "queue", "hold", "open", "closed"]),
    ("session_renew=maybe", ["session_renew", "true", "false"]),
    ("colour=blue=green", ["colour"]),
    ("speed=3", ["speed"]),
    ("rate", ["rate", "name=value"]),
    ("=3", []),
    ("rate=", ["rate"]),
    ("rate=1 rate=2", ["rate"]),
    ("mode=hold rate=0", ["rate", "0.001", "100000"]),
])
def test_a_setting_that_cannot_be_is_refused_with_its_range(weir, settings, words):
    for directive in (f"weir_room bad {settings};", f"weir_rooms auto {settings};"):
        server = weir(start=False, rooms=ROOMS)
        # The harness writes a weir_rooms line of its own.
        server.write_conf(http=directive)
        text = (server.dir / "nginx.conf").read_text()
        if "weir_rooms auto" in directive:
            (server.dir / "nginx.conf").write_text(text.replace("weir_rooms listed;", ""))
        said = refusal(server)
        assert said.endswith("in " + line_of(server, directive))
        for word in words:
            assert word in said, said


@pytest.mark.parametrize("name", ["x" * 65, "a/b", "a%20b", "ro\u00f6m", "$room"])
def test_a_room_name_that_cannot_exist_is_refused(weir, name):
    said = refusal(weir(start=False, http=f"weir_room {name};"))
    assert "1 to 64 characters of A-Z a-z 0-9 _ . : -" in said


def test_a_room_is_configured_once(weir):
    server = weir(start=False, rooms=ROOMS, http="weir_room room rate=1;")
    said = refusal(server)
    assert '"room" is configured twice' in said and line_of(server, "weir_room room rate=1;") in said


def test_more_rooms_than_there_may_be_are_refused(weir):
    said = refusal(weir(start=False, rooms={f"r{n}": "" for n in range(3)}, rooms_max=2))
    assert "3 rooms" in said and "rooms=3" in said


# --- the zone


@pytest.mark.local
@pytest.mark.parametrize("zone, word", [
    ("64k", "at least"), ("big", "size"), ("8m rooms=0", "1 to 100000"), ("8m rooms=100001", "1 to 100000"),
    ("8m rooms=x", "1 to 100000"), ("8m room=2", "rooms=N"), ("8m rooms=1000", "at least"),
])
def test_a_zone_that_cannot_work_is_refused(weir, zone, word):
    server = weir(start=False, rooms=ROOMS, zone=zone)
    said = refusal(server)
    assert word in said and line_of(server, "weir_zone") in said


@pytest.mark.local
def test_the_least_size_that_is_named_is_enough(weir):
    server = weir(start=False, rooms=ROOMS, zone="64k rooms=7")
    server.expect_in_log("too small")
    least = re.search(r"at least (\d+k)", refusal(server))[1]
    server.write_conf(zone=f"{least} rooms=7")
    assert server.start().api().join("room").status == 202


@pytest.mark.local
def test_there_is_one_zone(weir):
    assert "duplicate" in refusal(weir(start=False, rooms=ROOMS, http="weir_zone 8m;"))


# --- the secret


def test_a_secret_that_others_can_read_is_refused(weir):
    for mode in (0o640, 0o604, 0o660, 0o620, 0o601):
        server = weir(start=False, rooms=ROOMS)
        server.secret_file.chmod(mode)
        said = refusal(server)
        assert str(server.secret_file) in said and "chmod 600" in said and line_of(server, "weir_secret_file") in said
    server.secret_file.chmod(0o400)
    assert server.check_conf()[0]


@pytest.mark.parametrize("text, word", [
    ("1 short\n", "32 characters"), ("", "no key"), ("# nothing\n", "no key"), ("0 " + "x" * 40, "1 to 255"),
    ("x" * 40, "id"), ("1 " + "x" * 257, "256"), ("1 " + "y" * 20000, "16384"),
])
def test_a_secret_that_is_none_is_refused_and_not_quoted(weir, text, word):
    server = weir(start=False, rooms=ROOMS)
    server.write_secret(text)
    said = refusal(server)
    assert word in said and "short" not in said.replace("too short", "") and "xxxx" not in said and "yyyy" not in said


def test_a_secret_that_is_not_there_is_refused(weir):
    server = weir(start=False, rooms=ROOMS)
    server.secret_file.unlink()
    assert str(server.secret_file) in refusal(server)
    server.secret_file.mkdir()
    assert "not a regular file" in refusal(server)


def test_the_secret_file_is_found_beside_the_configuration(weir):
    server = weir(start=False, rooms=ROOMS)
    conf = server.dir / "nginx.conf"
    conf.write_text(conf.read_text().replace(f"weir_secret_file {server.secret_file};", "weir_secret_file secret;"))
    assert server.check_conf()[0]


# --- the rest


@pytest.mark.parametrize("directive, words", [
    ("weir_rooms listed auto;", ["listed", "auto"]),
    ("weir_rooms some;", ["listed", "auto"]),
    ("weir_user user;", ["variable"]),
    ("weir_user $nonsense_variable;", ["nonsense_variable"]),
    ("weir_user $remote_user for=10.0.0.0/8;", ["from=CIDR"]),
    ("weir_user $remote_user from=here;", ["here", "10.0.0.0/8"]),
    ("weir_cors *;", ["*", "scheme://host"]),
    ("weir_cors https://shop.example/;", ["scheme://host"]),
    ("weir_cors shop.example;", ["scheme://host"]),
    ("weir_cors https://Shop.example;", ["scheme://host"]),
    ("weir_idempotency maybe;", ["optional", "required"]),
    ("weir_gate;", ["weir_gate"]),
    ("weir_gate on;", ["room=NAME"]),
    ("weir_gate room=;", ["room=NAME"]),
    ("weir_gate room=a/b;", ["1 to 64"]),
    ("weir_gate room=room page=queue;", ["page=PREFIX"]),
    ("weir_gate room=room page=//evil/;", ["page=PREFIX"]),
    ("weir_gate room=room page=/a\"b/;", ["page=PREFIX"]),
    ("weir_gate page=/q/;", ["room=NAME"]),
    ("weir_gate room=room tier=3;", ["tier=1 or tier=2"]),
    ("weir_gate room=room tier=1 tier=2;", ["one tier"]),
    ("weir_gate room=room body=;", ["body=FIELD"]),
    ("weir_gate room=room room=*;", ["no other room"]),
    ("weir_gate room=room room=a room=b room=c room=d;", ["4 rooms"]),
    ("weir_gate room=room turn=2;", ["knows tier=N"]),
    ("weir_gate room=$1;", ["by its name"]),
    ("weir_gate room=room room=lobby:${2};", ["by its name"]),
    ("weir_bypass on;", ["variables"]),
    ("weir_bypass $a 1;", ["variables"]),
    ("weir_when_down maybe;", ["closed, signed or open"]),
])
def test_a_directive_that_makes_no_sense_is_refused(weir, directive, words):
    server = weir(start=False, rooms=ROOMS, http=directive)
    conf = server.dir / "nginx.conf"
    if "weir_rooms" in directive:
        conf.write_text(conf.read_text().replace("weir_rooms listed;", ""))
    said = refusal(server)
    for word in words:
        assert word in said, said


def test_a_gate_names_a_room_that_gives_passes_of_its_tier(weir):
    gate = "location /x/ {{ weir_gate tier=2 room={}; }}".format
    server = weir(start=False, rooms={"low": "tier=1", "high": "tier=2"}, server=gate("low"))
    said = refusal(server)
    assert '"low"' in said and "tier=1" in said and line_of(server, "weir_gate tier=2") in said
    server.write_conf(server=gate("high"))
    assert server.check_conf()[0]


@pytest.mark.parametrize("inside, warns", [
    ("return 200 secret;", True), ("if ($arg_x) { return 200 secret; }", True), ("set $a b; rewrite ^/y /z; return 202 secret;", True),
    ("return 204;", False), ("return 301 /y;", False), ("return 404 nothing;", False), ("if ($arg_x) { return 403; }", False),
    ("weir_gate off; return 200 public;", False), ("weir_bypass $arg_x; rewrite ^ /y last;", False), ("set $a b;", False),
])
def test_a_page_returned_before_the_gate_is_warned_of(weir, inside, warns):
    gate = "" if "weir_gate" in inside else "weir_gate room=room;"
    server = weir(start=False, rooms=ROOMS, server=f"location /x/ {{ {gate} {inside} }}")
    accepted, said = server.check_conf()
    assert accepted
    assert ("answers before the gate" in said) == warns, said
    assert not warns or '"/x/"' in said and said.count("answers before") == 1


def test_a_gate_names_a_room_that_exists(weir):
    server = weir(start=False, rooms=ROOMS, gate="rom")
    said = refusal(server)
    assert '"rom"' in said and line_of(server, "weir_gate") in said
    server.write_conf(auto=True)
    assert server.check_conf()[0]


@pytest.mark.parametrize("location, word", [
    ("location /q { weir_api queue; }", 'ends in "/"'),
    ("location /page { weir_page; }", 'ends in "/"'),
    ("location /page/ { weir_page concert; }", "queue, lobby or tier2"),
    ("location /q/ { weir_api queue; weir_page; }", "already"),
    ("location /q/ { weir_api cue; }", "admin, health or jwks"),
    ("weir_api queue;", "not allowed here"),
])
def test_a_location_that_cannot_serve_is_refused(weir, location, word):
    assert word in refusal(weir(start=False, rooms=ROOMS, server=location))


@pytest.mark.parametrize("missing", ["weir_zone", "weir_secret_file"])
def test_what_is_needed_and_missing_is_named(weir, missing):
    server = weir(start=False, rooms=ROOMS)
    conf = server.dir / "nginx.conf"
    conf.write_text(re.sub(rf"({missing.replace('weir_zone', 'weir_zone|weir_store')}) [^;]*;", "", conf.read_text()))
    said = refusal(server)
    assert f'needs a "{missing}"' in said and line_of(server, "weir_room room") in said


def test_an_nginx_that_only_loads_the_module_needs_nothing(weir):
    server = weir(start=False, api=False)
    conf = server.dir / "nginx.conf"
    conf.write_text(re.sub(r"weir_\w+ [^;]*;", "", conf.read_text()))
    assert server.check_conf()[0]
    assert server.start().client().get("/nothing").status == 404


# --- reload


def test_a_reload_keeps_everybody_and_takes_new_settings(weir):
    server = weir(rooms=ROOMS)
    person = server.api()
    token = person.ticket("room")
    assert person.enter(token).error_code == "NOT_READY"
    server.write_conf(rooms={"room": "rate=1000 burst=100", "new": "mode=hold"})
    server.reload()
    wait_until(lambda: person.status(token).json()["ready_for_entry"], 5, "the call")
    assert person.enter(token).status == 200
    assert server.api().join("new").status == 202


@pytest.mark.local
@pytest.mark.parametrize("zone, word", [("16m", "cannot change its size"), ("32m rooms=65", "cannot change rooms=64")])
def test_a_reload_with_another_zone_is_refused_and_the_old_one_serves_on(weir, zone, word):
    server = weir(rooms=ROOMS)
    server.expect_in_log(word)
    token = server.api().ticket("room")
    workers = server.worker_pids()
    server.write_conf(zone=zone)
    server.send(1)
    wait_until(lambda: word in server.log(), 10, "the refusal")
    assert "restart nginx" in server.log()
    assert server.worker_pids() == workers
    assert server.api().status(token).status == 200
    # And what is right again is taken again.
    server.write_conf(zone="32m")
    server.reload()
    assert server.api().status(token).status == 200


def test_a_new_key_is_taken_by_a_reload_and_the_old_ones_tokens_live(weir):
    server = weir(rooms={"room": "rate=1000 burst=100"})
    person = server.api()
    token = person.ticket("room")
    old = server.secret_file.read_text()
    server.write_secret("2 " + "n" * 64 + "\n" + old)
    server.reload()
    assert person.status(token).status == 200
    assert person.ticket("room") == token, "one identity, one ticket, the same bytes"
    assert person.enter(token).status == 200
    newcomer = server.api()
    assert newcomer.ticket("room")[2:4] != token[2:4]
    server.write_secret("2 " + "n" * 64 + "\n" + old.replace("1 ", "holder ", 1))
    server.reload()
    assert person.status(token).error_code == "TOKEN_NOT_FOUND"


def test_old_workers_leave_after_a_reload_and_after_quit(weir):
    server = weir(rooms=ROOMS)
    old = set(server.worker_pids())
    server.reload()
    wait_until(lambda: not old & set(server._children()), 5, "the old workers gone")
    server.send(3)
    assert server.process.wait(10) == 0
