# SPDX-License-Identifier: BSD-2-Clause
"""weir_retry: what can be tried again is, as if the first try had never been; nothing else."""

import random
import re
import socket
import subprocess
import threading

import pytest
from weirtest import at_once, free_port, wait_until
from weirtest.breaker import BREAKER, CALM, LAVISH, breaker, front, is_refusal, open_it, shop, statuses  # noqa: F401
from weirtest.sick_shop import answer, drop, first, hang, status

pytestmark = pytest.mark.one_store

SLOW = "location /slow/ { proxy_read_timeout 500ms; proxy_pass http://shop; }"


def test_what_can_be_tried_again_is(front, shop):
    server = front(upstream=f"{CALM} weir_retry times=2 wait=20ms {LAVISH};", server=SLOW)
    client = server.client()
    for number, sick in enumerate([status(500), status(502), status(503), status(504), drop, hang]):
        for method in ("GET", "HEAD", "OPTIONS"):
            shop.health = first(2, sick)
            path = f"/{'slow/' if sick is hang else ''}{method}/{number}"
            said = client.request(method, path, headers={"X-Request-ID": "one"})
            assert said.status == 200, (method, number)
            assert method == "HEAD" or said.body == f"the shop, {method} {path}".encode()
            assert [visit.method for visit in shop.asked(path)] == [method] * 3
            assert said.header_all("x-shop") == []
    assert breaker(server)["retries"] == 6 * 3 * 2
    # nginx's access log has one line for each request, with all that was tried.
    assert len(re.findall(r'"GET /GET/0 HTTP', server.log("access.log"))) == 1


def test_nothing_else_is_tried_again(front, shop):
    server = front(upstream=f"{CALM} weir_retry times=2 wait=1ms {LAVISH};", server=SLOW)
    client = server.client()
    for number, sick in enumerate([status(500), status(503), drop, hang]):
        for method in ("POST", "PATCH", "PUT", "DELETE", "SEARCH"):
            shop.health = first(1, sick)
            path = f"/{'slow/' if sick is hang else ''}{method}/{number}"
            said = client.request(method, path, body="order=1")
            assert said.status >= 500, (method, number)
            assert [visit.body for visit in shop.asked(path)] == [b"order=1"], "exactly once"
    shop.kill()
    assert client.post("/dead", "order=1").status == 502
    assert breaker(server)["retries"] == 0


def test_put_and_delete_are_tried_again_if_asked_with_the_whole_body(front, shop):
    server = front(upstream=f"{CALM} weir_retry wait=1ms also=PUT also=DELETE {LAVISH};",
                   server="client_body_buffer_size 16k; client_max_body_size 8m;"
                          " location /unbuffered/ { proxy_request_buffering off; proxy_pass http://shop; }")
    for size in (0, 10, 3_000_000):  # nothing, in memory, in a file
        for sick in (status(500), drop):
            for method in ("PUT", "DELETE"):
                shop.health = first(1, sick)
                body, path = random.randbytes(size), f"/{method}/{size}/{random.random()}"
                assert server.client().request(method, path, body).status == 200
                assert [visit.body for visit in shop.asked(path)] == [body, body]
    shop.health = first(1, status(500))
    assert server.client().request("PUT", "/unbuffered/", "x" * 3_000_000).status == 500
    assert len(shop.asked("/unbuffered/")) == 1, "nginx did not keep it"


def test_a_shop_that_says_when_to_come_back_is_believed(front, shop):
    server = front(upstream=f"{CALM} weir_retry wait=1ms;")
    shop.health = status(503, ["Retry-After: 5"])
    assert server.client().get("/").status == 503
    shop.health = status(501)
    assert server.client().get("/").status == 501
    assert len(shop.seen) == 2


def test_the_last_answer_is_the_shops_own(front, shop):
    server = front(upstream=f"{CALM} weir_retry times=2 wait=1ms;")
    shop.health = lambda visit: status(500, [f"X-Try: {visit.number}", "Set-Cookie: a=b"])(visit)
    said = server.client().get("/")
    assert (said.status, said.body) == (500, b"the shop's own 500")
    assert said.header_all("x-try") == ["2"] and len(said.header_all("set-cookie")) == 1
    assert len(said.header_all("content-length")) == 1 and len(said.header_all("date")) == 1


FRESH = answer(200, b"x" * 100, ["Content-Type: text/plain"])
SICK = [  # whatever nginx takes out of an answer, into the request
    "Content-Type: text/html; charset=koi8-r", "Content-Encoding: br", "Content-Disposition: attachment",
    "Expires: Thu, 01 Jan 2015 00:00:00 GMT", "Cache-Control: private", "Cache-Control: max-age=9",
    "Last-Modified: Thu, 01 Jan 2015 00:00:00 GMT", 'ETag: "sick"', "Accept-Ranges: bytes", "Vary: *", "Link: </sick>",
    "Location: http://sick.example/", "Refresh: 5; url=/sick", "WWW-Authenticate: Basic", "Set-Cookie: sick=1", "X-Powered-By: sick",
    "Date: Thu, 01 Jan 2015 00:00:00 GMT", "Server: sick", "X-Accel-Charset: koi8-u", "X-Accel-Limit-Rate: 1000000", "Weir-Session: end",
]


@pytest.mark.parametrize("lines", [
    "", "expires epoch;", "gzip on; gzip_min_length 1; gzip_types *; gzip_proxied any;", "charset utf-8; charset_types *;",
    "proxy_pass_header Date; proxy_pass_header Server;", "proxy_buffering off;", "add_header X-Added $upstream_http_x_powered_by;",
    "add_header X-Rate $limit_rate;",
], ids=["plain", "expires", "gzip", "charset", "passed-on", "unbuffered", "added", "rate"])
def test_nothing_of_a_failed_try_is_in_the_answer(front, shop, lines):
    """It is what it would have been at the first try, to the last header."""
    server = front(upstream=f"{CALM} weir_retry times=2 wait=1ms {LAVISH};", server=lines)

    def told(method, path):
        said = server.client().request(method, path, headers={"Accept-Encoding": "gzip"})
        return said.status, said.body, [(name, value) for name, value in said.headers if name != "date"], said.header("date") is None

    for method in ("GET", "HEAD"):
        shop.health = lambda visit: FRESH
        expected = told(method, "/")
        for sick in (status(500, SICK), status(503, SICK[:10]), drop, first(1, drop, status(502, SICK))):
            shop.health = first(2, sick, lambda visit: FRESH)
            assert told(method, path := f"/{random.random()}") == expected
            assert len(shop.asked(path)) == 3


def test_what_the_request_was_given_before_is_in_the_answer_once(front, shop):
    """An X-Accel-Redirect brings along more headers than nginx keeps in one piece."""
    server = front(upstream=f"{CALM} weir_retry times=2 wait=1ms {LAVISH};", server="location /elsewhere/ { proxy_pass http://shop; }")
    cookies = [f"c{number}={number}" for number in range(25)]
    away = answer(200, b"", ["X-Accel-Redirect: /elsewhere/", *(f"Set-Cookie: {cookie}" for cookie in cookies)])
    elsewhere = first(2, status(500, SICK), lambda visit: FRESH)
    shop.health = lambda visit: away if visit.path == "/" else elsewhere(visit)
    for asked in (3, 4):  # after two retries, and without
        said = server.client().get("/")
        assert (said.status, said.body, said.header_all("set-cookie")) == (200, b"x" * 100, cookies)
        assert said.header("x-powered-by") is None and said.header("link") is None
        assert len(shop.asked("/elsewhere/")) == asked


def test_an_error_page_of_the_shops_own_keeps_its_status(front, shop):
    server = front(upstream=f"{CALM} weir_retry times=1 wait=1ms;", server="""
        location /nowhere/ { error_page 404 /sorry; return 404; }
        location = /sorry { internal; proxy_pass http://shop; }
    """)
    shop.health = first(1, status(500))
    for _ in range(2):  # after a retry, and without
        said = server.client().get("/nowhere/")
        assert (said.status, said.body) == (404, b"the shop, GET /sorry")
    assert len(shop.seen) == 3


def test_each_wait_is_longer_than_the_one_before(front, shop):
    server = front(upstream=f"{CALM} weir_retry times=4 wait=40ms;")
    shop.health = status(500)
    assert server.client().get("/").status == 500
    times = [visit.at for visit in shop.seen]
    waits = [after - before for before, after in zip(times, times[1:])]
    assert len(waits) == 4
    for number, wait in enumerate(waits):
        assert wait >= 0.040 * 2 ** number / 2 - 0.002, waits


def test_there_is_no_storm_of_retries(front, shop):
    """A tenth of the requests, and ten: whatever clients do, and however much there is to retry."""
    server = front(upstream=f"{CALM} weir_retry times=5 wait=1ms;", workers=4)
    shop.health = status(500)
    answers = at_once(server.port, [("GET", "/")] * 1000, connections=50)
    assert statuses(answers) == {500: 1000}
    told = breaker(server)
    assert 1000 + 100 <= len(shop.seen) <= 1000 + 100 + 10
    assert told["requests"] == len(shop.seen) and told["retries"] == len(shop.seen) - 1000
    assert told["retries_denied"] >= 800


def test_nobody_is_lost_while_the_shop_restarts(front, shop):
    server = front(upstream=f"{CALM} weir_retry times=10 wait=50ms {LAVISH};", workers=2)
    answers, stop = [], threading.Event()

    def visit(number):
        client = server.client()
        while not stop.is_set():
            answers.append(client.get(f"/{number}"))

    visitors = [threading.Thread(target=visit, args=(number,)) for number in range(8)]
    for visitor in visitors:
        visitor.start()
    for round in range(3):
        served = len(answers)
        wait_until(lambda: len(answers) >= served + 50, 10, "visitors")
        retries = breaker(server)["retries"]
        shop.kill()
        wait_until(lambda: breaker(server)["retries"] >= retries + 16, 10, "everybody trying again")
        shop.start()
    served = len(answers)
    wait_until(lambda: len(answers) >= served + 50, 10, "visitors")
    stop.set()
    for visitor in visitors:
        visitor.join()
    assert statuses(answers) == {200: len(answers)}


def test_what_is_being_retried_when_the_breaker_opens_is_refused(front, shop):
    server = front(upstream="weir_breaker open=1h; weir_retry times=3 wait=3s;")
    shop.kill()
    said = []
    visitor = threading.Thread(target=lambda: said.append(server.client().get("/")))
    visitor.start()
    wait_until(lambda: breaker(server)["retries"] == 1, 5, "the retry")
    open_it(server, method="POST")
    visitor.join()
    assert is_refusal(said[0])


def test_nobody_retries_for_a_client_who_went_away(front, shop):
    server = front(upstream=f"{CALM} weir_retry times=1 wait=1s;")
    shop.health = status(500)
    with socket.create_connection(("127.0.0.1", server.port)) as visitor:
        visitor.sendall(b"GET /gone HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_until(lambda: breaker(server)["retries"] == 1, 5, "the retry")
    # One that comes later waits as long, and is served: the other one's time is over then.
    assert server.client().get("/here").status == 500
    assert (len(shop.asked("/here")), len(shop.asked("/gone"))) == (2, 1)


def test_who_went_away_is_served_all_the_same_where_nginx_is_told_to(front, shop):
    server = front(upstream=f"{CALM} weir_retry times=1 wait=100ms;", server="proxy_ignore_client_abort on;")
    shop.health = first(1, status(500))
    with socket.create_connection(("127.0.0.1", server.port)) as visitor:
        visitor.sendall(b"GET /gone HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_until(lambda: breaker(server)["retries"] == 1, 5, "the retry")
    wait_until(lambda: len(shop.asked("/gone")) == 2, 5, "the retry at the shop")


def test_retries_over_kept_connections_and_pipelines(front, shop):
    server = front(upstream=f"{CALM} weir_retry wait=10ms {LAVISH}; keepalive 4;")
    shop.health = first(1, drop)
    requests = b"".join(b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n" % number for number in range(20))
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as visitor:
        visitor.sendall(requests)
        received = b""
        while received.count(b"the shop, GET /") < 20:
            received += visitor.recv(65536)
    assert re.findall(rb"the shop, GET /(\d+)", received) == [b"%d" % number for number in range(20)]
    assert received.count(b"HTTP/1.1 200") == 20


def test_retries_and_refusals_over_http_2(front, shop):
    port = free_port()
    server = front(upstream="weir_breaker open=1h; weir_retry wait=10ms;", shop=f"""
        listen 127.0.0.1:{port} http2;
        location / {{ proxy_pass http://shop; }}
    """)

    def get(path):
        done = subprocess.run(["curl", "-s", "--http2-prior-knowledge", "-w", "\n%{http_code}", f"http://127.0.0.1:{port}{path}"],
                              capture_output=True, text=True, timeout=20, check=True)
        return done.stdout.splitlines()

    shop.health = first(2, status(500))
    assert get("/again") == ["the shop, GET /again", "200"]
    shop.health = status(500)
    open_it(server)
    body, code = get("/")
    assert code == "503" and '"code":"SERVICE_UNAVAILABLE"' in body


def test_the_gate_is_asked_once_and_its_pass_goes_out_with_the_last_answer(front, shop):
    server = front(upstream=f"{BREAKER} weir_retry wait=1ms;", rooms={"hall": "rate=1000 burst=1000"},
                   server="location /hall/ { weir_gate room=hall; proxy_pass http://shop; }")
    shop.health = first(1, status(500))
    said = server.client().get("/hall/", headers={"Accept": "text/html"})
    assert said.status == 200 and len(shop.seen) == 2
    assert len([name for name in said.cookies() if name.startswith("weir-pass")]) == 1
    assert server.admin().call("GET", "gate").json()["requests"]["admitted"] == 1


def test_whoever_waits_for_a_retry_is_served_by_a_worker_that_leaves(front, shop):
    server = front(upstream=f"{CALM} weir_retry times=1 wait=1s;", workers=1)
    shop.health = first(1, status(500))
    said = []
    visitor = threading.Thread(target=lambda: said.append(server.client().get("/")))
    visitor.start()
    wait_until(lambda: breaker(server)["retries"] == 1, 5, "the retry")
    server.reload()
    visitor.join()
    assert said[0].status == 200


@pytest.mark.parametrize("version", ["--http1.1", "--http2-prior-knowledge"])
def test_a_body_of_unknown_length_is_sent_again_as_a_whole(front, shop, version):
    server = front(upstream=f"{CALM} weir_retry times=2 wait=1ms also=PUT;", server="client_body_buffer_size 16k; client_max_body_size 8m;",
                   shop=f"""
        listen 127.0.0.1:{(port := free_port())} http2;
        client_body_buffer_size 16k; client_max_body_size 8m;
        location / {{ proxy_pass http://shop; }}
    """)
    body = random.randbytes(1_000_000)
    shop.health = first(2, status(503), first(1, drop))
    port = server.port if version == "--http1.1" else port
    done = subprocess.run(["curl", "-s", version, "-T", "-", "-H", "Expect:", f"http://127.0.0.1:{port}/up"], input=body, capture_output=True,
                          timeout=20, check=True)
    assert [visit.body for visit in shop.asked("/up")] == [body] * 3
    assert b"502" in done.stdout, "the third got no answer, and the two retries were used"
    shop.health = first(2, status(503))
    done = subprocess.run(["curl", "-s", version, "-T", "-", f"http://127.0.0.1:{port}/again"], input=body, capture_output=True,
                          timeout=20, check=True)
    assert done.stdout == b"the shop, PUT /again"


def test_nobody_retries_for_an_http_2_client_who_went_away(front, shop):
    port = free_port()
    server = front(upstream=f"{CALM} weir_retry times=1 wait=1s;", shop=f"""
        listen 127.0.0.1:{port} http2;
        location / {{ proxy_pass http://shop; }}
    """)
    shop.health = status(500)
    visitor = subprocess.Popen(["curl", "-s", "--http2-prior-knowledge", f"http://127.0.0.1:{port}/gone"])
    wait_until(lambda: breaker(server)["retries"] == 1, 5, "the retry")
    visitor.kill()
    visitor.wait()
    assert server.client().get("/here").status == 500
    assert (len(shop.asked("/here")), len(shop.asked("/gone"))) == (2, 1)


def test_a_page_that_goes_into_a_cache_is_the_one_that_was_sent(front, shop):
    """With a lock on it: who waits for the same page gets it too."""
    server = front(upstream=f"{CALM} weir_retry times=2 wait=20ms {LAVISH};", http="proxy_cache_path cache keys_zone=pages:1m;",
                   server="""
        add_header X-Cache $upstream_cache_status always;
        proxy_cache pages; proxy_cache_valid any 1h; proxy_cache_lock on; proxy_cache_lock_timeout 20s;
    """)
    for sick in (status(500), drop):
        shop.health = first(2, sick)
        path = f"/{random.random()}"
        answers = at_once(server.port, [("GET", path)] * 20, connections=20)
        assert {(said.status, said.body) for said in answers} == {(200, f"the shop, GET {path}".encode())}
        assert server.client().get(path).header("x-cache") == "HIT"
        assert shop.asked(path)[-1].number == shop.seen[-1].number and len(shop.asked(path)) == 3
