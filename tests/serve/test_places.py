"""Sockets that are in the way, models, and wrong arguments."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

import pytest

import spindle as library
from tests.program import spindle
from tests.serve.nbd import Clients
from tests.serve.served import QUICK, Serve

SHEET = Path(__file__).parents[2] / "catalogue/drives/HDS725050KLA360.toml"


@pytest.mark.parametrize("option", ["--nbd", "--socket"])
def test_a_socket_that_exists_is_refused_and_a_dead_one_is_recognised(
    serve: Serve, tmp_path: Path, option: str
) -> None:
    path = tmp_path / "disk.sock"
    server = serve(*QUICK, option, path)
    left = spindle("drive", "serve", *QUICK, option, path)
    assert (left.status, "listens there" in left.complaint) == (3, True)
    server.end(signal.SIGKILL)
    left = spindle("drive", "serve", *QUICK, option, path)
    assert (left.status, f"`rm {path}`" in left.complaint) == (3, True)
    path.unlink()
    path.write_text("mine")
    assert spindle("drive", "serve", *QUICK, option, path).status == 3
    assert path.read_text() == "mine"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_server_and_removes_its_socket(serve: Serve, tmp_path: Path, number: int) -> None:
    path = tmp_path / "disk.sock"
    left = serve(*QUICK, "--nbd", path).end(number)
    assert left.status == 0
    assert not path.exists()


def test_a_socket_of_somebody_else_is_left_alone(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "disk.sock"
    server = serve(*QUICK, "--nbd", path)
    path.unlink()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        assert server.end().status == 0
        assert path.exists()


@pytest.mark.parametrize(
    ("model", "size"),
    [("HDS725050KLA360", 500_107_862_016), (str(SHEET), 500_107_862_016), ("970-PRO-1TB", None)],
)
def test_models_of_the_catalogue_and_sheets_are_served(
    nbd: Clients, serve: Serve, tmp_path: Path, model: str, size: int | None
) -> None:
    path = tmp_path / "disk.sock"
    server = serve(model, "--nbd", path, "--queue-depth", "4")
    client = nbd(path)
    assert size is None or client.size == size
    assert client.ask(0, client.size - 4096, 4096) == (0, bytes(4096))
    client.close()
    assert server.figures()["queue_depth"] == 4


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("WD10EACS",), "--socket"),
        (("WD10EACS", "--nbd", "./a", "--socket", "b"), "--socket"),
        (("WD10EACX", "--nbd", "./a"), "WD10EACS"),
        (("no/such.toml", "--nbd", "./a"), "no/such.toml"),
        (("service", "--nbd", "./a"), "--key service=1ms"),
        (("service", "--key=service=1ms", "--nbd", "./a"), "capacity"),
        (("WD10EACS", "--nbd", "a"), "HOST:PORT"),
        (("WD10EACS", "--nbd", "./a", "--key", "colour=red"), "colour"),
        (("WD10EACS", "--nbd", "./a", "--key", "x"), "KEY=VALUE"),
        (("WD10EACS", "--nbd", "./a", "--size", "9PB"), "region"),
        (("WD10EACS", "--nbd", "./a", "--spin", "soon"), "--spin"),
        (("WD10EACS", "--nbd", "no/such/folder/socket"), "no/such/folder/socket"),
    ],
)
def test_wrong_arguments_are_one_line(here: Path, arguments: tuple[str, ...], text: str) -> None:
    left = spindle("drive", "serve", *arguments)
    assert left.status in (1, 2, 3)
    assert text in left.complaint
    assert list(here.iterdir()) == []


def test_the_library_serves_a_drive_in_a_with_block(nbd: Clients, tmp_path: Path) -> None:
    path = tmp_path / "disk.sock"
    keys: dict[str, str | int | bool] = {"service": "20us", "queue_depth": 4}
    with library.serve_drive("service", nbd=path, size="1MiB", keys=keys) as disk:
        assert (disk.where, disk.bytes) == (str(path), 1 << 20)
        assert nbd(path).ask(0, 0, 512) == (0, bytes(512))
        assert not disk.wait(0.0)
    assert disk.summary().counts.reads == 1
    assert "1 reads (512 bytes)" in str(disk.summary())
    assert not path.exists()
