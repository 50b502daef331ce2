# SPDX-License-Identifier: BSD-2-Clause
"""Killing a process in the middle of an operation.

A kill at a random moment hardly ever meets the microsecond in which a worker holds a lock. So one worker is made to go
step by step, instruction by instruction, until it holds one, and is kept there; the next to ask for the lock is caught
waiting, is given it, and dies some steps later. Which locks a thread holds the kernel knows, because it has to free them
when the thread dies: so nothing of the server's own memory is known here.
"""

import ctypes
import os
import platform
import signal
import struct
from pathlib import Path

from .wait import wait_until

PTRACE_SINGLESTEP, PTRACE_ATTACH, PTRACE_DETACH = 9, 16, 17
WAIT_ALL = 0x40000000  # __WALL
GET_ROBUST_LIST, FUTEX = {"x86_64": (274, 202), "aarch64": (100, 98)}[platform.machine()]
HEAD = struct.Struct("QqQ")  # next lock held, offset of the lock word, lock being taken or given back
STEPS_MOST = 200_000

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def kill_inside(pids, steps):
    """Kills one of these workers `steps` instructions after it took a lock, or where it gives it back. Which one?

    Of a worker that nobody is connected to, and that leaves its ticks to others, none may be seen to: then the next is taken.
    """
    for pid in pids:
        with Traced(pid) as holder:
            if holder.step_until(holder.holds_lock):
                return _kill_next(holder, [other for other in pids if other != pid], steps)
    raise AssertionError(f"none of the workers {pids} took a lock")


def _kill_next(holder, others, steps):
    pid = wait_until(lambda: next(filter(_waits_for_lock, others), None), 10, "another worker that wants the lock", 0)
    with Traced(pid) as victim:
        holder.let_go()
        assert victim.step_until(victim.holds_lock), f"worker {pid} took no lock"
        victim.step_until(lambda: not victim.holds_lock(), steps)
        victim.kill()
    return pid


class Traced:
    """A process of one thread, a descendant of this one, that goes one step at a time."""

    def __init__(self, pid):
        self.pid = pid
        _ask(PTRACE_ATTACH, pid)
        os.waitpid(pid, WAIT_ALL)
        self.locks = _robust_list(pid)
        self.memory = open(f"/proc/{pid}/mem", "rb", buffering=0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.let_go()

    def step_until(self, condition, most=STEPS_MOST):
        """Whether it came to that."""
        for _ in range(most):
            if condition():
                return True
            _ask(PTRACE_SINGLESTEP, self.pid)
            _, status = os.waitpid(self.pid, WAIT_ALL)
            assert os.WIFSTOPPED(status), f"worker {self.pid} died under our hands: {status}"
        return False

    def holds_lock(self):
        first, _, pending = HEAD.unpack(os.pread(self.memory.fileno(), HEAD.size, self.locks))
        return first != self.locks and pending == 0

    def let_go(self):
        if self.pid:
            self.memory.close()
            _ask(PTRACE_DETACH, self.pid)
            self.pid = None

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, WAIT_ALL)  # its parent hears of it only after its tracer
        self.memory.close()
        self.pid = None


def _waits_for_lock(pid):
    return Path(f"/proc/{pid}/syscall").read_text().split()[0] == str(FUTEX)


def _robust_list(pid):
    where, size = ctypes.c_uint64(), ctypes.c_size_t()
    if libc.syscall(GET_ROBUST_LIST, pid, ctypes.byref(where), ctypes.byref(size)) != 0:
        raise OSError(ctypes.get_errno(), f"the robust locks of {pid} cannot be seen")
    return where.value


def _ask(request, pid):
    if libc.ptrace(request, pid, None, None) != 0:
        raise OSError(ctypes.get_errno(), f"worker {pid} cannot be traced")
