# SPDX-License-Identifier: BSD-2-Clause
"""The demo under test."""

import contextlib
import os
import signal
import subprocess
from pathlib import Path

from weirtest import Admin, wait_until

ROOT = Path(__file__).resolve().parents[2]


class Demo:
    """`make run` in a process group of its own, as a terminal gives it one."""

    def __init__(self, data, port, **wishes):
        self.port = port
        self.data = data
        self.output = data.parent / f"{data.name}.out"
        wishes = {"PORT": port, "DATA": data, "WORKERS": 2, **wishes}
        env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        with open(self.output, "wb") as output:
            self.process = subprocess.Popen(
                ["make", "run", *(f"{name}={value}" for name, value in wishes.items())],
                cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                start_new_session=True,
                # Who was started in the background ignores Ctrl-C, and so would all that they start.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )

    def said(self):
        return self.output.read_text()

    def wait_for_banner(self):
        wait_until(self._is_up, 60, "the demo's banner")
        return self

    def _is_up(self):
        assert self.process.poll() is None, self.said()
        return "Ctrl-C stops it" in self.said()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def admin(self):
        return Admin(self.port, (self.data / "admin-token").read_text().split()[1])

    def wait_for_end(self):
        return self.process.wait(20)

    def members(self):
        """Living processes of its group."""
        return [stat.parent.name for stat in Path("/proc").glob("[0-9]*/stat") if is_alive_in(stat, self.process.pid)]

    def end(self):
        """Whatever became of make: nothing of its group outlives the test."""
        for pid in self.members():
            with contextlib.suppress(ProcessLookupError):  # it ended by itself meanwhile
                os.kill(int(pid), signal.SIGKILL)
        self.process.wait()


def is_alive_in(stat, group):
    try:
        state, _, its_group = stat.read_text().rpartition(")")[2].split()[:3]
    except (OSError, ValueError):
        return False  # it ended while we looked
    return state != "Z" and int(its_group) == group
