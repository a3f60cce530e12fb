"""Clients and schedulers that are killed or stopped: nothing goes on, and the same command goes on."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.design.test_design import NEED, PRICES
from tests.program import COMMAND, Ended, of_session, spindle, wait_until

DESIGN = ("design", "need.toml", "--prices", "prices.csv", "--json")
MANY = 30
"""Simulations that are done when something is killed; the design asks for twice as many."""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "need.toml").write_text(NEED)
    (tmp_path / "prices.csv").write_text(PRICES)
    monkeypatch.chdir(tmp_path)


def rows(cache: Path) -> int:
    path = cache / "spindle/simulations.sqlite"
    if not path.exists():
        return 0
    with sqlite3.connect(path, timeout=30) as file:
        try:
            return int(file.execute("SELECT count(*) FROM simulation").fetchone()[0])
        except sqlite3.OperationalError:  # the table is being made
            return 0


def begun(*arguments: str) -> subprocess.Popen[str]:
    """`spindle ...` as the leader of a session, with its workers."""
    return subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "Ctrl-C"])
def test_a_client_that_is_ended_leaves_no_process_and_goes_on(how: signal.Signals, cache: Path) -> None:
    whole = spindle(*DESIGN)
    client = begun(*DESIGN, "--workers", "2")
    try:
        wait_until(lambda: rows(cache) > MANY, 60)
        assert len(of_session(client.pid)) > 2
        if how == signal.SIGINT:
            os.killpg(client.pid, how)  # as a terminal does
        else:
            client.send_signal(how)
        _, said = client.communicate(timeout=30)
        wait_until(lambda: not of_session(client.pid), 10)
    finally:
        client.kill()
    if how == signal.SIGINT:
        assert Ended(client.returncode, "", said).complaint.startswith("spindle: stopped by SIGINT")
        assert client.returncode == 1
    kept = rows(cache)
    assert kept > MANY
    again = spindle(*DESIGN, "--workers", "1")
    assert again.out == whole.out
    assert rows(cache) == 0


def silent(*command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@contextmanager
def scheduler(folder: Path, *tls: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A scheduler and a worker as an administrator starts them; yields its address."""
    protocol = "tls" if tls else "tcp"
    dask = [sys.executable, "-m", "dask"]
    about = folder / f"scheduler-{time.monotonic_ns()}.json"
    options = ["--scheduler-file", str(about), *tls]
    own = ["--host", "127.0.0.1", "--port", "0", "--protocol", protocol, "--no-dashboard"]
    made = [silent(*dask, "scheduler", *own, *options)]
    try:
        wait_until(lambda: about.exists() and about.read_text().rstrip().endswith("}"), 60)
        made.append(silent(*dask, "worker", "--no-nanny", "--no-dashboard", "--nthreads", "1", *options))
        yield json.loads(about.read_text())["address"], made[0]
    finally:
        for one in made:
            one.kill()
            one.wait()


def keys(folder: Path) -> dict[str, str]:
    """Certificates as files."""
    from distributed import Security

    security = Security.temporary()
    texts = {"ca": security.tls_ca_file, "cert": security.tls_client_cert, "key": security.tls_client_key}
    for name, text in texts.items():
        (folder / f"{name}.pem").write_text(str(text))
    return {name: str(folder / f"{name}.pem") for name in texts}


def test_a_cluster_with_tls_gives_the_same_bytes_and_its_end_is_one_line(tmp_path: Path, cache: Path) -> None:
    of = keys(tmp_path)
    mine = ["--tls-ca-file", of["ca"], "--tls-cert", of["cert"], "--tls-key", of["key"]]
    whole = spindle(*DESIGN)
    with scheduler(tmp_path, *mine) as (address, process):
        assert address.startswith("tls://")
        client = begun(*DESIGN, "--cluster", address, *mine)
        wait_until(lambda: rows(cache) > MANY, 60)
        process.kill()
        _, said = client.communicate(timeout=60)
        assert client.returncode == 1
        last = said.splitlines()[-1]
        assert f"the scheduler at {address} is gone" in last
        assert "the same command goes on" in last
        assert "Traceback" not in said
    kept = rows(cache)
    assert kept > MANY
    with scheduler(tmp_path, *mine) as (address, _):
        again = spindle(*DESIGN, "--cluster", address, *mine)
    assert again.out == whole.out
    assert rows(cache) == 0


def test_a_script_that_would_begin_again_in_each_worker_is_refused(tmp_path: Path) -> None:
    call = "import spindle\n{}spindle.design('need.toml', prices='prices.csv', workers=2)\n"
    script = tmp_path / "script.py"
    script.write_text(call.format(""))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(
        '`workers=`: each worker imports script.py; write `if __name__ == "__main__":` above its calls of spindle'
    )
    assert done.stderr.count("Traceback") == 1
