# SPDX-License-Identifier: BSD-2-Clause
"""`weir redis check`, against real servers in every arrangement, and against one that says what no server should."""

import socket
import socketserver
import subprocess
import threading

import pytest

from weirtest.command import assert_one_line, binary, environment, run
from weirtest.redis import Cluster, Sentinel, Standalone, Tls

pytestmark = pytest.mark.once

ROOM = "evt_2025_1001"


@pytest.fixture
def store():
    with Standalone() as store:
        yield store


def check(*words, **kwargs):
    return run("redis", "check", *words, **kwargs)


def keep_room(server, room):
    """A room with 2 waiting, as docs/formats/redis.md writes it, and its line in the registry."""
    server("HSET", f"queue:room:{{{room}}}", "epoch", 7, "away", 1, "called", 3, "entered", 4, "active", 5, "issued", 99, "calls", 80)
    server("ZADD", f"queue:event:{{{room}}}", 1, "holder-1", 2, "holder-2")
    server("HSET", f"queue:settings:{{{room}}}", "rate", 10)


def names_of(warnings):
    return [warning["name"] for warning in warnings]


# --- what it tells


def test_a_room_is_shown_with_its_slot_its_people_and_its_memory(store):
    keep_room(store.only, ROOM)
    (room,) = check(store.url, "--room", ROOM, "--json").json()["rooms"]
    keys = [f"queue:{kind}:{{{ROOM}}}" for kind in ("room", "event", "settings")]
    assert room.pop("memory_bytes") == sum(store.only("MEMORY", "USAGE", key) for key in keys)
    assert room == {"id": ROOM, "slot": 3998, "shard": store.only.address, "exists": True, "epoch": 7, "waiting": 2, "away": 1,
                    "called": 3, "entered": 4, "active": 5, "issued": 99, "calls": 80, "keys": 3}
    cells = check(store.url, "--room", ROOM).cells()
    assert cells[ROOM][:7] == ["3998", store.only.address, "2", "1", "3", "4", "5"]
    assert cells[ROOM][7:10] == ["99", "80", "3"]


def test_rooms_of_the_registry_and_those_named_are_shown_once_by_name(store):
    store.only("ZADD", "queue:rooms", 0, "stand", 0, "hall", 1700000000, "deleted")
    keep_room(store.only, "hall")
    rooms = check(store.url, "--room", "hall,box", "--json").json()["rooms"]
    assert [(room["id"], room["exists"]) for room in rooms] == [("box", False), ("hall", True), ("stand", False)]
    assert rooms[0]["waiting"] is None and rooms[0]["keys"] == 0 and rooms[0]["memory_bytes"] == 0


def test_a_server_is_shown_as_it_says_it_is(store):
    store.only("SET", "one", 1)
    store.only("EVAL", "return 1", 0)
    report = check(store.url, "--json").json()
    (shard,) = report["shards"]
    assert report["mode"] == "standalone" and report["url"] == f"{store.url}/0" and report["rooms"] == []
    assert shard["address"] == store.only.address and shard["slots"] == 16384 and shard["role"] == "primary"
    assert (shard["server"], shard["version"]) == ("Redis", store.only.info("server")["redis_version"])
    assert shard["keys"] == 1 and shard["script_runs"] == 1 and shard["replicas"] == []
    assert shard["memory_bytes"] > 500_000 and shard["commands"] > 2
    assert "There are no rooms." in check(store.url).lines()


def test_scripts_of_this_version_are_counted(store):
    known = check(store.url, "--json").json()["shards"][0]["scripts"]
    assert known["known"] == 0 and known["of"] == len(known["missing"]) >= 18 and "join" in known["missing"]


def test_warnings_are_named_and_are_no_failure(store):
    done = check(store.url)
    assert done.code == 0 and done.err == ""
    for name in ("no-replica", "no-min-replicas", "no-aof"):
        assert f"Warning: {store.only.address}: {name}: " in done.out
    assert names_of(check(store.url, "--json").json()["shards"][0]["warnings"]) == ["no-replica", "no-min-replicas", "no-aof"]
    store.only("CONFIG", "SET", "maxmemory", "100mb", "maxmemory-policy", "allkeys-lru")
    warnings = check(store.url, "--replicas", 1, "--json").json()["shards"][0]["warnings"]
    assert names_of(warnings) == ["no-replica", "too-few-replicas", "no-min-replicas", "no-aof", "eviction"]


def test_nothing_is_changed_and_no_key_is_scanned(store):
    keep_room(store.only, ROOM)
    changes = store.only.info("persistence")["rdb_changes_since_last_save"]
    check(store.url, "--room", ROOM).lines()
    assert store.only.info("persistence")["rdb_changes_since_last_save"] == changes
    assert not {"cmdstat_scan", "cmdstat_keys", "cmdstat_hscan", "cmdstat_zscan"} & store.only.info("commandstats").keys()


# --- arrangements


def test_every_shard_of_a_cluster_is_shown_from_one_address_and_every_room_where_it_is():
    with Cluster() as store:
        rooms = [ROOM, "a", "b", "c"]
        for room in rooms:
            keep_room(store.owner(room), room)
        report = check(store.url, "--room", ",".join(rooms), "--replicas", 1, "--json").json()
        assert report["mode"] == "cluster"
        assert {shard["address"] for shard in report["shards"]} == {server.address for server in store.primaries}
        assert sum(shard["slots"] for shard in report["shards"]) == 16384
        replicas = [replica for shard in report["shards"] for replica in shard["replicas"]]
        assert {replica["address"] for replica in replicas} == {server.address for server in store.servers[3:]}
        assert {replica["state"] for replica in replicas} == {"online"} and replicas[0]["lag_bytes"] is not None
        for shard in report["shards"]:
            assert names_of(shard["warnings"]) == ["no-min-replicas", "no-aof"]
        for room in report["rooms"]:
            assert room["slot"] == store.servers[0]("CLUSTER", "KEYSLOT", f"queue:event:{{{room['id']}}}")
            assert room["shard"] == store.owner(room["id"]).address and room["waiting"] == 2
        assert next(room["slot"] for room in report["rooms"] if room["id"] == ROOM) == 3998
        assert names_of(check(store.url, "--replicas", 0, "--json").json()["shards"][0]["warnings"])[0] == "unasked-replicas"

        gone = store.owner("a")
        gone.kill()
        done = check(store.url, "--room", f"a,{ROOM}")
        assert done.code == 1 and done.err == f"weir: {gone.address}: Nobody listens there.\n"
        assert "not reached" in done.out and "127.0.0.1" in done.out


def test_the_primary_is_found_through_sentinels():
    with Sentinel() as store:
        report = check(store.url, "--json").json()
        (shard,) = report["shards"]
        assert report["mode"] == "sentinel" and shard["address"] == store.primary.address
        assert [replica["address"] for replica in shard["replicas"]] == [server.address for server in store.followers]
        assert_one_line(check(store.url.replace("/weir", "/other")), 1, "do not know a master of this name")


def test_a_server_over_tls_is_reached_with_its_password_and_certificates():
    with Tls() as store:
        store.password_file.chmod(0o640)
        keep_room(store.only, ROOM)
        assert check(store.url, "--room", ROOM, "--json").json()["rooms"][0]["waiting"] == 2
        at, client = store.only.address, f"cert={store.cert}&key={store.key}"
        named = f"rediss://localhost:{store.only.port}?password_file={store.password_file}&ca={store.ca}&{client}"
        assert check(named, "--json").json()["mode"] == "standalone"
        assert_one_line(check(named + "&name=elsewhere"), 1, "certificate is for another name")
        assert check(named + "&name=elsewhere&verify=ca", "--json").code == 0
        assert_one_line(check(f"rediss://{at}?password_file={store.password_file}&{client}"), 1, "not one that is trusted")
        assert check(f"rediss://{at}?password_file={store.password_file}&{client}&verify=none").code == 0
        assert_one_line(check(f"rediss://{at}?ca={store.ca}&cert={store.ca}&key={store.key}"), 1, "do not belong together")
        assert_one_line(check(f"rediss://{at}?ca=/nowhere"), 1, "cannot be read")
        assert_one_line(check(f"redis://{at}"), 1, f"redis://{at}/0: ")
        store.password_file.chmod(0o644)
        assert_one_line(check(store.url), 1, "chmod 640")


# --- passwords


@pytest.fixture
def guarded():
    with Standalone(password="r1ght&%", requirepass="r1ght&%") as store:
        yield store


def test_a_password_comes_from_the_url_a_variable_or_a_file(guarded, tmp_path):
    at, secret = guarded.only.address, tmp_path / "password"
    secret.write_text("r1ght&%\n")
    secret.chmod(0o600)
    url = f"redis://:r1ght%26%25@{at}"
    for words, env in [
        ([], {"WEIR_STORE": url}),
        ([url], {}),
        ([f"redis://{at}?password_env=SECRET"], {"SECRET": "r1ght&%"}),
        ([f"redis://{at}?password_file={secret}"], {}),
        ([f"redis://{at}?user=default&password_file={secret}"], {"WEIR_STORE": "redis://elsewhere"}),
    ]:
        done = check(*words, env=env)
        assert done.code == 0, done.err
        assert "r1ght" not in done.out + done.err
    assert f"redis://:***@{at}/0" in check(url).out


@pytest.mark.parametrize("password, said", [
    (":wr0ng@", "does not take the store's user and password"),
    ("nobody:wr0ng@", "does not take the store's user and password"),
    ("", "wants a password"),
])
def test_who_is_not_let_in_is_told_so_without_the_password(guarded, password, said):
    done = check(f"redis://{password}{guarded.only.address}")
    assert_one_line(done, 1, said)
    assert "wr0ng" not in done.err


def test_a_password_that_is_not_to_be_had_is_named(guarded, tmp_path):
    at = guarded.only.address
    assert_one_line(check(f"redis://{at}?password_env=NOT_THERE"), 1, "variable with the store's password is not set")
    assert_one_line(check(f"redis://{at}?password_file={tmp_path}/none"), 1, "password file cannot be opened")


def test_what_a_user_may_not_ask_is_left_out(store):
    keep_room(store.only, ROOM)
    store.only("ACL", "SETUSER", "some", "on", ">pw", "~*", "+info", "+client|setname", "+hmget", "+zcard")
    report = check(f"redis://some:pw@{store.only.address}", "--room", ROOM, "--json").json()
    (shard,), (room,) = report["shards"], report["rooms"]
    assert shard["keys"] is None and shard["scripts"] is None and "no-aof" in names_of(shard["warnings"])
    assert room["waiting"] == 2 and room["memory_bytes"] is None and room["keys"] is None


# --- what goes wrong


@pytest.mark.parametrize("words, part", [
    ([], "weir redis check"),
    (["check"], "WEIR_STORE"),
    (["check", "http://host"], "that is no store"),
    (["check", "redis://host", "more"], "weir redis check"),
    (["check", "redis://host", "--room", "a b"], "--room"),
    (["check", "redis://host", "--replicas", "many"], "--replicas"),
    (["check", "redis://host", "--url", "http://x"], "--url"),
    (["list"], "weir redis check"),
])
def test_a_wrong_line_is_one_sentence_and_exit_code_2(words, part):
    assert_one_line(run("redis", *words), 2, part)


def test_a_secret_in_a_url_that_cannot_be_read_is_not_repeated():
    assert "hunter2" not in check("redis://:hunter2@host:port").err


def test_a_server_that_is_not_there_is_named():
    assert_one_line(check("redis://127.0.0.1:1"), 1, "redis://127.0.0.1:1/0: Nobody listens there.")
    assert_one_line(check("redis://no-such-host.invalid"), 1, "name of the host is not known")


def test_a_server_that_says_nothing_is_given_up():
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        assert_one_line(check(f"redis://127.0.0.1:{deaf.getsockname()[1]}"), 1, "in time")


class Liar(socketserver.StreamRequestHandler):
    """A server whose words are for the terminal of whoever asks, and whose numbers are none."""

    def handle(self):
        while (line := self.rfile.readline()).startswith(b"*"):
            words = []
            for _ in range(int(line[1:])):
                words.append(self.rfile.read(int(self.rfile.readline()[1:]) + 2)[:-2].decode())
            self.wfile.write(self.answer(words))

    def answer(self, words):
        info = ("redis_mode:standalone\r\nredis_version:9.\x1b[31m\r\nrun_id:x\r\nrole:master\r\nconnected_slaves:2\r\n"
                "used_memory:99999999999999999999\r\nmaxmemory:-1\r\nmaster_repl_offset:x\r\ncmdstat_eval:calls=,usec\r\n"
                "slave0:ip=\x1b[2J,port=1,state=\x1b]0;x\x07,offset=5,lag=-1\r\nslave1:ip=h,port=99999,,=,state\r\n")
        if words[0] == "INFO":
            return b"$%d\r\n%s\r\n" % (len(info), info.encode())
        if words[0] == "ZRANGEBYSCORE":
            return b"*3\r\n$4\r\nhall\r\n$3\r\n\x1b[m\r\n:5\r\n"
        if words[0] == "HMGET":
            return b"*2\r\n$1\r\nx\r\n*0\r\n"
        if words[0] == "SCRIPT":
            return b"*1\r\n:1\r\n"
        return b":-5\r\n" if words[0] == "ZCARD" else b"-ERR \x1b[31m no\r\n"


def test_nothing_that_a_server_says_reaches_the_terminal_as_it_is():
    class Many(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Many(("127.0.0.1", 0), Liar) as liar:
        threading.Thread(target=liar.serve_forever, daemon=True).start()
        try:
            done = check(f"redis://127.0.0.1:{liar.server_address[1]}")
            report = check(f"redis://127.0.0.1:{liar.server_address[1]}", "--json").json()
        finally:
            liar.shutdown()
    assert done.code == 0 and not any(ord(letter) < 32 and letter != "\n" for letter in done.out + done.err)
    (shard,), (room,) = report["shards"], report["rooms"]
    assert shard["version"] is None and shard["memory_bytes"] is None and shard["scripts"] is None
    assert room["id"] == "hall" and room["waiting"] is None and room["exists"] is None


def test_output_that_cannot_be_written_is_a_failure(store):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([binary(), "redis", "check", store.url], stdout=full, stderr=subprocess.PIPE, env=environment())
    assert done.returncode == 1
