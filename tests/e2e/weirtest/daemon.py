# SPDX-License-Identifier: BSD-2-Clause
"""nginx as a daemon, which alone can be upgraded in place: one in the foreground ignores SIGUSR2.

Such a process is nobody's child, so this one takes orphans in: it can wait for them and see how they ended.
"""

import ctypes
import os
import signal
import subprocess
from pathlib import Path

from .nginx import START_TIMEOUT_SEC, Nginx
from .wait import wait_until

SET_CHILD_SUBREAPER = 36


class Daemon(Nginx):
    daemon = "on"

    def __init__(self, folder, main="", **kwargs):
        # A new nginx inherits only what it is told to.
        kept = "".join(f"env {name};" for name in ("LD_PRELOAD", "ASAN_OPTIONS", "UBSAN_OPTIONS", "WEIR_FAULTS", "WEIR_FAULTS_IN"))
        super().__init__(folder, main=main + kept, **kwargs)
        self.old = []

    def stop(self):
        """A test that failed in the middle of an upgrade leaves two."""
        for old in self.old:
            if old is not self.process:
                old.kill()
        super().stop()

    def start(self):
        assert ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
        with open(self.dir / "stderr.log", "ab") as stderr:
            done = subprocess.run(self._command(), env=self._env(), cwd=self.dir, stdin=subprocess.DEVNULL, stdout=stderr,
                                  stderr=stderr, timeout=START_TIMEOUT_SEC)
        assert done.returncode == 0, self.log_tail()
        self.process = Orphan(wait_until(self.pid_in_file, START_TIMEOUT_SEC, "the pid file"))
        wait_until(self._is_up, START_TIMEOUT_SEC, "nginx answering")
        return self

    def pid_in_file(self):
        try:
            text = (self.dir / "nginx.pid").read_text()
        except FileNotFoundError:
            return None
        return int(text) if text.endswith("\n") else None

    def begin_upgrade(self):
        """SIGUSR2: the new nginx runs beside the old one, which is returned and still serves. `self` is the new one then."""
        old = self.process
        self.old.append(old)
        old.send_signal(signal.SIGUSR2)
        pid = wait_until(lambda: self.pid_in_file() not in (None, old.pid) and self.pid_in_file(), 20, "the new master")
        self.process = Orphan(pid)
        wait_until(self._is_up, START_TIMEOUT_SEC, "the new nginx answering")
        return old


class Orphan:
    """As much of a subprocess.Popen as Nginx needs, of a process that has come to us."""

    def __init__(self, pid):
        self.pid = pid
        self.returncode = None

    def poll(self):
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                self.returncode = os.waitstatus_to_exitcode(status) if pid else None
            except ChildProcessError:  # its parent is the old nginx, which sees how it ends
                self.returncode = None if Path(f"/proc/{self.pid}").exists() else 0
        return self.returncode

    def wait(self, timeout_sec=20):
        wait_until(lambda: self.poll() is not None, timeout_sec, f"the end of {self.pid}")
        return self.returncode

    def send_signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
