# SPDX-License-Identifier: BSD-2-Clause
"""`make run`, as a stranger types it."""

import os
import re
import signal
import socket
import subprocess

import pytest
from demo import ROOT
from weirtest import Api, wait_until
from weirtest.redis import Standalone

BROWSER = {"Accept": "text/html", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


def test_it_prints_an_address_and_five_curl_lines_that_work(demo):
    running = demo().wait_for_banner()
    said = running.said()
    assert f"http://127.0.0.1:{running.port}/" in said
    lines = [line.strip() for line in said.splitlines() if "curl" in line]
    assert len(lines) == 5
    pasted = subprocess.run(["sh", "-e"], input="\necho\n".join(lines), capture_output=True, text=True, timeout=60)
    assert pasted.returncode == 0, pasted.stderr
    assert '"status":"waiting"' in pasted.stdout and '"admission":"granted"' in pasted.stdout
    assert '"status":"reserved"' in pasted.stdout and "weir-session" not in pasted.stdout.lower()


def test_what_readme_says_to_paste_ends_in_a_seat_and_a_closed_shop(demo):
    running = demo().wait_for_banner()
    lines = re.findall(r"^    (.*\bcurl .*)$", (ROOT / "README.md").read_text(), re.M)
    assert len(lines) == 6
    lines = [line.replace("http://127.0.0.1:8000", running.url) for line in lines]
    last = f"until {lines.pop()} | tee last | grep -q '^HTTP/1.1 403'; do sleep 0.1; done; cat last"
    pasted = subprocess.run(["sh", "-e"], input="\necho\n".join([*lines, last]), cwd=running.data, capture_output=True, text=True, timeout=60)
    assert pasted.returncode == 0, pasted.stderr
    assert '"position":' in pasted.stdout and "HTTP/1.1 201 Created" in pasted.stdout and "ADMISSION_REQUIRED" in pasted.stdout


def test_it_makes_an_admin_token_and_the_operators_lines_work(demo):
    running = demo().wait_for_banner()
    assert (running.data / "admin-token").stat().st_mode & 0o777 == 0o600
    assert re.fullmatch(r"demo [0-9a-f]{64}\n", (running.data / "admin-token").read_text())
    lines = [line.strip() for line in running.said().splitlines() if re.search(r"WEIR_URL|/weir ", line)]
    assert len(lines) == 4
    pasted = subprocess.run(["sh", "-e"], input="\n".join(lines), capture_output=True, text=True, timeout=60)
    assert pasted.returncode == 0, pasted.stderr
    assert "1 room" in pasted.stdout and "concert: rate 5" in pasted.stdout
    assert 'weir: admin "demo" changed room "concert": rate 1 -> 5' in (running.data / "logs/error.log").read_text()


def test_a_redis_keeps_its_room_if_it_is_told_so(demo):
    with Standalone() as store:
        running = demo(STORE=store.url).wait_for_banner()
        Api(running.port).ticket("concert")
        assert store.only("ZCARD", "queue:event:{concert}") > 0
        assert not (running.data / "journal").exists()


def test_a_redis_that_is_not_there_is_named_as_the_reason(demo):
    running = demo(STORE="redis://127.0.0.1:1")
    assert running.wait_for_end() != 0
    assert "weir_store cannot serve: The server cannot be reached." in running.said()
    wait_until(lambda: not running.members(), 10, "the end of all that it started")


def test_a_visitor_sees_the_line_move_and_gets_in_within_half_a_minute(demo):
    running = demo().wait_for_banner()
    visitor = Api(running.port)
    sent_away = visitor.get("/", headers=BROWSER)
    assert sent_away.status == 302 and "/queue/concert" in sent_away.header("location")
    page = re.sub(r"^http://[^/]*", "", sent_away.header("location"))
    assert visitor.get(page, headers=BROWSER).status == 200
    token = visitor.ticket("concert")
    positions = [visitor.status(token).json()["position"]]
    assert 8 <= positions[0] <= 15, "a crowd of twelve stands ahead"

    def is_called():
        answer = visitor.status(token).json()
        positions.append(answer["position"])
        return answer["ready_for_entry"]

    wait_until(is_called, 30, "the call", every_sec=0.5)
    assert len(set(positions)) > 3, "the line was not seen to move"
    assert positions == sorted(positions, reverse=True)
    assert visitor.enter(token).json()["admission"] == "granted"
    shop = visitor.get("/", headers=BROWSER)
    assert shop.status == 200 and b"Riverside Tickets" in shop.body


@pytest.mark.parametrize("number, whom", [(signal.SIGINT, "group"), (signal.SIGTERM, "group"), (signal.SIGTERM, "make")])
def test_a_signal_ends_it_and_leaves_nothing_running(demo, number, whom):
    running = demo().wait_for_banner()
    secret = (running.data / "secret").read_text()
    if whom == "group":
        os.killpg(running.process.pid, number)
    else:
        running.process.send_signal(number)
    running.wait_for_end()
    wait_until(lambda: not running.members(), 10, "all its processes to be gone")
    assert "has stopped" in running.said()
    assert "[alert]" not in (running.data / "logs/error.log").read_text()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", running.port)) != 0
    assert (running.data / "secret").stat().st_mode & 0o777 == 0o600
    assert re.fullmatch(r"1 [0-9a-f]{64}\n", secret)


def test_a_port_in_use_is_one_clear_sentence(demo):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        refused = demo(port=taken.getsockname()[1])
        assert refused.wait_for_end() != 0
    assert_one_sentence(refused, f"port {refused.port} is already in use")


def test_a_second_demo_in_the_same_place_is_refused_and_the_first_goes_on(demo):
    first = demo().wait_for_banner()
    second = demo(port=first.port)
    assert second.wait_for_end() != 0
    assert_one_sentence(second, f"port {first.port} is already in use")
    third = demo(DATA=first.data)
    assert third.wait_for_end() != 0
    assert_one_sentence(third, "already runs in")
    assert Api(first.port).get("/healthz").status == 200


@pytest.mark.parametrize("wish", [{"PORT": "http"}, {"PORT": "70000"}, {"WORKERS": "0"}, {"WORKERS": "many"}, {"DATA": "/proc/x"}])
def test_a_wish_that_makes_no_sense_is_one_clear_sentence(demo, wish):
    refused = demo(**wish)
    assert refused.wait_for_end() != 0
    assert_one_sentence(refused, next(iter(wish)) if "DATA" not in wish else "/proc/x")


def test_a_demo_that_was_killed_starts_again_with_the_same_secret(demo):
    killed = demo().wait_for_banner()
    secret = (killed.data / "secret").read_text()
    os.killpg(killed.process.pid, signal.SIGKILL)
    killed.process.wait()
    wait_until(lambda: not killed.members(), 10, "all its processes to be gone")
    demo(DATA=killed.data).wait_for_banner()
    assert (killed.data / "secret").read_text() == secret


def assert_one_sentence(refused, sentence):
    lines = [line for line in refused.said().splitlines() if line.startswith("run-demo:")]
    assert len(lines) == 1 and sentence in lines[0], refused.said()
    # Beside that, only make may speak.
    others = [line for line in refused.said().splitlines() if line not in lines]
    assert all(line.startswith(("make", "  ")) for line in others), refused.said()
