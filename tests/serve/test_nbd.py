"""A served drive over NBD."""

from __future__ import annotations

import contextlib
import errno
import json
import random
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from tests.serve.nbd import FLUSH, LEAVE, READ, REQUEST, TRIM, WRITE, ZEROES, Clients, connected
from tests.serve.served import QUICK, SIZE, Serve, is_dropped


def test_what_was_written_is_read_by_the_next_client(nbd: Clients, serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "disk.sock"
    server = serve(*QUICK, "--nbd", path)
    data = random.Random(1).randbytes(64 << 10)
    client = nbd(path)
    assert client.size == SIZE
    assert client.ask(WRITE, 4096, data=data) == (0, b"")
    assert client.ask(FLUSH) == (0, b"")
    client.send(LEAVE)
    assert is_dropped(client.socket)
    client = nbd(path)
    assert client.ask(READ, 4000, 8192) == (0, bytes(96) + data[: 8192 - 96])
    assert client.ask(TRIM, 4096, 4096) == (0, b"")
    assert client.ask(ZEROES, 8192, 100) == (0, b"")
    assert client.ask(READ, 4096, 4096 + 200) == (0, bytes(4196) + data[4196 : 4096 + 200])
    client.close()
    figures = server.figures()
    assert figures["clients"] == 2
    assert figures["counts"] == {
        "reads": 2,
        "writes": 1,
        "flushes": 1,
        "discards": 1,
        "write_zeroes": 1,
        "read_bytes": 8192 + 4296,
        "written_bytes": 64 << 10,
    }
    assert not path.exists()


def test_requests_of_one_client_and_of_several_are_under_way_at_the_same_time(
    nbd: Clients, serve: Serve, tmp_path: Path
) -> None:
    path = tmp_path / "disk.sock"
    serve(*QUICK, "--nbd", path)
    clients = [nbd(path) for _ in range(4)]
    sent = [{client.send(READ, 512 * place, 512) for place in range(100)} for client in clients]
    answers = [{client.answer(512)[0] for _ in range(100)} for client in clients]
    assert answers == sent


def test_an_address_is_served_too(serve: Serve) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = serve(*QUICK, "--nbd", f"127.0.0.1:{port}")
    assert server.line.endswith(f"127.0.0.1:{port}\n")
    with socket.create_connection(("127.0.0.1", port)) as client:
        assert client.recv(8) == b"NBDMAGIC"


def test_ranges_outside_and_unknown_requests_fail_and_the_client_goes_on(
    nbd: Clients, serve: Serve, tmp_path: Path
) -> None:
    path = tmp_path / "disk.sock"
    serve(*QUICK, "--nbd", path)
    client = nbd(path)
    assert client.ask(READ, SIZE, 512)[0] == errno.EINVAL
    assert client.ask(READ, (1 << 64) - 512, 1024)[0] == errno.EINVAL
    assert client.ask(WRITE, SIZE - 511, data=bytes(512))[0] == errno.ENOSPC
    assert client.ask(READ, 0, 33 << 20)[0] == errno.EINVAL
    assert client.ask(99)[0] == errno.EINVAL
    assert client.ask(READ, 0, 0)[0] == errno.EINVAL
    assert client.ask(READ, SIZE - 512, 512) == (0, bytes(512))


def test_garbage_and_clients_that_leave_early_do_no_harm(nbd: Clients, serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "disk.sock"
    server = serve(*QUICK, "--nbd", path)
    draw = random.Random(2)
    for length in (0, 1, 17, 400, 70_000):
        with connected(path) as plain, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            plain.sendall(draw.randbytes(length))
    for _ in range(30):
        client = nbd(path)
        for _ in range(draw.randrange(4)):
            client.send(draw.choice([READ, FLUSH, TRIM]), draw.randrange(2 * SIZE), draw.randrange(1 << 20))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            client.socket.sendall(draw.randbytes(draw.randrange(60)))
        client.close()
    too_long = nbd(path)
    too_long.socket.sendall(REQUEST.pack(0x25609513, 0, WRITE, 1, 0, 0xFFFFFFFF))
    assert is_dropped(too_long.socket)
    assert nbd(path).ask(READ, 0, 512)[0] == 0
    figures = server.figures()
    assert figures["dropped"] > 1
    assert figures["problem"]


def test_a_client_that_takes_no_answers_does_not_stop_the_others(nbd: Clients, serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "disk.sock"
    serve(*QUICK, "--nbd", path)
    deaf = nbd(path)
    for _ in range(30):
        deaf.send(READ, 0, SIZE)
    assert nbd(path).ask(READ, 0, 512)[0] == 0
    assert [len(deaf.answer(SIZE)[2]) for _ in range(30)] == [SIZE] * 30


def test_other_clients_agree(serve: Serve, tmp_path: Path) -> None:
    if shutil.which("nbdinfo") is None or shutil.which("nbdcopy") is None:
        pytest.skip("nbdinfo and nbdcopy are not installed")
    path = tmp_path / "disk.sock"
    serve(*QUICK, "--nbd", path)
    address = f"nbd+unix:///?socket={path}"
    found = json.loads(subprocess.check_output(["nbdinfo", "--json", address]))
    export = found["exports"][0]
    assert (export["export-size"], export["can_flush"], export["can_trim"], export["is_rotational"]) == (
        SIZE,
        True,
        True,
        True,
    )
    (tmp_path / "in").write_bytes(random.Random(3).randbytes(SIZE))
    subprocess.check_call(["nbdcopy", tmp_path / "in", address])
    subprocess.check_call(["nbdcopy", address, tmp_path / "out"])
    assert (tmp_path / "in").read_bytes() == (tmp_path / "out").read_bytes()
