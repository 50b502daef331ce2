# SPDX-License-Identifier: BSD-2-Clause
"""The `weir` command, as an operator types it: the binary that was built beside the module under test.

A server of this file's own answers what it is told to: it can be wrong, late and hostile, which the real one is not. What the
command does to rooms is asked of the real one.
"""

import fcntl
import json
import os
import pty
import re
import secrets
import signal
import socket
import struct
import subprocess
import termios
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from weirtest import free_port, wait_until
from weirtest.command import TIMEOUT_SEC, Done, assert_one_line, binary, environment, run

ROOT = Path(__file__).resolve().parent.parent.parent
SEED = ["--capacity", "1000", "--requests", "6", "--failures", "15%", "--visit", "300", "--target", "80%"]


class Operator:
    """Someone with a token file at a server."""

    def __init__(self, folder, url, token=None):
        self.token = token or secrets.token_hex(24)
        self.file = Path(folder) / "admin-token"
        self.file.touch(mode=0o600)
        self.file.write_text(f"# operators\n\n  # night shift\nalice {self.token}\nbob {secrets.token_hex(24)}\n")
        self.env = {"WEIR_URL": url, "WEIR_TOKEN_FILE": str(self.file)}

    def __call__(self, *words, **kwargs):
        done = run(*words, env={**self.env, **kwargs.pop("env", {})}, **kwargs)
        assert self.token not in done.out + done.err
        return done


# --- plan


def test_plan_gives_the_figures_of_the_paper():
    plan = run("plan", *SEED, "--position", "10000", "--arrivals", "1000000", "--json").json()
    assert plan["held"] == 43478
    assert plan["period_sec"] == 375
    assert plan["per_period"] == 54348
    assert plan["batch"] == 1449
    assert plan["rate"] == 144.9
    assert plan["wait_sec"] == 70 and plan["last_called_sec"] == 6910
    assert plan["settings"] == {"max_active": 34782, "batch": 1449, "interval_sec": 10}


def test_plan_explains_each_figure_in_a_line():
    rows = run("plan", *SEED).cells()
    assert rows["held at once"][0] == "43,478" and "1,000 × 300 / (6 × 1.15)" in rows["held at once"][-1]
    assert rows["period"][0] == "375" and "300 / 0.8" in rows["period"][-1]
    assert rows["per period"][0] == "54,348" and "1,000 × 375 / (6 × 1.15)" in rows["per period"][-1]
    assert rows["batch"][0] == "1,449"
    assert rows["inside"][0] == "43,470" and "1,449 × 300 / 10" in rows["inside"][-1]


def test_a_cautious_plan_rounds_as_the_paper_does_and_warns_of_what_the_paper_overlooked():
    done = run("plan", *SEED, "--cautious")
    for figure in ("43,478", "40,000", "32,000", "375", "360", "54,348", "50,000", "8,334", "1,389", "1,400"):
        assert re.search(rf"(?m)^.*\b{figure} ", done.out), figure
    warning = next(line for line in done.lines() if line.startswith("Warning:"))
    assert all(figure in warning for figure in ("1,400 every 10 s", "42,000", "32,000", "1,066 every 10 s")), warning


def test_a_plan_that_keeps_its_target_is_not_warned_of():
    assert "Warning" in run("plan", *SEED).out
    assert "Warning" not in run("plan", *SEED, "--target", "100%").out


@pytest.mark.parametrize("how", [[], ["--cautious"], ["--every", "60"]])
def test_the_settings_to_paste_are_taken_by_the_server(weir, how):
    done = run("plan", *SEED, "--room", "concert", *how)
    line = next(line.strip() for line in done.lines() if line.strip().startswith("weir_room concert "))
    settings = json.loads(done.lines()[-1])
    assert line == "weir_room concert " + " ".join(f"{name}={value}" for name, value in settings.items()) + ";"
    server = weir(start=False, http=line)
    is_accepted, said = server.check_conf()
    assert is_accepted, said


# --- usage


@pytest.mark.parametrize("words, part", [
    ([], "which command"),
    (["plane"], "plane"),
    (["--frobnicate"], "--frobnicate"),
    (["-x"], "-x"),
    (["rooms", "--capacity", "5"], "--capacity"),
    (["rooms", "--once"], "--once"),
    (["rooms", "concert"], "rooms"),
    (["rooms", "--url"], "--url"),
    (["rooms", "--json=yes"], "--json"),
    (["rooms", "--url", "ftp://host"], "ftp://host"),
    (["rooms", "--url", "http://"], "http://"),
    (["rooms", "--url", "http://a/?b"], "http://a/?b"),
    (["rooms", "--url", "http://alice:secret@host/"], "address"),
    (["rooms"], "WEIR_TOKEN_FILE"),
    (["room"], "id"),
    (["room", "a/b"], "a/b"),
    (["room", "x" * 65], "64"),
    (["room", "concert", "burn"], "burn"),
    (["room", "concert", "set"], "NAME=VALUE"),
    (["room", "concert", "set", "rate"], "rate"),
    (["room", "concert", "set", "=5"], "=5"),
    (["room", "concert", "set", "rate=1", "rate=2"], "rate=2"),
    (["room", "concert", "set", b"title=\xff\xfe"], "title="),
    (["room", "concert", "hold", "on"], "hold"),
    (["room", "concert", "advance"], "whole number"),
    (["room", "concert", "advance", "0"], "whole number"),
    (["room", "concert", "advance", "-5"], "-5"),
    (["room", "concert", "advance", "5", "6"], "whole number"),
    (["ticket"], "ticket show"),
    (["ticket", "show"], "ticket show"),
    (["ticket", "burn", "abc"], "ticket show"),
    (["ticket", "show", "a b"], "spaces"),
    (["ticket", "show", "x" * 5000], "characters"),
    (["ticket", "show", "-"], "stdin"),
    (["top", "now"], "top"),
    (["help", "me"], "help"),
    (["plan"], "--capacity"),
    (["plan", "--capacity", "1000", "--requests", "6"], "--visit"),
    (["plan", *SEED, "--capacity", "0"], "--capacity"),
    (["plan", *SEED, "--capacity", "1e3"], "1e3"),
    (["plan", *SEED, "--failures", "15"], "15%"),
    (["plan", *SEED, "--failures", "101%"], "--failures"),
    (["plan", *SEED, "--target", "0%"], "--target"),
    (["plan", *SEED, "--visit", "-300"], "--visit"),
    (["plan", *SEED, "--every", "0"], "--every"),
    (["plan", *SEED, "--position", "0"], "--position"),
    (["plan", *SEED, "--room", "a b"], "--room"),
    (["plan", *SEED, "--capacity", "0.001"], "single visit"),
    (["plan", *SEED, "--capacity", "1", "--every", "1"], "--every"),
    (["plan", "now"], "now"),
    (["rooms"] * 200, "words"),
])
def test_wrong_usage_is_one_line_and_exit_2(words, part):
    words = [word if isinstance(word, bytes) else word.encode() for word in words]
    done = subprocess.run([binary().encode(), *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_SEC,
                          env=environment())
    assert_one_line(Done(done.returncode, done.stdout.decode(), done.stderr.decode()), 2, part)


def test_help_names_every_command_and_each_command_explains_itself():
    listed = run("help").lines()
    commands = [match[1] for line in listed if (match := re.match(r"  weir (\w+)", line))]
    assert commands == ["plan", "rooms", "room", "ticket", "top", "journal", "key", "pass", "redis", "help"]
    assert run("--help").out == run("help").out
    for command in commands:
        told = run(command, "--help")
        assert f"weir {command}" in "".join(told.lines())
        assert run("help", command).out == told.out


def test_the_version_is_the_one_of_the_sources():
    version = re.search(r'WEIR_VERSION "([^"]+)"', (ROOT / "src/base/version.h").read_text())[1]
    assert run("--version").lines() == [f"weir {version}"]


def test_an_output_that_cannot_be_written_is_a_failure():
    with open("/dev/full", "wb") as full:
        done = subprocess.run([binary(), "plan", *SEED], stdout=full, stderr=subprocess.PIPE, timeout=TIMEOUT_SEC)
    assert done.returncode == 1 and done.stderr == b"weir: cannot write the output\n"


# --- a server that is not to be trusted


class Stranger:
    """Answers every request with what it was told to, and remembers what it was asked."""

    def __init__(self):
        self.answers = {}  # {path or None for all others: (status, body) or a function of the handler}
        self.asked = []    # [(method, path, body, headers)]
        stranger = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                stranger.asked.append((self.command, self.path, body, dict(self.headers)))
                told = stranger.answers.get(self.path, stranger.answers.get(None))
                if callable(told):
                    return told(self)
                self.reply(*told)

            do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = answer

            def reply(self, status, body, headers=()):
                body = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.over = threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # a client that hangs up is what some tests are about
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})
        self.thread.start()

    def stop(self):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def stranger():
    one = Stranger()
    yield one
    one.stop()


@pytest.fixture
def operator(stranger, tmp_path):
    return Operator(tmp_path, stranger.url)


def figures(name, **changed):
    return {"id": name, "mode": "queue", "waiting": 0, "away": 0, "called": 0, "inside": 0, "max_active": 1000, "rate": 50,
            "joined_per_sec": 0.0, "called_per_sec": 0.0, "eta_sec": 0, **changed}


@pytest.mark.parametrize("told, part", [
    ((200, b""), "JSON"),
    ((200, b"<html>hello</html>"), "JSON"),
    ((200, b'{"rooms":['), "JSON"),
    ((200, b'{"rooms":[],"rooms":[]}'), "JSON"),
    ((200, b"[" * 100000), "JSON"),
    ((200, b"[]"), "JSON"),
    ((200, b'{"rooms":"\xff"}'), "JSON"),
    ((200, {"rooms": 5}), "does not understand"),
    ((200, {}), "does not understand"),
    ((204, b""), "JSON"),
    ((502, b"<html>Bad Gateway</html>"), "502"),
    ((500, {"error": "text"}), "500"),
    ((500, {"error": {"code": 5, "message": None}}), "500"),
    ((503, {"error": {"code": "ENGINE_UNAVAILABLE", "message": "Not now"}}), "Not now (ENGINE_UNAVAILABLE)"),
    ((400, {"error": {"code": "X" * 5000, "message": "y" * 5000}}), "yyy"),
    ((200, b" " * (9 << 20)), "8 MiB"),
    ((200, b'{"rooms":[' + b"0," * (5 << 20) + b"0]}"), "8 MiB"),
])
def test_an_answer_that_makes_no_sense_is_one_line_and_exit_1(stranger, operator, told, part):
    stranger.answers[None] = told
    for command in ("rooms", "top"):
        assert_one_line(operator(command), 1, part)


def test_an_endless_answer_is_given_up(stranger, operator):
    def endless(handler):
        handler.send_response(200)
        handler.end_headers()
        while not stranger.over.is_set():
            handler.wfile.write(b" " * 65536)

    stranger.answers[None] = endless
    assert_one_line(operator("rooms"), 1, "8 MiB")


def test_a_server_that_speaks_no_http_or_hangs_up_is_one_line_and_exit_1(stranger, operator):
    stranger.answers[None] = lambda handler: handler.wfile.write(b"SSH-2.0-OpenSSH\r\n")
    assert_one_line(operator("rooms"), 1, stranger.url)
    stranger.answers[None] = lambda handler: handler.connection.shutdown(socket.SHUT_RDWR)
    assert_one_line(operator("rooms"), 1, stranger.url)


def test_a_redirect_does_not_carry_the_token_away(stranger, operator):
    stranger.answers[None] = lambda handler: handler.reply(302, b"", [("Location", stranger.url + "/elsewhere")])
    assert_one_line(operator("rooms"), 1, "302")
    assert [path for _, path, _, _ in stranger.asked] == ["/weir/api/rooms"]


def test_a_proxy_of_the_environment_does_not_see_the_token(stranger, operator):
    stranger.answers[None] = (200, {"rooms": []})
    proxy = f"http://127.0.0.1:{free_port()}"
    assert operator("rooms", env={"http_proxy": proxy, "all_proxy": proxy}).lines() == ["There are no rooms."]


def test_a_server_that_does_not_answer_in_time_is_given_up_after_ten_seconds(stranger, operator):
    def drip(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", "100000")
        handler.end_headers()
        while not stranger.over.wait(0.2):
            handler.wfile.write(b" ")

    stranger.answers["/weir/api/rooms"] = drip
    stranger.answers["/weir/api/rooms/silent"] = lambda handler: stranger.over.wait()
    results = {}

    def one(*words):
        began = time.monotonic()
        results[words] = (operator(*words), time.monotonic() - began)

    threads = [threading.Thread(target=one, args=words) for words in (("rooms",), ("room", "silent"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for done, took in results.values():
        assert_one_line(done, 1, "within 10 s")
        assert 9.5 < took < 20
    assert len(results) == 2


def test_a_server_that_is_not_there_is_one_clear_sentence(tmp_path):
    url = f"http://127.0.0.1:{free_port()}"
    operator = Operator(tmp_path, url)
    for words in (["rooms"], ["room", "concert"], ["room", "concert", "hold"], ["ticket", "show", "abc"], ["top"]):
        assert_one_line(operator(*words), 1, f"cannot reach {url}")


def test_what_a_server_says_never_commands_the_terminal(stranger, operator):
    evil = "\x1b[2J\x1b]0;owned\x07\r\u009b31m\u202eback"
    stranger.answers["/weir/api/rooms"] = (200, {"rooms": [figures(evil, mode=evil)]})
    stranger.answers["/weir/api/rooms/x"] = (200, {"id": "x", "source": evil, "settings": {evil: evil, "title": evil}})
    stranger.answers["/weir/api/rooms/x/figures"] = (200, figures("x", waiting=evil))
    stranger.answers["/weir/api/ticket"] = (200, {"room": evil, "state": evil})
    stranger.answers["/weir/api/rooms/x/clear"] = (400, {"error": {"code": evil, "message": evil + "\nweir: all is well"}})
    lines = [["rooms"], ["room", "x"], ["room", "x", "set", "title=a"], ["ticket", "show", "abc"], ["top"], ["room", "x", "clear"]]
    for words in lines + [words + ["--json"] for words in lines]:
        done = operator(*words)
        said = done.out + done.err
        assert "owned" in said or "clear" in words, words
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", said), (words, said)
        assert done.err.count("\n") == (1 if "clear" in words else 0)


# --- the token


def test_the_token_is_sent_and_shown_nowhere_else(stranger, operator):
    asked = threading.Event()

    def hold(handler):
        asked.set()
        stranger.over.wait(TIMEOUT_SEC)
        handler.reply(200, {"rooms": []})

    stranger.answers[None] = hold
    with subprocess.Popen([binary(), "rooms"], env=environment(**operator.env), stdout=subprocess.PIPE) as process:
        try:
            assert asked.wait(TIMEOUT_SEC)
            seen = [Path(f"/proc/{process.pid}/{name}").read_bytes() for name in ("cmdline", "environ")]
        finally:
            stranger.over.set()
        assert b"There are no rooms." in process.communicate(timeout=TIMEOUT_SEC)[0]
    assert stranger.asked[0][3]["Authorization"] == f"Bearer {operator.token}"
    assert not any(operator.token.encode() in place for place in seen)


def test_options_win_over_the_environment(stranger, operator, tmp_path):
    stranger.answers[None] = (200, {"rooms": []})
    nowhere = {"WEIR_URL": f"http://127.0.0.1:{free_port()}", "WEIR_TOKEN_FILE": str(tmp_path / "none")}
    done = run("--url", stranger.url + "/", "rooms", f"--token-file={operator.file}", env=nowhere)
    assert done.lines() == ["There are no rooms."]
    assert stranger.asked[0][1] == "/weir/api/rooms"


@pytest.mark.parametrize("text", ["", "# nothing\n", "alice\n", "alice two words\n", "\n\nalice \x01\x02\n" + "bob " + "b" * 40,
                                  "alice " + "x" * 2000 + "\n"])
def test_a_token_file_that_is_none_is_one_line_without_what_it_holds(stranger, operator, text):
    operator.file.write_text(text)
    done = operator("rooms")
    assert_one_line(done, 1, str(operator.file))
    assert "xxx" not in done.err and "bbb" not in done.err and not stranger.asked


def test_a_token_file_that_cannot_be_read_is_one_line(stranger, operator, tmp_path):
    assert_one_line(operator("rooms", "--token-file", tmp_path / "none"), 1, "No such file")
    assert_one_line(operator("rooms", "--token-file", tmp_path), 1, str(tmp_path))
    assert not stranger.asked


# --- what is shown


def test_tables_are_aligned_whatever_the_names_and_numbers(stranger, operator):
    rooms = [figures("a", waiting=1234567, eta_sec=375, rate=0.5), figures("x" * 64, max_active=0, mode="closed"),
             figures("Ω-콘서트", waiting=None, called_per_sec=1234.56), {"id": "bare"}]
    stranger.answers[None] = (200, {"rooms": rooms})
    lines = operator("rooms").lines()
    assert len(lines) == 5
    assert "1,234,567" in lines[1] and "6 min 15 s" in lines[1] and "0.5" in lines[1]
    assert "no limit" in lines[2] and "1,234.56" in lines[3]
    assert lines[4].split() == ["bare"] + ["-"] * 10
    # Each number ends where its title ends; a Korean letter takes two columns.
    ends = [[match.end() for match in re.finditer(r"\S+( \S+)*", widened(line))] for line in lines]
    assert all(len(row) == 11 for row in ends)
    assert all(row[2:] == ends[0][2:] for row in ends), lines
    assert all(line == line.rstrip() for line in lines)


def widened(line):
    return re.sub("[가-힣]", "WW", line)


def test_a_pipe_gets_no_escapes_and_a_terminal_none_that_no_color_forbids(stranger, operator, terminal):
    stranger.answers[None] = (200, {"rooms": [figures("concert")]})
    for words in (["rooms"], ["plan", *SEED], ["top"]):
        assert "\x1b" not in operator(*words).out
        quiet = terminal(*words, *(["--once"] if words == ["top"] else []), env={"NO_COLOR": "1"})
        assert quiet.wait_for_end() == 0
        assert "\x1b" not in quiet.text(), words
    coloured = terminal("rooms")
    assert coloured.wait_for_end() == 0
    assert "\x1b[1m" in coloured.text()


def test_settings_are_sent_as_what_they_are(stranger, operator):
    stranger.answers[None] = (200, {"id": "concert", "source": "api", "settings": {"rate": 0.1, "max_active": 5000}})
    done = operator("room", "concert", "set", "rate=0.1", "max_active=5000", "session_renew=false", "burst=", "mode=hold",
                    "not_known=1.5", "nor_this=a=b")
    method, path, body, _ = stranger.asked[0]
    assert (method, path) == ("PATCH", "/weir/api/rooms/concert")
    assert json.loads(body) == {"rate": 0.1, "max_active": 5000, "session_renew": False, "burst": None, "mode": "hold",
                                "not_known": 1.5, "nor_this": "a=b"}
    assert '"rate":0.1,' in body, "more decimals than a setting may have"
    assert done.lines()[0].startswith("concert: rate 0.1, max_active 5,000, ")


def test_a_ticket_can_come_on_stdin(stranger, operator):
    stranger.answers[None] = (200, {"room": "concert", "state": "WAITING", "issued_at": 1700000000, "eta_sec": 75})
    rows = operator("ticket", "show", "-", stdin="abc.def\n").cells()
    assert json.loads(stranger.asked[0][2]) == {"token": "abc.def"}
    assert rows["issued"] == ["2023-11-14 22:13:20 UTC"] and rows["wait ahead"] == ["1 min 15 s"]


# --- the real server


@pytest.fixture
def real(weir):
    return weir(rooms={"concert": "rate=1000 burst=100", "held": "mode=hold max_active=5"}, gate="concert", admin=["ops"])


@pytest.fixture
def ops(real, tmp_path):
    """Whoever has the very file that the server reads."""
    one = Operator(tmp_path, real.url, real.admin_tokens["ops"])
    one.env["WEIR_TOKEN_FILE"] = str(real.admin_token_file)
    return one


def test_rooms_and_top_show_what_the_server_knows(real, ops):
    for _ in range(3):
        real.api().ticket("held")
    lines = ops("rooms").lines()
    assert len(lines) == 3 and lines[1].split()[:4] == ["concert", "queue", "0", "0"]
    assert lines[2].split() == ["held", "hold", "3", "0", "0", "0", "5", "50", *lines[2].split()[8:]]
    assert "-" not in lines[2].split(), "every field is there"
    wait_until(lambda: ops("rooms", "--json").json() == real.admin().rooms().json(), 10, "two equal answers between two ticks")
    frame = ops("top", "--once").lines()
    assert real.url in frame[0] and "2 rooms" in frame[0] and frame[3].split()[:3] == ["held", "hold", "3"]
    assert ops("top", "--json").json()["rooms"][1]["waiting"] == 3


def test_a_room_is_shown_with_figures_settings_and_source(real, ops):
    real.api().ticket("held")
    rows = ops("room", "held").cells()
    assert rows["waiting"] == ["1"] and rows["slots"] == ["5"] and rows["mode"] == ["hold"] and rows["smooth"] == ["true"]
    assert not any(cells == ["-"] for cells in rows.values())
    assert "Settings come from the file." in rows
    told = ops("room", "held", "--json").json()
    assert told == {**real.admin().room("held").json(), "figures": told["figures"]}
    assert told["figures"]["waiting"] == 1


def test_set_changes_all_that_is_named_or_nothing(real, ops):
    done = ops("room", "concert", "set", "rate=0.1", "burst=7", "session_renew=false", "max_called=3")
    assert done.lines() == ["concert: rate 0.1, burst 7, session_renew false, max_called 3"]
    settings = real.admin().room("concert").json()["settings"]
    assert (settings["rate"], settings["burst"], settings["session_renew"], settings["max_called"]) == (0.1, 7, False, 3)
    assert ops("room", "concert", "set", "burst=", "--json").json()["settings"] == {**settings, "burst": 0}
    before = real.admin().room("concert").body
    for words, parts in ((["rate=0", "burst=9"], ["rate", "0.001"]), (["rate=1", "batch=2"], ["exclude"]),
                         (["speed=1"], ["speed"]), (["mode=shut"], ["closed"]), (["burst=yes"], ["burst"])):
        assert_one_line(ops("room", "concert", "set", *words), 1, "INVALID_SETTING", *parts)
    assert real.admin().room("concert").body == before
    assert "Settings come from the API." in ops("room", "concert").cells()


@pytest.mark.parametrize("verb, mode", [("hold", "hold"), ("open", "open"), ("close", "closed"), ("queue", "queue")])
def test_one_word_changes_the_mode(real, ops, verb, mode):
    assert ops("room", "held", verb).lines() == [f"held: mode {mode}"]
    assert real.admin().figures("held").json()["mode"] == mode
    assert ops("room", "held", verb, "--json").json()["settings"]["mode"] == mode


def test_people_are_advanced_cleared_and_a_room_deleted(real, ops):
    people = [real.api() for _ in range(8)]
    tokens = [person.ticket("held") for person in people]
    assert ops("room", "held", "advance", "3").lines() == ["held: 3 called"]
    assert people[2].status(tokens[2]).json()["ready_for_entry"]
    assert ops("room", "held", "advance", "100", "--json").json() == {"id": "held", "called": 2}
    assert ops("room", "held", "clear").lines() == ["held: 8 cleared"]
    assert people[0].status(tokens[0]).error_code == "TOKEN_NOT_FOUND"
    assert ops("room", "held", "clear", "--json").json() == {"id": "held", "cleared": 0}
    assert ops("room", "held", "delete").lines() == ["held: deleted"]
    assert_one_line(ops("room", "held", "delete"), 1, "There is no such room (ROOM_NOT_FOUND)")
    assert ops("room", "concert", "delete", "--json").json() == {"id": "concert", "deleted": True}
    assert ops("rooms").lines() == ["There are no rooms."]


def test_a_ticket_and_a_pass_are_shown(real, ops):
    person = real.api()
    token = person.ticket("held")
    rows = ops("ticket", "show", token).cells()
    assert rows["kind"] == ["ticket"] and rows["room"] == ["held"] and rows["state"] == ["waiting"]
    assert rows["position"] == ["1"] and rows["may enter now"] == ["no"] and rows["issued"][0].endswith(" UTC")
    assert ops("ticket", "show", "-", "--json", stdin=token + "\n").json() == real.admin().ticket(token).json()
    called = person.ticket("concert")
    its_pass = person.enter(called).json()["reservation_token"]
    rows = ops("ticket", "show", its_pass).cells()
    assert rows["kind"] == ["pass"] and rows["state"] == ["entered"] and rows["expires"][0].endswith(" UTC")
    assert_one_line(ops("ticket", "show", "x" * 60), 1, "TOKEN_NOT_FOUND")


def test_a_wrong_token_is_one_line_and_the_log_has_none(real, tmp_path):
    stranger = Operator(tmp_path, real.url)
    for words in (["rooms"], ["room", "held"], ["room", "held", "hold"], ["room", "held", "delete"], ["top"],
                  ["ticket", "show", "x" * 60]):
        assert_one_line(stranger(*words), 1, "A valid admin token is required (UNAUTHORIZED)")
    assert stranger.token not in real.log() + real.log("access.log")
    assert len(real.admin().rooms().json()["rooms"]) == 2


def test_the_settings_of_a_plan_can_be_given_to_a_room(real, ops):
    plan = run("plan", *SEED, "--json").json()["settings"]
    done = ops("room", "concert", "set", *(f"{name}={value}" for name, value in plan.items()))
    assert done.code == 0, done.err
    assert real.admin().figures("concert").json()["rate"] == 144.9


# --- top


class Terminal:
    """The command on a terminal of its own."""

    def __init__(self, operator, *words, env=None, size=(24, 120)):
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        self.before = self.settings()
        self.received = b""
        self.process = subprocess.Popen(
            [binary(), *words], stdin=self.slave, stdout=self.slave, stderr=self.slave, start_new_session=True,
            env=environment(**operator.env, **(env or {})),
            preexec_fn=lambda: fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0))
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        while b"\0" not in self.received:
            self.received += os.read(self.master, 65536)

    def text(self):
        return self.received.decode(errors="replace")

    def frame(self):
        """The last whole frame, as plain lines."""
        whole = [frame for frame in self.text().split("\x1b[H")[1:] if "\x1b[J" in frame]
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", whole[-1]).split("\r\n") if whole else []

    def press(self, keys):
        os.write(self.master, keys)

    def settings(self):
        return termios.tcgetattr(self.slave)

    def wait_for_end(self):
        """Its exit code, once all that it wrote was read."""
        code = self.process.wait(TIMEOUT_SEC)
        if self.reader:
            os.write(self.slave, b"\0")  # the reader's sign that nothing follows
            self.reader.join()
            self.reader = None
        return code

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.wait_for_end()
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def terminal(operator):
    opened = []

    def start(*words, **kwargs):
        opened.append(Terminal(operator, *words, **kwargs))
        return opened[-1]

    yield start

    for one in opened:
        one.close()


@pytest.mark.parametrize("end", ["q", "Ctrl-C", "SIGTERM"])
def test_top_is_live_and_leaves_the_terminal_as_it_was(stranger, terminal, end):
    stranger.answers[None] = (200, {"rooms": [figures("concert", waiting=1200, inside=500, called=7, eta_sec=24)]})
    screen = terminal("top")
    wait_until(lambda: any("1,200" in line for line in screen.frame()), what="the first frame")
    assert screen.settings() != screen.before
    stranger.answers[None] = (200, {"rooms": [figures("concert", waiting=900, inside=800)]})
    wait_until(lambda: any("900" in line and "########.." in line for line in screen.frame()), what="the next figures")
    if end == "SIGTERM":
        screen.process.send_signal(signal.SIGTERM)
    else:
        screen.press(b"q" if end == "q" else b"\x03")
    assert screen.wait_for_end() == 0
    assert screen.settings() == screen.before
    assert screen.text().rstrip("\0").endswith("\x1b[?25h\x1b[?1049l")


def test_top_says_when_the_server_is_gone_and_goes_on_when_it_is_back(stranger, terminal):
    stranger.answers[None] = (200, {"rooms": [figures("concert", waiting=1200)]})
    screen = terminal("top")
    wait_until(lambda: any("1,200" in line for line in screen.frame()), what="the first frame")
    stranger.answers[None] = (503, {"error": {"code": "ENGINE_UNAVAILABLE", "message": "Not now"}})
    wait_until(lambda: any("Not now" in line for line in screen.frame()), what="the frame that says so")
    stranger.answers[None] = (200, {"rooms": [figures("concert", waiting=777)]})
    wait_until(lambda: any("777" in line for line in screen.frame()), what="figures again")
    screen.press(b"q")
    assert screen.wait_for_end() == 0


def test_top_ends_at_once_though_the_server_is_silent(stranger, terminal):
    stranger.answers[None] = (200, {"rooms": [figures("concert")]})
    screen = terminal("top")
    wait_until(screen.frame, what="the first frame")
    asked = threading.Event()

    def stay_silent(_):
        asked.set()
        stranger.over.wait()

    stranger.answers[None] = stay_silent
    assert asked.wait(TIMEOUT_SEC)
    began = time.monotonic()
    screen.press(b"q")
    assert screen.wait_for_end() == 0
    assert time.monotonic() - began < 5


def test_top_fits_the_terminal_and_shows_the_longest_lines(stranger, terminal):
    stranger.answers[None] = (200, {"rooms": [figures(f"room-{i:03}", waiting=i) for i in range(300)]})
    screen = terminal("top", size=(12, 40))
    wait_until(screen.frame, what="the first frame")
    frame = screen.frame()
    assert len(frame) <= 12 and all(len(line) <= 40 for line in frame)
    assert frame[3].startswith("room-299") and frame[-1].startswith("and 293 more")
    screen.press(b"q")
    assert screen.wait_for_end() == 0


def test_top_shows_the_figures_of_rooms_with_long_names(stranger, terminal):
    names = ["concert-" + "x" * 48 + end for end in ("-seoul", "-busan")]
    stranger.answers[None] = (200, {"rooms": [figures(name, waiting=1234, inside=56) for name in names]})
    screen = terminal("top", size=(12, 80))
    wait_until(screen.frame, what="the first frame")
    frame = screen.frame()
    assert all("1,234" in line and " 56 " in line for line in frame[3:5])
    assert [line.split()[0][-6:] for line in frame[3:5]] == ["-busan", "-seoul"]
    screen.press(b"q")
    assert screen.wait_for_end() == 0


def test_top_through_a_pipe_is_one_frame(stranger, operator):
    stranger.answers[None] = (200, {"rooms": [figures("calm"), figures("busy", waiting=5000, inside=600, eta_sec=100)]})
    lines = operator("top").lines()
    assert stranger.url in lines[0] and "2 rooms" in lines[0]
    assert lines[3].split()[:3] == ["busy", "queue", "5,000"] and "######.... " in lines[3]
    assert lines[4].startswith("calm")
    assert operator("top", "--json").json()["rooms"][1]["id"] == "busy"
