#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The demo's shop: three blocks of seats, each seat sold once. `shop.py FOLDER` serves on FOLDER/shop.sock.

It stands for any shop. All it knows of the waiting room is one header: the answer that sells a seat says `Weir-Session: end`,
for whoever has their seat needs their slot no more.

A reservation goes by a key that the buyer made (`Idempotency-Key`). An answer that got lost can be asked for again under it,
also when the visit is over, which it is by then; and a request that is sent twice sells once. With each start the sale begins anew.
"""

import json
import os
import re
import secrets
import socketserver
import sys
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path

PAGES = Path(__file__).resolve().parent / "shop"
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
FILES = {
    "/": "index.html",
    "/seats/a": "seats.html",
    "/seats/b": "seats.html",
    "/seats/c": "seats.html",
    "/reserved": "reserved.html",
    "/static/shop.css": "static/shop.css",
    "/static/shop.js": "static/shop.js",
}

EVENT = "concert"
PRICES = {"A": 154000, "B": 132000, "C": 99000}
SEATS_A_BLOCK = 32
SEATS_AT_ONCE = 4
BODY_MAX = 16384

# Others were here before the demo began.
SOLD_BEFORE = {f"{block}-{number}" for block, numbers in {
    "A": (3, 4, 5, 10, 11, 12, 13, 14, 20, 21, 22),
    "B": (4, 5, 12, 13),
    "C": (4, 5),
}.items() for number in numbers}


class Refusal(Exception):
    def __init__(self, status, code, message, **fields):
        super().__init__(code)
        self.status = status
        self.error = {"code": code, "message": message, **fields}


class BoxOffice:
    """Who has which seat."""

    def __init__(self):
        self.lock = threading.Lock()
        self.reservations = {}
        self.sold = set(SOLD_BEFORE)

    def blocks(self):
        with self.lock:
            sold = sorted(self.sold, key=lambda seat: (seat[0], int(seat[2:])))
        return [
            {"id": block, "price": price, "seats": SEATS_A_BLOCK, "sold": [seat for seat in sold if seat[0] == block]}
            for block, price in PRICES.items()
        ]

    def find(self, key):
        return self.reservations.get(key)

    def sell(self, key, seats):
        """All of them or none. A key that bought before gets what it bought."""
        with self.lock:
            if key in self.reservations:
                return self.reservations[key]
            if taken := [seat for seat in seats if seat in self.sold]:
                raise Refusal(409, "SEAT_TAKEN", "This seat has just been sold", seat_ids=taken)
            number = secrets.token_hex(4).upper()
            made = {
                "status": "reserved",
                "id": key,
                "reservation": f"{number[:4]}-{number[4:]}",
                "event_id": EVENT,
                "seat_ids": seats,
                "price": sum(PRICES[seat[0]] for seat in seats),
            }
            self.reservations[key] = made
            self.sold.update(seats)
            return made


class Visit(BaseHTTPRequestHandler):
    timeout = 10

    def do_GET(self):
        self._answer_or_refuse(self._get)

    def do_POST(self):
        self._answer_or_refuse(self._post)

    do_HEAD = do_GET

    def _get(self, path):
        if path in FILES:
            self._answer_file(PAGES / FILES[path])
        elif path == "/api/v1/seats":
            self._answer(200, {"event_id": EVENT, "blocks": self.server.box_office.blocks()})
        elif path == "/api/v1/reservations":
            raise Refusal(405, "METHOD_NOT_ALLOWED", "A reservation is made with POST")
        elif found := self.server.box_office.find(path.removeprefix("/api/v1/reservations/")):
            self._answer(200, found)
        else:
            raise Refusal(404, "NOT_FOUND", "There is no such thing in this shop")

    def _post(self, path):
        if path != "/api/v1/reservations":
            raise Refusal(405, "METHOD_NOT_ALLOWED", "Only reservations are made with POST")
        key = self.headers.get("Idempotency-Key") or secrets.token_hex(16)
        if not re.fullmatch(r"[A-Za-z0-9_-]{16,64}", key):
            raise Refusal(400, "INVALID_REQUEST", "Idempotency-Key must be 16 to 64 of A-Z a-z 0-9 _ -")
        made = self.server.box_office.sell(key, seats_of(self._body()))
        self._answer(201, made, {"Weir-Session": "end"})

    def _body(self):
        length = self.headers.get("Content-Length", "0")
        if not length.isdigit() or int(length) > BODY_MAX:
            raise Refusal(413, "BODY_TOO_LARGE", "The body is too large")
        try:
            return json.loads(self.rfile.read(int(length)))
        except ValueError:
            raise Refusal(400, "INVALID_REQUEST", "The body must be JSON") from None

    def _answer_or_refuse(self, act):
        try:
            act(self.path.partition("?")[0])
        except Refusal as refusal:
            self._answer(refusal.status, {"error": refusal.error})

    def _answer_file(self, path):
        self._send(200, path.read_bytes(), {"Content-Type": TYPES[path.suffix]})

    def _answer(self, status, answer, headers=None):
        self._send(status, json.dumps(answer, separators=(",", ":")).encode(), {"Content-Type": "application/json", **(headers or {})})

    def _send(self, status, body, headers):
        self.send_response(status)
        for name, value in {**headers, "Content-Length": len(body), "Cache-Control": "no-store"}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, form, *values):
        """No address: behind a proxy on a socket there is none."""
        print(form % values, flush=True)


def seats_of(body):
    seats = body.get("seat_ids") if isinstance(body, dict) else None
    if not isinstance(seats, list) or not 1 <= len(seats) <= SEATS_AT_ONCE:
        raise Refusal(400, "INVALID_REQUEST", f"seat_ids must be a list of 1 to {SEATS_AT_ONCE} seats")
    if not all(is_seat(seat) for seat in seats) or len(set(seats)) < len(seats):
        raise Refusal(400, "INVALID_REQUEST", f"A seat is a block and a number, A-1 to C-{SEATS_A_BLOCK}, each once")
    if body.get("event_id") != EVENT:
        raise Refusal(404, "EVENT_NOT_FOUND", "This shop sells no tickets for that event")
    return seats


def is_seat(seat):
    found = isinstance(seat, str) and re.fullmatch(r"([ABC])-([1-9][0-9]?)", seat, re.A)
    return bool(found) and int(found[2]) <= SEATS_A_BLOCK


class Shop(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, folder):
        self.parent = os.getppid()
        self.box_office = BoxOffice()
        # Relative: the whole path may be longer than a socket's may be.
        os.chdir(folder)
        super().__init__("shop.sock", Visit)

    def service_actions(self):
        """The demo is gone, and did not say so."""
        if os.getppid() != self.parent:
            sys.exit()


if __name__ == "__main__":
    Shop(sys.argv[1]).serve_forever()
