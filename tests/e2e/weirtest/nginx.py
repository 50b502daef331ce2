# SPDX-License-Identifier: BSD-2-Clause
"""A real nginx with the module, in a folder of its own, on free loopback ports, ended by its own pid.

Every test that starts one also asserts, when it is over, that nothing went wrong unseen: no worker died, no invariant
broke, no sanitizer spoke, no [alert] stands in the log. A test that kills a worker does it through kill_worker and is
forgiven that one death; one that provokes a log line says so with expect_in_log.
"""

import os
import re
import secrets
import signal
import socket
import subprocess
from pathlib import Path

from .admin import Admin
from .api import Api
from .http import Client
from .port import free_port
from .redis_account import Account
from .redis_pool import pool
from .wait import wait_until

NGINX = "/usr/sbin/nginx"
START_TIMEOUT_SEC = 20
STORE_TIMEOUT = "5s"  # longer than the default: on a busy machine a store may have to wait for its turn

# Where nginx writes, of what an http block names.
FOLDERS = """\
    client_body_temp_path {dir}/body;
    proxy_temp_path {dir}/proxy;
    fastcgi_temp_path {dir}/fastcgi;
    uwsgi_temp_path {dir}/uwsgi;
    scgi_temp_path {dir}/scgi;
    access_log {dir}/access.log;
"""

CONF = """\
{user}
daemon {daemon};
master_process on;
worker_processes {workers};
worker_rlimit_core 0;
worker_shutdown_timeout 5s;
load_module {module};
pid {dir}/nginx.pid;
error_log {dir}/error.log {log_level};
{main}
events {{
    worker_connections 8192;
    {events}
}}
http {{
""" + FOLDERS + """\
    keepalive_requests 1000000;
    {http}
    server {{
        listen 127.0.0.1:{port} backlog=8192 {listen};
        {server}
    }}
    server {{
        listen 127.0.0.1:{shop_port};
        {shop}
    }}
}}
"""

SERVER = """
        location /api/v1/queue/ { weir_api queue; }
        location = /healthz { weir_api health; }
        location = /readyz { weir_api health; }
        location /queue/ { weir_page; }
"""

ADMIN = """
        location /weir/api/ { weir_api admin; }
"""

# The shop says what it was asked, so that a test can see what came through the gate.
SHOP = """
        default_type application/json;
        location / {
            return 200 '{"shop":true,"method":"$request_method","uri":"$request_uri","cookie":"$http_cookie"}';
        }
"""

# Lines that never belong into the log of a run that went well.
TROUBLE = re.compile(
    r"exited on signal|exited with (fatal )?code [1-9]|broken invariant|Sanitizer|runtime error:|\[(alert|emerg|crit)\]"
)


def module_path():
    path = os.environ.get("WEIR_MODULE")
    assert path, "WEIR_MODULE names the module under test: tests/run sets it"
    return path


class Nginx:
    """
    rooms     {name: "key=value …"} of weir_room lines
    gate      room that the catch-all location is gated by; None leaves it out
    zone      size of weir_zone
    store     arguments of weir_store, where no zone is wanted; not said, WEIR_STORE decides (redis_pool.py)
    journal   arguments of weir_journal, where there is a zone
    rooms_max that there may be, where it is not the default
    auto      weir_rooms auto instead of listed
    http, server, main, events, listen, shop   further configuration, as text, at its place
    module    path of the module, if not the one under test
    admin     names of operators, each of which gets a token; without any the operator's API is off
    api       False leaves the API, health and page locations out of the server
    secret    text of the secret file, where several servers are to share one
    user      whom the workers run as, where root runs the tests; root if not said
    preload   library that is loaded before all others; env   further environment
    """

    daemon = "off"

    def __init__(self, folder, rooms=None, gate=None, zone="32m", store=None, journal=None, rooms_max=None, auto=False, workers=2,
                 http="", server="", main="", events="", listen="", shop=SHOP, api=True, log_level="info", module=None,
                 admin=(), secret=None, user="root", preload=None, env=None):
        self.dir = Path(folder)
        self.dir.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.shop_port = free_port()
        self.workers = workers
        self.module = module or module_path()
        self.process = None
        self.user = user
        self.preload = preload
        self.env = env or {}
        self.killed = set()
        self.expected = []
        self.secret_file = self.dir / "secret"
        self.write_secret(secret or f"1 {secrets.token_hex(32)}\n")
        self.admin_token_file = self.dir / "admin-token"
        self.admin_tokens = {name: secrets.token_hex(32) for name in admin}
        self.write_admin_tokens()
        self.account = None  # of a store, where everything is to be told (history.py)
        self.store = None if store else pool.take()
        if self.store:
            store = f"{self.store.directive} timeout={STORE_TIMEOUT}"
        self.parts = dict(rooms=rooms or {}, gate=gate, zone=zone, store=store, journal=journal, rooms_max=rooms_max, auto=auto,
                          http=http, server=server, main=main, events=events, listen=listen, shop=shop, api=api,
                          log_level=log_level)
        self.write_conf()

    # --- configuration

    def write_secret(self, text):
        self.secret_file.touch(mode=0o600)
        self.secret_file.chmod(0o600)
        self.secret_file.write_text(text)

    def write_admin_tokens(self):
        if self.admin_tokens:
            self.admin_token_file.touch(mode=0o600)
            self.admin_token_file.write_text("".join(f"{name} {token}\n" for name, token in self.admin_tokens.items()))

    def write_conf(self, **changed):
        """Writes nginx.conf; what is named replaces what the server was made with."""
        parts = self.parts = dict(self.parts, **changed)
        most = f" rooms={parts['rooms_max']}" if parts["rooms_max"] else ""
        http = [
            f"weir_store {parts['store']}{most};" if parts["store"] else f"weir_zone {parts['zone']}{most};",
            *([f"weir_journal {parts['journal']};"] if parts["journal"] and not parts["store"] else []),
            f"weir_secret_file {self.secret_file};",
            f"weir_rooms {'auto' if parts['auto'] else 'listed'};",
            *(f"weir_room {name} {settings};" for name, settings in parts["rooms"].items()),
            *([f"weir_admin_token_file {self.admin_token_file};"] if self.admin_tokens else []),
            parts["http"],
        ]
        server = SERVER if parts["api"] else ""
        if self.admin_tokens:
            server += ADMIN
        if parts["gate"]:
            server += f"""
        location / {{
            weir_gate room={parts['gate']};
            proxy_pass http://127.0.0.1:{self.shop_port};
        }}
"""
        self.conf = CONF.format(
            user=f"user {self.user};" if os.getuid() == 0 else "",
            daemon=self.daemon,
            workers=self.workers,
            module=self.module,
            dir=self.dir,
            port=self.port,
            shop_port=self.shop_port,
            http="\n    ".join(http),
            server=server + parts["server"],
            **{name: parts[name] for name in ("main", "events", "listen", "shop", "log_level")},
        )
        (self.dir / "nginx.conf").write_text(self.conf)

    def check_conf(self):
        """nginx -t: (whether it is accepted, what it said)"""
        done = subprocess.run([*self._command(), "-t"], env=self._env(), capture_output=True, text=True, timeout=30)
        return done.returncode == 0, done.stdout + done.stderr

    # --- life

    def start(self):
        if self.store and self.parts["log_level"] == "debug_core" and not self.account:
            self.account = Account(self.store)
        with open(self.dir / "stderr.log", "ab") as stderr:
            self.process = subprocess.Popen(
                self._command(), env=self._env(), cwd=self.dir, stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr,
                process_group=0,
            )
        try:
            wait_until(self._is_up, START_TIMEOUT_SEC, "nginx answering")
        except BaseException:
            self.kill()
            raise
        return self

    def reload(self):
        """SIGHUP, and back when new workers serve and no old one takes connections. Old ones may still be finishing."""
        old = set(self.worker_pids())
        self.send(signal.SIGHUP)
        wait_until(lambda: self._is_served_without(old), 10, "new workers after a reload")

    def stop(self):
        """Ends nginx and fails unless it went well: see the head of this file."""
        if self.process is None:
            return
        if self.process.poll() is None:
            self.send(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError("nginx did not end within 20 s of SIGTERM\n" + self.log_tail()) from None
        self.process = None
        if self.account:
            self.account.close()
        trouble = self.trouble()
        assert not trouble, "in nginx's log:\n" + "\n".join(trouble)

    def kill(self):
        """Ends nginx at once, workers too, and looks at nothing. As a group: no worker is born meanwhile and forgotten."""
        if self.process is None:
            return
        group = _group(self.process.pid)
        _kill_group(group)
        self.process.wait()
        wait_until(lambda: not _kill_group(group), 20, "the end of every process")
        self.process = None

    def forget(self):
        """While it is stopped: what a zone forgets by that, a store forgets now."""
        if self.store:
            self.store.wipe()

    def send(self, number):
        self.process.send_signal(number)

    # --- workers

    def worker_pids(self):
        """Workers that serve; those shutting down after a reload are not counted."""
        return sorted(pid for pid in self._children() if _title(pid) == "nginx: worker process")

    def kill_worker(self, pid, number=signal.SIGKILL):
        """Kills a worker; its death is not held against the test."""
        self.expect_worker_death(pid, number)
        os.kill(pid, number)

    def expect_worker_death(self, pid, number=signal.SIGKILL):
        """The test is about to kill this worker in a way of its own."""
        self.killed.add((pid, int(number)))

    # --- what it said

    def log(self, name="error.log"):
        path = self.dir / name
        return path.read_text(errors="replace") if path.exists() else ""

    def log_tail(self, lines=30):
        return "\n".join((self.log("stderr.log") + self.log()).splitlines()[-lines:])

    def expect_in_log(self, pattern):
        """Lines matching this are no trouble."""
        self.expected.append(re.compile(pattern))

    def trouble(self):
        reports = [path.read_text(errors="replace") for path in sorted(self.dir.glob("sanitizer.*"))]
        lines = (self.log("stderr.log") + self.log()).splitlines()
        return reports + [line for line in lines if TROUBLE.search(line) and not self._is_expected(line)]

    # --- clients

    def api(self, **kwargs):
        return Api(self.port, **kwargs)

    def admin(self, name=None):
        """The operator of this name, or the first."""
        return Admin(self.port, self.admin_tokens[name or next(iter(self.admin_tokens))])

    def client(self, **kwargs):
        return Client(self.port, **kwargs)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    # --- inside

    def _command(self):
        return [NGINX, "-p", str(self.dir), "-c", str(self.dir / "nginx.conf"), "-e", str(self.dir / "error.log")]

    def _env(self):
        """nginx itself is not instrumented, so the sanitizer's runtime has to be there before the module is.

        Leaks are not looked for: nginx leaves its cycle pool to the end of the process. Unit tests look for them.
        """
        preload = [str(self.preload)] if self.preload else []
        if os.environ.get("WEIR_VARIANT") != "asan":
            return dict(os.environ, **self.env, **({"LD_PRELOAD": preload[0]} if preload else {}))
        runtime = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
        options = f"abort_on_error=1:log_path={self.dir}/sanitizer"
        return dict(
            os.environ,
            **self.env,
            LD_PRELOAD=":".join([runtime.stdout.strip(), *preload]),
            ASAN_OPTIONS="detect_leaks=0:" + options,
            UBSAN_OPTIONS="print_stacktrace=1:" + options,
        )

    def _is_up(self):
        if self.process.poll() is not None:
            raise AssertionError(f"nginx ended with {self.process.returncode} at start\n" + self.log_tail())
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return len(self.worker_pids()) == self.workers

    def _is_served_without(self, old):
        pids = set(self.worker_pids())
        return len(pids) == self.workers and not pids & old

    def _children(self):
        return [int(stat.parent.name) for stat in Path("/proc").glob("[0-9]*/stat") if _parent(stat) == self.process.pid]

    def _is_expected(self, line):
        if any(pattern.search(line) for pattern in self.expected):
            return True
        death = re.search(r"process (\d+) exited on signal (\d+)", line)
        return bool(death) and (int(death[1]), int(death[2])) in self.killed


def _parent(stat):
    try:
        return int(stat.read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return None  # it ended while we looked


def _title(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0 ").decode(errors="replace")
    except OSError:
        return ""


def _group(pid):
    try:
        return os.getpgid(pid)
    except ProcessLookupError:  # the leader, ended and waited for
        return pid


def _kill_group(group):
    """Whether any of it was left, be it only as a zombie; those that have come to us (daemon.py) are taken leave of."""
    try:
        os.killpg(group, signal.SIGKILL)
        os.waitpid(-group, os.WNOHANG)
    except ProcessLookupError:
        return False
    except ChildProcessError:
        pass
    return True
