# SPDX-License-Identifier: BSD-2-Clause
"""HTTP as the tests need it: keep-alive, cookies when asked for, and bytes when the request is meant to be wrong."""

import http.client
import json
import socket
from dataclasses import dataclass, field

TIMEOUT_SEC = 20


@dataclass
class Response:
    status: int
    headers: list = field(default_factory=list)  # [(name in lower case, value)], as they came
    body: bytes = b""

    def header(self, name, default=None):
        """The first header of that name."""
        return next((value for key, value in self.headers if key == name.lower()), default)

    def header_all(self, name):
        return [value for key, value in self.headers if key == name.lower()]

    def json(self):
        return json.loads(self.body)

    @property
    def error_code(self):
        """The code in the error envelope, None if this is not one."""
        try:
            return self.json()["error"]["code"]
        except (ValueError, KeyError, TypeError):
            return None

    def cookies(self):
        """{name: value} of what the response sets."""
        pairs = (value.split(";", 1)[0].split("=", 1) for value in self.header_all("set-cookie"))
        return {name.strip(): value for name, value in pairs}


class Client:
    """One visitor on one keep-alive connection. With `cookies=True` it keeps what it is given, as a browser does."""

    def __init__(self, port, cookies=True, headers=None):
        self.port = port
        self.keeps_cookies = cookies
        self.cookies = {}
        self.headers = dict(headers or {})
        self.connection = None

    def request(self, method, path, body=None, headers=None):
        sent = dict(self.headers, **(headers or {}))
        if self.cookies and "Cookie" not in sent:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
            sent.setdefault("Content-Type", "application/json")
        if isinstance(body, str):
            body = body.encode()
        response = self._exchange(method, path, body, sent)
        if self.keeps_cookies:
            self.cookies.update(response.cookies())
        return response

    def get(self, path, **kwargs):
        return self.request("GET", path, **kwargs)

    def post(self, path, body=None, **kwargs):
        return self.request("POST", path, body, **kwargs)

    def close(self):
        if self.connection:
            self.connection.close()
            self.connection = None

    def _exchange(self, method, path, body, headers):
        try:
            return self._try(method, path, body, headers)
        except (http.client.RemoteDisconnected, http.client.CannotSendRequest, BrokenPipeError):
            # The server had closed the idle connection (it may: a reload does). Once more on a new one.
            self.close()
            return self._try(method, path, body, headers)

    def _try(self, method, path, body, headers):
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_SEC)
        try:
            self.connection.request(method, path, body, headers)
            answer = self.connection.getresponse()
            return Response(answer.status, [(k.lower(), v) for k, v in answer.getheaders()], answer.read())
        except BaseException:
            self.close()
            raise


def raw(port, data, timeout_sec=TIMEOUT_SEC):
    """Sends bytes as they are, closes its side, returns all that came back."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout_sec) as connection:
        received = b""
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while chunk := connection.recv(65536):
                received += chunk
        except (ConnectionResetError, BrokenPipeError):
            pass  # the server answered and closed before it had read all: what it said counts
        return received
