# SPDX-License-Identifier: BSD-2-Clause
"""A way to a server that is slow on the way back: every reply comes so much later, and none is held up by another."""

import asyncio
import threading

CHUNK = 65536


class SlowWay:
    """Listens on `port` of this machine from `with` to its end. `delay_sec` may be changed at any time."""

    def __init__(self, to_port, delay_sec=0.0):
        self.to_port = to_port
        self.delay_sec = delay_sec
        self.port = None
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run)
        self.is_up = threading.Event()

    def __enter__(self):
        self.thread.start()
        assert self.is_up.wait(10), "the proxy did not start"
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.stopped.set)
        self.thread.join()

    def _run(self):
        self.loop.run_until_complete(self._serve())
        self.loop.close()

    async def _serve(self):
        self.stopped = asyncio.Event()
        server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self.is_up.set()
        await self.stopped.wait()
        server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _carry(self, reader, writer):
        try:
            to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self.to_port)
        except OSError:
            writer.close()
            return
        replies = asyncio.Queue()
        ways = [self._forward(reader, to_writer), self._receive(to_reader, replies), self._hand_on(replies, writer)]
        await asyncio.gather(*ways)

    async def _forward(self, reader, writer):
        try:
            while data := await reader.read(CHUNK):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def _receive(self, reader, replies):
        data = True
        while data:
            try:
                data = await reader.read(CHUNK)
            except OSError:
                data = b""
            replies.put_nowait((self.loop.time() + self.delay_sec, data))

    async def _hand_on(self, replies, writer):
        data = True
        while data:
            when, data = await replies.get()
            await asyncio.sleep(max(0, when - self.loop.time()))
            try:
                writer.write(data)
                await writer.drain()
            except OSError:
                pass  # nobody listens any more: the other way has noticed
        writer.close()
