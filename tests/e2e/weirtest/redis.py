# SPDX-License-Identifier: BSD-2-Clause
"""Real Redis and Valkey servers, in the arrangements that Weir knows.

    with Cluster() as store:
        server = weir(rooms={"hall": ""}, store=store.directive)
        store.primaries[0].kill()

Each is a handful of processes on free loopback ports with a temporary folder each, ended by their ids. Should the test itself be
killed, the kernel ends them (so they must be started from a thread that lives on). Nothing is guessed: a store is ready when its
servers say so. Tests talk to a server through its unix socket, which is there whatever is done to its ports, with TLS or without.
"""

import ctypes
import os
import random
import secrets
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from .port import is_free_port
from .redis_client import RedisClient, RedisError
from .wait import wait_until

START_TIMEOUT_SEC = 30
SLOTS = 16384
SET_PARENT_DEATH_SIGNAL = 1
CLUSTER_BUS = 10000  # a node's second port is this far from its first
PORTS = range(10000, 22000)  # with a second one of each still below those that connections are given
ACQUAINTANCE_MS = 1000  # the node timeout while a cluster is made: nodes tell of each other twice in it

libc = ctypes.CDLL(None)
ports_given = set()


class Server:
    """
    One process. Options are those of its configuration, with `_` for `-`.

    kind     "redis" or "valkey"
    config   further lines of its configuration
    prefix   words before the command, as `ip netns exec NAME`; host   where it listens
    """

    def __init__(self, kind="redis", password=None, is_sentinel=False, config="", prefix=(), host="127.0.0.1", **options):
        self.kind, self.password, self.is_sentinel = kind, password, is_sentinel
        self.prefix, self.host = prefix, host
        self.folder = Path(tempfile.mkdtemp(prefix=f"weir-{kind}-"))
        self.folder.chmod(0o755)  # certificates and passwords in it are read by workers of other users
        self.port = port_find()
        self.socket = str(self.folder / "socket")
        self.process = None
        options = {"bind": host, "protected_mode": "no", "port": self.port, "unixsocket": self.socket, "dir": self.folder, **options}
        if not is_sentinel:
            options = {"save": '""', "appendonly": "no", "repl_diskless_sync_delay": 0, "repl_ping_replica_period": 1, **options}
        lines = [f"{name.replace('_', '-')} {value}\n" for name, value in options.items()]
        self.conf = self.folder / "server.conf"
        self.conf.write_text("".join(lines) + config)

    # --- life

    def begin(self):
        """Starts it; it may not answer yet."""
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [*self.prefix, f"{self.kind}-server", str(self.conf), *(["--sentinel"] if self.is_sentinel else [])],
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                preexec_fn=lambda: libc.prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL),
            )
        return self

    def start(self):
        self.begin()
        wait_until(self._is_up, START_TIMEOUT_SEC, f"{self.kind}-server answering")
        return self

    def stop(self):
        """Ends it and removes its folder."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self):
        """kill -9. It can be started again, with what its folder holds."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def pause(self):
        """Nothing of it runs until resume; its connections stay."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    # --- talking to it

    def client(self, **kwargs):
        return RedisClient(self.socket, self.password, **kwargs)

    def __call__(self, *words):
        """One command over a connection of its own."""
        with self.client() as client:
            return client(*words)

    def info(self, section):
        with self.client() as client:
            return client.info(section)

    @property
    def address(self):
        return f"{self.host}:{self.port}"

    @property
    def is_primary(self):
        if self.process is None:
            return False
        try:
            info = self.info("replication")
        except ConnectionError:  # sentinels cut everybody off a server that they give another role: it is asked again
            info = self.info("replication")
        return info["role"] == "master"

    def log(self):
        return (self.folder / "log").read_text(errors="replace")

    def _is_up(self):
        assert self.process.poll() is None, f"{self.kind}-server ended with {self.process.returncode} at start\n{self.log()}"
        try:
            return self("PING") == "PONG"
        except (OSError, RedisError):
            return False


class Store:
    """Servers that keep rooms together. `kind` is "redis" or "valkey"."""

    replicas = 0  # that must know of an enter, as the tests configure it

    def __init__(self, kind="redis"):
        self.kind = kind
        self.servers = []

    def server(self, **options):
        self.servers.append(Server(self.kind, **options))
        return self.servers[-1]

    def start(self):
        try:
            self.arrange()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self):
        for server in self.servers:
            server.stop()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    @property
    def directive(self):
        """What stands behind weir_store."""
        return f"{self.url} replicas={self.replicas}"

    @property
    def primaries(self):
        return [server for server in self.servers if not server.is_sentinel and server.is_primary]

    def wipe(self):
        """Forgets all rooms."""
        for server in self.primaries:
            server("FLUSHALL")


class Standalone(Store):
    def __init__(self, kind="redis", **options):
        super().__init__(kind)
        self.only = self.server(**options)

    def arrange(self):
        self.only.start()

    @property
    def url(self):
        return f"redis://{self.only.address}"


class Tls(Store):
    """TLS and nothing else, for clients with a certificate and a password."""

    def __init__(self, kind="redis"):
        super().__init__(kind)
        self.password = secrets.token_urlsafe(24)
        self.only = self.server(password=self.password, requirepass=self.password)
        folder = self.only.folder
        self.ca, self.cert, self.key = (folder / name for name in ("ca.crt", "client.crt", "client.key"))
        self.password_file = folder / "password"
        with open(self.only.conf, "a") as conf:
            conf.write(f"port 0\ntls-port {self.only.port}\ntls-auth-clients yes\ntls-ca-cert-file {self.ca}\n"
                       f"tls-cert-file {folder}/server.crt\ntls-key-file {folder}/server.key\n")

    def arrange(self):
        self.password_file.touch(mode=0o640)  # weir_store takes none that everybody can read
        self.password_file.write_text(self.password + "\n")
        make_certificates(self.only.folder)
        self.only.start()

    @property
    def url(self):
        return f"rediss://{self.only.address}?password_file={self.password_file}&ca={self.ca}&cert={self.cert}&key={self.key}"


class Cluster(Store):
    """Primaries share the slots evenly, and each has as many replicas. Replica r of primary p is servers[(r + 1) * count + p]."""

    def __init__(self, kind="redis", primaries=3, replicas=1, node_timeout_ms=15000, **options):
        super().__init__(kind)
        self.replicas = replicas
        self.count = primaries
        self.node_timeout_ms = node_timeout_ms
        for _ in range(primaries * (1 + replicas)):
            self.server(cluster_enabled="yes", cluster_config_file="nodes.conf", cluster_node_timeout=ACQUAINTANCE_MS,
                        cluster_replica_validity_factor=0, **options)

    def arrange(self):
        start_all(self.servers)
        first, *others = self.servers
        for epoch, server in enumerate(self.servers, 1):
            server("CLUSTER", "SET-CONFIG-EPOCH", epoch)
        for number in range(self.count):
            low, high = number * SLOTS // self.count, (number + 1) * SLOTS // self.count - 1
            self.servers[number]("CLUSTER", "ADDSLOTSRANGE", low, high)
        for server in others:
            first("CLUSTER", "MEET", server.host, server.port)
        wait_until(self._all_know_all, START_TIMEOUT_SEC, "nodes that know each other")
        for number, replica in enumerate(self.servers[self.count:]):
            replica("CLUSTER", "REPLICATE", self.servers[number % self.count]("CLUSTER", "MYID"))
        self.wait_whole()
        for server in self.servers:
            server("CONFIG", "SET", "cluster-node-timeout", self.node_timeout_ms)

    def is_whole(self):
        """Every node sees a cluster that serves all slots, and every replica follows and is known."""
        return all(self._sees_whole(server) for server in self.servers)

    def wait_whole(self, timeout_sec=START_TIMEOUT_SEC):
        wait_until(self.is_whole, timeout_sec, "a whole cluster")

    def owner(self, room):
        """The primary that has this room's slot."""
        slot = self.servers[0]("CLUSTER", "KEYSLOT", f"{{{room}}}")
        return next(server for server in self.primaries if slot in slots_of(server))

    def move(self, room, to):
        """Moves the slot of a room to another primary while both serve, as an operator would."""
        slot = self.servers[0]("CLUSTER", "KEYSLOT", f"{{{room}}}")
        source = self.owner(room)
        ours, theirs = source("CLUSTER", "MYID"), to("CLUSTER", "MYID")
        to("CLUSTER", "SETSLOT", slot, "IMPORTING", ours)
        source("CLUSTER", "SETSLOT", slot, "MIGRATING", theirs)
        while keys := source("CLUSTER", "GETKEYSINSLOT", slot, 1):
            source("MIGRATE", to.host, to.port, "", 0, 5000, "KEYS", *keys)
        for server in [to, source, *self.primaries]:
            server("CLUSTER", "SETSLOT", slot, "NODE", theirs)

    @property
    def url(self):
        """One endpoint, as managed clusters have: the rest is asked of it."""
        return f"redis://{self.servers[0].address}"

    def _all_know_all(self):
        return all(self._known(server) == len(self.servers) for server in self.servers)

    def _known(self, server):
        lines = server("CLUSTER", "NODES").splitlines()
        return len([line for line in lines if "handshake" not in line and "noaddr" not in line and " connected" in line])

    def _sees_whole(self, server):
        info = dict(line.split(":") for line in server("CLUSTER", "INFO").splitlines())
        if info["cluster_state"] != "ok" or info["cluster_slots_ok"] != str(SLOTS):
            return False
        replication = server.info("replication")
        if replication["role"] == "slave" and replication["master_link_status"] != "up":
            return False
        shards = server("CLUSTER", "SLOTS")
        return len({node[2] for shard in shards for node in shard[2:]}) == len(self.servers)


class Sentinel(Store):
    """A primary, replicas and those who watch them and agree on another primary."""

    name = "weir"

    def __init__(self, kind="redis", replicas=1, sentinels=3, down_after_ms=15000, failover_timeout_ms=10000, **options):
        super().__init__(kind)
        self.replicas = replicas
        self.first = self.server(**options)
        self.followers = [self.server(replicaof=f"127.0.0.1 {self.first.port}", **options) for _ in range(replicas)]
        watch = (f"sentinel monitor {self.name} 127.0.0.1 {self.first.port} {sentinels // 2 + 1}\n"
                 f"sentinel down-after-milliseconds {self.name} {down_after_ms}\n"
                 f"sentinel failover-timeout {self.name} {failover_timeout_ms}\n")
        self.sentinels = [self.server(is_sentinel=True, config=watch) for _ in range(sentinels)]

    def arrange(self):
        start_all([self.first, *self.followers])
        wait_until(self._all_follow, START_TIMEOUT_SEC, "replicas that follow")
        start_all(self.sentinels)
        wait_until(lambda: all(map(self._knows_all, self.sentinels)), START_TIMEOUT_SEC, "sentinels that know all")

    @property
    def primary(self):
        """As the sentinels say."""
        return self.named_by(self.sentinels[0])

    def named_by(self, sentinel):
        _, port = sentinel("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.name)
        return next(server for server in self.servers if server.port == int(port))

    @property
    def url(self):
        return f"redis+sentinel://{','.join(server.address for server in self.sentinels)}/{self.name}"

    def _all_follow(self):
        states = [server.info("replication")["master_link_status"] for server in self.followers]
        return states == ["up"] * len(states)

    def _knows_all(self, sentinel):
        answer = sentinel("SENTINEL", "MASTER", self.name)
        facts = dict(zip(answer[::2], answer[1::2]))
        others = int(facts["num-other-sentinels"])
        return int(facts["num-slaves"]) == len(self.followers) and others == len(self.sentinels) - 1


# What WEIR_STORE may be.
BACKENDS = {
    "standalone": Standalone,
    "tls": Tls,
    "cluster": Cluster,
    "sentinel": Sentinel,
    "valkey": lambda: Standalone("valkey"),
    "valkey-cluster": lambda: Cluster("valkey"),
}


def is_installed(backend):
    return shutil.which("valkey-server" if backend.startswith("valkey") else "redis-server") is not None


def start_all(servers):
    """At the same time."""
    for server in servers:
        server.begin()
    for server in servers:
        wait_until(server._is_up, START_TIMEOUT_SEC, f"{server.kind}-server answering")


def slots_of(server):
    """The slots that a primary says it has."""
    line = next(line for line in server("CLUSTER", "NODES").splitlines() if "myself" in line)
    slots = set()
    for word in line.split()[8:]:
        if not word.startswith("["):
            low, _, high = word.partition("-")
            slots.update(range(int(low), int(high or low) + 1))
    return slots


def port_find():
    """Free, and so is a cluster's second port. None is given twice: a server may be started again."""
    port = next(port for port in random.sample(PORTS, len(PORTS))
                if port not in ports_given and is_free_port(port) and is_free_port(port + CLUSTER_BUS))
    ports_given.add(port)
    return port


def make_certificates(folder):
    """ca, server (for 127.0.0.1 and localhost) and client: .crt and .key each. Workers of any user may read them."""
    request = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    openssl([*request, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=weir test authority"], folder)
    signed = [*request, "-CA", "ca.crt", "-CAkey", "ca.key", "-addext", "basicConstraints=critical,CA:false"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    openssl([*signed, "-keyout", "server.key", "-out", "server.crt", "-subj", "/CN=redis", *names], folder)
    openssl([*signed, "-keyout", "client.key", "-out", "client.crt", "-subj", "/CN=weir"], folder)
    for path in (*folder.glob("*.key"), *folder.glob("*.crt")):
        os.chmod(path, 0o644)


def openssl(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
