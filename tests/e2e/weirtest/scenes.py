# SPDX-License-Identifier: BSD-2-Clause
"""Scenes that play at the same time, each a coroutine, while tests wait for the one they are about.

A room's time is real time. What takes ten seconds in one room takes them in another as well: played together they take
little longer than the longest. A scene that fails fails the test that asks for it, and no other.
"""

import asyncio
import threading

SCENE_SEC = 150


class Scenes:
    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.played = {}

    def play(self, name, scene):
        """Begins a scene now."""
        self.played[name] = asyncio.run_coroutine_threadsafe(asyncio.wait_for(scene, SCENE_SEC), self.loop)

    def __getitem__(self, name):
        """What the scene returned, once it is over."""
        return self.played[name].result()

    def close(self):
        for future in self.played.values():
            future.cancel()
        asyncio.run_coroutine_threadsafe(self._end(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()

    async def _end(self):
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
