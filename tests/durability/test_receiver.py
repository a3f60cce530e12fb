"""The receiver of journals among peers that are silent, slow, greedy, or no writers at all."""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from spindle.run.durability import receiver
from spindle.run.durability.journal import proof, read_token
from spindle.run.durability.receiver import ReceivedJournal, ReceiverOptions, receive
from spindle.run.watch import SilentWatch
from tests.durability.crash import PATIENCE_S, checked, kill, receiving, spindle, started, wait_for

pytestmark = pytest.mark.promise(8)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A journal, as a writer made it."""
    folder = tmp_path_factory.mktemp("written")
    done = spindle(
        "durability", str(folder / "t"), "--create", "1MiB", "--journal", str(folder / "j"), "--journal-on-target",
        "--buffered", "--seconds", "0.2", "--quiet",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (folder / "j").stat().st_mode & 0o777 == 0o600
    return (folder / "j").read_bytes()


class Served:
    """A receiver in a thread."""

    def __init__(
        self, port: int, waiting: futures.Future[list[ReceivedJournal]], lines: queue.SimpleQueue[str]
    ) -> None:
        self.port = port
        self._waiting = waiting
        self._lines = lines

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)

    def journals(self) -> list[ReceivedJournal]:
        return self._waiting.result(timeout=PATIENCE_S)

    def said(self) -> str:
        return self._lines.get(timeout=PATIENCE_S)


@contextmanager
def served(path: Path, monkeypatch: pytest.MonkeyPatch, **order: object) -> Iterator[Served]:
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    hearing = SilentWatch()
    monkeypatch.setattr(hearing, "say", lines.put)
    with futures.ThreadPoolExecutor() as pool:
        waiting = pool.submit(receive, ReceiverOptions("127.0.0.1", 0, path, **order), hearing)  # type: ignore[arg-type]
        yield Served(int(lines.get(timeout=PATIENCE_S).rpartition(":")[2]), waiting, lines)


def hear(connection: socket.socket, until: bytes) -> bytes:
    said = b""
    while until not in said:
        part = connection.recv(1000)
        if not part:
            break
        said += part
    return said


def test_silent_connections_keep_no_writer_waiting(
    whole: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More of them than have room, all there before the writer; none has timed out when it is done."""
    monkeypatch.setattr(receiver, "BEGIN_S", 600.0)
    with served(tmp_path / "j", monkeypatch) as server:
        silent = [server.connect() for _ in range(receiver.CONNECTIONS + 8)]
        with server.connect() as writer:
            hear(writer, b"ready 1\n")
            writer.sendall(whole)
            assert f"stored {len(whole)}".encode() in hear(writer, f"stored {len(whole)}\n".encode())
        assert [one.ended for one in server.journals()] == ["closed"]
        for one in silent:
            one.close()
    assert (tmp_path / "j").read_bytes() == whole
    assert (tmp_path / "j").stat().st_mode & 0o777 == 0o600


def no_header(whole: bytes) -> bytes:
    return whole[: len(receiver.MAGIC)] + b"A" + struct.pack("<I", 20) + bytes(24)


def damaged_header(whole: bytes) -> bytes:
    return whole[:60] + bytes([whole[60] ^ 1]) + whole[61:]


def endless_header(whole: bytes) -> bytes:
    return whole[: len(receiver.MAGIC)] + b"H" + struct.pack("<I", 1 << 30) + bytes(1000)


@pytest.mark.parametrize("garbage", [b"GET / HTTP/1.1\r\n\r\n", b"spindle durability journal 2\n", no_header,
                                     damaged_header, endless_header])  # fmt: skip
def test_garbage_is_refused_and_takes_no_place(
    garbage: bytes | Callable[[bytes], bytes], whole: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = garbage(whole) if callable(garbage) else garbage
    with served(tmp_path / "j", monkeypatch) as server:
        for _ in range(3):
            with server.connect() as stranger:
                hear(stranger, b"ready 1\n")
                stranger.sendall(sent)
                assert b"refused " in hear(stranger, b"refused")
            assert "refused" in server.said()
        assert (tmp_path / "j").stat().st_size == 0
        with server.connect() as writer:
            writer.sendall(whole)
            hear(writer, f"stored {len(whole)}\n".encode())
        assert len(server.journals()) == 1
    assert (tmp_path / "j").read_bytes() == whole


def test_what_follows_a_good_beginning_and_is_no_journal_is_not_stored(
    whole: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(tmp_path / "j", monkeypatch) as server:
        with server.connect() as writer:
            writer.sendall(whole + b"\xff" * 10_000)
            assert b"refused the data is not a journal" in hear(writer, b"refused the data is not a journal")
        (found,) = server.journals()
    assert found.ended == "garbage"
    assert (tmp_path / "j").read_bytes() == whole


def test_no_more_is_stored_than_the_bound(whole: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = len(whole) + 29 * 100 + 7
    entry = b"A" + struct.pack("<I", 20) + bytes(24)
    with served(tmp_path / "j", monkeypatch, limit_bytes=limit) as server:
        with server.connect() as writer:
            with suppress(OSError):
                writer.sendall(whole + entry * 10_000)
            assert b"refused the journal has reached its limit" in hear(writer, b"limit")
        (found,) = server.journals()
    assert found.ended == "full"
    assert (tmp_path / "j").stat().st_size <= limit


def test_a_writer_with_a_token_is_taken_and_others_are_not(
    whole: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(tmp_path / "j", monkeypatch, token=b"a secret of some length") as server:
        for answer in (b"token 00\n", b"\n", receiver.MAGIC, whole, f"token {proof(b'another', 'x')}\n".encode()):
            with server.connect() as stranger:
                assert hear(stranger, b"\n").startswith(b"token ")
                stranger.sendall(answer)
                assert b"refused its token" in hear(stranger, b"refused its token")
        with server.connect() as writer:
            nonce = hear(writer, b"\n").split()[1].decode()
            writer.sendall(f"token {proof(b'a secret of some length', nonce)}\n".encode())
            hear(writer, b"ready 1\n")
            writer.sendall(whole)
            hear(writer, f"stored {len(whole)}\n".encode())
        assert len(server.journals()) == 1


def test_a_folder_takes_several_writers_at_once(tmp_path: Path) -> None:
    folder, token = tmp_path / "journals", tmp_path / "token"
    folder.mkdir()
    token.touch(0o600)
    token.write_text("0123456789abcdef\n")
    listening = started(
        "verify", "--listen", "127.0.0.1:0", "--journal", str(folder), "--token-file", str(token), "--json"
    )
    try:
        assert listening.stderr is not None
        where = listening.stderr.readline().split()[-1]
        common = ("--create", "1MiB", "--journal", where, "--buffered", "--quiet")
        without = spindle("durability", str(tmp_path / "t"), *common)
        assert without.returncode == 1
        assert "wants a token" in without.stderr
        assert not (tmp_path / "t").exists()
        writers = [
            started("durability", str(tmp_path / f"t{number}"), *common, "--token-file", str(token), "--seconds", "1")
            for number in range(3)
        ]
        for writer in writers:
            assert b"secret" not in Path(f"/proc/{writer.pid}/cmdline").read_bytes()
            _, err = writer.communicate(timeout=PATIENCE_S)
            assert writer.returncode == 0, err
        wait_for("three journals", lambda: len(list(folder.iterdir())) == 3)
        time.sleep(0.3)
        listening.send_signal(signal.SIGINT)
        out, err = listening.communicate(timeout=PATIENCE_S)
        assert listening.returncode == 0, err
    finally:
        kill(listening)
    found = json.loads(out)
    assert sorted(one["path"] for one in found) == sorted(str(path) for path in folder.iterdir())
    for path in folder.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
        assert checked(path, None).verdict == "kept"


def test_a_receiver_that_had_no_writer_leaves_no_file(tmp_path: Path) -> None:
    with receiving(tmp_path / "j") as (where, listening):
        host, _, port = where.removeprefix("tcp://").rpartition(":")
        with socket.create_connection((host, int(port)), timeout=PATIENCE_S):
            listening.send_signal(signal.SIGINT)
            _, err = listening.communicate(timeout=PATIENCE_S)
        assert listening.returncode == 1
        assert "Traceback" not in err
    assert not (tmp_path / "j").exists()


def test_a_token_that_others_may_read_or_that_is_too_short_is_one_line(tmp_path: Path) -> None:
    from spindle.run.errors import Usage

    token = tmp_path / "token"
    token.touch(0o600)
    for text, mode, says in (("0123456789abcdef", 0o644, "chmod 600"), ("short", 0o600, "fewer than 16")):
        token.write_text(text)
        os.chmod(token, mode)
        with pytest.raises(Usage, match=says):
            read_token(token)
