# SPDX-License-Identifier: BSD-2-Clause
"""An nginx with a breaker before a shop that fails as it is told to. The fixtures are for tests to import."""

import re

import pytest

from .sick_shop import SickShop
from .wait import wait_until

# As by default, but for the times.
BREAKER = "weir_breaker requests=10 window=10s failed=60% open=2s trials=3;"
CALM = "weir_breaker requests=1000000;"  # never opens here
LAVISH = "burst=10000"  # a budget that is no limit here

HTTP = """
    proxy_connect_timeout 1s;
    proxy_read_timeout {timeout};
    proxy_send_timeout 1s;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    upstream shop {{ server 127.0.0.1:{port} max_fails=0; {upstream} }}
    {http}
"""
SERVER = """
        location / {{ proxy_pass http://shop; }}
        {server}
"""


@pytest.fixture
def shop():
    shop = SickShop()
    yield shop
    shop.close()


@pytest.fixture
def front(weir, shop):
    """An nginx before the shop."""

    def make(upstream=BREAKER, timeout="10s", http="", server="", **kwargs):
        server = weir(http=HTTP.format(port=shop.port, upstream=upstream, timeout=timeout, http=http),
                      server=SERVER.format(server=server), admin=["ops"], **kwargs)
        server.expect_in_log(r"\[crit\].*(reset|refused|Connection)")
        return server

    return make


def breaker(server):
    (told,) = server.admin().call("GET", "breakers").json()["breakers"]
    return told


def is_refusal(answer):
    return answer.status == 503 and answer.error_code == "SERVICE_UNAVAILABLE"


def open_it(server, path="/", method="GET"):
    """Asks until the breaker refuses, which it must soon do; returns what was answered before."""
    client, before = server.client(), []
    while not is_refusal(said := client.request(method, path)):
        before.append(said.status)
        assert len(before) <= 10, before
    return before


def closes(server, path="/"):
    """Asks until it is closed again; whoever opened it for longer than a test lasts is overruled."""
    if "open=1h" in server.parts["http"]:
        set_open(server, "100ms")
    client = server.client()
    wait_until(lambda: client.get(path).status == 200 and breaker(server)["state"] == "closed", 20, "the breaker closed")


def set_open(server, time):
    server.write_conf(http=re.sub(r"open=\w+", f"open={time}", server.parts["http"]))
    server.reload()


def statuses(answers):
    counts = {}
    for said in answers:
        counts[said.status] = counts.get(said.status, 0) + 1
    return counts
