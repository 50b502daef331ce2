# SPDX-License-Identifier: BSD-2-Clause
"""Workers are killed at random moments and in the middle of operations, while people join, poll, enter and leave.

The people check all that they are told (weirtest/hall.py). (Failure N: see the list of known failures of systems like this.)
"""

import os
import random

import pytest
from weirtest import hall, wait_until
from weirtest.hall import Crowd
from weirtest.locks import kill_inside

pytestmark = pytest.mark.local

IS_ASAN = os.environ.get("WEIR_VARIANT") == "asan"
KILLS = int(os.environ.get("WEIR_KILLS", "12" if IS_ASAN else "50"))
# About what an operation takes. One that takes less is met at its end.
STEPS = 8000 if IS_ASAN else 2000


def test_the_room_stays_whole_and_unlocked_when_workers_are_killed(weir):
    """Failures 52 (a lock held for ever), 14 (limits), 21 (a lost answer repeated), 4 (a number given twice)."""
    server = weir(workers=3, rooms={hall.ROOM: hall.SETTINGS})
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    crowd = Crowd(server.port, chance.random())
    with crowd:
        for number in range(KILLS):
            crowd.wait_for_answers(chance.randrange(1, 200))
            if number % 2:
                server.kill_worker(chance.choice(wait_until(lambda: living(server), 10, "a living worker")))
            else:
                kill_one_inside(server, chance)
    wait_until(lambda: len(server.worker_pids()) == server.workers, 10, "every worker back")
    assert crowd.broken >= KILLS / 2, "the kills met nobody"

    # And the room is as good as new: the next one finds it empty and walks in, as soon as the pace has a call left.
    api = server.api()
    answer = api.join("hall").json()
    assert answer["position_hint"] == 1
    wait_until(lambda: api.status(answer["waiting_token"]).json()["ready_for_entry"], 10, "the call")


def test_a_worker_that_dies_in_a_reload_takes_nobody_with_it(weir):
    """Failure 52, where the lock's owner belongs to the workers that are about to leave."""
    server = weir(workers=2, rooms={hall.ROOM: hall.SETTINGS})
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    with Crowd(server.port, chance.random()) as crowd:
        for _ in range(3):
            crowd.wait_for_answers(100)
            kill_one_inside(server, chance)
            server.reload()


def living(server):
    """Workers that were not killed: who was may be seen for a moment longer."""
    return [pid for pid in server.worker_pids() if pid not in {dead for dead, _ in server.killed}]


def kill_one_inside(server, chance):
    pids = wait_until(lambda: len(living(server)) == server.workers and living(server), 10, "every worker back")
    chance.shuffle(pids)
    server.expect_worker_death(kill_inside(pids, chance.randrange(1, STEPS)))
