# SPDX-License-Identifier: BSD-2-Clause
"""`weir journal`, over journals that are written here byte by byte, and over one that nginx wrote.

What the command says is compared with a second reader (weirtest/journal.py), which knows the format's description and
nothing else. Every look at a folder asserts that nothing in it was touched.
"""

import json
import os
import pty
import random
import re
import select
import struct
import subprocess
import tarfile
import termios
import threading
import time
from datetime import datetime, timezone
from pathlib import Path

import pytest

from weirtest import at_once, wait_until
from weirtest import journal as j
from weirtest.command import TIMEOUT_SEC, Done, assert_one_line, binary, environment, run
from weirtest.hammer import Hammer, request_of

pytestmark = pytest.mark.local

NUMBER = 53720  # of the room `concert`
SEGMENT = "journal-0000000000000000"


def contents(folder):
    return {path.name: (path.stat().st_mtime_ns, path.stat().st_size, path.read_bytes())
            for path in folder.iterdir() if path.is_file()}


def look(form, folder, *options):
    before = contents(folder)
    done = run("journal", form, folder, *options)
    assert contents(folder) == before, "the folder was changed"
    return done


def shown(folder, *options):
    done = look("show", folder, "--json", *options)
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.out.splitlines()]


def written(*bodies, **head):
    """A segment with a room, and these changes of it."""
    writer = j.Writer(**head)
    writer.add(j.ROOM, j.room(NUMBER, 1, j.made("concert", NUMBER), j.settings(rate=5), j.face()))
    for change, parts in enumerate(bodies, start=2):
        writer.add(j.ROOM, j.room(NUMBER, change, *parts))
    return writer


def joined(people):
    """As many joins, a record each."""
    return written(*((j.tickets(place, "waiting"), j.face(issued=place, last=place)) for place in range(1, people + 1)))


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "journal"
    folder.mkdir()
    return folder


# --- a journal that is whole


def test_verify_tells_the_state_that_a_journal_stands_for(folder):
    written(
        (j.tickets(1, "waiting", "waiting", "called"), j.tickets(4, "entered", "active"), j.face(issued=5, last=5)),
        (j.gone(1), j.face(issued=5, last=5)),
        (j.away(0, 2), j.face(issued=5, last=5)),
    ).save(folder)
    verdict = look("verify", folder, "--json").json()
    assert verdict["whole"] is True and verdict["torn"] is None and verdict["snapshot"] is None
    assert verdict["rooms"] == 1 and verdict["segments"] == 1 and verdict["records"] == 4
    assert verdict["people"] == {"waiting": 0, "away": 1, "called": 1, "entered": 1, "active": 1}
    assert verdict["next_sequence"] == 5 and verdict["last_time"] == "2026-11-15T08:05:20.123Z"
    assert re.fullmatch("[0-9a-f]{16}", verdict["hash"])
    cells = look("verify", folder).cells()
    assert cells["state hash"] == [verdict["hash"]] and cells["away"] == ["1"] and cells["people"] == ["4"]
    assert cells["torn tail"] == ["none"] and cells["records"] == ["4"] and cells["snapshot"] == ["none"]


def test_the_same_state_has_the_same_hash_and_another_has_another(folder, tmp_path):
    def hash_of(name, *bodies):
        place = tmp_path / name
        place.mkdir()
        written(*bodies).save(place)
        return look("verify", place, "--json").json()["hash"]

    face = j.face(issued=2, last=2)
    one = hash_of("one", (j.tickets(1, "waiting", "waiting"), face))
    assert hash_of("again", (j.tickets(1, "waiting", "waiting"), face)) == one
    assert hash_of("otherwise", (j.tickets(1, "waiting"), face), (j.tickets(2, "waiting"), face)) == one
    assert hash_of("called", (j.tickets(1, "called", "waiting"), face)) != one
    assert hash_of("left", (j.tickets(1, "waiting", "waiting"), face), (j.gone(1), face)) != one
    assert hash_of("set", (j.tickets(1, "waiting", "waiting"), face), (j.settings(version=1, rate=6), face)) != one


def test_a_snapshot_stands_for_what_was_before_it(folder):
    head = j.Writer(first=4096, end=4096 + (1 << 20), sequence=900)
    head.add(j.ROOM, j.room(NUMBER, 12, j.tickets(3, "waiting"), j.face(issued=3, last=3)))
    head.save(folder)
    snapshot = j.Writer("snapshot", first=4096)
    snapshot.add(j.ZONE, struct.pack("<II", NUMBER + 1, 0))
    snapshot.add(j.ROOM, j.room(NUMBER, 11, j.made("concert", NUMBER), j.settings(rate=5), j.face(issued=2, last=2)))
    snapshot.add(j.ROOM, j.room(NUMBER, 11, j.tickets(1, "waiting", "called")))
    snapshot.add(j.END, struct.pack("<Q", 4096 + 64)).save(folder)
    verdict = look("verify", folder, "--json").json()
    assert verdict["snapshot"] == {"file": "snapshot-0000000000001000", "records": 4, "bytes": len(snapshot.bytes)}
    assert verdict["records"] == 1 and verdict["people"]["waiting"] == 2 and verdict["people"]["called"] == 1
    lines = look("show", folder).lines()
    assert [line.split()[0] for line in lines] == ["S1", "S2", "S3", "S4", "900"]
    assert [line.split()[3] for line in lines] == ["-", "concert", "concert", "-", "concert"]
    assert lines[3].endswith("  counts together with the journal up to position 4160") and lines[1].endswith("settings 0: rate=5")
    assert [record["sequence"] for record in shown(folder, "--from", 1)] == [900]
    stat = look("stat", folder, "--json").json()
    assert stat["snapshot_records"] == 4 and stat["records"] == 1 and stat["people"] == 3
    assert {file["file"]: file["records"] for file in stat["files"]} == {"snapshot-0000000000001000": 4, "journal-0000000000001000": 1}


def test_show_says_in_words_what_became(folder):
    second = NUMBER + 1
    writer = written(
        (j.tickets(1, "waiting"), j.face()),
        (j.tickets(2, "called", flags=1), j.face()),
        (j.tickets(3, "waiting", flags=2), j.face()),
        (j.tickets(4, "waiting", "waiting", "waiting", "called"), j.tickets(8, "called"), j.face()),
        (j.gone(1), j.gone(2), j.face()),
        (j.away(0, 4, 5, 7), j.face()),
        (j.part(j.KEY, j.holder_of(9) + struct.pack("<IQII", 9, 0, 0, 0)), j.face()),
        (j.settings(version=2, from_api=1, rate="7.5", burst=9), j.face()),
        (j.settings(version=3, rate=5), j.settings(version=4, rate=5), j.face()),
        (j.part(j.EPOCHS, struct.pack("<6I", NUMBER, 0, 17, second, 4194304, 0)), j.face()),
        (j.face(clock_ms=12345, issued=9, calls=2, refunds=1),),
        tuple(j.gone(place) for place in range(10, 40, 2)),
        (j.part(j.CLEARED), j.face()),
        (j.part(j.OVER), j.face()),
        (),
    )
    writer.add(j.SYNCED, struct.pack("<Q", 4711)).add(j.ZONE, struct.pack("<II", second, 0)).add(j.CLOSED)
    writer.add(j.ROOM, j.room(NUMBER + 5, 4, j.face()), time_ms=0).add(j.END, struct.pack("<Q", 1 << 20)).save(folder)
    holder = [j.holder_of(place)[:4].hex() for place in range(10)]
    lines = look("show", folder).lines()
    assert [re.split(" {2,}", line.strip(), maxsplit=4) for line in lines] == [
        [str(sequence), "-" if room == f"#{NUMBER + 5}" else "2026-11-15T08:05:20.123Z", kind, room, words]
        for sequence, (kind, room, words) in enumerate([
            ("room", "concert", f"made with epoch {NUMBER}, settings 0: rate=5"),
            ("room", "concert", f"place 1 waiting ({holder[1]})"),
            ("room", "concert", f"place 2 called and told ({holder[2]})"),
            ("room", "concert", f"place 3 waiting, leaving ({holder[3]})"),
            ("room", "concert", "places 4-6 waiting, places 7-8 called"),
            ("room", "concert", "places 1-2 done"),
            ("room", "concert", "places 4-5 away, place 7 away"),
            ("room", "concert", "a key for place 9"),
            ("room", "concert", "settings 2 of the API: rate=7.500 burst=9"),
            ("room", "concert", "settings 3: rate=5 burst=0, settings 4: as before"),
            ("room", "concert", f"epoch {NUMBER} behind place 0 with a loss from count 17 on, epoch {second} behind place 4194304"),
            ("room", "concert", "clock 12.345 s, 9 issued, 2 calls, 1 refunds"),
            ("room", "concert", ", ".join(f"place {place} done" for place in range(10, 26, 2)) + ", and 7 more places"),
            ("room", "concert", "cleared"),
            ("room", "concert", "deleted"),
            ("room", "concert", "nothing"),
            ("synced", "-", "on the disk up to position 4711"),
            ("zone", "-", f"next epoch {second}"),
            ("closed", "-", "nginx was stopped, and everything before this is on the disk"),
            ("room", f"#{NUMBER + 5}", "clock 0.000 s, 0 issued, 0 calls, 0 refunds"),
            ("end", "-", f"goes on at position {1 << 20}"),
        ], start=1)
    ]


def test_show_as_json_has_all_of_a_record_but_its_holders(folder):
    written((j.tickets(7, "waiting", flags=4), j.gone(3), j.away(126, 127, 200), j.settings(version=2, from_api=1, rate=0.5),
             j.face(clock_ms=900, issued=7, last=7))).save(folder)
    record = shown(folder)[1]
    assert record["sequence"] == 2 and record["type"] == "room" and record["room"] == "concert" and record["change"] == 2
    assert record["file"] == SEGMENT and record["time"] == "2026-11-15T08:05:20.123Z" and record["snapshot"] is False
    tickets, gone, away, settings, face = record["parts"]
    assert tickets == {"part": "tickets", "tickets": [{"place": 7, "state": "waiting", "holder": j.holder_of(7)[:4].hex(),
                                                       "issued_at": 1794729920, "told": False, "leaving": False, "spent": False,
                                                       "trusted": True}]}
    assert gone == {"part": "gone", "place": 3} and away == {"part": "away", "places": [127, 200]}
    assert settings["version"] == 2 and settings["from_api"] is True
    assert settings["settings"]["rate"] == 0.5 and settings["settings"]["mode"] == "queue" and settings["settings"]["smooth"] is True
    assert face["clock_ms"] == 900 and face["issued"] == 7 and face["last"] == 7


def test_show_tells_rooms_apart_and_begins_and_ends_where_it_is_told(folder):
    writer = joined(3)
    writer.add(j.ROOM, j.room(9, 1, j.made("hall", 9), j.face())).add(j.SYNCED, bytes(8))
    writer.add(j.ROOM, j.room(9, 2, j.tickets(1, "waiting"), j.face()))
    writer.add(j.ROOM, j.room(NUMBER, 5, j.tickets(4, "waiting"), j.face())).save(folder)

    def numbers(*options):
        assert [record["sequence"] for record in shown(folder, *options)] \
            == [int(line.split()[0]) for line in look("show", folder, *options).lines()]
        return [record["sequence"] for record in shown(folder, *options)]

    assert numbers() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert numbers("--room", "hall") == [5, 7] and numbers("--room", "concert") == [1, 2, 3, 4, 8]
    assert numbers("--room", "lobby") == []
    assert numbers("--from", 6) == [6, 7, 8] and numbers("--from", 100) == []
    assert numbers("--limit", 2) == [1, 2] and numbers("--from", 3, "--limit", 2, "--room", "concert") == [3, 4]
    lines = look("show", folder, "--from", 7, "--limit", "1").lines()
    assert lines[0].split()[3] == "hall", "its name is known from a record that is not shown"


def test_stat_adds_up(folder):
    writer = joined(10).add(j.SYNCED, bytes(8))
    path = writer.save(folder)
    (folder / "journal-next").write_bytes(bytes(5000))
    (folder / "notes.txt").write_text("not ours")
    stat = look("stat", folder, "--json").json()
    assert stat["records"] == 12 and stat["snapshot_records"] == 0 and stat["people"] == 10 and stat["live_bytes"] == 320
    assert stat["first_time"] == stat["last_time"] == "2026-11-15T08:05:20.123Z"
    assert {row["type"]: row["records"] for row in stat["types"] if row["records"]} == {"room": 11, "synced": 1}
    assert sum(row["bytes"] for row in stat["types"]) == len(writer.bytes) - 64
    assert {row["part"]: row["records"] for row in stat["parts"] if row["records"]} == {"made": 1, "settings": 1, "face": 11, "tickets": 10}
    assert stat["rooms"] == [{"room": "concert", "number": NUMBER, "records": 11, "bytes": len(writer.bytes) - 64 - 40}]
    files = {file["file"]: file for file in stat["files"]}
    assert files[SEGMENT]["bytes"] == path.stat().st_size and files[SEGMENT]["records"] == 12
    assert files["journal-next"] == {"file": "journal-next", "bytes": 5000, "records": 0,
                                     "disk_bytes": (folder / "journal-next").stat().st_blocks * 512}
    assert stat["disk_bytes"] == sum(file["disk_bytes"] for file in stat["files"]) and "notes.txt" not in files
    cells = look("stat", folder).cells()
    assert cells["people alive"] == ["10"] and cells["concert"][0] == "11" and cells["synced"][0] == "1"


# --- tails and losses


@pytest.mark.parametrize("tail", [b"\x01", b"\xff" * 40, b"WEIRJRNL" + bytes(60) + b"\x01"])
def test_a_torn_tail_is_told_and_is_no_damage(folder, tail):
    writer = joined(5)
    whole = len(writer.bytes)
    path = writer.save(folder)
    with open(path, "r+b") as file:
        file.seek(whole)
        file.write(tail)
    verdict = look("verify", folder, "--json").json()
    assert verdict["whole"] is True and verdict["records"] == 6 and verdict["loss"] is False
    assert verdict["torn"]["file"] == SEGMENT and verdict["torn"]["offset"] == whole and verdict["torn"]["dropped_records"] == 0
    assert len(tail) - 8 < verdict["torn"]["bytes"] <= len(tail) + 7
    text = look("verify", folder)
    assert text.cells()["torn tail"][0].startswith(f"{SEGMENT} from byte {whole}: ") and "If nginx is running" in text.out


def test_a_file_cut_short_is_whole_up_to_the_cut_and_counts_as_a_loss(folder):
    writer = joined(5)
    path = writer.save(folder)
    for cut in (len(writer.bytes) - 1, len(writer.bytes), len(writer.bytes) - 200):
        path.write_bytes(writer.bytes[:cut])
        verdict = look("verify", folder, "--json").json()
        second = j.Journal(folder)
        assert verdict["records"] == len(second.records) and verdict["whole"] is True
        assert verdict["loss"] is True and "cut" in verdict["loss_why"]
        assert bool(verdict["torn"]) == (second.segments[0].written < cut)


@pytest.mark.parametrize("head, last, is_loss, part", [
    (dict(), None, False, "running on"),
    (dict(boot=bytes(range(16))), None, True, "started anew"),
    (dict(boot=bytes(range(16))), j.CLOSED, False, "good order"),
    (dict(boot=bytes(range(16)), sync=j.ALWAYS), None, False, "waited for the disk"),
    (dict(boot=bytes(range(16)), sync=j.OFF), None, True, "started anew"),
])
def test_a_loss_is_told_with_its_reason(folder, head, last, is_loss, part):
    writer = written((j.tickets(1, "waiting"), j.face(issued=1, last=1)), **head)
    if last:
        writer.add(last)
    writer.save(folder)
    verdict = look("verify", folder, "--json").json()
    assert verdict["loss"] is is_loss and part in verdict["loss_why"] and verdict["closed"] is (last == j.CLOSED)
    assert look("verify", folder).cells()["a loss"][0] == f"{'yes' if is_loss else 'no'}: {verdict['loss_why']}"


def test_a_failed_sync_is_a_loss(folder):
    joined(1).save(folder)
    (folder / "journal-failed").write_bytes(b"")
    verdict = look("verify", folder, "--json").json()
    assert verdict["loss"] is True and "sync had failed" in verdict["loss_why"]


# --- damage


def damaged(folder, code=1):
    """What all forms say of a journal that is damaged; nothing is changed by any."""
    verify = look("verify", folder)
    assert_one_line(verify, code)
    assert look("stat", folder).err == verify.err and look("stat", folder).code == code
    show = look("show", folder)
    assert show.code == code and show.err == verify.err
    verdict = look("verify", folder, "--json")
    assert verdict.code == code and verdict.err == verify.err
    return verify.err, json.loads(verdict.out) if code == 1 else None, show.out.splitlines()


def test_a_flipped_byte_is_refused_with_its_place_and_how_to_go_on(folder):
    writer = joined(20)
    path = writer.save(folder)
    place = j.Journal(folder).records[10].offset
    content = bytearray(path.read_bytes())
    content[place + 50] ^= 4
    path.write_bytes(content)
    said, verdict, lines = damaged(folder)
    assert f"{SEGMENT} is damaged at byte {place}" in said and f"truncate {SEGMENT} to {place} bytes" in said
    assert verdict["whole"] is False and verdict["file"] == SEGMENT and verdict["offset"] == place and verdict["records"] == 10
    assert len(lines) == 10 and lines[-1].split()[0] == "10", "everything before the damage is shown"


def test_a_missing_segment_is_refused(folder):
    first = joined(3)
    first.end = len(first.bytes) + 40
    first.add(j.END, struct.pack("<Q", first.end)).save(folder)
    third = j.Writer(first=first.end + 4096, end=first.end + 8192, sequence=first.sequence + 9)
    third.add(j.SYNCED, struct.pack("<Q", first.end)).save(folder)
    said, verdict, lines = damaged(folder)
    assert f"{j.name_of('journal', first.end)} is missing" in said and verdict["file"] == j.name_of("journal", first.end)
    assert len(lines) == 5


def test_a_damaged_snapshot_is_refused_before_anything_of_it_is_shown(folder):
    joined(1).save(folder)
    snapshot = j.Writer("snapshot", first=0).add(j.ZONE, struct.pack("<II", 5, 0)).add(j.END, struct.pack("<Q", 64))
    path = snapshot.save(folder)
    path.write_bytes(snapshot.bytes[:-1])
    said, verdict, lines = damaged(folder)
    assert "snapshot-0000000000000000 is damaged at byte 104" in said and verdict["offset"] == 104 and lines == []


@pytest.mark.parametrize("body", [
    b"\x01",
    j.room(NUMBER, 2, j.part(99, b"abc")),
    j.room(NUMBER, 2, j.part(j.TICKETS, bytes(4))),
    j.room(NUMBER, 2, j.part(j.TICKETS, struct.pack("<II", 1, 1000) + bytes(32))),
    j.room(NUMBER, 2, j.part(j.TICKETS, struct.pack("<II", 1, 1) + b"\x7f" * 32)),
    j.room(NUMBER, 2, j.tickets(0, "waiting")),
    j.room(NUMBER, 2, j.part(j.SETTINGS, bytes(16) + b"rate=lots\n")),
    j.room(NUMBER, 2, struct.pack("<HHI", j.GONE, 0, 0xFFFFFFF0)),
    j.room(NUMBER, 2, j.part(j.FACE, bytes(8)), j.part(j.AWAY, b""), j.part(j.KEY, b"k"), j.part(j.EPOCHS, b"e" * 13)),
    j.room(NUMBER, 2, j.part(j.MADE, b""), j.part(j.PEOPLE, b""), j.part(j.TERMS, b"t"), j.part(j.GONE, b"")),
])
def test_a_whole_record_that_makes_no_sense_is_refused_and_shown_as_unreadable(folder, body):
    written().add(j.ROOM, body).save(folder)
    for options in ([], ["--json"]):
        verify = look("verify", folder, *options)
        assert verify.code == 1 and "another program wrote it" in verify.err and SEGMENT in verify.err, verify.err
    assert json.loads(verify.out)["whole"] is False
    assert_one_line(look("stat", folder), 1, "another program wrote it")
    assert len(look("show", folder).lines()) == 2
    records = shown(folder)
    assert len(records) == 2
    if body != j.room(NUMBER, 2, j.tickets(0, "waiting")):
        assert "unreadable" in json.dumps(records[1]) and "unreadable" in look("show", folder).lines()[1]


def test_no_flipped_byte_goes_unseen(folder):
    """Not one in the head or in any record leaves the verdict as it was; zeros behind them are nobody's."""
    path = joined(6).add(j.SYNCED, bytes(8)).save(folder)
    content = path.read_bytes()
    size = j.Journal(folder).segments[0].written
    before = look("verify", folder, "--json").json()
    dice = random.Random(5)
    for at in [*range(0, 64, 3), *(dice.randrange(64, size) for _ in range(80))]:
        changed = bytearray(content)
        changed[at] ^= 1 << dice.randrange(8)
        path.write_bytes(changed)
        done = run("journal", "verify", folder, "--json")
        assert done.code in (0, 1, 2), (at, done.code, done.err)
        assert done.code != 0 or json.loads(done.out) != before, at
    assert before["records"] == 8


# --- what is no journal


def test_a_newer_format_is_refused_with_a_sentence(folder):
    j.Writer(version=2).add(j.CLOSED).save(folder)
    said, _, lines = damaged(folder, code=2)
    assert "written by a newer version of Weir" in said and lines == []


@pytest.mark.parametrize("form", ["verify", "show", "stat"])
def test_what_is_no_journal_is_one_line_and_exit_2(folder, tmp_path, form):
    assert_one_line(run("journal", form, tmp_path / "nowhere"), 2, "nowhere", "No such file")
    assert_one_line(look(form, folder), 2, "there is no journal in")
    (folder / "notes.txt").write_text("hello")
    (folder / "journal-next").write_bytes(bytes(64))
    (folder / "journal-00").write_text("hello")
    assert_one_line(look(form, folder), 2, "there is no journal in")
    assert_one_line(run("journal", form, folder / "notes.txt"), 2, "notes.txt is no folder")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/etc/passwd", path)])
def test_what_only_has_the_name_of_a_segment_is_not_opened(folder, make):
    make(folder / SEGMENT)
    for form in ("verify", "show", "stat"):
        assert_one_line(run("journal", form, folder), 2, f"{SEGMENT} in {folder} is no file")


def test_a_foreign_file_under_a_segments_name_is_nothing_that_was_acknowledged(folder):
    (folder / SEGMENT).write_bytes(b"\x7fELF" + bytes(100) + b"hello" * 1000)
    verdict = look("verify", folder, "--json").json()
    assert verdict["records"] == 0 and verdict["segments"] == 0 and verdict["torn"]["bytes"] > 5000
    assert look("show", folder).lines() == []


def without_privileges(*words):
    """Root reads what nobody may read; as root, the right to do so is given up."""
    drop = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.getuid() == 0 else []
    done = subprocess.run([*drop, binary(), *map(str, words)], capture_output=True, timeout=TIMEOUT_SEC, env=environment())
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def test_what_may_not_be_read_is_one_line_and_exit_2(folder):
    path = joined(1).save(folder)
    for form in ("verify", "show", "stat"):
        path.chmod(0)
        assert_one_line(without_privileges("journal", form, folder), 2, SEGMENT, "Permission denied")
        path.chmod(0o600)
        folder.chmod(0)
        assert_one_line(without_privileges("journal", form, folder), 2, str(folder), "Permission denied")
        folder.chmod(0o700)


@pytest.mark.parametrize("words, part", [
    ([], "verify|show|stat"),
    (["verify"], "verify|show|stat"),
    (["burn", "."], "verify|show|stat"),
    (["verify", ".", "."], "verify|show|stat"),
    (["verify", ".", "--room", "concert"], "--room"),
    (["stat", ".", "--from", "1"], "--from"),
    (["verify", ".", "--url", "http://a"], "--url"),
    (["show", ".", "--limit", "0"], "--limit"),
    (["show", ".", "--limit", "many"], "many"),
    (["show", ".", "--from", "-1"], "--from"),
    (["show", ".", "--room", "a b"], "--room"),
    (["show", ".", "--from"], "--from"),
])
def test_wrong_usage_is_one_line_and_exit_2(folder, words, part):
    joined(1).save(folder)
    assert_one_line(run("journal", *(folder if word == "." else word for word in words)), 2, part)


def test_control_characters_of_a_path_do_not_reach_the_terminal(tmp_path):
    folder = tmp_path / "\033[31mred"
    folder.mkdir()
    assert_one_line(look("verify", folder), 2, "?[31mred")
    joined(1).save(folder)
    assert "\033" not in look("verify", folder).out


# --- how far it is


def on_a_terminal(*words):
    """Runs with stderr on a terminal: (exit code, stdout, what the terminal got)."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([binary(), *map(str, words)], stdout=subprocess.PIPE, stderr=theirs, env=environment())
    os.close(theirs)
    said = {ours: b"", process.stdout.fileno(): b""}
    ends, deadline = set(said), time.monotonic() + TIMEOUT_SEC
    while ends and time.monotonic() < deadline:
        for end in select.select(list(ends), [], [], 1)[0]:
            try:
                piece = os.read(end, 65536)
            except OSError:  # the other side of the terminal is gone
                piece = b""
            said[end] += piece
            if not piece:
                ends.remove(end)
    code = process.wait(TIMEOUT_SEC)
    terminal, out = said[ours].decode(), said[process.stdout.fileno()].decode()
    os.close(ours)
    process.stdout.close()
    return code, out, terminal


@pytest.mark.parametrize("form", ["verify", "show", "stat"])
def test_a_large_journal_shows_how_far_it_is_on_a_terminal_and_leaves_nothing_behind(folder, form):
    path = joined(3).save(folder)
    code, out, terminal = on_a_terminal("journal", form, folder)
    assert code == 0 and out != "" and terminal == "", "one that is read in a moment has no bar"
    os.truncate(path, 48 << 20)
    code, out, terminal = on_a_terminal("journal", form, folder)
    assert code == 0 and out != ""
    for reading in terminal.removesuffix("\r\x1b[K").split("\r\x1b[K"):
        steps = [int(percent) for percent in re.findall(r"\r#*\.* +(\d+)%  [\d,]+ of 50 MB\x1b\[K", reading)]
        assert steps and steps == sorted(steps) and steps[-1] <= 100, terminal
    assert terminal.endswith("\r\x1b[K"), "the bar is taken off"
    assert look(form, folder).err == "", "no bar through a pipe"


def test_the_bar_is_gone_before_an_error_is_said(folder):
    path = joined(3).save(folder)
    content = bytearray(path.read_bytes())
    content[200] ^= 1
    path.write_bytes(content)
    os.truncate(path, 48 << 20)
    code, _, terminal = on_a_terminal("journal", "verify", folder)
    assert code == 1 and re.search(r"\r\x1b\[Kweir: [^\r\n]+\r\n$", terminal), terminal


# --- a folder that is compacted meanwhile

BEGUN = 48 << 20


def is_held(pid, file):
    """The process has the file open and sleeps: what it wants to say to the terminal does not get through."""
    opened = {os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()}
    return str(file) in opened and Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


def while_it_is_held(words, file, change):
    """Runs with a terminal that stops at the first sign of a bar; `change` happens then. (exit code, stdout, stderr)"""
    ours, theirs = pty.openpty()
    termios.tcflow(theirs, termios.TCOOFF)
    process = subprocess.Popen([binary(), *map(str, words)], stdout=subprocess.PIPE, stderr=theirs, env=environment())
    wait_until(lambda: is_held(process.pid, file), TIMEOUT_SEC, "a bar on the terminal")
    change()
    termios.tcflow(theirs, termios.TCOON)
    out = process.stdout.read().decode()
    process.stdout.close()
    code = process.wait(TIMEOUT_SEC)
    os.close(theirs)
    said = os.read(ours, 65536).decode()
    os.close(ours)
    return code, out, said


@pytest.mark.parametrize("form", ["verify", "stat", "show"])
def test_a_reading_over_removed_files_is_begun_anew_and_never_taken_for_damage(folder, form):
    first = joined(3)
    first.end = BEGUN
    first.add(j.END, struct.pack("<Q", BEGUN)).save(folder)
    second = j.Writer(first=BEGUN, end=BEGUN + 4096, sequence=first.sequence)
    second.add(j.END, struct.pack("<Q", BEGUN + 4096)).save(folder)

    def compact():
        third = j.Writer(first=BEGUN + 4096, end=BEGUN + 8192, sequence=second.sequence)
        third.add(j.ROOM, j.room(NUMBER, 9, j.tickets(2, "called"), j.face(issued=3, last=3))).save(folder)
        snapshot = j.Writer("snapshot", first=third.first)
        snapshot.add(j.ROOM, j.room(NUMBER, 8, j.made("concert", NUMBER), j.settings(), j.face(issued=3, last=3)))
        snapshot.add(j.ROOM, j.room(NUMBER, 8, j.tickets(1, "waiting", "waiting", "waiting")))
        snapshot.add(j.END, struct.pack("<Q", third.first + 64)).save(folder)
        for writer in (first, second):
            (folder / j.name_of("journal", writer.first)).unlink()

    code, out, said = while_it_is_held(["journal", form, folder, "--json"], folder / SEGMENT, compact)
    if form == "show":
        assert code == 2 and "was compacted while it was read: try again" in said
        assert [json.loads(line)["sequence"] for line in out.splitlines()] == [1, 2, 3, 4, 5], "what was read is shown"
        return
    assert code == 0 and "weir:" not in said, said
    told = json.loads(out)
    assert told["records"] == 1 and told["people"] == (3 if form == "stat" else {"waiting": 2, "away": 0, "called": 1, "entered": 0, "active": 0})


# --- a journal that nginx wrote

WORDS = {j.ROOM: "room", j.SYNCED: "synced", j.END: "end", j.CLOSED: "closed", j.ZONE: "zone"}
PARTS = {j.FACE: "face", j.TICKETS: "tickets", j.GONE: "gone", j.AWAY: "away", j.KEY: "key", j.MADE: "made", j.SETTINGS: "settings",
         j.TERMS: "terms", j.EPOCHS: "epochs", j.CLEARED: "cleared", j.OVER: "over", j.PEOPLE: "people"}


def joins(server, room, people):
    answers = at_once(server.port, [("POST", "/api/v1/queue/join", {"event_id": room})] * people)
    assert {answer.status for answer in answers} == {202}, answers
    return [answer.json()["waiting_token"] for answer in answers]


def an_evening(weir, **kwargs):
    """A server at which something of everything happened, and what its operator saw last: {state: people}."""
    server = weir(http="weir_journal journal;", admin=["ops"], **kwargs,
                  rooms={"line": "mode=hold seen_ttl_sec=300", "hall": "rate=1000 burst=20 max_active=20 seen_ttl_sec=300"})
    line, hall = joins(server, "line", 40), joins(server, "hall", 30)
    ready = [token for token in hall if server.api().status(token).json()["ready_for_entry"]]
    assert [server.api().enter(token).status for token in ready[:5]] == [200] * 5
    assert server.api().join("line", headers={"Idempotency-Key": "mine"}).status == 202
    assert [server.api().leave(token).status for token in line[:3]] == [200] * 3
    operator = server.admin()
    assert operator.patch("line", rate=7).status == 200
    assert operator.put("extra", mode="hold").status == 201
    joins(server, "extra", 4)
    assert operator.clear("extra").status == 200 and operator.delete("extra").status == 200
    seen = [operator.figures(room).json() for room in ("line", "hall")]
    return server, {state: sum(figures[state] for figures in seen) for state in ("waiting", "away", "called", "entered", "active")}


def iso(time_ms):
    moment = datetime.fromtimestamp(time_ms // 1000, timezone.utc)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{time_ms % 1000:03}Z"


def assert_as_the_second_reader_says(folder):
    """Every record, its number, time, type, place and room; and the counts of them."""
    second = j.Journal(folder)
    records = [(record, True) for record in second.snapshot_records] + [(record, False) for record in second.records]
    told = shown(folder)
    assert [(one["sequence"], one["time"], one["type"], one["file"], one["offset"], one["snapshot"], one["room"]) for one in told] \
        == [(record.sequence, iso(record.time_ms), WORDS[record.type], record.file, record.offset, is_snapshot,
             second.names.get(record.number)) for record, is_snapshot in records]
    assert [[part["part"] for part in one["parts"]] for one in told if one["type"] == "room"] \
        == [[PARTS[kind] for kind, _ in record.parts] for record, _ in records if record.type == j.ROOM]
    numbers = [record.sequence for record in second.records]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))

    stat = look("stat", folder, "--json").json()
    verdict = look("verify", folder, "--json").json()
    assert stat["records"] == verdict["records"] == len(second.records)
    assert stat["snapshot_records"] == len(second.snapshot_records)
    for word in WORDS.values():
        counted = next(row for row in stat["types"] if row["type"] == word)
        assert counted["records"] == sum(WORDS[record.type] == word for record in second.records)
    assert verdict["next_sequence"] == numbers[-1] + 1
    assert {file["file"]: file["records"] for file in stat["files"] if file["records"]} \
        == {name: sum(record.file == name for record, _ in records) for name in {record.file for record, _ in records}}
    return second, verdict


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_what_nginx_wrote_is_told_as_a_second_reader_reads_it(weir, end):
    server, seen = an_evening(weir)
    getattr(server, end)()
    folder = server.dir / "journal"
    second, verdict = assert_as_the_second_reader_says(folder)
    assert verdict["people"] == seen and verdict["rooms"] == 2 and verdict["whole"] is True and verdict["loss"] is False
    assert verdict["closed"] is (end == "stop") and verdict["sync"] == "interval"
    text = look("show", folder).out
    for words in ("place 1 waiting (", "called", "entered (", " done", "settings 2 of the API: rate=7", "a key for place",
                  "made with epoch", "cleared", "deleted", "on the disk up to position"):
        assert words in text, words
    assert set(re.findall(r"Z  room +(\S+)", text)) == {"line", "hall", "extra"}


def test_no_more_of_a_holder_is_shown_than_its_first_8_digits(weir):
    server, _ = an_evening(weir)
    server.stop()
    folder = server.dir / "journal"
    holders = {holder.hex() for record in j.Journal(folder).records for holder in record.holders}
    said = look("show", folder).out + look("show", folder, "--json").out + look("stat", folder).out + look("verify", folder).out
    assert len(holders) > 70
    for holder in holders:
        assert holder[:8] in said and holder[:9] not in said and holder[8:] not in said


def test_the_hash_is_the_same_after_a_restart_and_of_a_copy(weir, tmp_path):
    server, _ = an_evening(weir)
    server.stop()
    before = look("verify", server.dir / "journal", "--json").json()
    copy = tmp_path / "copy"
    copy.mkdir()
    for name, (_, _, content) in contents(server.dir / "journal").items():
        (copy / name).write_bytes(content)
    assert look("verify", copy, "--json").json() == before
    server.start()
    server.stop()
    after = look("verify", server.dir / "journal", "--json").json()
    assert after["hash"] == before["hash"] and after["next_sequence"] > before["next_sequence"]
    server.start()
    joins(server, "line", 1)
    server.stop()
    assert look("verify", server.dir / "journal", "--json").json()["hash"] != before["hash"]


def test_a_journal_of_the_first_version_is_read_as_it_was_written(folder):
    """It was kept when the format was new, and is never made anew: what people have on their disks is not, either."""
    with tarfile.open(Path(__file__).parent / "data" / "journal-v1.tar.gz") as kept:
        kept.extractall(folder)
    _, verdict = assert_as_the_second_reader_says(folder)
    assert verdict["snapshot"] == {"file": "snapshot-0000000000200108", "records": 8, "bytes": 4016}
    assert (verdict["segments"], verdict["records"], verdict["bytes"], verdict["next_sequence"]) == (2, 10, 1096, 128)
    assert verdict["closed"] is True and verdict["loss"] is False and verdict["last_time"] == "2026-11-15T08:34:36.296Z"
    assert verdict["rooms"] == 2
    assert verdict["people"] == {"waiting": 54, "away": 0, "called": 15, "entered": 5, "active": 0}
    lines = [re.split(" {2,}", line.strip(), maxsplit=4) for line in look("show", folder).lines()]
    assert lines[1][4].startswith("made with epoch 53723, epoch 53723 behind place 0, settings 2 of the API: mode=hold rate=7 seen_ttl_sec=300")
    assert lines[2][4] == "place 1 waiting (9ffd0933), places 4-17 waiting, places 19-44 waiting"
    assert lines[5][4] == "place 1 called and told (76ba7a7c), places 2-6 entered, places 7-20 called, places 21-31 waiting"
    assert lines[14] == ["124", "2026-11-15T08:34:36.193Z", "room", "line", "place 45 waiting (8c6ca701)"]


def snapshots(folder):
    return {path.name for path in folder.glob("snapshot-0*")}


def test_it_can_be_asked_while_nginx_writes_and_compacts(weir):
    """Whatever is being written, renamed or removed meanwhile: never a damage that is none."""
    server = weir(http="weir_journal journal segment=4m reserve=1m;", zone="256m", rooms={"line": "mode=hold seen_ttl_sec=300"})
    folder, over = server.dir / "journal", threading.Event()

    def come():
        hammer = Hammer(server.port)
        while not over.is_set():
            hammer.strike(request_of("POST", "/api/v1/queue/join", '{"event_id":"line"}'))
        hammer.close()

    crowd = threading.Thread(target=come)
    crowd.start()
    try:
        asked, taken, deadline = 0, set(), time.monotonic() + 60
        while len(taken) < 3 or asked < 10:
            assert time.monotonic() < deadline, f"compacted {len(taken)} times, asked {asked} times"
            for form in ("verify", "stat", "show"):
                done = run("journal", form, folder)
                assert done.code == 0 or (form == "show" and "compacted while it was read" in done.err), done.err
                taken |= snapshots(folder)
            asked += 1
    finally:
        over.set()
        crowd.join()
    server.stop()
    assert look("verify", folder, "--json").json()["people"]["waiting"] == len(
        {holder for record in shown(folder) for part in record.get("parts", []) for holder in part_places(part)})


def part_places(part):
    return [ticket["place"] for ticket in part.get("tickets", [])]
