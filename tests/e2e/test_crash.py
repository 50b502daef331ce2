# SPDX-License-Identifier: BSD-2-Clause
"""kill -9 of a worker, of the master and of everything, at random moments under load, with a journal.

The people keep every answer they were given and hold the server to it over all its deaths (weirtest/hall.py): nobody's ticket is
lost, no place is given twice, the order stays, nobody is called twice, a pass that was given is the same ever after, and the
limits hold. (Failures 51 and 52: see the list of known failures of systems like this.)

  WEIR_CRASHES=100   rounds, each of which kills something
"""

import os
import random
import signal

import pytest

from weirtest import hall, wait_until
from weirtest.hall import Crowd
from weirtest.people import Patient

pytestmark = pytest.mark.local

IS_ASAN = os.environ.get("WEIR_VARIANT") == "asan"
ROUNDS = int(os.environ.get("WEIR_CRASHES", "12" if IS_ASAN else "102"))
MODES = ("interval=1s", "always", "off")


@pytest.mark.parametrize("sync", MODES)
def test_nothing_that_was_acknowledged_is_lost_when_processes_are_killed(weir, tmp_path, sync):
    # Small segments, so that new ones and snapshots are begun all the time.
    journal = f"weir_journal {tmp_path}/journal sync={sync} segment=1m reserve=256k;"
    server = weir(workers=2, rooms={hall.ROOM: hall.SETTINGS}, http=journal)
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    deaths = (kill_worker, kill_everything, kill_master_first, kill_worker)
    with Crowd(server.port, chance.random(), caller=Patient) as crowd:
        for _ in range(ROUNDS // len(MODES)):
            crowd.wait_for_answers(chance.randrange(1, 300))
            chance.choice(deaths)(server, crowd, chance)
    assert crowd.broken > 0, "the kills met nobody"


def kill_worker(server, crowd, chance):
    pids = wait_until(server.worker_pids, 10, "a living worker")
    server.kill_worker(chance.choice(pids))


def kill_everything(server, crowd, chance):
    server.kill()
    server.start()


def kill_master_first(server, crowd, chance):
    """Workers go on without a master, and nobody else gets at their journal until the last of them is gone."""
    pids = wait_until(lambda: len(server.worker_pids()) == server.workers and server.worker_pids(), 10, "every worker")
    os.kill(server.process.pid, signal.SIGKILL)
    server.process.wait()
    crowd.wait_for_answers(20)
    chance.shuffle(pids)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    server.kill()
    server.start()
