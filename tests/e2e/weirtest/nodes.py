# SPDX-License-Identifier: BSD-2-Clause
"""Several nginx masters, the nodes, of one Redis: one secret, the same rooms, and people who go to any of them."""

import os
import secrets
import signal
import socket
import subprocess

from . import visitors
from .hammer import memory_bytes
from .nginx import Nginx

GATED = """
        location {gate} {{
            weir_gate room={room};
            weir_when_down closed;
            proxy_pass http://127.0.0.1:{shop_port};
        }}
"""
BELIEVED = f"weir_user $http_{visitors.IDENTITY.lower().replace('-', '_')} from=127.0.0.0/8 from=unix:;"
# A worker's own memory: for what an allocator does of its own accord, and for connections that came and went.
GROWTH_MOST = 2 << 20


class Node(Nginx):
    """`side`: the network that it lives in, if not ours (netns.py). It is reached by its socket then."""

    def __init__(self, folder, store, side=None, **kwargs):
        self.side = side
        super().__init__(folder, store=store, http=BELIEVED, **kwargs)
        self.socket = str(self.dir / "door")
        gated = GATED.format(gate=visitors.GATE, room=visitors.ROOM, shop_port=self.shop_port)
        self.write_conf(server=f"        listen unix:{self.socket};" + gated if side else gated)

    @property
    def door(self):
        return self.socket if self.side else self.port

    def freeze(self):
        """Nothing of it runs until it thaws; its connections stay."""
        os.killpg(self.process.pid, signal.SIGSTOP)

    def thaw(self):
        os.killpg(self.process.pid, signal.SIGCONT)

    def _command(self):
        return [*(self.side.prefix if self.side else []), *super()._command()]

    def _is_up(self):
        if not self.side:
            return super()._is_up()
        assert self.process.poll() is None, f"nginx ended with {self.process.returncode} at start\n" + self.log_tail()
        try:
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(self.socket)
        except OSError:
            return False
        return len(self.worker_pids()) == self.workers


class Nodes:
    """From `with` to its end, which is held to be as good as that of any nginx (nginx.py)."""

    def __init__(self, folder, store, count=2, sides=None, rooms=None, workers=2, **kwargs):
        rooms = rooms or {visitors.ROOM: visitors.SETTINGS}
        secret = f"1 {secrets.token_hex(32)}\n"
        self.all = [
            Node(folder / f"node{number}", store, side, rooms=rooms, workers=workers, secret=secret, **kwargs)
            for number, side in enumerate(sides or [None] * count)
        ]

    def __enter__(self):
        try:
            for node in self.all:
                node.start()
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            self._kill()
        problems = []
        for node in self.all:
            try:
                node.stop()
            except AssertionError as problem:
                problems.append(str(problem))
        assert not problems, "\n".join(problems)

    def __iter__(self):
        return iter(self.all)

    def __getitem__(self, number):
        return self.all[number]

    @property
    def doors(self):
        return [node.door for node in self.all]

    def _kill(self):
        for node in self.all:
            node.kill()


class Memory:
    """What the workers of all nodes have of their own, from the first look on."""

    def __init__(self, nodes):
        self.before = {pid: memory_bytes(pid, "RssAnon") for node in nodes for pid in node.worker_pids()}

    @property
    def growth(self):
        return max(memory_bytes(pid, "RssAnon") - before for pid, before in self.before.items())

    def assert_flat(self):
        # The sanitizers' allocator keeps what was freed for a while, on purpose.
        if os.environ.get("WEIR_VARIANT") != "asan":
            assert self.growth <= GROWTH_MOST, f"a worker grew by {self.growth} bytes"


class Busy:
    """Neighbours of a process: loops without end on its processor, as urgent as itself."""

    def __init__(self, pid, count=4):
        self.pid = pid
        self.count = count
        self.loops = []

    def __enter__(self):
        self.allowed = os.sched_getaffinity(self.pid)
        processor = min(self.allowed)
        os.sched_setaffinity(self.pid, {processor})
        for _ in range(self.count):
            self.loops.append(subprocess.Popen(["sh", "-c", "while :; do :; done"], process_group=0))
            os.sched_setaffinity(self.loops[-1].pid, {processor})
            os.setpriority(os.PRIO_PROCESS, self.loops[-1].pid, os.getpriority(os.PRIO_PROCESS, self.pid))
        return self

    def __exit__(self, *_):
        for loop in self.loops:
            loop.kill()
            loop.wait()
        os.sched_setaffinity(self.pid, self.allowed)
