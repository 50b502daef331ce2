# SPDX-License-Identifier: BSD-2-Clause
"""A server of names (DNS) for nginx's resolver: what it knows, it tells; anything else does not exist."""

import socket
import struct
import threading

TYPE_A, NO_SUCH_NAME = 1, 3
QUESTION_AT = 12  # behind the head of a message


class Names:
    """`addresses` is {name: IPv4 address}, and may be changed at any time."""

    def __init__(self, addresses):
        self.addresses = addresses
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def _serve(self):
        while True:
            try:
                message, client = self.socket.recvfrom(512)
                self.socket.sendto(self._answer(message), client)
            except OSError:
                return  # it is closed

    def _answer(self, message):
        labels, at = [], QUESTION_AT
        while message[at]:
            labels.append(message[at + 1:at + 1 + message[at]].decode())
            at += 1 + message[at]
        kind = struct.unpack("!H", message[at + 1:at + 3])[0]
        question = message[QUESTION_AT:at + 5]
        address = self.addresses.get(".".join(labels).lower())
        is_told = address and kind == TYPE_A
        head = message[:2] + struct.pack("!HHHHH", 0x8180 | (0 if address else NO_SUCH_NAME), 1, int(bool(is_told)), 0, 0)
        record = struct.pack("!HHHIH", 0xC000 | QUESTION_AT, TYPE_A, 1, 1, 4) + socket.inet_aton(address) if is_told else b""
        return head + question + record
