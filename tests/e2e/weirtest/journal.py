# SPDX-License-Identifier: BSD-2-Clause
"""A journal as docs/formats/journal.md describes it, byte by byte: a reader, and a writer for what nginx would never write.

Nothing here comes from the C code. Where the two differ, one of them has misread the format.
"""

import struct
from collections import namedtuple
from pathlib import Path

HEAD = struct.Struct("<8sIIQQQII16s")
RECORD = struct.Struct("<IIIHHQQ")
MAGIC = {"journal": b"WEIRJRNL", "snapshot": b"WEIRSNAP"}
VERSION = 1

ROOM, SYNCED, END, CLOSED, ZONE = 1, 2, 3, 4, 5
FACE, TICKETS, GONE, AWAY, KEY, MADE, SETTINGS, TERMS, EPOCHS, CLEARED, OVER, PEOPLE = range(1, 13)
OFF, INTERVAL, ALWAYS = 0, 1, 2

STATES = {"none": 0, "waiting": 1, "away": 2, "called": 3, "entered": 4, "active": 5, "done": 6}


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC_TABLE = crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def padded(data):
    return data + bytes(-len(data) % 8)


def name_of(kind, first):
    return f"{kind}-{first:016x}"


def boot_of_this_machine():
    return bytes.fromhex(Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", ""))


class Record(namedtuple("Record", "file offset sequence time_ms type body")):
    __slots__ = ()

    @property
    def number(self):
        """Of the room that it belongs to."""
        return struct.unpack_from("<I", self.body)[0] if self.type == ROOM else None

    @property
    def parts(self):
        """[(kind, data)] of a room's record."""
        parts, at = [], 16
        while at < len(self.body):
            kind, _, length = struct.unpack_from("<HHI", self.body, at)
            parts.append((kind, self.body[at + 8 : at + 8 + length]))
            at += 8 + length + -length % 8
        return parts

    @property
    def holders(self):
        return [data[at : at + 12] for kind, data in self.parts if kind == TICKETS for at in range(8, len(data), 32)] \
            if self.type == ROOM else []


class File:
    """One file: its head, and its records up to the first bytes that are none."""

    def __init__(self, path):
        self.name = path.name
        self.bytes = path.read_bytes()
        magic, self.version, crc, self.first, self.end, self.sequence, self.sync, _, self.boot = HEAD.unpack_from(self.bytes)
        assert magic == MAGIC[self.name.split("-")[0]] and self.version == VERSION
        assert crc == crc32c(self.bytes[:12] + self.bytes[16:64])
        self.records, self.written = [], 64
        chain, sequence = crc, self.sequence
        while record := self._record(self.written, chain, sequence):
            self.records.append(record)
            chain, sequence = struct.unpack_from("<I", self.bytes, self.written)[0], sequence + 1
            self.written += 32 + len(padded(record.body))

    def _record(self, at, chain, sequence):
        if at + 32 > len(self.bytes):
            return None
        crc, before, length, kind, zero, number, time_ms = RECORD.unpack_from(self.bytes, at)
        whole = self.bytes[at : at + 32 + length + -length % 8]
        if length > 65536 or zero or before != chain or number != sequence or crc != crc32c(whole[4:]):
            return None
        return Record(self.name, at, number, time_ms, kind, whole[32 : 32 + length])


class Journal:
    """What a recovery reads of a folder: the newest snapshot, then the segments from where it says."""

    def __init__(self, folder):
        folder = Path(folder)
        snapshots = sorted(folder.glob("snapshot-" + "[0-9a-f]" * 16))
        self.snapshot = File(snapshots[-1]) if snapshots else None
        self.segments = [File(path) for path in sorted(folder.glob("journal-" + "[0-9a-f]" * 16))]
        start = self.snapshot.first if self.snapshot else 0
        self.snapshot_records = self.snapshot.records if self.snapshot else []
        self.records = [record for segment in self.segments for record in segment.records
                        if segment.first + record.offset >= start]

    @property
    def names(self):
        """{number: name} of rooms."""
        return {record.number: data[8:].decode() for record in self.snapshot_records + self.records if record.type == ROOM
                for kind, data in record.parts if kind == MADE}


# --- writing


class Writer:
    """Bytes of a segment or a snapshot: records are added behind each other, with their checksums."""

    def __init__(self, kind="journal", first=0, end=1 << 20, sequence=1, sync=INTERVAL, boot=None, version=VERSION):
        self.kind, self.first, self.end, self.sequence = kind, first, 0 if kind == "snapshot" else end, sequence
        head = HEAD.pack(MAGIC[kind], version, 0, first, self.end, sequence, sync, 0,
                         boot_of_this_machine() if boot is None else boot)
        self.chain = crc32c(head[:12] + head[16:])
        self.bytes = head[:12] + struct.pack("<I", self.chain) + head[16:]

    def add(self, kind, body=b"", time_ms=1794729920123):
        rest = struct.pack("<IIHHQQ", self.chain, len(body), kind, 0, self.sequence, time_ms) + padded(body)
        self.chain = crc32c(rest)
        self.sequence += 1
        self.bytes += struct.pack("<I", self.chain) + rest
        return self

    def save(self, folder):
        """As a segment is made: as long as its head says, zeros behind its records."""
        path = Path(folder) / name_of(self.kind, self.first)
        path.write_bytes(self.bytes + bytes(max(0, self.end - self.first - len(self.bytes))))
        return path


def room(number, change, *parts):
    return struct.pack("<IIQ", number, 0, change) + b"".join(parts)


def part(kind, data=b""):
    return padded(struct.pack("<HHI", kind, 0, len(data)) + data)


def made(name, epoch):
    return part(MADE, struct.pack("<II", epoch, len(name)) + name.encode())


def settings(version=0, from_api=0, **changed):
    text = "".join(f"{name}={value}\n" for name, value in changed.items())
    return part(SETTINGS, struct.pack("<IIII", version, from_api, 0, 0) + text.encode())


def face(clock_ms=0, issued=0, calls=0, refunds=0, last=0, last_called=0):
    return part(FACE, struct.pack("<QQQQQIIII", clock_ms, 0, issued, calls, refunds, 0, 0, last, last_called))


def tickets(first, *states, flags=0):
    """Tickets in a row; the holder of each is made of its place."""
    images = b"".join(struct.pack("<12sIIIIBBBB", holder_of(first + at), 1794729920, 0xFFFFFFFE, 0, 0, STATES[state], flags, 1, 2)
                      for at, state in enumerate(states))
    return part(TICKETS, struct.pack("<II", first, len(states)) + images)


def holder_of(place):
    return struct.pack(">III", place * 0x9E3779B1 & 0xFFFFFFFF, place * 0x85EBCA77 & 0xFFFFFFFF, place)


def gone(place):
    return part(GONE, struct.pack("<II", place, 0))


def away(page, *places):
    bits = sum(1 << place - page for place in places)
    return part(AWAY, struct.pack("<IIQQ", page, 100, bits & (1 << 64) - 1, bits >> 64))
