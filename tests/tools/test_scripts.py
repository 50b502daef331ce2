# SPDX-License-Identifier: BSD-2-Clause
"""The scripts behind the commands: what they refuse, what they say, and that the test runner counts honestly."""

import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


def run(*command, **kwargs):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, **kwargs)


def write_script(path, text):
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


# --- install-deps


@pytest.fixture
def machine(tmp_path):
    """A copy of the script on a machine where wrk and valkey-server are missing and apt-get does what a test says, in `calls`."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "install-deps", tmp_path / "scripts")
    bin = tmp_path / "bin"
    bin.mkdir()
    write_script(bin / "dpkg-query", '[ "$4" != wrk ] && [ "$4" != valkey-server ] && printf installed')
    write_script(bin / "sudo", 'exec "$@"')
    calls = tmp_path / "calls"

    def install(apt_get, target="bench", apt_cache="exit 0"):
        calls.touch()
        write_script(bin / "apt-cache", apt_cache)
        write_script(bin / "apt-get", f'echo "$@" >> {calls}\n{apt_get}')
        env = dict(os.environ, PATH=f"{bin}:{os.environ['PATH']}")
        done = run(tmp_path / "scripts" / "install-deps", target, env=env)
        return done, calls.read_text().splitlines()

    return install


def test_install_deps_does_nothing_when_all_is_there():
    done = run(ROOT / "scripts" / "install-deps", "test")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_install_deps_says_what_is_missing_and_installs_only_that(machine):
    done, calls = machine("exit 0")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Installing Debian packages: wrk\n"
    assert len(calls) == 1 and calls[0].endswith("install -y --no-install-recommends wrk")


def test_install_deps_fetches_the_package_lists_only_when_they_are_needed(machine):
    done, calls = machine('case "$*" in *update) touch "$0.updated" ;; *) [ -e "$0.updated" ] ;; esac')
    assert done.returncode == 0, done.stderr
    assert ["install" in calls[0], "update" in calls[1], "install" in calls[2]] == [True, True, True]


def test_install_deps_fails_with_one_clear_sentence(machine):
    done, _ = machine("exit 100")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("install-deps: apt-get could not install: wrk")


@pytest.mark.parametrize("apt_get, apt_cache, stdout, stderr", [
    ("exit 0", "exit 0", "Installing Debian packages: valkey-server\n", ""),
    ("exit 100", "exit 0", "Installing Debian packages: valkey-server\n", "install-deps: going on without valkey-server: "),
    ("exit 100", "exit 100", "", ""),
])
def test_install_deps_goes_on_without_what_is_only_of_use(machine, apt_get, apt_cache, stdout, stderr):
    done, _ = machine(apt_get, "test", apt_cache)
    assert (done.returncode, done.stdout) == (0, stdout)
    assert done.stderr.startswith(stderr) and bool(done.stderr) == bool(stderr)


# --- check-layers


@pytest.mark.parametrize(
    "file, line, is_allowed",
    [
        ("src/room/line.c", '#include "base/span.h"', True),
        ("src/nginx/gate.c", '#include "engine/engine.h"', True),
        ("src/base/span.c", '#include "room/line.h"', False),
        ("src/room/line.c", '#include "token/ticket.h"', False),
        ("src/engine/local.h", '  #  include "nginx/conf.h"', False),
        ("src/room/line.c", '#include "../tests/x.h"', False),
        ("src/engine/local.c", "#include <ngx_core.h>", False),
        ("src/other/x.c", "", False),
    ],
)
def test_check_layers_lets_includes_point_downwards_only(tmp_path, file, line, is_allowed):
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "check-layers", tmp_path / "scripts")
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(line + "\n")
    done = run(tmp_path / "scripts" / "check-layers")
    assert (done.returncode == 0) == is_allowed, done.stderr


# --- tests/run


@pytest.fixture
def runner(tmp_path, monkeypatch):
    """The test runner as a module, working in a folder of its own."""
    loader = importlib.machinery.SourceFileLoader("weir_tests_run", str(ROOT / "tests" / "run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    monkeypatch.chdir(tmp_path)
    module.RESULTS = tmp_path / "results"
    (tmp_path / "build/gcc/unit").mkdir(parents=True)
    return module


REPORT = """cat > "$CMOCKA_XML_FILE" <<'END'
<testsuites><testsuite name="x"><testcase name="a"/><testcase name="b">%s</testcase></testsuite></testsuites>
END
"""


@pytest.mark.parametrize(
    "program, passed, failed",
    [
        (REPORT % "", 2, 0),
        (REPORT % "<failure>no</failure>" + "exit 1", 1, 1),
        (REPORT % "<failure>no</failure>" + "exit 0", 1, 1),
        (REPORT % "<skipped/>", 1, 1),
        (REPORT % "" + "exit 1", 2, 1),
        (REPORT % "" + "kill -ABRT $$", 2, 1),
        ("kill -SEGV $$", 0, 1),
        ("exit 0", 0, 1),
        ('echo "<testsuites><testsuite>" > "$CMOCKA_XML_FILE"', 0, 1),
    ],
    ids=["all pass", "one fails", "a failure with exit 0", "a skip", "exit 1 afterwards", "abort afterwards", "a crash",
         "silence", "a report cut off"],
)
def test_a_unit_program_is_counted_by_what_it_reported(runner, program, passed, failed):
    write_script(Path("build/gcc/unit/test_x"), program)
    tally = runner.Tally()
    runner.add_cmocka(tally, "gcc", "test_x", *runner.run_cmocka("gcc", "test_x"))
    assert (tally.passed, len(tally.failed)) == (passed, failed)


def test_a_missing_unit_program_is_a_failure(runner):
    tally = runner.Tally()
    runner.add_cmocka(tally, "gcc", "test_x", *runner.run_cmocka("gcc", "test_x"))
    assert (tally.passed, len(tally.failed)) == (0, 1)


def test_end_to_end_tests_are_counted_one_by_one(runner, tmp_path):
    Path("Makefile").write_text("module:\n")
    Path("test_x.py").write_text(
        "import pytest\n"
        "def test_good(): pass\n"
        "def test_bad(): assert False\n"
        "@pytest.mark.skip\n"
        "def test_skipped(): pass\n"
        "@pytest.fixture\n"
        "def late():\n"
        "    yield\n"
        "    assert False\n"
        "def test_good_with_a_bad_end(late): pass\n"
    )
    tally = runner.Tally()
    runner.run_e2e(tally, "gcc", ["test_x.py"])
    assert tally.passed == 1 and len(tally.failed) >= 3


def test_no_end_to_end_test_at_all_is_a_failure(runner):
    Path("Makefile").write_text("module:\n")
    tally = runner.Tally()
    runner.run_e2e(tally, "gcc", ["nothing"])
    assert (tally.passed, len(tally.failed)) == (0, 1)
