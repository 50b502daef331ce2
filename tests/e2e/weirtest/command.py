# SPDX-License-Identifier: BSD-2-Clause
"""The `weir` command that was built beside the module under test, and what came of running it."""

import json
import os
import re
import subprocess
from pathlib import Path

from .nginx import module_path

TIMEOUT_SEC = 30


class Done:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def json(self):
        assert self.code == 0, self.err
        return json.loads(self.out)

    def lines(self):
        assert self.code == 0, self.err
        return self.out.splitlines()

    def cells(self):
        """{first word of a line: its other cells}; cells are two spaces apart."""
        rows = (re.split(r" {2,}", line.strip()) for line in self.lines() if line.strip())
        return {row[0]: row[1:] for row in rows}


def binary():
    return str(Path(module_path()).parent / "weir")


def environment(**changed):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_") and name != "NO_COLOR"}
    return {**kept, "TERM": "xterm", **changed}


def run(*words, stdin="", env=None):
    done = subprocess.run([binary(), *map(str, words)], input=stdin.encode(), capture_output=True, timeout=TIMEOUT_SEC,
                          env=environment(**(env or {})))
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def assert_one_line(done, code, *parts):
    assert done.code == code, (done.out, done.err)
    assert done.out == ""
    assert done.err.startswith("weir: ") and done.err.endswith("\n") and done.err.count("\n") == 1, done.err
    for part in parts:
        assert part in done.err, done.err
