# SPDX-License-Identifier: BSD-2-Clause
"""People who go through a room while something happens to the server, and who remember all that they were told.

Each lives on a connection of their own that may break at any time (their worker was killed or left after a reload): then
they ask again on a new one, as a browser would. Whatever they are told has to fit what they were told before, and has to
come within seconds.
"""

import asyncio
from urllib.parse import quote

from .crowd import exchange
from .ticket import place_of

ANSWER_SEC = 10
TRIES = 50


class Caller:
    """One keep-alive connection, made anew whenever it broke. `broken` counts how often that was."""

    def __init__(self, port):
        self.port = port
        self.streams = None
        self.broken = 0

    async def call(self, method, path, body=None, headers=None):
        for _ in range(TRIES):
            try:
                return await asyncio.wait_for(self._try(method, path, body, headers), ANSWER_SEC)
            except asyncio.TimeoutError:
                raise AssertionError(f"no answer to {method} {path} within {ANSWER_SEC} s") from None
            except (OSError, EOFError):
                self.broken += 1
                self.close()
        raise AssertionError(f"{method} {path}: the connection broke {TRIES} times")

    async def _try(self, method, path, body, headers):
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.port)
        answer = await exchange(self.streams, method, path, body, headers)
        if answer.header("connection") == "close":
            self.close()
        return answer

    def close(self):
        if self.streams:
            self.streams[1].close()
            self.streams = None


class Patient(Caller):
    """Goes on asking while the whole server is away."""

    AWAY_SEC = 60

    async def call(self, method, path, body=None, headers=None):
        until = asyncio.get_running_loop().time() + self.AWAY_SEC
        while True:
            try:
                return await asyncio.wait_for(self._try(method, path, body, headers), ANSWER_SEC)
            except (OSError, EOFError) as broken:
                self.broken += 1
                self.close()
                assert asyncio.get_running_loop().time() < until, f"{method} {path}: {broken} for {self.AWAY_SEC} s"
            await asyncio.sleep(0.01)  # as a browser waits before it tries again


class Shared(Caller):
    """A connection of several people, who wait for each other."""

    def __init__(self, port):
        super().__init__(port)
        self.lock = asyncio.Lock()

    async def call(self, *request):
        async with self.lock:
            return await super().call(*request)


class Person:
    """One visitor without cookies. The idempotency key is what gives a join whose answer was lost its ticket back."""

    def __init__(self, caller, room, name):
        self.caller = caller
        self.room = room
        self.name = name
        self.token = self.count = self.position = self.granted = None
        self.is_ready = False

    def __repr__(self):
        return f"{self.name}: count {self.count}, position {self.position}, ready {self.is_ready}, in {bool(self.granted)}"

    async def join(self):
        answer = await self.caller.call(
            "POST", "/api/v1/queue/join", {"event_id": self.room}, {"Idempotency-Key": self.name})
        assert answer.status == 202, (self, answer)
        said = answer.json()
        assert self.token in (None, said["waiting_token"]), f"{self} was given a second ticket"
        self.token = said["waiting_token"]
        self.count = place_of(self.token).count
        self.is_ready = self.is_ready or said["ready_for_entry"]

    async def poll(self):
        answer = await self.caller.call("GET", f"/api/v1/queue/status?token={quote(self.token)}")
        assert answer.status == 200, (self, answer)
        said = answer.json()
        assert said["status"] == ("ready" if self.granted else "waiting"), (self, said)
        assert said["ready_for_entry"] or not self.is_ready, f"{self} had been called: {said}"
        assert said["position"] <= min(self.count, self.position or self.count), f"{self} fell back: {said}"
        self.is_ready = said["ready_for_entry"]
        self.position = said["position"]

    async def enter(self):
        """True if the pass was given. Whoever was told that it is their turn gets it, and always the same one."""
        answer = await self.caller.call("POST", "/api/v1/queue/enter", {"waiting_token": self.token})
        if answer.error_code == "NOT_READY":
            assert answer.status == 403 and not self.is_ready, (self, answer)
            return False
        assert answer.status == 200, (self, answer)
        assert self.granted in (None, answer.body), f"{self} was given a second pass"
        self.granted = answer.body
        self.is_ready = True
        return True

    async def say_goodbye(self):
        """The beacon of a page that unloads."""
        answer = await self.caller.call("POST", f"/api/v1/queue/leave?token={quote(self.token)}")
        assert answer.status == 204, (self, answer)

    async def leave(self):
        answer = await self.caller.call("DELETE", f"/api/v1/queue/leave?token={quote(self.token)}")
        assert answer.status == 200, (self, answer)
