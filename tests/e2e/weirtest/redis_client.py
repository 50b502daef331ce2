# SPDX-License-Identifier: BSD-2-Clause
"""One connection to a Redis or Valkey, as a test talks to it: each command waits for its answer."""

import socket

TIMEOUT_SEC = 20


class RedisError(Exception):
    """What the server refused, in its own words."""


class RedisClient:
    """`where` is the path of a unix socket, or (host, port)."""

    def __init__(self, where, password=None, timeout_sec=TIMEOUT_SEC):
        self.socket = socket.socket(socket.AF_UNIX if isinstance(where, str) else socket.AF_INET)
        self.socket.settimeout(timeout_sec)
        try:
            self.socket.connect(where)
            self.stream = self.socket.makefile("rb")
            if password:
                self("AUTH", password)
        except BaseException:
            self.socket.close()
            raise

    def __call__(self, *words):
        """The answer: text, a number, a list or None. An error is raised, but for one within a list."""
        answer = self.ask(*words)
        if isinstance(answer, RedisError):
            raise answer
        return answer

    def ask(self, *words):
        """The same, but an error is an answer like any other."""
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        return self._answer()

    def info(self, section):
        """{field: text} of INFO."""
        lines = (line.partition(":") for line in self("INFO", section).splitlines())
        return {name: value for name, colon, value in lines if colon}

    def hang_up(self):
        """Whoever reads from it comes to an end."""
        self.socket.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.stream.close()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _answer(self):
        line = self.stream.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server hung up")
        kind, rest = line[:1], line[1:-2].decode(errors="surrogateescape")
        if kind == b"+":
            return rest
        if kind == b"-":
            return RedisError(rest)
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == "-1" else self._read(int(rest))
        assert kind == b"*", line
        return None if rest == "-1" else [self._answer() for _ in range(int(rest))]

    def _read(self, length):
        data = self.stream.read(length + 2)
        if len(data) < length + 2:
            raise ConnectionError("the server hung up")
        return data[:-2].decode(errors="surrogateescape")
