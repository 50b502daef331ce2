# SPDX-License-Identifier: BSD-2-Clause
"""What the scripts did in the rooms of a store, as its servers themselves told it while they did it (MONITOR).

A script changes the figures of a room once, at its end, and the line before that; no other comes in between. So the commands
stand in the order of effects, whichever worker or node asked for them.
"""

import re
import secrets
import threading

from .wait import wait_until

WORD = re.compile(r'"((?:[^"\\]|\\.)*)"')
# Of a script, on the keys that count.
OF_ROOM = re.compile(r'lua\] "(HSET|ZADD|ZREM|UNLINK)" "queue:(room|event):')
FIGURES = "ticked_ms clock_ms settings_version issued waiting away called entered active calls refunds"


class Account:
    """Of all that happens from now on until it is closed."""

    def __init__(self, store):
        self.told = [Told(server) for server in store.primaries]

    def moments(self, room):
        """Tuples in the order of FIGURES, one for each script that changed one of them; what happened until now is among them."""
        line, figures, moments = set(), dict.fromkeys(FIGURES.split(), 0), []
        for command, key, *words in (words for told in self.told for words in told.commands(room)):
            if command == "UNLINK":
                line.clear()
            elif command == "ZADD":
                line.update(words[1::2])
            elif command == "ZREM":
                line.difference_update(words)
            else:
                changes = {name: value for name, value in zip(words[::2], words[1::2]) if name in figures}
                figures.update(changes, waiting=len(line))
                if changes:
                    moments.append(tuple(int(value) for value in figures.values()))
        return moments

    def close(self):
        for told in self.told:
            told.close()


class Told:
    """What one server tells."""

    def __init__(self, server):
        self.server = server
        self.lines = []
        self.client = server.client(timeout_sec=None)
        self.client("MONITOR")
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.thread.start()

    def commands(self, room):
        mark = secrets.token_hex(8)
        self.server("ECHO", mark)
        wait_until(lambda: any(mark in line for line in self.lines[-50:]), 10, "the server's word on what it did")
        return [WORD.findall(line) for line in self.lines if OF_ROOM.search(line) and f"{{{room}}}" in line]

    def close(self):
        self.client.hang_up()
        self.thread.join()
        self.client.close()

    def _listen(self):
        for line in self.client.stream:
            if OF_ROOM.search(text := line.decode(errors="replace")) or '"ECHO"' in text:
                self.lines.append(text)
