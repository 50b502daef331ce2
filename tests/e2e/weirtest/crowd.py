# SPDX-License-Identifier: BSD-2-Clause
"""Many people at the same moment: requests over many connections, all opened first and let go together."""

import asyncio
import json

from .http import Response

TIMEOUT_SEC = 60


def at_once(port, requests, connections=100, tolerate=False):
    """Sends every request, spread over `connections` keep-alive connections, and returns the responses in that order.

    A request is (method, path, body, headers); body and headers may be left out. Where `tolerate` is set, a request
    whose connection broke (its worker was killed) has the response None; else that is an error.
    """
    return asyncio.run(asyncio.wait_for(_at_once(port, requests, connections, tolerate), TIMEOUT_SEC))


async def _at_once(port, requests, connections, tolerate):
    responses = [None] * len(requests)
    connections = min(connections, len(requests)) or 1
    opened, go = [], asyncio.Event()

    async def one(first):
        streams = await asyncio.open_connection("127.0.0.1", port)
        opened.append(first)
        if len(opened) == connections:
            go.set()
        await go.wait()
        for index in range(first, len(requests), connections):
            try:
                if streams is None:
                    streams = await asyncio.open_connection("127.0.0.1", port)
                responses[index] = await exchange(streams, *requests[index])
                if responses[index].header("connection") == "close":
                    raise EOFError("the server closed a keep-alive connection")
            except (OSError, EOFError):
                if not tolerate:
                    raise
                if streams:
                    streams[1].close()
                streams = None
        if streams:
            streams[1].close()

    await asyncio.gather(*(one(first) for first in range(connections)))
    return responses


async def exchange(streams, method, path, body=None, headers=None):
    """One request and its response over (reader, writer)."""
    reader, writer = streams
    if isinstance(body, (dict, list)):
        body = json.dumps(body)
    payload = (body or "").encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(payload)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + payload)
    await writer.drain()

    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    status = int(head[0].split(" ", 2)[1])
    pairs = [line.split(":", 1) for line in head[1:] if line]
    answer = Response(status, [(name.lower(), value.strip()) for name, value in pairs])
    answer.body = await _body(reader, answer)
    return answer


async def _body(reader, answer):
    if answer.header("transfer-encoding") == "chunked":
        body = b""
        while size := int((await reader.readline()).split(b";")[0], 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readline()
        return body
    return await reader.readexactly(int(answer.header("content-length", "0")))
