# SPDX-License-Identifier: BSD-2-Clause
"""weir_store: what it takes, how nginx finds its Redis, proves itself to it, loses it and has it again."""

import os
import re
import secrets
import signal
import subprocess
import threading
from pathlib import Path

import pytest
from weirtest import place_of, wait_until
from weirtest.names import Names
from weirtest.redis import Cluster, Sentinel, Standalone, Tls

pytestmark = pytest.mark.once

ROOMS = {"hall": "rate=100000 burst=1000 seen_ttl_sec=300"}
PASSWORD = "correct-horse-battery"
NOWHERE = "redis://127.0.0.1:1"


@pytest.fixture(scope="module")
def redis():
    with Standalone() as store:
        yield store


@pytest.fixture(scope="module")
def tls():
    with Tls() as store:
        yield store


def ready(server):
    return server.client().get("/readyz")


def wait_ready(server, timeout_sec=15):
    wait_until(lambda: ready(server).status == 200, timeout_sec, "a store that serves")


def wait_refused(server, sentence):
    wait_until(lambda: sentence in ready(server).body.decode(), 15, f"not ready, because: {sentence}")


def refusal(server):
    """What nginx -t said, which must be a refusal in one [emerg] line."""
    accepted, said = server.check_conf()
    lines = [line for line in said.splitlines() if "[emerg]" in line]
    assert not accepted and len(lines) == 1, said
    return lines[0]


def clients(server):
    """The connections of workers to this Redis: {pid: how many}."""
    pids = re.findall(r" name=weir:\S*:(\d+) ", server("CLIENT", "LIST"))
    return {int(pid): pids.count(pid) for pid in pids}


# --- the directive


@pytest.mark.parametrize("arguments, words", [
    ("127.0.0.1:6379", "begins with none of redis://"),
    ("http://127.0.0.1", "begins with none of redis://"),
    ("redis://", "is not a host"),
    ("redis://127.0.0.1:99999", "is not a host"),
    (f"redis://user:{PASSWORD}:x@127.0.0.1", "must be percent-encoded"),
    (f"redis://{PASSWORD}@127.0.0.1", "no :password"),
    (f"redis://:{PASSWORD}@127.0.0.1/words", "not a number from 0 to 65535"),
    (f"redis://:{PASSWORD}@127.0.0.1?pasword={PASSWORD}", "none of user"),
    ("redis://127.0.0.1?ca=ca.crt", "are for TLS"),
    ("redis+sentinel://127.0.0.1", "needs the name of the master"),
    (f"{NOWHERE} timeout=1ms", "from 100ms to 60s"),
    (f"{NOWHERE} timeout=61s", "from 100ms to 60s"),
    (f"{NOWHERE} timeout=soon", "from 100ms to 60s"),
    (f"{NOWHERE} replicas=-1", "from 0 to 100"),
    (f"{NOWHERE} replicas=many", "from 0 to 100"),
    (f"{NOWHERE} rooms=0", "from 1 to 100000"),
    (f"{NOWHERE} rooms=2 rooms=2", "twice"),
    (f"redis://:{PASSWORD}@127.0.0.1 {PASSWORD}", "knows a URL and timeout="),
    ("redis://no-such-host.invalid", 'the host "no-such-host.invalid", which cannot be resolved'),
    ("redis://127.0.0.1?password_file=/no/such/file", "cannot be opened"),
    ("redis://127.0.0.1?password_env=NO_SUCH_VARIABLE", "is not set"),
    ("rediss://127.0.0.1?ca=/no/such/ca.crt", "/no/such/ca.crt"),
    ("rediss://127.0.0.1?cert=/no/such/c.crt&key=/no/such/c.key", "/no/such/c.crt"),
])
def test_a_store_that_cannot_be_is_refused_and_no_password_is_quoted(weir, arguments, words):
    said = refusal(weir(start=False, rooms=ROOMS, store=arguments))
    assert words in said and PASSWORD not in said


@pytest.mark.parametrize("mode, text, words", [
    (0o644, PASSWORD, "chmod 640"),
    (0o660, PASSWORD, "chmod 640"),
    (0o600, "", "is empty"),
    (0o600, f"{PASSWORD}\n{PASSWORD}\n", "more than one line"),
    (0o600, PASSWORD * 100, "longer than a password can be"),
])
def test_a_password_file_that_is_none_or_is_open_to_all_is_refused(weir, tmp_path, mode, text, words):
    path = tmp_path / "password"
    path.write_text(text)
    path.chmod(mode)
    said = refusal(weir(start=False, rooms=ROOMS, store=f"{NOWHERE}?password_file={path}"))
    assert words in said and str(path) in said and PASSWORD not in said


def test_a_key_that_is_none_is_refused(weir, tls, tmp_path):
    (tmp_path / "not.key").write_text("nonsense")
    said = refusal(weir(start=False, rooms=ROOMS, store=f"rediss://127.0.0.1?cert={tls.cert}&key={tmp_path}/not.key"))
    assert "not.key" in said


def test_rooms_are_kept_by_a_zone_or_a_store_and_not_by_both(weir):
    for http in (f"weir_store {NOWHERE};", f"weir_store {NOWHERE}; weir_journal journal;"):
        assert "cannot stand beside weir_zone" in refusal(weir(start=False, rooms=ROOMS, http=http))
    assert "cannot stand beside weir_store" in refusal(weir(start=False, rooms=ROOMS, store=NOWHERE, http="weir_zone 8m;"))
    assert "duplicate" in refusal(weir(start=False, rooms=ROOMS, store=NOWHERE, http=f"weir_store {NOWHERE};"))
    assert "weir_journal needs a weir_zone" in refusal(weir(start=False, rooms=ROOMS, store=NOWHERE, http="weir_journal j;"))


def test_more_rooms_than_the_store_is_said_to_have_are_refused(weir):
    rooms = {name: "" for name in ("one", "two", "three")}
    assert "weir_store has place for 2: say rooms=3" in refusal(weir(start=False, rooms=rooms, store=NOWHERE, rooms_max=2))


def test_nginx_t_asks_no_server(weir):
    """Whoever tests a configuration may not be able to reach the servers."""
    accepted, said = weir(start=False, rooms=ROOMS, store=NOWHERE).check_conf()
    assert accepted, said


# --- finding the servers


def test_every_worker_is_connected_and_named_and_one_says_so(weir, redis):
    server = weir(rooms=ROOMS, store=redis.directive)
    wait_until(lambda: set(clients(redis.only)) == set(server.worker_pids()), 10, "a connection of each worker")
    wait_until(lambda: len(told_by(server, "serves")) == server.workers, 10, "a word of each worker")
    told = re.findall(r"\[notice\].*weir_store serves: (.*)", server.log())
    assert told == [f"Redis {redis.only.info('server')['redis_version']} at {redis.only.address}, standalone, 0 replicas"]


def test_what_makes_a_loss_likely_is_warned_of_once(weir, redis):
    server = weir(rooms=ROOMS, store=redis.directive)

    def warnings():
        return re.findall(rf"\[warn\].*weir_store, (\S+) at {redis.only.address}: ", server.log())

    wait_until(lambda: "no-aof" in warnings(), 10, "the warning")
    redis.only("CLIENT", "KILL", "TYPE", "normal")
    wait_ready(server)
    assert sorted(set(warnings())) == sorted(warnings()), "a warning twice"


def test_a_server_that_refuses_is_told_of_in_our_words_and_not_without_end(weir, redis):
    server = weir(rooms=ROOMS, store=redis.directive)
    wait_ready(server)

    def told():
        return re.findall(r"\[error\].*weir_store is refused: (.*)", server.log())

    assert server.api().join("hall").status == 202
    redis.only("CONFIG", "SET", "maxmemory", "1")
    try:
        assert server.api().join("hall").status == 503
        wait_until(told, 10, "a line in the log")
        for _ in range(20):
            assert server.api().join("hall").status == 503
        assert set(told()) == {"the server's memory is used up"}
        assert len(told()) < 10
    finally:
        redis.only("CONFIG", "SET", "maxmemory", "0")


def test_a_host_name_of_the_url_is_resolved_with_the_configuration(weir, redis):
    server = weir(rooms=ROOMS, store=f"redis://localhost:{redis.only.port}")
    wait_ready(server)


def test_a_host_name_is_resolved_anew_by_nginxs_resolver(weir, redis):
    """Behind a name another server may answer tomorrow: each connection asks."""
    with Names({"store.test": "127.0.0.2"}) as names:
        server = weir(rooms=ROOMS, store=f"redis://store.test:{redis.only.port}",
                      http=f"resolver 127.0.0.1:{names.port} valid=1s ipv6=off; resolver_timeout 2s;")
        wait_refused(server, "cannot be reached")
        names.addresses["store.test"] = "127.0.0.1"
        wait_ready(server)
        names.addresses.clear()

        def is_lost():
            """What the resolver was told holds for a second: until then new connections find the server."""
            redis.only("CLIENT", "KILL", "TYPE", "normal")
            return "name cannot be resolved" in ready(server).body.decode()

        wait_until(is_lost, 20, "a name that is not there any more")
        names.addresses["store.test"] = "127.0.0.1"
        wait_ready(server)


def test_a_host_name_that_a_cluster_tells_needs_a_resolver_and_says_so(weir):
    names = dict(cluster_announce_hostname="node.test", cluster_preferred_endpoint_type="hostname")
    with Cluster(primaries=1, replicas=0, **names) as store, Names({"node.test": "127.0.0.1"}) as dns:
        server = weir(rooms=ROOMS, store=store.directive)
        wait_refused(server, "nginx needs a resolver in its http block")
        server.write_conf(http=f"resolver 127.0.0.1:{dns.port} ipv6=off;")
        server.reload()
        wait_ready(server)
        assert f"at node.test:{store.servers[0].port} among them" in server.log()


def test_the_primaries_of_a_cluster_are_found(weir):
    with Cluster(replicas=0) as store:
        server = weir(rooms=ROOMS, store=store.directive)
        wait_ready(server)
        for primary in store.servers:
            wait_until(lambda: set(server.worker_pids()) <= set(clients(primary)), 10, "a connection of each worker")
        assert "weir_store serves: a cluster of 3 primaries" in server.log()


def test_the_primary_is_found_by_way_of_the_sentinels(weir):
    with Sentinel(replicas=0, sentinels=1) as store:
        server = weir(rooms=ROOMS, store=store.directive)
        wait_ready(server)
        assert f"at {store.first.address}, named by a sentinel" in server.log()


# --- who we are


def test_a_changed_password_is_used_without_a_reload(weir, tmp_path):
    with Standalone(password=PASSWORD, requirepass=PASSWORD) as store:
        path = tmp_path / "password"
        path.touch(mode=0o600)
        path.write_text(PASSWORD + "\n")
        server = weir(rooms=ROOMS, store=f"{store.url}?password_file={path}")
        wait_ready(server)
        assert server.api().join("hall").status == 202
        new = secrets.token_urlsafe(16)
        store.only("CONFIG", "SET", "requirepass", new)
        store.only.password = new
        store.only("CLIENT", "KILL", "TYPE", "normal")
        wait_refused(server, "does not take the store's user and password")
        path.write_text(new)
        wait_ready(server)
        wait_until(lambda: server.api().join("hall").status == 202, 15, "a ticket, of any worker")
        assert PASSWORD not in server.log() and new not in server.log()


def test_a_user_of_the_servers_own_list_is_let_in(weir, tmp_path):
    with Standalone() as store:
        store.only("ACL", "SETUSER", "weir", "on", f">{PASSWORD}", "~*", "+@all")
        store.only("ACL", "SETUSER", "default", "off")
        store.only.password = None
        path = tmp_path / "password"
        path.touch(mode=0o600)
        path.write_text(PASSWORD)
        server = weir(rooms=ROOMS, store=f"{store.url}?user=weir&password_file={path}")
        wait_ready(server)
        assert server.api().join("hall").status == 202


def test_a_password_of_the_environment_is_used_and_shown_nowhere(weir):
    with Standalone(password=PASSWORD, requirepass=PASSWORD) as store:
        server = weir(rooms=ROOMS, store=f"{store.url}?password_env=STORE_PASSWORD", env={"STORE_PASSWORD": PASSWORD},
                      log_level="debug")
        wait_ready(server)
        assert server.api().join("hall").status == 202
        server.reload()
        wait_ready(server)
        for pid in [server.process.pid, *server.worker_pids()]:
            assert PASSWORD.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
        store.only("CONFIG", "SET", "requirepass", "another")
        store.only.password = "another"
        store.only("CLIENT", "KILL", "TYPE", "normal")
        wait_refused(server, "does not take the store's user and password")
        assert PASSWORD not in server.log() and PASSWORD not in server.log("stderr.log")


def test_a_password_file_that_the_workers_may_not_read_is_told_of_at_the_start(weir, tmp_path):
    """Read by the master, and by workers of another user; without root there is no other user, and it is withdrawn later."""
    is_root = os.getuid() == 0
    with Standalone(password=PASSWORD, requirepass=PASSWORD) as store:
        path = store.only.folder / "password"
        path.touch(mode=0o600)
        path.write_text(PASSWORD)
        server = weir(rooms=ROOMS, store=f"{store.url}?password_file={path}", user="www-data")
        if not is_root:
            path.chmod(0)
            store.only("CLIENT", "KILL", "TYPE", "normal")
        wait_refused(server, "may not be read by this user")
        assert "may not be read by this user" in server.log()
        subprocess.run(["chown", "www-data", path] if is_root else ["chmod", "600", path], check=True)
        wait_ready(server)


# --- TLS


def test_a_server_with_the_right_certificate_is_believed(weir, tls):
    for host in ("127.0.0.1", "localhost"):
        server = weir(rooms=ROOMS, store=tls.url.replace("127.0.0.1", host))
        wait_ready(server)
        assert server.api().join("hall").status == 202


@pytest.mark.parametrize("options, sentence", [
    ("{ca}&{own}&name=shop.example", "certificate is for another name"),
    ("{ca}&{own}&name=127.0.0.2", "certificate is for another name"),
    ("{own}", "certificate is not one that we trust"),
    ("{ca}", "does it want TLS, or a certificate"),
])
def test_who_proves_nothing_is_not_spoken_to(weir, tls, options, sentence):
    options = options.format(ca=f"ca={tls.ca}", own=f"cert={tls.cert}&key={tls.key}")
    server = weir(rooms=ROOMS, store=f"rediss://{tls.only.address}?password_file={tls.password_file}&{options}")
    wait_refused(server, sentence)
    assert sentence in server.log()
    assert clients(tls.only) == {}


@pytest.mark.parametrize("options", ["{ca}&verify=ca&name=shop.example", "verify=none"])
def test_what_the_operator_gives_up_is_not_checked(weir, tls, options):
    options = options.format(ca=f"ca={tls.ca}")
    own = f"cert={tls.cert}&key={tls.key}"
    server = weir(rooms=ROOMS, store=f"rediss://{tls.only.address}?password_file={tls.password_file}&{own}&{options}")
    wait_ready(server)


# --- losses


def test_while_redis_is_away_everybody_is_told_so_and_then_all_is_well_by_itself(weir):
    with Standalone(appendonly="yes", appendfsync="always") as store:
        server = weir(rooms=ROOMS, store=f"{store.url} timeout=300ms")
        token = server.api().ticket("hall")
        wait_until(lambda: news(server) == ["serves"], 10, "a word of the first worker")
        store.only.kill()
        answer = server.api().join("hall")
        assert (answer.status, answer.error_code) == (503, "ENGINE_UNAVAILABLE")
        assert int(answer.header("retry-after")) > 0
        wait_refused(server, "cannot be reached")
        assert server.client().get("/healthz").status == 200
        wait_until(lambda: news(server) == ["serves", "cannot serve"], 10, "a word about it")
        store.only.start()
        wait_ready(server)
        for _ in range(5):  # of any worker: each comes back by itself
            wait_until(lambda: server.api().status(token).status == 200, 10, "the place in line")
        wait_until(lambda: news(server) == ["serves", "cannot serve", "serves"], 10, "one line a change")


def test_a_server_that_still_reads_its_data_back_is_not_ready(weir):
    """It answers who it is, and refuses all else, for minutes if there is much."""
    with Standalone(save="3600 100000", loading_process_events_interval_bytes=1024) as store:
        store.only("MSET", *(word for i in range(2000) for word in (f"other:{i}", "x" * 50)))
        store.only("SAVE")
        store.only.kill()
        with open(store.only.conf, "a", encoding="ascii") as conf:
            conf.write("key-load-delay 20000\n")  # 40 s for all of them
        store.only.begin()
        server = weir(rooms=ROOMS, store=f"{store.url} timeout=300ms")
        wait_refused(server, "reading its data back")
        assert server.api().join("hall").error_code == "ENGINE_UNAVAILABLE"
        store.only("CONFIG", "SET", "key-load-delay", "0")
        wait_ready(server)
        assert server.api().join("hall").status == 202


def news(server):
    """What the first worker said."""
    return re.findall(r"\[(?:notice|error)\].*weir_store (serves|cannot serve): ", server.log())


def test_workers_that_differ_do_not_contradict_each_other_in_the_log(weir):
    """Each has connections of its own, and they come back one after the other."""
    with Standalone() as store:
        server = weir(rooms=ROOMS, gate="hall", workers=4, store=f"{store.url} timeout=200ms")
        wait_until(lambda: len(told_by(server, "serves")) == 4, 10, "four workers that have it")
        store.only.kill()
        wait_until(lambda: knock(server) and len(told_by(server, "cannot serve")) >= 4, 20, "four workers that miss it")
        store.only.start()
        wait_until(lambda: knock(server) and len(told_by(server, "serves")) >= 8, 20, "four workers that have it again")
        knock(server)
        lost, found = (server.log().count(words) for words in ("goes on without its engine", "has its engine again"))
        assert 1 <= lost <= 4 and 1 <= found <= 4


def knock(server):
    """At the gate, at all workers: a connection goes to any of them. It lets by who asks what may be asked, without its engine."""
    question = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST"}
    return [server.client().request("OPTIONS", "/", headers=question) for _ in range(40)]


def told_by(server, words):
    return re.findall(rf"weir_store {words}: ", server.log())


def test_a_worker_that_leaves_stays_for_those_who_wait_for_an_answer(weir):
    with Standalone() as store:
        server = weir(rooms=ROOMS, store=f"{store.url} timeout=10s")
        wait_ready(server)
        old = server.worker_pids()
        answers = []
        store.only.pause()
        visitors = [threading.Thread(target=lambda: answers.append(server.api().join("hall"))) for _ in range(8)]
        for visitor in visitors:
            visitor.start()
        wait_until(lambda: waiting(server, old) == len(visitors), 10, "everybody's request")
        server.reload()
        store.only.resume()
        for visitor in visitors:
            visitor.join()
        assert [answer.status for answer in answers] == [202] * len(visitors)
        assert sorted(place_of(answer.json()["waiting_token"]).count for answer in answers) == list(range(1, len(visitors) + 1))
        wait_until(lambda: not set(server._children()) & set(old), 10, "the end of the old workers")


def test_a_worker_whose_time_is_over_leaves_though_redis_is_silent(weir):
    with Standalone() as store:
        server = weir(rooms=ROOMS, store=f"{store.url} timeout=60s")
        wait_ready(server)
        old = server.worker_pids()
        store.only.pause()
        answers = []
        visitor = threading.Thread(target=lambda: answers.append(server.api().join("hall")))
        visitor.start()
        wait_until(lambda: waiting(server, old) > 0, 10, "the request")
        server.reload()
        wait_until(lambda: not set(server._children()) & set(old), 20, "the end of the old workers")
        store.only.resume()
        visitor.join()


def waiting(server, pids):
    """Established connections to the server's port that its workers hold."""
    inodes = {os.readlink(link) for pid in pids for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()}
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    ours = [line for line in lines if line[1].endswith(f":{server.port:04X}") and line[3] == "01"]
    return len([line for line in ours if f"socket:[{line[9]}]" in inodes])


def test_one_process_alone_serves_and_refuses_to_be_reloaded(weir, redis):
    """Nobody could take its connections over from it."""
    server = weir(start=False, rooms=ROOMS, store=redis.directive)
    conf = server.dir / "nginx.conf"
    conf.write_text(conf.read_text().replace("master_process on;", "master_process off;"))
    server.workers = 0
    server.start()
    token = server.api().ticket("hall")
    server.expect_in_log("cannot be reloaded")
    server.send(signal.SIGHUP)
    wait_until(lambda: "weir_store cannot be reloaded: restart it" in server.log(), 10, "the refusal")
    assert server.api().status(token).status == 200


def test_a_worker_that_is_killed_takes_nothing_along(weir, redis):
    server = weir(rooms=ROOMS, store=redis.directive)
    tokens = [server.api().ticket("hall") for _ in range(20)]
    for pid in server.worker_pids():
        server.kill_worker(pid)
    wait_until(lambda: len(server.worker_pids()) == server.workers, 10, "new workers")
    wait_ready(server)
    assert [server.api().status(token).status for token in tokens] == [200] * 20


def test_an_nginx_that_is_told_to_end_at_once_ends_while_people_wait(weir):
    with Standalone() as store:
        server = weir(rooms=ROOMS, store=f"{store.url} timeout=10s")
        wait_ready(server)
        store.only.pause()
        client = server.client()
        visitor = threading.Thread(target=lambda: pytest.raises(Exception, client.post, "/api/v1/queue/join", {"event_id": "hall"}))
        visitor.start()
        wait_until(lambda: waiting(server, server.worker_pids()) > 0, 10, "the request")
        server.send(signal.SIGTERM)
        server.process.wait(10)
        store.only.resume()
        visitor.join()
