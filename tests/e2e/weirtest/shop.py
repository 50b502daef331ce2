# SPDX-License-Identifier: BSD-2-Clause
"""A shop behind the gate that remembers what came through, and answers with it."""

import json
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Visit:
    """A request as the shop got it."""

    method: str
    path: str
    headers: list  # [[name, value]], as they came
    body: str

    def header_all(self, name):
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def of_weir(self):
        """What the gate said, by name in lower case; `_` counts as `-`, as it does in CGI."""
        names = ((key.lower().replace("_", "-"), value) for key, value in self.headers)
        return {name: value for name, value in names if name.startswith("x-weir-")}


class Shop:
    """
    A thread a connection, on a free loopback port. `answer_headers` maps a path (without its query) to headers of its answer, and
    `answer_status` to another status than 200.
    """

    def __init__(self):
        self.seen = []
        self.answer_headers = {}
        self.answer_status = {}
        shop = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                try:
                    shop.serve(self)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True  # whoever asked has gone

            do_GET = do_POST = do_HEAD = do_OPTIONS = do_PUT = do_PATCH = do_DELETE = answer

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def serve(self, handler):
        sent = handler.rfile.read(int(handler.headers.get("Content-Length", 0))).decode(errors="replace")
        visit = Visit(handler.command, handler.path, [list(item) for item in handler.headers.items()], sent)
        self.seen.append(visit)
        body = json.dumps({"shop": True, "path": visit.path, "headers": visit.headers, "body": sent}).encode()
        path = visit.path.partition("?")[0]
        handler.send_response(self.answer_status.get(path, 200))
        for name, value in self.answer_headers.get(path, []):
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body if handler.command != "HEAD" else b"")

    def close(self):
        self.server.shutdown()
        self.server.server_close()
