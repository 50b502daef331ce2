# SPDX-License-Identifier: BSD-2-Clause
"""weir_breaker, with a shop that is killed, slow, flapping, and back."""

import asyncio
import multiprocessing
import random
import re
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest
from weirtest import Caller, Client, at_once, free_port, wait_until
from weirtest.breaker import BREAKER, breaker, closes, front, is_refusal, open_it, set_open, shop, statuses  # noqa: F401
from weirtest.locks import kill_inside
from weirtest.sick_shop import SickShop, Unfinished, answer, break_off, drop, fine, first, hang, stall, status

pytestmark = pytest.mark.one_store

# --- the shop is killed, slow, flapping, and back


def test_a_killed_shop_is_left_alone_and_found_again(front, shop):
    server = front()
    assert server.client().get("/").body == b"the shop, GET /"
    shop.kill()
    assert open_it(server) == [502] * 9, "one of the ten in its window was good, nine failed"
    told = breaker(server)
    assert (told["upstream"], told["state"], told["opened"], told["failed"]) == ("shop", "open", 1, 9)
    assert '[error]' in server.log() and 'the breaker of "shop" opened for 2000 ms: 9 of 10 requests failed' in server.log()

    shop.start()
    closes(server)
    told = breaker(server)
    assert (told["half_opened"], told["closed"], told["trials"]) == (told["opened"], 1, told["opened"] + 2)
    assert 'the breaker of "shop" is half open: 3 trials' in server.log()
    assert 'the breaker of "shop" closed: 3 trials succeeded' in server.log()


def test_a_refusal_is_the_apis_and_says_when_to_come_back(front, shop):
    server = front(upstream="weir_breaker open=7s;", server="weir_cors https://a.example;")
    shop.kill()
    open_it(server)
    said = server.client().get("/seats?x=1", headers={"X-Request-ID": "abc", "Origin": "https://a.example"})
    assert said.status == 503 and said.header("content-type") == "application/json"
    error = said.json()["error"]
    assert (error["code"], error["trace_id"]) == ("SERVICE_UNAVAILABLE", "abc")
    assert said.header("retry-after") == str(error["retry_after"]) and 1 <= error["retry_after"] <= 7
    assert said.header("x-request-id") == "abc" and said.header("cache-control") == "no-store"
    assert said.header("access-control-allow-origin") == "https://a.example"
    assert said.header("connection") == "keep-alive"
    assert server.client().request("HEAD", "/").status == 503
    assert is_refusal(server.client().post("/", "x" * 100000)), "whatever was sent with it"


def test_refusals_reach_nobody_and_say_nothing_in_the_log(front, shop):
    """How fast they are is measured in bench/run."""
    server = front(upstream="weir_breaker open=1h;")
    shop.health = status(500)
    open_it(server)
    reached, errors = len(shop.seen), server.log().count("[error]")
    client = server.client()
    assert all(is_refusal(client.get("/")) for _ in range(300))
    assert len(shop.seen) == reached and server.log().count("[error]") == errors
    assert breaker(server)["refused"] == 301


def test_a_slow_shop_is_left_alone_after_as_many_timeouts(front, shop):
    server = front(upstream="weir_breaker open=1h;", timeout="300ms")
    shop.health = hang
    answers = at_once(server.port, [("GET", f"/{n}") for n in range(10)], connections=10)
    assert statuses(answers) == {504: 10}
    assert is_refusal(server.client().get("/"))
    wait_until(lambda: len(shop.seen) == 10, 5, "each of them at the shop")
    shop.health = fine
    closes(server)


def test_one_of_two_workers_opens_it_for_both(front, shop):
    """All workers share one breaker: with one each, twenty failures would reach the shop."""
    server = front(workers=4, upstream="weir_breaker open=1h;")
    shop.health = status(503)
    answers = at_once(server.port, [("GET", "/")] * 400, connections=40)
    assert len(shop.seen) < 10 + 40, "whoever was under way, and nobody else"
    assert statuses(answers) == {503: 400}
    assert sum(map(is_refusal, answers)) == 400 - len(shop.seen)


def test_a_flapping_shop_is_tried_three_at_a_time(front, shop):
    server = front(upstream="weir_breaker open=200ms;", server="location /slow/ { proxy_read_timeout 300ms; proxy_pass http://shop; }")
    shop.health = status(500)
    open_it(server)
    for _ in range(5):
        opened, reached = breaker(server)["opened"], len(shop.seen)
        wait_until(lambda: not is_refusal(server.client().get("/")), 10, "a trial")
        assert len(shop.seen) == reached + 1, "the first that fails ends it"
        assert breaker(server)["opened"] == opened + 1
    assert server.log().count("opened again for 200 ms: a trial failed") == 5
    shop.health = hang
    wait_until(lambda: breaker(server)["state"] == "half_open", 10, "its time over")
    set_open(server, "1h")  # from now on
    reached = len(shop.seen)
    answers = at_once(server.port, [("GET", "/slow/")] * 50, connections=50)
    assert statuses(answers) == {503: 47, 504: 3}
    wait_until(lambda: len(shop.seen) == reached + 3, 5, "each of the three at the shop")
    shop.health = fine
    closes(server)


def test_the_shops_own_refusals_are_passed_on_untouched(front, shop):
    server = front()
    shop.health = status(503, ["Retry-After: 77", "X-Shop: own"])
    said = server.client().get("/")
    assert (said.status, said.body) == (503, b"the shop's own 503")
    assert (said.header("retry-after"), said.header("x-shop")) == ("77", "own")


# --- what counts


@pytest.mark.parametrize("health", [status(500), status(502), status(599), drop, break_off, hang, stall],
                         ids=["500", "502", "599", "dropped", "broken-off", "silent", "stalled"])
@pytest.mark.parametrize("buffering", ["on", "off"])
def test_what_counts_as_failed(front, shop, health, buffering):
    server = front(timeout="50ms" if health in (hang, stall) else "10s", server=f"proxy_buffering {buffering};")
    shop.health = health
    client = server.client()
    for _ in range(10):
        assert breaker(server)["state"] == "closed"
        try:
            client.get("/")
        except OSError:
            pass  # an answer that broke off
        except Exception as broken:
            assert "IncompleteRead" in repr(broken)
    wait_until(lambda: breaker(server)["state"] == "open", 5, "the breaker open")
    assert breaker(server)["failed"] == 10
    wait_until(lambda: len(shop.seen) == 10, 5, "each of them at the shop")


@pytest.mark.parametrize("health", [status(200), status(301), status(404), status(429), status(499)],
                         ids=["200", "301", "404", "429", "499"])
def test_what_the_shop_says_of_the_request_is_no_failure(front, shop, health):
    server = front()
    shop.health = health
    client = server.client()
    for _ in range(30):
        client.get("/")
    told = breaker(server)
    assert (told["state"], told["failed"], told["window_requests"]) == ("closed", 0, 30)


def test_fewer_failures_than_the_share_open_nothing(front, shop):
    server = front()
    shop.health = lambda visit: (status(500) if visit.number % 2 else fine)(visit)
    client = server.client()
    assert {client.get("/").status for _ in range(200)} == {200, 500}
    assert (breaker(server)["opened"], breaker(server)["window_failed"]) == (0, 100)


def test_clients_who_go_away_count_for_nothing(front, shop):
    server = front(timeout="10s")
    shop.health = hang
    for number in range(30):
        with socket.create_connection(("127.0.0.1", server.port)) as visitor:
            visitor.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            wait_until(lambda: len(shop.seen) == number + 1, 5, "the request at the shop")
    wait_until(lambda: breaker(server)["aborted"] == 30, 5, "nginx to notice")
    told = breaker(server)
    assert (told["state"], told["failed"], told["window_requests"]) == ("closed", 0, 0)


@pytest.mark.parametrize("buffering", ["on", "off"])
def test_clients_who_go_away_in_the_middle_of_an_answer_take_nothing_back(front, shop, buffering):
    server = front(timeout="10s", server=f"proxy_buffering {buffering};")
    shop.health = lambda visit: Unfinished(answer(200, b"x" * 100_000, length=1_000_000))
    for number in range(20):
        with socket.create_connection(("127.0.0.1", server.port)) as visitor:
            visitor.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert visitor.recv(1000).startswith(b"HTTP/1.1 200 ")
    wait_until(lambda: server.log("access.log").count('"GET / HTTP/1.1"') == 20, 10, "nginx to notice")
    told = breaker(server)
    assert (told["state"], told["failed"], told["window_requests"]) == ("closed", 0, 20)


def test_a_trial_whose_client_goes_away_leaves_its_place_to_others(front, shop):
    server = front(timeout="10s", upstream="weir_breaker open=500ms;")
    shop.health = status(500)
    open_it(server)
    shop.health = hang
    wait_until(lambda: breaker(server)["state"] == "half_open", 5, "its time over")
    reached = len(shop.seen)
    for number in range(20):  # more than there are trials, and faster than any would be taken for lost
        with socket.create_connection(("127.0.0.1", server.port)) as visitor:
            visitor.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            wait_until(lambda: len(shop.seen) == reached + number + 1, 5, "the trial at the shop")
        wait_until(lambda: breaker(server)["aborted"] == number + 1, 5, "nginx to notice")
    shop.health = fine
    closes(server)


def test_of_several_servers_a_dead_one_is_nginxs_affair(front, shop):
    """One request counts once, by its end. And the breaker stands wherever it is written."""
    server = front(upstream=f"server 127.0.0.1:{free_port()} max_fails=0; {BREAKER} least_conn; keepalive 8;")
    client = server.client()
    assert {client.get("/").status for _ in range(4)} == {200}
    assert (breaker(server)["requests"], breaker(server)["failed"]) == (4, 0)
    shop.kill()
    assert open_it(server)[-1] == 502


@pytest.mark.parametrize("lines", [
    "least_conn;", "ip_hash;", "hash $uri;", "hash $uri consistent; keepalive 4;", "random two least_conn;", "zone shop 64k;",
    "zone shop 64k; least_conn; keepalive 4;",
])
@pytest.mark.parametrize("order", ["{lines} {breaker}", "{breaker} {lines}"], ids=["after", "before"])
def test_it_stands_before_whatever_shares_out_the_load(front, shop, lines, order):
    if order.startswith("{breaker}") and "keepalive" not in lines and "zone" not in lines:
        lines += " keepalive 4;"
    server = front(upstream=order.format(lines=lines, breaker="weir_breaker open=200ms;"))
    shop.kill()
    assert open_it(server) == [502] * 10
    assert (breaker(server)["requests"], breaker(server)["failed"]) == (10, 10)
    shop.start()
    closes(server)


@pytest.mark.parametrize("line", [
    "set $shop shop; proxy_pass http://$shop;", "proxy_pass https://shop;", "fastcgi_pass shop;", "uwsgi_pass shop;", "scgi_pass shop;",
    "grpc_pass shop;",
], ids=lambda line: line.split()[-2])
def test_it_does_not_matter_how_nginx_speaks_to_the_shop(front, shop, line):
    server = front(upstream="weir_breaker open=1h; weir_retry times=1 wait=1ms;", server=f"location /spoken/ {{ {line} }}")
    shop.kill()
    assert open_it(server, "/spoken/", "POST") == [502] * 10
    shop.start()
    closes(server)
    shop.kill()
    assert server.client().get("/spoken/").status == 502
    assert breaker(server)["retries"] == 1


def test_a_request_that_nginx_takes_to_every_server_counts_once(front, shop):
    other = SickShop()
    server = front(upstream=f"server 127.0.0.1:{other.port} max_fails=0; weir_breaker open=1h;",
                   server="proxy_next_upstream error timeout http_500 http_503;")
    try:
        shop.health = status(500)
        assert {server.client().get("/").status for _ in range(6)} == {200}
        assert (breaker(server)["requests"], breaker(server)["failed"]) == (6, 0)
        shop.kill()
        assert {server.client().get("/").status for _ in range(6)} == {200}
        assert (breaker(server)["requests"], breaker(server)["failed"]) == (12, 0)
        other.health = status(503)
        assert {server.client().get("/").status for _ in range(6)} <= {502, 503}
        assert (breaker(server)["requests"], breaker(server)["failed"], breaker(server)["window_failed"]) == (18, 6, 6)
    finally:
        other.close()


def test_a_kept_connection_that_the_shop_has_closed_is_no_failure(front, shop):
    """nginx finds it dead, and takes a new one."""
    server = front(upstream=f"{BREAKER} keepalive 8;")
    at_once(server.port, [("GET", "/")] * 8, connections=8)
    shop.kill()
    shop.start()
    client = server.client()
    assert {client.get("/").status for _ in range(8)} == {200}
    assert breaker(server)["failed"] == 0


def test_an_upgraded_connection_counts_when_it_is_made(front, shop):
    """A trial that lasts for hours must not keep the breaker from closing."""
    server = front(server="location /ws { proxy_pass http://shop; proxy_read_timeout 60s; proxy_set_header Upgrade $http_upgrade;"
                          " proxy_set_header Connection upgrade; }")
    shop.health = status(500)
    open_it(server)
    shop.health = lambda visit: b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nhello"
    wait_until(lambda: breaker(server)["state"] == "half_open", 5, "its time over")
    visitors = []
    for _ in range(3):
        visitors.append(socket.create_connection(("127.0.0.1", server.port)))
        visitors[-1].sendall(b"GET /ws HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
        assert visitors[-1].recv(1000).startswith(b"HTTP/1.1 101 ")
    assert breaker(server)["state"] == "closed"
    for visitor in visitors:
        visitor.close()


def test_an_upgrade_is_tried_again_like_any_request(front, shop):
    server = front(upstream="weir_breaker; weir_retry wait=1ms;", server="location /ws { proxy_pass http://shop; proxy_read_timeout 60s;"
                   " proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; }")
    made = Unfinished(b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nhello")
    shop.health = first(2, drop, lambda visit: made)
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as visitor:
        visitor.sendall(b"GET /ws HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
        received = b""
        while not received.endswith(b"hello"):
            received += visitor.recv(1000)
        assert received.startswith(b"HTTP/1.1 101 ") and len(shop.asked("/ws")) == 3
        visitor.sendall(b"x")  # the shop hears it, and goes
        assert visitor.recv(1000) == b""


# --- who answers while it is open


def test_the_operators_fallback_answers(front, shop):
    server = front(upstream="weir_breaker open=1h fallback=@sorry;", server="""
        location @sorry { add_header X-From fallback always; return 200 "read-only"; }
        location /page/ { proxy_pass http://shop; }
    """, shop="""
        listen 127.0.0.1:{port};
        location / {{ proxy_pass http://shop; }}
    """.format(port=(elsewhere := free_port())))
    shop.kill()
    client = server.client()
    while (said := client.get("/")).status != 200:
        assert said.status == 502
    assert (said.body, said.header("x-from")) == (b"read-only", "fallback")
    assert client.post("/page/", {"seat": 1}).body == b"read-only"
    # A server without that location has the envelope.
    assert is_refusal(Client(elsewhere).get("/"))


def test_a_newcomer_keeps_the_pass_that_came_with_a_fallback_or_a_refusal(front, shop):
    """The gate of the fallback knows whom the gate before it has let in: there is only one slot."""
    for fallback in ("fallback=@sorry", ""):
        server = front(upstream=f"weir_breaker open=1h {fallback};", rooms={"hall": "max_active=1 rate=1000 burst=1000"}, server="""
            location /hall/ { weir_gate room=hall; proxy_pass http://shop; }
            location @sorry { weir_gate room=hall; return 200 "read-only"; }
        """)
        shop.kill()
        wait_until(lambda: breaker(server)["state"] == "open" or server.client().get("/") is None, 10, "the breaker open")
        visitor = server.client()
        said = visitor.get("/hall/", headers={"Accept": "text/html"})
        assert said.body == b"read-only" if fallback else is_refusal(said)
        (name,) = [name for name in said.cookies() if name.startswith("weir-pass")]
        assert said.header_all("cache-control") == ["no-store"]
        gate = server.admin().call("GET", "gate").json()["requests"]
        again = visitor.get("/hall/", headers={"Accept": "text/html"})
        assert again.body == b"read-only" if fallback else is_refusal(again)
        assert server.admin().call("GET", "gate").json()["requests"]["passed"] > gate["passed"]
        assert server.admin().figures("hall").json()["inside"] == 1
        shop.start()


def test_fallbacks_that_lead_to_each_other_end_in_a_refusal(front, shop):
    server = front(upstream="weir_breaker open=1h fallback=@other;",
                   http=f"upstream other {{ server 127.0.0.1:{free_port()}; weir_breaker open=1h fallback=@shop; }}",
                   server="location @shop { proxy_pass http://shop; } location @other { proxy_pass http://other; }")
    shop.kill()
    client = server.client()
    wait_until(lambda: is_refusal(client.get("/")), 10, "both breakers open")
    refused = {one["upstream"]: one["refused"] for one in server.admin().call("GET", "breakers").json()["breakers"]}
    assert is_refusal(client.get("/"))
    again = {one["upstream"]: one["refused"] for one in server.admin().call("GET", "breakers").json()["breakers"]}
    assert {name: again[name] - refused[name] for name in again} == {"shop": 2, "other": 1}, "round once"


def test_no_fallback_gets_half_a_body(front, shop):
    """What nginx has not read whole cannot be sent to somebody else."""
    other = SickShop()
    server = front(upstream="weir_breaker open=1h fallback=@other;", http=f"upstream other {{ server 127.0.0.1:{other.port}; }}",
                   server="""
        client_max_body_size 8m;
        location /unbuffered/ { proxy_request_buffering off; proxy_pass http://shop; }
        location @other { proxy_pass http://other; }
    """)
    try:
        shop.kill()
        wait_until(lambda: server.client().get("/").status == 200, 10, "the breaker open")
        assert is_refusal(server.client().post("/unbuffered/", "x" * 3_000_000))
        assert other.asked(method="POST") == []
        assert server.client().post("/", "x" * 3_000_000).status == 200
        assert [len(visit.body) for visit in other.asked(method="POST")] == [3_000_000]
    finally:
        other.close()


@pytest.mark.parametrize("version", ["--http1.1", "--http2-prior-knowledge"])
def test_a_refusal_does_not_wait_for_a_body_that_is_passed_on_unread(front, shop, tmp_path, version):
    server = front(upstream="weir_breaker open=1h;", shop=f"""
        listen 127.0.0.1:{(port := free_port())} http2;
        client_max_body_size 8m; proxy_request_buffering off;
        location / {{ proxy_pass http://shop; }}
    """, server="client_max_body_size 8m; proxy_request_buffering off;")
    (tmp_path / "body").write_bytes(b"x" * 3_000_000)
    shop.kill()
    open_it(server)
    port = server.port if version == "--http1.1" else port
    # What curl makes of an answer before its body is through is its affair, and over HTTP/2 not always the same.
    subprocess.run(["curl", "-s", version, "-T", str(tmp_path / "body"), f"http://127.0.0.1:{port}/up"], stdout=subprocess.DEVNULL, timeout=20)
    wait_until(lambda: re.search(r'"PUT /up HTTP/[\d.]+" 503 ', server.log("access.log")), 5, "the refusal")
    assert is_refusal(server.client().get("/")), "and the worker goes on"


def test_a_fallback_that_is_refused_itself_is_no_way_out(front, shop):
    server = front(upstream="weir_breaker open=1h fallback=@again;", server="location @again { proxy_pass http://shop; }")
    shop.kill()
    open_it(server)
    assert is_refusal(server.client().get("/"))


def test_a_fallback_may_be_another_shop(front, shop):
    other = SickShop()
    server = front(upstream="weir_breaker open=1h fallback=@other;",
                   http=f"upstream other {{ server 127.0.0.1:{other.port}; weir_breaker; weir_retry wait=1ms; }}",
                   server="location @other { proxy_pass http://other; }")
    try:
        shop.kill()
        wait_until(lambda: server.client().post("/order", "seat=1").status == 200, 10, "the other shop")
        assert other.seen[0].body == b"seat=1" and other.seen[0].path == "/order"
        other.health = first(1, status(500))
        assert server.client().get("/page").body == b"the shop, GET /page"
    finally:
        other.close()


def test_an_error_page_is_for_what_is_final(front, shop):
    server = front(upstream="weir_breaker open=1h; weir_retry times=1 wait=1ms;", server="""
        location /own/ { error_page 502 503 =418 @own; proxy_pass http://shop; }
        location @own { return 418 "own"; }
        location /taken/ { proxy_intercept_errors on; error_page 500 =418 @own; proxy_pass http://shop; }
    """)
    shop.health = status(500)
    assert server.client().get("/taken/").status == 418
    assert len(shop.asked("/taken/")) == 2, "it was tried again before the page was shown"
    shop.kill()
    client, codes = server.client(), set()
    while not is_refusal(said := client.get("/own/")):
        codes.add(said.status)
    assert codes == {418}


def test_the_cache_serves_what_it_has(front, shop):
    server = front(upstream="weir_breaker open=1h;", http="proxy_cache_path cache keys_zone=pages:1m;", server="""
        add_header X-Cache $upstream_cache_status always;
        location /cached/ { proxy_cache pages; proxy_cache_valid 200 1s; proxy_cache_use_stale error; proxy_pass http://shop; }
        location /new/ { proxy_cache pages; proxy_cache_valid any 1h; proxy_pass http://shop; }
    """)
    client = server.client()
    assert client.get("/cached/").status == 200
    shop.kill()
    open_it(server)
    wait_until(lambda: client.get("/cached/").header("x-cache") == "STALE", 5, "its time in the cache over")
    assert client.get("/cached/").body == b"the shop, GET /cached/"
    # And a refusal is nothing to be kept.
    assert is_refusal(client.get("/new/"))
    shop.start()
    closes(server)
    assert server.client().get("/new/").status == 200


def test_a_subrequests_refusal_is_not_kept_by_a_cache(front, shop):
    server = front(upstream="weir_breaker open=500ms;", http="proxy_cache_path cache keys_zone=pages:1m;", server="""
        location /asking/ { auth_request /auth; root /nonexistent; }
        location = /auth { internal; proxy_cache pages; proxy_cache_key $request_uri; proxy_cache_valid any 1h; proxy_pass http://shop; }
    """)
    server.expect_in_log("auth request unexpected status: 503")
    shop.kill()
    open_it(server)
    assert server.client().get("/asking/x").status == 500
    shop.start()
    closes(server)
    assert server.client().get("/asking/x").status == 404


def test_an_update_in_the_background_counts_and_is_refused(front, shop):
    server = front(upstream="weir_breaker open=1h;", http="proxy_cache_path cache keys_zone=pages:1m;", server="""
        add_header X-Cache $upstream_cache_status always;
        location /cached/ { proxy_cache pages; proxy_cache_valid 200 1s; proxy_cache_use_stale updating;
                            proxy_cache_background_update on; proxy_pass http://shop; }
    """)
    client = server.client()
    assert client.get("/cached/").status == 200
    shop.kill()
    wait_until(lambda: client.get("/cached/").header("x-cache") == "STALE", 5, "its time in the cache over")
    wait_until(lambda: client.get("/cached/").status == 200 and breaker(server)["refused"] > 0, 10, "a refusal")
    assert breaker(server)["failed"] == 10 - 1
    assert client.get("/cached/").body == b"the shop, GET /cached/"


def test_a_subrequest_is_refused_like_any_other(front, shop):
    server = front(upstream="weir_breaker open=1h;", server="""
        location /asked/ { auth_request /auth; return 200; }
        location /asking/ { auth_request /auth; root /nonexistent; }
        location = /auth { internal; proxy_pass http://shop; }
    """)
    server.expect_in_log("auth request unexpected status: 503")
    assert server.client().get("/asking/x").status == 404
    shop.health = status(500)
    open_it(server)
    assert server.client().get("/asking/x").status == 500
    assert "auth request unexpected status: 503" in server.log()


# --- workers die, and are reloaded


def test_trials_of_workers_that_died_are_tried_by_others(front, shop):
    server = front(timeout="60s", upstream="weir_breaker open=1s;", workers=2)
    shop.health = status(500)
    open_it(server)
    shop.health = hang
    wait_until(lambda: breaker(server)["state"] == "half_open", 5, "its time over")
    reached = len(shop.seen)
    visitors = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(3)]
    for visitor in visitors:
        visitor.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    wait_until(lambda: len(shop.seen) == reached + 3, 5, "three trials at the shop")
    assert is_refusal(server.client().get("/"))
    for pid in server.worker_pids():
        server.kill_worker(pid)
    for visitor in visitors:
        visitor.close()
    wait_until(lambda: len(server.worker_pids()) == 2, 10, "new workers")
    shop.health = fine
    closes(server)


def test_a_worker_that_dies_in_the_middle_leaves_a_breaker_that_works(front, shop):
    # With a socket each, every worker has visitors, however slowly it is being led.
    server = front(upstream="weir_breaker open=100ms; weir_retry wait=1ms;", workers=3, listen="reuseport")
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    shop.health = lambda visit: (fine if visit.number % 5 > 2 else status(500))(visit)
    # In a process of their own: this one is busy with leading a worker step by step. Most of them look at the breaker, which
    # is the shortest way to its lock.
    is_over = multiprocessing.Event()
    token = {"Authorization": f"Bearer {server.admin_tokens['ops']}"}
    asked = [("GET", "/"), *[("GET", "/weir/api/breakers", None, token)] * 3] * 8
    visitors = multiprocessing.Process(target=ask_until, args=(server.port, asked, is_over))
    visitors.start()
    try:
        for _ in range(6):
            pids = wait_until(lambda: len(living(server)) == 3 and living(server), 10, "every worker")
            served = breaker(server)["requests"]
            wait_until(lambda: breaker(server)["requests"] > served + 20, 10, "visitors")
            # The newest may have nobody yet: it is not the one that must come to take the lock.
            pids.sort(key=started)
            server.expect_worker_death(kill_inside(pids, chance.randrange(1, 400)))
    finally:
        is_over.set()
        visitors.join()
    wait_until(lambda: len(living(server)) == 3, 10, "every worker back")
    shop.health = fine
    closes(server)
    shop.kill()
    wait_until(lambda: is_refusal(server.client().get("/")), 10, "the breaker open")
    shop.start()
    closes(server)


def ask_until(port, requests, is_over):
    """Each on a connection of its own: those of a worker that is kept waiting wait with it, the others go on."""

    async def ask(request):
        caller = Caller(port)
        while not is_over.is_set():
            await caller.call(*request)

    async def everybody():
        await asyncio.gather(*map(ask, requests))

    asyncio.run(everybody())


def started(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def living(server):
    return [pid for pid in server.worker_pids() if pid not in {dead for dead, _ in server.killed}]


def test_a_reload_keeps_it_open_and_brings_new_options(front, shop):
    server = front(upstream="weir_breaker open=1h;")
    shop.kill()
    open_it(server)
    before = breaker(server)
    server.reload()
    assert is_refusal(server.client().get("/"))
    assert breaker(server)["failed"] == before["failed"]
    # Another upstream before it, and another time.
    server.write_conf(http=server.parts["http"].replace(
        "upstream shop {", "upstream a { server 127.0.0.1:1; weir_breaker; } upstream shop {").replace("open=1h", "open=1s"))
    server.reload()
    told = {one["upstream"]: one for one in server.admin().call("GET", "breakers").json()["breakers"]}
    assert told["a"]["state"] == "closed" and told["shop"]["failed"] == before["failed"]
    shop.start()
    wait_until(lambda: server.client().get("/").status == 200, 10, "the shop again")


# --- the configuration


def test_the_samples_slow_shop_is_left_alone_when_its_five_seconds_are_over(weir, shop):
    sample = (Path(__file__).resolve().parents[2] / "samples" / "nginx.conf").read_text()
    (lines,) = re.findall(r"^    upstream shop {\n.*?^    }\n(?:    proxy_\w+ 5s;\n){3}", sample, re.M | re.S)
    server = weir(http=lines.replace("127.0.0.1:8080", f"127.0.0.1:{shop.port}"), server="location / { proxy_pass http://shop; }",
                  admin=["ops"])
    shop.health = hang
    began = time.monotonic()
    answers = at_once(server.port, [("POST", "/")] * 10, connections=10)
    print(f"ten timeouts: {time.monotonic() - began:.1f} s")
    assert statuses(answers) == {504: 10}
    assert len(shop.seen) == 10
    assert is_refusal(said := server.client().get("/")) and 25 <= said.json()["error"]["retry_after"] <= 30
    assert 'the breaker of "shop" opened for 30000 ms: 10 of 10 requests failed' in server.log()


@pytest.mark.parametrize("lines, words", [
    ("weir_breaker requests=0;", ["requests=0", "1 to 1000000"]),
    ("weir_breaker window=1ms;", ["window=1ms", "100ms to 1h"]),
    ("weir_breaker window=2h;", ["100ms to 1h"]),
    ("weir_breaker failed=60;", ["failed=60", "1% to 100%"]),
    ("weir_breaker failed=101%;", ["1% to 100%"]),
    ("weir_breaker failed=%;", ["1% to 100%"]),
    ("weir_breaker open=soon;", ["open=soon", "100ms to 1h"]),
    ("weir_breaker trials=33;", ["1 to 32"]),
    ("weir_breaker fallback=sorry;", ["fallback=@NAME"]),
    ("weir_breaker fallback=@;", ["fallback=@NAME"]),
    ("weir_breaker fallback=@nowhere;", ["no server", "@nowhere"]),
    ("weir_breaker times=1;", ["weir_breaker", "times=1"]),
    ("weir_breaker; weir_breaker;", ["duplicate"]),
    ("weir_breaker; weir_retry; weir_retry;", ["duplicate"]),
    ("weir_breaker; weir_retry times=0;", ["times=0", "1 to 10"]),
    ("weir_breaker; weir_retry wait=0;", ["wait=0", "1ms to 1m"]),
    ("weir_breaker; weir_retry budget=1;", ["0% to 100%"]),
    ("weir_breaker; weir_retry burst=0;", ["1 to 10000"]),
    ("weir_breaker; weir_retry also=POST;", ["also=PUT", "also=DELETE"]),
    ("weir_breaker; weir_retry open=1s;", ["weir_retry", "open=1s"]),
    ("weir_retry;", ["weir_retry", "weir_breaker", "same upstream"]),
])
def test_a_line_that_makes_no_sense_is_refused(front, shop, lines, words):
    server = front(upstream=lines, start=False)
    accepted, said = server.check_conf()
    (line,) = [line for line in said.splitlines() if "[emerg]" in line]
    assert not accepted
    for word in words:
        assert word in line, line


def test_it_belongs_into_an_upstream_and_needs_no_room(weir, shop):
    server = weir(start=False, http="weir_breaker;")
    assert "not allowed here" in server.check_conf()[1]
    server = weir(start=False, api=False)
    conf = server.dir / "nginx.conf"
    conf.write_text(re.sub(r"weir_\w+ [^;]*;", "", conf.read_text()).replace(
        "keepalive_requests", f"upstream shop {{ server 127.0.0.1:{shop.port}; weir_breaker; weir_retry wait=1ms; }}\nkeepalive_requests").replace(
        "backlog=8192 ;", "backlog=8192; location / { proxy_pass http://shop; }"))
    server.start()
    shop.health = first(1, status(500))
    assert server.client().get("/").status == 200
    shop.health = status(500)
    open_it(server)
