# SPDX-License-Identifier: BSD-2-Clause
"""Two networks on this machine with one cable between them that can be pulled.

Whatever is to be reached from both sides has an address of the cable; the test itself is in neither, and talks to the processes
there over unix sockets, which are files and know of no network.
"""

import os
import subprocess

SUBNET = "10.213.77"  # seen in these two networks alone


class Split:
    """The two sides, from `with` to its end: `left` and `right` are where a process can be started."""

    def __init__(self):
        name = f"weir{os.getpid()}"
        self.left, self.right = Side(f"{name}l", f"{SUBNET}.1"), Side(f"{name}r", f"{SUBNET}.2")

    def __enter__(self):
        try:
            self._lay()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_):
        self._remove()

    def pull(self):
        """Nothing goes from one side to the other. What is connected stays so, until somebody notices that nobody answers."""
        self.left.ip("link", "set", "cable", "down")

    def plug(self):
        self.left.ip("link", "set", "cable", "up")

    def _lay(self):
        for side in (self.left, self.right):
            ip("netns", "add", side.name)
        ip("link", "add", "cable", "netns", self.left.name, "type", "veth", "peer", "name", "cable", "netns", self.right.name)
        for side in (self.left, self.right):
            side.ip("address", "add", f"{side.host}/24", "dev", "cable")
            side.ip("link", "set", "lo", "up")
            side.ip("link", "set", "cable", "up")

    def _remove(self):
        for side in (self.left, self.right):
            subprocess.run(["ip", "netns", "delete", side.name], capture_output=True, timeout=30)


class Side:
    def __init__(self, name, host):
        self.name, self.host = name, host
        self.prefix = ["ip", "netns", "exec", name]  # before a command that is to run there

    def ip(self, *words):
        ip("-netns", self.name, *words)


def ip(*words):
    try:
        done = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=30)
    except FileNotFoundError:
        raise AssertionError("this test needs `ip` (package iproute2)") from None
    assert done.returncode == 0, (
        "this test makes network namespaces, which needs root (CAP_NET_ADMIN and CAP_SYS_ADMIN), also within a container: "
        f"ip {' '.join(words)}: {done.stderr.strip()}"
    )
