# SPDX-License-Identifier: BSD-2-Clause
"""docs/operating-redis.md, held to real servers: who follows it has a user that may do just what is needed, and no warning."""

import re
from pathlib import Path

import pytest
from weirtest import wait_until
from weirtest.command import run
from weirtest.redis import Cluster, Sentinel, Standalone

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs/operating-redis.md").read_text()
PASSWORD = "pw-of-weir"

# What the client itself sends, beside the scripts: links and their greeting, the map of a cluster, a slot that moves, confirming.
OF_CLIENT = {"select", "client|setname", "info", "cluster|slots", "asking", "eval", "evalsha", "wait"}
OF_WARNINGS = {"config|get"}
OF_CHECK = {"script|exists", "memory|usage", "dbsize"}


def rule_of(user):
    """The words of the page's `ACL SETUSER user …`, over as many lines as it takes."""
    text = re.search(rf"^    ACL SETUSER ({user} .*(?:\n        .*)*)", PAGE, re.M).group(1)
    return [word.replace("PASSWORD", PASSWORD) for word in text.split()]


def allowed(user):
    return {word[1:].lower() for word in rule_of(user) if word.startswith("+")}


def commands_of_scripts():
    texts = [path.read_text() for path in (ROOT / "lua").rglob("*.lua")]
    return {name.lower() for text in texts for name in re.findall(r"\bcall\('([A-Z]+)'", text)}


def refused(server):
    return server("ACL", "LOG")


def test_the_user_of_the_page_may_do_just_what_is_needed():
    assert allowed("weir") == commands_of_scripts() | OF_CLIENT | OF_WARNINGS
    assert allowed("weir-check") == OF_CHECK | OF_WARNINGS | {"select", "client|setname", "info", "cluster|slots", "asking"} | {
        "hmget", "zcard", "exists", "zrangebyscore"}


@pytest.mark.parametrize("make", [Standalone, Cluster])
def test_all_of_a_visit_works_for_that_user(weir, make):
    with make() as store:
        for server in store.servers:
            server("ACL", "SETUSER", *rule_of("weir"))
            server("ACL", "SETUSER", *rule_of("weir-check"))
        url = store.url.replace("redis://", f"redis://weir:{PASSWORD}@")
        server = weir(rooms={"hall": "rate=100 burst=100", "held": "mode=hold"}, gate="hall", store=f"{url} replicas={store.replicas}",
                      admin=["ops"])
        api = server.api()
        wait_until(lambda: api.join("held").status == 202, 20, "a join that is taken")
        token = api.ticket("hall")
        assert api.status(token).status == 200 and api.heartbeat(token).status == 200
        assert api.enter(token).status == 200
        assert api.leave(token).status == 200
        done = run("redis", "check", url.replace("weir:", "weir-check:"), "--json")
        rooms = {room["id"]: room for room in done.json()["rooms"]}
        assert rooms["held"]["waiting"] >= 1 and rooms["held"]["memory_bytes"] > 0 and rooms["held"]["keys"] >= 4
        assert all(shard["scripts"] is not None and shard["keys"] is not None for shard in done.json()["shards"])
        assert [refused(server) for server in store.servers] == [[] for _ in store.servers]
        server.stop()


def test_sentinels_let_their_user_ask_for_the_primary_and_nothing_else():
    with Sentinel() as store:
        for server in store.sentinels:
            server("ACL", "SETUSER", *rule_of("weir-sentinel"))
        url = store.url + "?sentinel_user=weir-sentinel&sentinel_password_env=SENTINEL"
        done = run("redis", "check", url, "--json", env={"SENTINEL": PASSWORD})
        assert done.json()["shards"][0]["address"] == store.primary.address
        assert [refused(server) for server in store.sentinels] == [[]] * 3


def test_a_server_with_the_settings_of_the_page_is_not_warned_of():
    text = re.search(r"^    # redis\.conf\n((?:    .*\n)+)", PAGE, re.M).group(1)
    lines = [line.strip().split(" #")[0] for line in text.splitlines()]
    with Sentinel(config="\n".join(lines) + "\n") as store:
        (shard,) = run("redis", "check", store.url, "--replicas", 1, "--json").json()["shards"]
        assert shard["warnings"] == []


def test_every_warning_is_explained_under_its_name():
    header = (ROOT / "src/redis/probe.h").read_text()
    names = re.findall(r'PROBE\([\s\\]*\w+,[\s\\]*"([a-z-]+)"', header)
    rows = re.findall(r"^\| `([a-z-]+)` \|", PAGE[PAGE.index("## Warnings"):], re.M)
    assert len(names) >= 8 and rows == names
