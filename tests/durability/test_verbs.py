"""The verbs `durability` and `verify` without a power cut: consent, journals, receivers, distinguished outcomes."""

from __future__ import annotations

import json
import os
import queue
import random
import signal
import socket
from concurrent import futures
from pathlib import Path

import pytest

from tests.durability.crash import MIB, PATIENCE_S, checked, kill, receiving, spindle, started, wait_until_grown

HERE = "--journal-on-target"


def write(folder: Path, *options: str, name: str = "target") -> Path:
    """A run that ends in good order; its journal."""
    journal = folder / f"{name}.journal"
    done = spindle(
        "durability", str(folder / name), "--create", "1MiB", "--journal", str(journal), HERE, "--buffered",
        "--seconds", "0.2", "--quiet", *options,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return journal


def complaint(*arguments: str) -> tuple[int, str]:
    """Status and the one line."""
    done = spindle(*arguments)
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("spindle: ")
    assert "Traceback" not in done.stderr
    return done.returncode, lines[0]


def test_a_run_that_ends_in_good_order_has_lost_nothing(tmp_path: Path) -> None:
    for sync in ("fdatasync", "dsync", "none"):
        journal = write(tmp_path, "--sync", sync, name=sync)
        outcome = checked(journal, None)
        assert (outcome.status, outcome.verdict) == (0, "kept"), outcome.out
        assert outcome.findings["journal"]["end"] == "time"


def test_the_test_file_stays_and_no_later_run_sweeps_it(tmp_path: Path, state_folder: Path) -> None:
    journal = write(tmp_path)
    assert (tmp_path / "target").stat().st_size == MIB
    assert list(state_folder.rglob("*.json")) == []
    write(tmp_path, name="other")
    assert checked(journal, None).status == 0


def test_the_page_says_in_words_what_was_found(tmp_path: Path) -> None:
    journal = write(tmp_path)
    said = spindle("verify", "--after-crash", str(journal)).stdout
    assert "Nothing is lost" in said
    assert "only a cut while it writes is a test" in said
    assert "this machine has been up since" in said.lower()
    with open(tmp_path / "target", "r+b") as file:
        file.write(bytes(4096))
    said = spindle("verify", "--after-crash", str(journal)).stdout
    assert "LOST: 1 acknowledged write is not there." in said
    assert "zeroes" in said


@pytest.mark.parametrize("receiver", [False, True], ids=["file", "tcp"])
def test_a_killed_writer_has_lost_nothing(tmp_path: Path, receiver: bool) -> None:
    chance = random.Random(receiver)
    for turn in range(3):
        journal, target = tmp_path / f"journal{turn}", tmp_path / f"target{turn}"
        command = ["durability", str(target), "--create", "1MiB", HERE, "--buffered"]
        if receiver:
            with receiving(journal) as (where, other):
                writer = started(*command, "--journal", where)
                wait_until_grown(journal, chance.randrange(3000, 30_000), writer)
                kill(writer)
                _, output = other.communicate(timeout=PATIENCE_S)
                assert other.returncode == 0, output
        else:
            writer = started(*command, "--journal", str(journal))
            wait_until_grown(journal, chance.randrange(3000, 30_000), writer)
            kill(writer)
        outcome = checked(journal, None)
        assert (outcome.status, outcome.verdict) == (0, "kept"), outcome.out
        assert outcome.findings["journal"]["end"] is None


def test_a_stopped_writer_ends_its_journal(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    writer = started(
        "durability",
        str(tmp_path / "target"),
        "--create",
        "1MiB",
        "--journal",
        str(journal),
        HERE,
        "--json",
        "--buffered",
    )
    wait_until_grown(journal, 4000, writer)
    status, line = complaint("verify", "--after-crash", str(journal))
    assert (status, "is still being written" in line) == (2, True)
    writer.send_signal(signal.SIGINT)
    out, err = writer.communicate(timeout=PATIENCE_S)
    assert writer.returncode == 0, err
    figures = json.loads(out)["figures"]
    assert figures["end"] == "stopped"
    assert checked(journal, None).findings["journal"]["acknowledged"] == figures["acknowledged"]


def test_a_journal_on_the_device_under_test_needs_consent(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    status, line = complaint(
        "durability", str(tmp_path / "target"), "--create", "1MiB", "--journal", str(journal), "--buffered"
    )
    assert status == 2
    assert "--journal-on-target" in line
    assert os.listdir(tmp_path) == [] or sorted(os.listdir(tmp_path)) == ["state"]


def test_a_target_is_written_only_with_consent(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_bytes(b"precious" * 1000)
    for options in ([], ["--create", "1MiB"]):
        status, line = complaint("durability", str(mine), "--journal", str(tmp_path / "j"), HERE, *options)
        assert status == 3, line
    assert mine.read_bytes() == b"precious" * 1000
    assert not (tmp_path / "j").exists()


def test_a_journal_never_replaces_a_file(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("precious")
    status, line = complaint(
        "durability", str(tmp_path / "target"), "--create", "1MiB", "--journal", str(mine), HERE, "--buffered"
    )
    assert (status, "exists already" in line) == (2, True)
    status, line = complaint("verify", "--listen", "0", "--journal", str(mine))
    assert (status, "exists already" in line) == (2, True)
    assert mine.read_text() == "precious"


def greet(listener: socket.socket) -> None:
    """A server of another kind."""
    connection, _ = listener.accept()
    with connection:
        connection.sendall(b"220 a mail server\n")


def test_nobody_at_the_other_end_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    arguments = ("durability", str(tmp_path / "target"), "--create", "1MiB", "--buffered", "--journal")
    status, line = complaint(*arguments, f"tcp://127.0.0.1:{port}")
    assert (status, "spindle verify --listen" in line) == (1, True)
    with socket.create_server(("127.0.0.1", 0)) as other, futures.ThreadPoolExecutor() as pool:
        pool.submit(greet, other)
        status, line = complaint(*arguments, f"tcp://127.0.0.1:{other.getsockname()[1]}")
    assert (status, "not from a receiver" in line) == (1, True)
    for wrong in ("tcp://", "tcp://host", "udp://127.0.0.1:1", "tcp://127.0.0.1:99999"):
        status, line = complaint(*arguments, wrong)
        assert status == 2, line
    assert not (tmp_path / "target").exists()


def test_a_receiver_takes_one_journal_and_turns_others_away(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    with receiving(journal) as (where, receiver):
        host, _, port = where.removeprefix("tcp://").rpartition(":")
        with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as stranger:
            stranger.sendall(b"GET / HTTP/1.1; hello there")  # as many bytes as it looks at
            assert b"refused " in stranger.makefile("rb").read()
        writer = started(
            "durability", str(tmp_path / "target"), "--create", "1MiB", "--journal", where, "--buffered"
        )  # fmt: skip
        wait_until_grown(journal, 4000, writer)
        second = spindle("durability", str(tmp_path / "second"), "--create", "1MiB", "--journal", where, "--buffered")
        assert second.returncode == 1
        assert "it has a writer already" in second.stderr
        assert not (tmp_path / "second").exists()
        writer.send_signal(signal.SIGINT)
        _, err = writer.communicate(timeout=PATIENCE_S)
        assert writer.returncode == 0, err
        _, output = receiver.communicate(timeout=PATIENCE_S)
        assert receiver.returncode == 0, output
    assert checked(journal, None).verdict == "kept"


def test_another_target_is_distinguished_from_loss(tmp_path: Path) -> None:
    journal = write(tmp_path)
    write(tmp_path, name="other")
    status, line = complaint("verify", "--after-crash", str(journal), str(tmp_path / "other"))
    assert status == 2
    assert "no block of run" in line
    (tmp_path / "longer").write_bytes(bytes(2 * MIB))
    status, line = complaint("verify", "--after-crash", str(journal), str(tmp_path / "longer"))
    assert (status, "2097152 bytes" in line) == (2, True)
    status, line = complaint("verify", "--after-crash", str(journal), str(tmp_path / "nowhere" / "target"))
    assert (status, "mount its file system" in line) == (2, True)


def test_writes_of_others_are_distinguished_from_loss(tmp_path: Path) -> None:
    journal = write(tmp_path)
    with open(tmp_path / "target", "r+b") as file:
        file.seek(MIB // 2)
        file.write(os.urandom(64 * 4096))
    outcome = checked(journal, None)
    assert (outcome.status, outcome.verdict) == (1, "overwritten")


def test_a_file_that_is_gone_from_its_file_system_is_lost(tmp_path: Path) -> None:
    journal = write(tmp_path)
    os.truncate(tmp_path / "target", MIB // 2 + 700)
    outcome = checked(journal, None)
    assert (outcome.status, outcome.verdict) == (1, "lost")
    assert [each["found"] for each in outcome.findings["instead"]] == ["missing"]
    os.truncate(tmp_path / "target", 0)
    for _ in range(2):
        outcome = checked(journal, None)
        assert (outcome.status, outcome.verdict) == (1, "lost")
        assert {each["found"] for each in outcome.findings["instead"]} == {"missing"}
        (tmp_path / "target").unlink(missing_ok=True)


def test_a_journal_that_was_cut_off_or_changed_never_leads_to_a_wrong_verdict(tmp_path: Path) -> None:
    from spindle.cli.main import invoke

    journal = write(tmp_path)
    whole = journal.read_bytes()
    chance = random.Random(1)
    damaged = tmp_path / "damaged"
    for _ in range(60):
        content = bytearray(whole[: chance.randrange(len(whole))])
        for _ in range(chance.randrange(3)):
            if content:
                content[chance.randrange(len(content))] = chance.randrange(256)
        damaged.write_bytes(content)
        assert invoke(["verify", "--after-crash", str(damaged), "--json", "--quiet"]) in (0, 1, 2)
    damaged.write_bytes(whole[:-7])
    outcome = checked(damaged, None)
    assert (outcome.verdict, outcome.findings["journal"]["ending"]) == ("kept", "cut")
    assert outcome.findings["journal"]["end"] is None


def test_what_is_no_journal_is_one_line(tmp_path: Path) -> None:
    no_journal = tmp_path / "x"
    no_journal.write_bytes(b"something else")
    for path in (no_journal, tmp_path, tmp_path / "nowhere", Path("/dev/null")):
        status, line = complaint("verify", "--after-crash", str(path))
        assert status == 2, line
    no_journal.write_bytes(b"spindle durability journal 2\n")
    status, line = complaint("verify", "--after-crash", str(no_journal))
    assert (status, "another version" in line) == (2, True)


def test_options_that_exclude_each_other_are_an_error(tmp_path: Path) -> None:
    journal = str(tmp_path / "j")
    for arguments in (
        ("verify",),
        ("verify", "--after-crash", journal, "--listen", "1"),
        ("verify", "--listen", "1"),
        ("verify", "--listen", "x:y", "--journal", journal),
        ("durability", journal),
        ("durability", "x", "--journal", journal, "--block", "0"),
        ("durability", "x", "--journal", journal, "--seconds", "-1"),
    ):
        assert complaint(*arguments)[0] == 2
    of_a_file = ("durability", str(tmp_path / "t"), "--journal", journal, HERE, "--buffered", "--create")
    status, line = complaint(*of_a_file, "1MiB", "--block", "1000")
    assert (status, "multiple of 512" in line) == (2, True)
    status, line = complaint(*of_a_file, "8KiB")
    assert (status, "too little" in line) == (2, True)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == []


def test_a_writer_that_falls_silent_leaves_a_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from spindle.run.durability import receiver
    from spindle.run.watch import SilentWatch

    whole = write(tmp_path).read_bytes()
    monkeypatch.setattr(receiver, "PATIENCE_S", 0.3)
    stored = tmp_path / "stored"
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    hearing = SilentWatch()
    monkeypatch.setattr(hearing, "say", lines.put)
    with futures.ThreadPoolExecutor() as pool:
        waiting = pool.submit(receiver.receive, receiver.ReceiverOptions("127.0.0.1", 0, stored), hearing)
        _, _, port = lines.get(timeout=PATIENCE_S).rpartition(":")
        with socket.create_connection(("127.0.0.1", int(port)), timeout=PATIENCE_S) as connection:
            connection.sendall(whole[:-20])
            (received,) = waiting.result(timeout=PATIENCE_S)
    assert received.ended == "silent"
    assert received.journal.end is None
    assert received.journal.ending == "cut"
    assert stored.read_bytes() == whole[:-20]
