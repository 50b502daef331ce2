# SPDX-License-Identifier: BSD-2-Clause
"""The journal as an operator meets it: restarts, reloads, upgrades, a second nginx, and disks in trouble. (Failure N: see the
list of known failures of systems like this.) What becomes of nginx when it is killed at random moments is test_crash.py."""

import os
import pwd
import re
import signal
import socket
import stat
import tempfile
import threading
from pathlib import Path

import pytest
from weirtest import Nginx, at_once, place_of, raw, wait_until
from weirtest.daemon import Daemon
from weirtest.disk import Disk
from weirtest.journal import CLOSED, Journal

pytestmark = pytest.mark.local

JOURNAL = "weir_journal journal;"
HALL = "rate=100000 burst=1000 seen_ttl_sec=300 max_active=100"
LINE = "mode=hold seen_ttl_sec=300"
JOIN = b"POST /api/v1/queue/join HTTP/1.1\r\nHost: localhost\r\nContent-Length: 19\r\n\r\n" + b'{"event_id":"line"}'
# Only root has workers of another user.
WORKERS_USER = pwd.getpwuid(os.getuid()).pw_name if os.getuid() else "www-data"


def tickets(server, room, people):
    """In the order of their places."""
    answers = at_once(server.port, [("POST", "/api/v1/queue/join", {"event_id": room})] * people)
    assert {answer.status for answer in answers} == {202}, answers
    return sorted((answer.json()["waiting_token"] for answer in answers), key=place_of)


def statuses(server, tokens):
    return at_once(server.port, [("GET", f"/api/v1/queue/status?token={token}") for token in tokens])


def positions(server, tokens):
    answers = statuses(server, tokens)
    assert {answer.status for answer in answers} == {200}, answers
    return [answer.json()["position"] for answer in answers]


def files(server):
    """Every file of the journal's folder: {name: bytes}."""
    return {path.name: path.read_bytes() for path in (server.dir / "journal").iterdir()}


def segment(server):
    """The file that is being written."""
    return max(path for path in (server.dir / "journal").iterdir() if re.fullmatch(r"journal-[0-9a-f]{16}", path.name))


def refusal_at_start(server):
    """Starts it, which must fail. What it said in its one [emerg] line."""
    with pytest.raises(AssertionError):
        server.start()
    server.process = None
    lines = [line for line in server.log("stderr.log").splitlines() if "[emerg]" in line]
    assert len(lines) == 1, lines
    return lines[0]


def refused_reload(server, **changed):
    """Reloads with these changes, which must be refused. What the log says."""
    before, workers = server.log(), server.worker_pids()
    server.write_conf(**changed)
    server.send(signal.SIGHUP)
    wait_until(lambda: "[emerg]" in server.log()[len(before):], 10, "a refusal in the log")
    assert server.worker_pids() == workers
    return server.log()[len(before):]


# --- restarts


@pytest.mark.parametrize("end", ["stop", "kill"])
@pytest.mark.parametrize("sync", ["", "sync=always", "sync=interval=20ms", "sync=off"])
def test_everybody_has_their_place_their_pass_and_their_keys_after_a_restart(weir, end, sync):
    """Failures 13 (a place that is lost), 21 (an enter that cannot be repeated), 4 (numbers that start again)."""
    server = weir(http=f"weir_journal journal {sync};", rooms={"hall": HALL, "line": LINE}, gate="hall", admin=["ops"])
    line = tickets(server, "line", 50)
    hall = tickets(server, "hall", 120)
    passes = [server.api().enter(token).body for token in hall[:20]]
    visitor, keyed = server.api(), {"Idempotency-Key": "mine"}
    joined = visitor.join("line", headers=keyed)
    entered = server.api()
    assert entered.enter(entered.ticket("line")).error_code == "NOT_READY"
    left = line.pop(10)
    assert server.api().leave(left).status == 200
    assert server.admin().patch("line", rate=7).status == 200
    assert server.admin().put("extra", mode="closed").status == 201

    getattr(server, end)()
    server.start()

    assert positions(server, line) == list(range(1, 50))
    assert [server.api().enter(token).body for token in hall[:20]] == passes
    ready = [answer.json()["ready_for_entry"] for answer in statuses(server, hall)]
    assert ready == [True] * 100 + [False] * 20
    again = visitor.join("line", headers=keyed)
    assert again.header("x-idempotency-cached") == "true"
    assert again.json()["waiting_token"] == joined.json()["waiting_token"]
    assert server.api().status(left).error_code == "TOKEN_NOT_FOUND"
    assert place_of(server.api().ticket("line")).count == 53
    assert server.admin().room("line").json()["settings"]["rate"] == 7
    assert server.admin().room("line").json()["source"] == "api"
    assert server.api().join("extra").error_code == "ROOM_CLOSED"


def test_a_pass_opens_the_gate_after_a_restart(weir):
    server = weir(http=JOURNAL, rooms={"hall": HALL}, gate="hall")
    person = server.api()
    assert person.enter(person.ticket("hall")).status == 200
    assert person.get("/shop").status == 200
    server.kill()
    server.start()
    assert person.get("/shop").status == 200


def test_a_deleted_room_stays_deleted(weir):
    server = weir(http=JOURNAL, rooms={"line": LINE}, admin=["ops"])
    assert server.admin().put("extra", mode="hold").status == 201
    token = server.api().ticket("extra")
    assert server.admin().delete("extra").status == 200
    server.kill()
    server.start()
    assert server.api().join("extra").error_code == "ROOM_NOT_FOUND"
    assert server.api().status(token).error_code == "TOKEN_NOT_FOUND"


def test_an_orderly_end_is_told_from_a_crash(weir):
    """The journal of a stopped nginx says that it is whole: nothing is torn, and nobody is warned of anything."""
    server = weir(http=JOURNAL, rooms={"line": LINE})
    line = tickets(server, "line", 5)
    for number in (signal.SIGTERM, signal.SIGQUIT):
        assert not is_closed(server)
        server.send(number)
        server.process.wait(20)
        assert is_closed(server)
        server.start()
        assert positions(server, line) == [1, 2, 3, 4, 5]
    said = [entry for entry in server.log().splitlines() if "weir_journal" in entry]
    assert len(said) == 3 and all("[notice]" in entry for entry in said), said
    assert "rooms 1, people 5, from" in said[-1] and " ms" in said[-1]


def is_closed(server):
    return [record.type for record in Journal(server.dir / "journal").records][-1:] == [CLOSED]


def test_a_single_process_keeps_a_journal_too(weir):
    server = weir(start=False, http=JOURNAL, rooms={"line": LINE})
    server.write_conf(main="")
    conf = (server.dir / "nginx.conf").read_text().replace("master_process on;", "master_process off;")
    (server.dir / "nginx.conf").write_text(conf)
    server.worker_pids = lambda: [server.process.pid] * server.workers
    server.start()
    line = tickets(server, "line", 20)
    server.stop()
    server.start()
    assert positions(server, line) == list(range(1, 21))


# --- the folder


def test_the_folder_belongs_to_the_workers_and_to_nobody_else(weir):
    with tempfile.TemporaryDirectory() as above:
        os.chmod(above, 0o755)
        server = weir(http=f"weir_journal {above}/journal;", rooms={"line": LINE}, user=WORKERS_USER)
        line = tickets(server, "line", 5)
        folder = Path(above) / "journal"
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        owners = {path.owner() for path in [folder, *folder.iterdir()]}
        modes = {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
        assert (owners, modes) == ({WORKERS_USER}, {0o600})
        server.stop()
        server.start()
        assert positions(server, line) == [1, 2, 3, 4, 5]
        server.stop()


def test_a_folder_that_belongs_to_others_is_refused_and_an_empty_one_is_taken(weir):
    server = weir(start=False, http=JOURNAL, rooms={"line": LINE}, user=WORKERS_USER)
    (server.dir / "journal").mkdir(mode=0o755)
    server.start()
    server.stop()
    assert (server.dir / "journal").owner() == WORKERS_USER
    other = weir(start=False, http=JOURNAL, rooms={"line": LINE}, user=WORKERS_USER)
    (other.dir / "journal").mkdir()
    (other.dir / "journal" / "letters").write_text("to whom it may concern")
    (other.dir / "journal").chmod(0o555)
    owner = (other.dir / "journal").owner()
    other.expect_in_log("cannot be written by the workers")
    assert "must belong to the user" in refusal_at_start(other)
    assert (other.dir / "journal").owner() == owner


def test_a_second_nginx_on_the_folder_is_refused(weir):
    server = weir(http=JOURNAL, rooms={"line": LINE})
    token = server.api().ticket("line")
    second = weir(start=False, http=f"weir_journal {server.dir}/journal/;", rooms={"line": LINE})
    before = files(server)
    second.expect_in_log("is in use")
    server.reload()
    said = refusal_at_start(second)
    assert "in use by another nginx" in said and "fuser" in said and str(server.dir / "journal") in said
    assert files(server).keys() == before.keys()
    assert server.api().status(token).status == 200


def test_workers_whose_master_was_killed_keep_the_folder(weir):
    """They go on serving, and acknowledge; a second nginx would not know of it."""
    server = weir(http=JOURNAL, rooms={"line": LINE}, workers=1)
    [worker] = server.worker_pids()
    server.process.kill()
    server.process.wait()
    server.process = None
    token = server.api().ticket("line")
    second = weir(start=False, http=f"weir_journal {server.dir}/journal;", rooms={"line": LINE})
    second.expect_in_log("is in use")
    assert "workers left over" in refusal_at_start(second)
    os.kill(worker, signal.SIGKILL)
    (second.dir / "stderr.log").unlink()
    second.write_secret(server.secret_file.read_text())
    second.start()
    assert second.api().status(token).json()["position"] == 1


def test_nginx_t_touches_nothing(weir):
    server = weir(start=False, http=JOURNAL, rooms={"line": LINE})
    assert server.check_conf()[0]
    assert not (server.dir / "journal").exists()
    server.start()
    line = tickets(server, "line", 3)
    # Beside a running nginx, and after it was killed: a torn end would be cut by a start.
    assert server.check_conf()[0]
    server.kill()
    before = {path.name: (path.stat().st_mtime_ns, path.stat().st_ino) for path in (server.dir / "journal").iterdir()}
    contents = files(server)
    assert server.check_conf()[0]
    assert files(server) == contents
    assert {path.name: (path.stat().st_mtime_ns, path.stat().st_ino)
            for path in (server.dir / "journal").iterdir()} == before
    server.start()
    assert positions(server, line) == [1, 2, 3]


def refusal(server):
    accepted, said = server.check_conf()
    lines = [line for line in said.splitlines() if "[emerg]" in line]
    assert not accepted and len(lines) == 1, said
    return lines[0]


@pytest.mark.parametrize("arguments, words", [
    ("journal sync=sometimes", ["sync=always", "sync=interval=TIME", "sync=off"]),
    ("journal sync=", ["sync=always"]),
    ("journal sync=interval=5ms", ["10ms"]),
    ("journal interval=9ms", ["10ms"]),
    ("journal interval=soon", ["10ms"]),
    ("journal sync=always interval=1s", ["interval"]),
    ("journal sync=interval=1s interval=2s", ["twice"]),
    ("journal sync=off sync=off", ["twice"]),
    ("journal segment=1000k", ["1m"]),
    ("journal segment=big", ["1m"]),
    ("journal reserve=much", ["reserve=SIZE"]),
    ("journal reserve=33m", ["reserve", "half a segment"]),
    ("journal segment=1m reserve=513k", ["reserve", "half a segment"]),
    ("journal often", ["sync=", "segment=", "reserve="]),
    ("''", ["folder"]),
    ("nginx.conf", ["folder", "nginx.conf"]),
    ("nginx.conf/journal", ["folder", "nginx.conf"]),
    ("no/such/journal", ["no folder", "no/such"]),
    ("/" + 1024 * "j", ["path"]),
])
def test_a_journal_that_cannot_work_is_refused(weir, arguments, words):
    server = weir(start=False, http=f"weir_journal {arguments};", rooms={"line": LINE})
    said = refusal(server)
    for word in ["weir_journal", "nginx.conf:", *words]:
        assert word in said, said


def test_there_is_one_journal_and_it_needs_a_zone(weir):
    assert "duplicate" in refusal(weir(start=False, http=JOURNAL + JOURNAL, rooms={"line": LINE}))
    server = weir(start=False, http=JOURNAL, api=False)
    text = (server.dir / "nginx.conf").read_text()
    (server.dir / "nginx.conf").write_text(re.sub(r"weir_zone .*?;", "", text))
    assert '"weir_journal" in ' in refusal(server)


def test_all_that_can_be_said_is_accepted(weir):
    server = weir(start=False, rooms={"line": LINE}, admin=["ops"],
                  http="weir_journal journal/ sync=interval interval=250ms segment=2m reserve=1m;")
    server.start()
    told = server.admin().call("GET", "journal").json()
    assert (told["state"], told["sync"], told["interval_ms"]) == ("fine", "interval", 250)
    assert (told["segment_bytes"], told["reserve_bytes"]) == (2 << 20, 1 << 20)


# --- reloads


def test_a_reload_keeps_the_journal_and_takes_other_options(weir):
    server = weir(http=JOURNAL, rooms={"line": LINE}, admin=["ops"])
    line = tickets(server, "line", 10)
    server.write_conf(http="weir_journal journal sync=always segment=1m;")
    server.reload()
    line += tickets(server, "line", 10)
    told = server.admin().call("GET", "journal").json()
    assert (told["sync"], told["segment_bytes"]) == ("always", 1 << 20)
    server.kill()
    server.start()
    assert positions(server, line) == list(range(1, 21))


@pytest.mark.parametrize("changed, words", [
    ("weir_journal other;", ["cannot move", "journal", "other", "restart nginx instead"]),
    ("", ["cannot be taken away", "restart nginx instead"]),
])
def test_a_reload_with_another_journal_is_refused(weir, changed, words):
    server = weir(http=JOURNAL, rooms={"line": LINE})
    server.expect_in_log("weir_journal cannot")
    token = server.api().ticket("line")
    said = refused_reload(server, http=changed)
    for word in words:
        assert word in said, said
    assert not (server.dir / "other").exists()
    assert server.api().status(token).status == 200


def test_a_journal_cannot_be_added_to_a_running_line(weir):
    server = weir(rooms={"line": LINE})
    server.expect_in_log("weir_journal cannot")
    assert "cannot be added" in refused_reload(server, http=JOURNAL)
    assert not (server.dir / "journal").exists()


def test_a_reload_that_leaves_the_zone_out_is_refused_while_it_has_a_journal(weir):
    server = weir(http=JOURNAL, rooms={"line": LINE})
    server.expect_in_log("weir_zone cannot be taken away")
    text = (server.dir / "nginx.conf").read_text()
    before = len(server.log())
    (server.dir / "nginx.conf").write_text(re.sub(r"^ *(weir_|location .*weir_).*$", "", text, flags=re.M))
    server.send(signal.SIGHUP)
    wait_until(lambda: "cannot be taken away" in server.log()[before:], 10, "a refusal in the log")


def test_a_zone_that_a_reload_brings_has_its_journal_even_if_the_first_try_fails(weir):
    """The folder must not stay locked by what was thrown away."""
    server = weir(http=JOURNAL, rooms={"line": LINE}, start=False)
    whole = (server.dir / "nginx.conf").read_text()
    without = re.sub(r"^ *(weir_|location .*weir_).*$", "", whole, flags=re.M)
    (server.dir / "nginx.conf").write_text(without)
    server.start()
    server.expect_in_log(r"bind\(\) to|still could not bind")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        (server.dir / "nginx.conf").write_text(whole.replace("listen 127.0.0.1", f"listen 127.0.0.1:{port}; listen 127.0.0.1", 1))
        server.send(signal.SIGHUP)
        wait_until(lambda: "still could not bind" in server.log(), 10, "a reload that fails")
    (server.dir / "nginx.conf").write_text(whole)
    server.reload()
    assert server.api().join("line").status == 202


def test_reloads_leave_no_descriptor_of_the_journal_behind(weir):
    server = weir(http=JOURNAL, rooms={"line": LINE})

    def descriptors():
        return sorted(os.readlink(path).split(":")[0] for path in Path(f"/proc/{server.process.pid}/fd").iterdir())

    before = descriptors()
    for _ in range(3):
        server.reload()
        server.api().ticket("line")
    wait_until(lambda: len(server._children()) == server.workers, 10, "the end of the old workers")
    assert descriptors() == before


# --- an upgrade in place


@pytest.fixture
def daemon(tmp_path):
    servers = []

    def make(**kwargs):
        servers.append(Daemon(tmp_path / f"daemon{len(servers)}", **kwargs))
        return servers[-1].start()

    yield make
    for server in servers:
        server.stop()


class Joiners(threading.Thread):
    """People who join, over connections of their own, for as long as it takes. `given` is who was told a place."""

    def __init__(self, port):
        super().__init__()
        self.port, self.is_over = port, False
        self.given, self.refused, self.problem = [], 0, None

    def run(self):
        try:
            while not self.is_over:
                self.join_some()
        except BaseException as problem:
            self.problem = problem

    def join_some(self):
        join = ("POST", "/api/v1/queue/join", {"event_id": "line"}, {"Connection": "close"})
        for answer in at_once(self.port, [join] * 4, connections=4, tolerate=True):
            if answer is None:  # its worker left
                continue
            if answer.status == 202:
                self.given.append(answer.json()["waiting_token"])
            else:
                assert (answer.status, answer.error_code) == (503, "ENGINE_UNAVAILABLE"), answer
                assert int(answer.header("retry-after")) > 0
                self.refused += 1

    def __enter__(self):
        self.start()
        return self

    def wait_for(self, condition, what):
        wait_until(lambda: condition() or self.problem, 20, what)
        assert not self.problem, self.problem

    def __exit__(self, *_):
        self.is_over = True
        self.join()
        assert not self.problem, self.problem


def test_an_upgrade_under_traffic_loses_nobody_and_says_503_in_between(daemon):
    server = daemon(http=JOURNAL, rooms={"line": LINE}, admin=["ops"])
    with Joiners(server.port) as people:
        people.wait_for(lambda: len(people.given) > 50, "people in line")
        old = server.begin_upgrade()
        people.wait_for(lambda: people.refused > 0, "a 503 from the new nginx")
        assert "still in use by the nginx before this one" in server.log()
        old.send_signal(signal.SIGQUIT)
        old.wait()
        given = len(people.given)
        people.wait_for(lambda: len(people.given) > given + 50, "people who join the new nginx")
    assert old.returncode == 0
    line = sorted(people.given, key=place_of)
    assert [place_of(token).count for token in line] == sorted({place_of(token).count for token in line})
    assert positions(server, line) == sorted(positions(server, line))
    assert len({place_of(token).epoch for token in line}) == 1
    ready = server.client().get("/readyz")
    assert ready.status == 200, ready


def test_an_upgrade_waits_for_the_old_nginx_and_tells_why_it_is_not_ready(daemon):
    server = daemon(http=JOURNAL, rooms={"line": LINE}, admin=["ops"], workers=1)
    token = server.api().ticket("line")
    [old_worker] = server.worker_pids()
    old = server.begin_upgrade()
    # With its listening sockets closed, the old nginx is still there: every answer is the new one's.
    old.send_signal(signal.SIGWINCH)
    wait_until(lambda: not Path(f"/proc/{old_worker}").exists(), 20, "the end of the old worker")
    assert server.api().status(token).error_code == "ENGINE_UNAVAILABLE"
    ready = server.client().get("/readyz")
    assert ready.status == 503 and ready.json()["missing"], ready
    assert server.client().get("/healthz").status == 200
    told = server.admin().call("GET", "journal").json()
    assert (told["state"], told["sync"], told["interval_ms"], told["end"]) == ("awaited", "interval", 1000, 0)
    # And back: the old one never gave the folder away.
    server.send(signal.SIGQUIT)
    server.process.wait()
    server.process = old
    server.send(signal.SIGHUP)
    wait_until(server.worker_pids, 10, "workers of the old nginx")
    assert server.api().status(token).json()["position"] == 1


def test_rooms_that_came_with_an_upgrade_and_with_a_reload_in_it_are_there(daemon):
    server = daemon(http=JOURNAL, rooms={"line": LINE}, workers=2)
    server.write_conf(rooms={"line": LINE, "with-the-upgrade": LINE})
    old = server.begin_upgrade()
    server.write_conf(rooms={"line": LINE, "with-the-upgrade": LINE, "with-the-reload": LINE})
    server.reload()
    old.send_signal(signal.SIGQUIT)
    old.wait()
    wait_until(lambda: server.client().get("/readyz").status == 200, 10, "the new nginx ready")
    for room in ("line", "with-the-upgrade", "with-the-reload"):
        wait_until(lambda: server.api().join(room).status == 202, 5, f"a place in {room}")


def test_a_worker_that_dies_over_the_recovery_leaves_it_to_the_next(tmp_path, daemon):
    """Failure 52: whatever a dead worker held, others go on within a second."""
    folder = tmp_path / "daemon0" / "journal"
    disk = Disk(tmp_path, folder)
    server = daemon(http=JOURNAL, rooms={"line": LINE}, workers=2, preload=disk.library, env=disk.env, admin=["ops"])
    line = tickets(server, "line", 30)
    old = server.begin_upgrade()
    disk.set(fdatasync=500)
    old.send_signal(signal.SIGQUIT)
    old.wait()
    recovering = wait_until(lambda: [pid for pid in server.worker_pids() if has_open(pid, f"{folder}/journal-")], 10,
                            "a recovery under way")
    assert server.client().get("/readyz").status == 503
    server.kill_worker(*recovering)
    disk.heal()
    wait_until(lambda: server.client().get("/readyz").status == 200, 5, "the new nginx ready")
    assert positions(server, line) == list(range(1, 31))
    assert place_of(server.api().ticket("line")).count == 31
    [room] = server.admin().rooms().json()["rooms"]
    assert (room["id"], room["waiting"]) == ("line", 31)


def has_open(pid, prefix):
    return any(os.readlink(entry).startswith(prefix) for entry in Path(f"/proc/{pid}/fd").iterdir())


def test_an_upgrade_onto_a_damaged_journal_serves_nobody_and_says_why(daemon):
    server = daemon(http=JOURNAL, rooms={"line": LINE}, admin=["ops"])
    server.expect_in_log(r"\[emerg\].*weir_journal")
    tickets(server, "line", 30)
    path = segment(server)
    old = server.begin_upgrade()
    at = last_byte(path) // 2
    whole = path.read_bytes()
    spoil(path, at, bytes([whole[at] ^ 0xFF]))
    old.send_signal(signal.SIGQUIT)
    old.wait()
    wait_until(lambda: state(server) == "broken", 10, "the operator told")
    assert server.api().join("line").error_code == "ENGINE_UNAVAILABLE"
    ready = server.client().get("/readyz")
    assert ready.status == 503 and path.name in ready.json()["missing"][0], ready
    wait_until(lambda: path.name in server.log(), 5, "the log to say so")
    assert server.log().count("[emerg]") == 1
    server.kill()
    path.write_bytes(path.read_bytes()[:at] + whole[at:at + 1] + path.read_bytes()[at + 1:])
    server.start()
    assert server.api().join("line").json()["position_hint"] == 31


# --- damage


def spoil(path, offset, data):
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(data)


def last_byte(path):
    return len(path.read_bytes().rstrip(b"\0"))


def test_a_damaged_journal_is_refused_with_the_place(weir):
    server = weir(http=JOURNAL, rooms={"line": LINE})
    line = tickets(server, "line", 50)
    server.kill()
    path = segment(server)
    whole = path.read_bytes()
    at = last_byte(path) // 2
    spoil(path, at, bytes([whole[at] ^ 0xFF]))
    server.expect_in_log("cannot be recovered")
    (server.dir / "stderr.log").unlink()
    said = refusal_at_start(server)
    assert path.name in said, said
    place = int(re.search(r"byte (\d+)", said)[1])
    assert at - 1024 <= place <= at, said
    assert path.read_bytes() == whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1:], "it was changed"
    path.write_bytes(whole)
    server.start()
    assert positions(server, line) == list(range(1, 51))


def test_a_torn_end_is_cut_and_reported(weir):
    server = weir(http=JOURNAL, rooms={"line": LINE})
    line = tickets(server, "line", 20)
    server.kill()
    path = segment(server)
    end = (last_byte(path) + 7) // 8 * 8
    spoil(path, end, b"half a record")
    server.start()
    assert positions(server, line) == list(range(1, 21))
    [said] = [entry for entry in server.log().splitlines() if "had a torn end" in entry]
    assert "[warn]" in said and path.name in said and re.search(r"\d+ bytes", said)
    # It was cut for good.
    server.kill()
    server.start()
    assert positions(server, line) == list(range(1, 21))
    assert server.log().count("had a torn end") == 1


# --- a disk in trouble


@pytest.fixture
def troubled(weir, tmp_path):
    """A server whose disk can be told to fail, and the disk."""
    def make(journal="", **kwargs):
        os.chmod(tmp_path, 0o755)
        server = weir(start=False, http=f"weir_journal journal {journal};", admin=["ops"], **kwargs)
        disk = Disk(tmp_path, server.dir / "journal")
        server.preload, server.env = disk.library, disk.env
        return server.start(), disk
    return make


def state(server):
    return server.admin().call("GET", "journal").json()["state"]


def test_a_nearly_full_disk_refuses_joins_and_serves_all_in_line_and_resumes(troubled):
    """Failure 51: nobody in line pays for it, and nobody has to do anything but make room."""
    server, disk = troubled("segment=1m reserve=512k", rooms={"hall": HALL, "line": LINE}, zone="64m")
    server.expect_in_log(r"\[crit\].*weir_journal")
    line, called = tickets(server, "line", 20), tickets(server, "hall", 20)
    disk.set(fallocate="ENOSPC")
    join = ("POST", "/api/v1/queue/join", {"event_id": "line"})
    refused = []
    for _ in range(400):
        refused = [answer for answer in at_once(server.port, [join] * 200) if answer.status != 202]
        if refused:
            break
    assert refused and {answer.error_code for answer in refused} == {"ENGINE_UNAVAILABLE"}
    assert {answer.status for answer in refused} == {503}
    wait_until(lambda: state(server) == "short", 5, "the operator told")
    assert positions(server, line) == list(range(1, 21))
    granted = [server.api().enter(token) for token in called]
    assert {answer.status for answer in granted} == {200}
    assert server.api().leave(line[-1]).status == 200
    wait_until(lambda: server.log().count("nearly full") == 1, 5, "the log to say so, once")
    disk.heal()
    wait_until(lambda: server.api().join("line").status == 202, 10, "joins taken again")
    wait_until(lambda: state(server) == "fine", 10, "the journal well again")
    wait_until(lambda: "well again" in server.log(), 5, "the log to say so")
    server.kill()
    server.start()
    assert positions(server, line[:-1]) == list(range(1, 20))
    assert [server.api().enter(token).body for token in called] == [answer.body for answer in granted]


def test_a_full_disk_refuses_every_change_and_goes_on_by_itself(troubled):
    """Failure 51. What could not be written is not forgotten either: the one who was refused has that place in the end."""
    server, disk = troubled(rooms={"hall": HALL, "line": LINE}, gate="hall")
    server.expect_in_log(r"\[crit\].*weir_journal")
    line = tickets(server, "line", 10)
    person, refused = server.api(), server.api()
    assert person.enter(person.ticket("hall")).status == 200
    assert refused.get("/api/v1/queue/status?token=x").status == 404
    disk.set(pwrite="ENOSPC")
    answer = refused.join("line", headers={"Idempotency-Key": "mine"})
    assert (answer.status, answer.error_code) == (503, "ENGINE_UNAVAILABLE"), answer
    assert server.api().leave(line[0]).error_code == "ENGINE_UNAVAILABLE"
    assert positions(server, line) == list(range(1, 11))
    assert person.get("/shop").status == 200
    assert server.client().get("/readyz").status == 503
    assert state(server) == "full"
    wait_until(lambda: "No space left" in server.log(), 5, "the log to say so")
    disk.heal()
    wait_until(lambda: server.client().get("/readyz").status == 200, 5, "space found again")
    assert place_of(refused.join("line", headers={"Idempotency-Key": "mine"}).json()["waiting_token"]).count == 11
    assert place_of(server.api().ticket("line")).count == 12
    wait_until(lambda: "well again" in server.log(), 5, "the log to say so")
    server.kill()
    server.start()
    assert positions(server, line) == list(range(1, 11))


def test_a_failed_sync_ends_all_acknowledging_and_is_never_repeated(troubled):
    """Failure 51: a disk error that is logged while acknowledgements go on."""
    server, disk = troubled("sync=always", rooms={"hall": HALL, "line": LINE}, gate="hall", workers=2)
    server.expect_in_log(r"\[emerg\].*weir_journal")
    line = tickets(server, "line", 10)
    person = server.api()
    assert person.enter(person.ticket("hall")).status == 200
    assert person.get("/shop").status == 200
    disk.set(fdatasync="EIO")
    answer = server.api().join("line")
    assert (answer.status, answer.error_code) == (503, "ENGINE_UNAVAILABLE"), answer
    disk.heal()  # the kernel says "done" from now on, and that is exactly what must not be believed
    for _ in range(3):
        assert server.api().join("line").error_code == "ENGINE_UNAVAILABLE"
        assert server.api().leave(line[0]).error_code == "ENGINE_UNAVAILABLE"
        assert server.admin().patch("line", rate=3).error_code == "ENGINE_UNAVAILABLE"
    assert positions(server, line) == list(range(1, 11))
    assert person.get("/shop").status == 200
    ready = server.client().get("/readyz")
    assert ready.status == 503 and "sync" in ready.json()["missing"][0], ready.body
    told = server.admin().call("GET", "journal").json()
    assert told["state"] == "broken" and told["text"]
    wait_until(lambda: "[emerg]" in server.log(), 5, "the log to say so")
    assert server.log().count("[emerg]") == 1
    syncs = disk.calls("fdatasync")
    assert syncs.count("EIO") == 1 and syncs[-1] == "EIO", "a failed sync was tried again"
    server.kill()
    server.start()
    assert positions(server, line) == list(range(1, 11))
    assert server.client().get("/readyz").status == 200
    assert server.api().join("line").status == 202


def test_a_failed_write_ends_all_acknowledging(troubled):
    server, disk = troubled(rooms={"line": LINE})
    server.expect_in_log(r"\[emerg\].*weir_journal")
    line = tickets(server, "line", 10)
    disk.set(pwrite="EIO")
    assert server.api().join("line").error_code == "ENGINE_UNAVAILABLE"
    disk.heal()
    assert server.api().join("line").error_code == "ENGINE_UNAVAILABLE"
    assert positions(server, line) == list(range(1, 11))
    assert server.client().get("/readyz").status == 503
    wait_until(lambda: state(server) == "broken", 5, "the operator told")
    server.kill()
    server.start()
    assert positions(server, line) == list(range(1, 11))


# --- answers that come late


def test_nothing_is_answered_before_it_is_synced_where_that_was_asked_for(troubled):
    server, disk = troubled("sync=always", rooms={"line": LINE}, workers=1)
    disk.set(fdatasync=300)
    done = len(disk.calls("fdatasync"))
    tickets(server, "line", 20)
    assert len(disk.calls("fdatasync")) > done
    # Status reads and the health of it all do not wait behind a slow disk.
    token = server.api().ticket("line")
    disk.set(fdatasync=2000)
    with Joiners(server.port) as people:
        wait_until(lambda: "2000" in disk.calls("fdatasync"), 10, "a slow sync")
        assert server.api().status(token).status == 200
        assert server.client().get("/healthz").status == 200
        assert not people.given
        disk.heal()


def test_visitors_who_hang_up_while_they_wait_harm_nobody(troubled):
    server, disk = troubled("sync=always", rooms={"line": LINE, "hall": HALL}, gate="hall", workers=1)
    disk.set(fdatasync=200)
    for linger in (False, True) * 10:
        connection = socket.create_connection(("127.0.0.1", server.port))
        connection.sendall(JOIN)
        if linger:  # an RST instead of a FIN
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        connection.close()
    disk.heal()
    assert place_of(server.api().ticket("line")).count == 21


def test_a_worker_that_is_told_to_leave_answers_those_who_wait_first(troubled):
    server, disk = troubled("sync=always", rooms={"line": LINE}, workers=1)
    disk.set(fdatasync=1000)
    done = len(disk.calls("fdatasync"))
    answers = []
    asking = threading.Thread(target=lambda: answers.append(raw(server.port, JOIN)))
    asking.start()
    wait_until(lambda: len(disk.calls("fdatasync")) > done, 10, "a sync under way")
    [leaving] = server.worker_pids()
    server.reload()
    assert Path(f"/proc/{leaving}").exists(), "it did not wait"
    asking.join()
    assert answers[0].startswith(b"HTTP/1.1 202 ")
    disk.heal()
    wait_until(lambda: not Path(f"/proc/{leaving}").exists(), 10, "the end of the old worker")


def test_a_worker_that_is_told_to_leave_leaves_though_syncs_take_longer_than_their_interval(troubled):
    server, disk = troubled("sync=interval=10ms", rooms={"line": LINE}, workers=1)
    tickets(server, "line", 3)  # while somebody is there, the room's clock is written every second
    disk.set(fdatasync=1500)
    done = len(disk.calls("fdatasync"))
    wait_until(lambda: len(disk.calls("fdatasync")) > done + 1, 10, "one sync after the other")
    [leaving] = server.worker_pids()
    server.send(signal.SIGQUIT)
    wait_until(lambda: not Path(f"/proc/{leaving}").exists(), 10, "the end of the worker")
    disk.heal()


# --- the operator


def test_the_operator_sees_how_far_the_journal_is(weir):
    server = weir(http="weir_journal journal sync=interval=10ms;", rooms={"line": LINE}, admin=["ops"])
    tickets(server, "line", 10)
    told = server.admin().call("GET", "journal").json()
    assert told["state"] == "fine" and told["text"] == ""
    assert told["end"] >= told["written"] >= told["synced"]
    assert told["unsynced_bytes"] == told["end"] - told["synced"]
    end = told["end"]
    wait_until(lambda: server.admin().call("GET", "journal").json()["synced"] >= end, 5, "a sync of what was told")


def test_without_a_journal_the_operator_is_told_that_it_is_off(weir):
    server = weir(rooms={"line": LINE}, admin=["ops"])
    answer = server.admin().call("GET", "journal")
    assert (answer.status, answer.json()) == (200, {"state": "off"})


def test_a_server_of_its_own_is_not_disturbed(tmp_path):
    """Two nginx on two folders."""
    servers = [Nginx(tmp_path / name, http=JOURNAL, rooms={"line": LINE}) for name in ("one", "two")]
    for server in servers:
        server.start()
    try:
        for server in servers:
            assert place_of(server.api().ticket("line")).count == 1
    finally:
        for server in servers:
            server.stop()
