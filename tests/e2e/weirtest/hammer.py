# SPDX-License-Identifier: BSD-2-Clause
"""One request, as fast as a client can send it, over kept connections; and what it costs the server, asked of the kernel.

Each connection has one request under way. More at a time would not be faster, and nginx itself keeps a few bytes of every
pipelined request for as long as its connection lasts, which would look like growth of ours.
"""

import re
import socket
from pathlib import Path

STATUS_LINE = re.compile(rb"HTTP/1\.1 (\d{3}) ")
LENGTH = re.compile(rb"\r\ncontent-length: (\d+)\r\n", re.IGNORECASE)
TIMEOUT_SEC = 30


class Hammer:
    def __init__(self, port, connections=64):
        self.sockets = [socket.create_connection(("127.0.0.1", port), TIMEOUT_SEC) for _ in range(connections)]

    def strike(self, request):
        """Sends the request once over each connection: [(status, head, body)]."""
        for connection in self.sockets:
            connection.sendall(request)
        return [_response(connection) for connection in self.sockets]

    def close(self):
        for connection in self.sockets:
            connection.close()


def request_of(method, path, body):
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    return (head + body).encode()


def _response(connection):
    data = b""
    while True:
        received = connection.recv(1 << 16)
        assert received, "the server closed a keep-alive connection"
        data += received
        head, end, body = data.partition(b"\r\n\r\n")
        if end and len(body) == int(LENGTH.search(head + b"\r\n")[1]):
            return int(STATUS_LINE.match(head)[1]), head + b"\r\n", body


def cpu_ns(pids):
    """Time these processes have spent on a processor."""
    return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in pids)


def memory_bytes(pid, what):
    """`what` of a process: RssAnon, its own; RssShmem, what it has touched of the zone."""
    return int(re.search(rf"^{what}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)[1]) << 10
