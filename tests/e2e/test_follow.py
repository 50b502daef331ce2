# SPDX-License-Identifier: BSD-2-Clause
"""pace=auto: a real shop that can only do so much, and people who are let in as fast as it can take them."""

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from weirtest import wait_until
from weirtest.breaker import shop  # noqa: F401
from weirtest.sick_shop import answer, fine, hang, status

REQUESTS = 4  # of a visit, the last of which ends it
RATE_MAX = 20
# Nobody needs to poll: who is called is seen from the figures.
# The target is one that a busy machine keeps, too.
ROOM = (f"pace=auto rate=15 rate_min=1 rate_max={RATE_MAX} shop_target_ms=400 max_active=0 seen_ttl_sec=3600 "
        "claim_ttl_sec=3600")
SERVER = """
        location / {{ weir_gate room=sale; proxy_pass http://shop; }}
"""
HTTP = """
    proxy_read_timeout 5s;
    upstream shop {{ server 127.0.0.1:{port} max_fails=0; {upstream} }}
"""


@pytest.fixture
def front(weir, shop):
    def make(room=ROOM, upstream="", **kwargs):
        return weir(rooms={"sale": room}, http=HTTP.format(port=shop.port, upstream=upstream),
                    server=SERVER.format(), admin=["ops"], **kwargs)

    return make


class Throttle:
    """Serves one request after the other, so many a second, and takes its leave of who asks for the last page."""

    def __init__(self, per_sec):
        self.per_sec = per_sec
        self.lock = threading.Lock()
        self.next = 0

    def __call__(self, visit):
        with self.lock:
            self.next = max(self.next, time.monotonic()) + 1 / self.per_sec
            turn = self.next
        time.sleep(max(0, turn - time.monotonic()))
        return answer(200, headers=["Weir-Session: end"] if visit.path == "/done" else [])


class Sale:
    """A line that never ends: who is called comes in and visits the shop."""

    def __init__(self, server):
        self.server = server
        self.told = None  # the room's figures
        self.tokens = []
        self.inside = 0
        self.rates = []  # (when, calls per second)
        self.reasons = set()
        self.statuses = []
        self.pool = ThreadPoolExecutor(200)
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def __enter__(self):
        self.thread.start()
        wait_until(lambda: self.told, 10, "the first figures")
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()
        self.pool.shutdown()

    def mean(self, seconds):
        """The pace over the last seconds."""
        recent = [rate for at, rate in self.rates if at > time.monotonic() - seconds]
        return sum(recent) / len(recent)

    def _run(self):
        client, admin = self.server.api(cookies=False), self.server.admin()
        while not self.is_over.is_set():
            told = self.told = admin.call("GET", "rooms/sale/figures").json()
            self.rates.append((time.monotonic(), told["rate"]))
            self.reasons.add(told["pace_reason"])
            while len(self.tokens) < told["calls"] + 60:
                self.tokens.append(client.ticket("sale"))
            for token in self.tokens[self.inside:told["calls"]]:
                self.pool.submit(self._visit, token)
            self.inside = told["calls"]
            self.is_over.wait(0.1)

    def _visit(self, token):
        client = self.server.api()
        entered = client.enter(token).json()
        for number in range(REQUESTS):
            page = "/done" if number == REQUESTS - 1 else f"/page{number}"
            said = client.get(page, headers={"x-queue-entry-token": entered["reservation_token"]})
            self.statuses.append(said.status)
            self.is_over.wait(0.2)


@pytest.mark.one_store
def test_the_pace_follows_a_shop_that_gets_slower_and_faster(front, shop):
    shop.health = Throttle(30 * REQUESTS)
    with Sale(front()) as sale:
        wait_until(lambda: sale.told["pace_reason"] == "full", 120, "the pace at its highest")
        shop.health.per_sec = 7 * REQUESTS
        wait_until(lambda: 7 * 0.5 < sale.mean(8) < 7 * 1.15, 120, "the pace of the slower shop")
        assert {"well", "slow"} <= sale.reasons
        shop.health.per_sec = 30 * REQUESTS
        wait_until(lambda: sale.told["pace_reason"] == "full", 240, "the pace at its highest again")
    assert max(rate for _, rate in sale.rates) == RATE_MAX
    assert sale.statuses.count(200) > 0.75 * len(sale.statuses)


@pytest.mark.one_store
def test_failures_bring_the_pace_down_as_well(front, shop):
    with Sale(front()) as sale:
        wait_until(lambda: "well" in sale.reasons or "full" in sale.reasons, 30, "the pace up")
        shop.health = status(500)
        wait_until(lambda: sale.told["rate"] < 3, 60, "the pace down")
        assert sale.told["pace_reason"] == "failing" and sale.told["shop_failed_percent"] > 50
        shop.health = fine
        wait_until(lambda: sale.told["rate"] > 6, 60, "the pace up again")


def test_nobody_is_called_while_the_breaker_is_open(front, shop):
    server = front(upstream="weir_breaker requests=5 open=10s;")
    server.expect_in_log(r"\[error\].*breaker")
    with Sale(server) as sale:
        wait_until(lambda: 200 in sale.statuses, 10, "a visit")
        shop.health = status(500)
        wait_until(lambda: sale.told["pace_reason"] == "frozen", 20, "the freeze")
        frozen = sale.told
        shop.health = fine
        wait_until(lambda: sale.told["pace_reason"] == "frozen" and sale.server.admin().call("GET", "breakers").json()
                   ["breakers"][0]["retry_after"] <= 5, 10, "half of the time the shop is left alone")
        assert (sale.told["calls"], sale.told["rate"]) == (frozen["calls"], frozen["rate"])
        wait_until(lambda: sale.told["calls"] > frozen["calls"] + 20, 60, "people called again")


def test_what_a_cache_or_nobody_answers_says_nothing_of_the_shop(front, shop):
    server = front()
    client = server.api()
    token = client.ticket("sale")
    shop.health = hang
    entered = client.enter(token).json()
    with socket.create_connection(("127.0.0.1", server.port)) as impatient:
        impatient.sendall(f"GET /slow HTTP/1.1\r\nHost: x\r\nx-queue-entry-token: {entered['reservation_token']}\r\n\r\n".encode())
        wait_until(lambda: shop.asked("/slow"), 5, "the request at the shop")
    shop.health = fine
    said = client.get("/quick", headers={"x-queue-entry-token": entered["reservation_token"]})
    assert said.status == 200
    told = wait_until(lambda: (now := server.admin().call("GET", "rooms/sale/figures").json())["pace_reason"] != "begin" and now,
                      20, "what was seen")
    assert (told["shop_failed_percent"], told["rate"], told["pace_reason"]) == (0, 15, "unused")
