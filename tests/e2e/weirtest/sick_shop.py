# SPDX-License-Identifier: BSD-2-Clause
"""A shop that fails as it is told to, and remembers every request that reached it.

    shop.kill()                       its port refuses connections, what it was doing is cut off
    shop.start()                      and it is back, on the same port
    shop.health = status(500)         it answers so
    shop.health = hang                it takes requests and says nothing, until it is killed or nobody waits for it
    shop.health = lambda visit: ...   any of these, by request
"""

import socket
import threading
import time
from dataclasses import dataclass, field


@dataclass
class Visit:
    method: str
    path: str
    body: bytes
    number: int  # of all that reached it, from 0
    at: float = field(default_factory=time.monotonic)


def answer(code, body=b"the shop", headers=(), length=None):
    lines = [f"HTTP/1.1 {code} Whatever", f"Content-Length: {len(body) if length is None else length}"]
    return ("\r\n".join(lines + list(headers)) + "\r\n\r\n").encode() + body


def fine(visit):
    return answer(200, b"the shop, " + visit.method.encode() + b" " + visit.path.encode())


def status(code, headers=()):
    return lambda visit: answer(code, f"the shop's own {code}".encode(), headers)


def hang(visit):
    return None


def drop(visit):
    """Takes the request and closes the connection."""
    return b""


def break_off(visit):
    """Announces more than it sends."""
    return answer(200, b"the first half", length=1000)


class Unfinished(bytes):
    """Is sent, and then nothing comes and the connection stays."""


def stall(visit):
    return Unfinished(break_off(visit))


def first(count, sick, then=fine):
    """The first so many of each path fail, the rest do not."""
    seen = {}
    lock = threading.Lock()

    def health(visit):
        with lock:
            seen[visit.path] = seen.get(visit.path, 0) + 1
            is_sick = seen[visit.path] <= count
        return (sick if is_sick else then)(visit)

    return health


class SickShop:
    def __init__(self):
        self.seen = []
        self.health = fine
        self.is_alive = False
        self.sockets = set()
        self.lock = threading.Lock()
        # Keeps the port while the shop is away: bound and not listening, it refuses connections.
        self.place = self._bound(0)
        self.port = self.place.getsockname()[1]
        self.start()

    def start(self):
        self.listener = self._bound(self.port)
        self.listener.listen(1024)
        self.is_alive = True
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def kill(self):
        with self.lock:
            self.is_alive = False
            self.listener.shutdown(socket.SHUT_RDWR)
            self.listener.close()
            for connection in self.sockets:
                _reset(connection)

    def close(self):
        if self.is_alive:
            self.kill()
        self.place.close()

    def asked(self, path=None, method=None):
        """The requests that reached it, of this path and method."""
        return [visit for visit in list(self.seen)
                if path in (None, visit.path) and method in (None, visit.method)]

    # --- inside

    @staticmethod
    def _bound(port):
        bound = socket.socket()
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(("127.0.0.1", port))
        return bound

    def _accept(self, listener):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with self.lock:
                if not self.is_alive:
                    _reset(connection)
                    return
                self.sockets.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        try:
            reader = connection.makefile("rb")
            while self._serve_one(connection, reader):
                pass
        except OSError:
            pass  # it was killed, or nginx went away
        finally:
            with self.lock:
                self.sockets.discard(connection)
            connection.close()

    def _serve_one(self, connection, reader):
        head = []
        while (line := reader.readline()) not in (b"\r\n", b""):
            head.append(line.decode("latin-1").strip())
        if not head:
            return False
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        method, path, _ = head[0].split(" ", 2)
        body = reader.read(int(fields.get("content-length", 0)))
        with self.lock:
            visit = Visit(method, path, body, len(self.seen))
            self.seen.append(visit)
        said = self.health(visit)
        if said is None:
            connection.recv(1)  # nothing comes: it ends when either side goes away
            return False
        if method == "HEAD" and said:
            said = said.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
        connection.sendall(said)
        if isinstance(said, Unfinished):
            connection.recv(1)
            return False
        length = int(said.partition(b"Content-Length: ")[2].partition(b"\r\n")[0] or 0)
        is_whole = method == "HEAD" or length == len(said.partition(b"\r\n\r\n")[2])
        return bool(said) and is_whole and fields.get("connection") != "close" and head[0].endswith("1.1")


def _reset(connection):
    """As the kernel does for a process that was killed: whoever is connected hears of it."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
