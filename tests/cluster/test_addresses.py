"""Addresses that are refused, and what a person gets without Dask."""

from __future__ import annotations

from pathlib import Path

import pytest

from spindle.cluster.choice import ClusterRefused, choice_of
from spindle.run.errors import Usage
from tests.program import spindle

DESIGN = ("design", "need.toml", "--prices", "prices.csv")


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "need.toml").write_text('usable = "1TB"\n[[load]]\nrate = "10 IOPS"\n')
    (tmp_path / "prices.csv").write_text("model,price\nWD3000GLFS,60\n")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "address",
    ["tcp://127.0.0.1:8786", "tcp://localhost:8786", "tcp://[::1]:8786", "tls://node1:8786", "tls://[fe80::1]:1"],
)
def test_loopback_and_tls_are_taken(address: str) -> None:
    assert choice_of(cluster=address).cluster == address


@pytest.mark.parametrize(
    "address",
    ["tcp://192.0.2.1:8786", "tcp://node1:8786", "tcp://0.0.0.0:8786", "tcp://localhost.example:8786", "tcp://[::]:1"],
)
def test_an_open_connection_over_the_network_is_refused_for_safety(address: str) -> None:
    with pytest.raises(ClusterRefused, match="without TLS"):
        choice_of(cluster=address)
    ended = spindle(*DESIGN, "--cluster", address)
    assert ended.status == 3
    assert "tls://" in ended.complaint


@pytest.mark.parametrize(
    "address",
    [
        "node1:8786",
        "8786",
        "http://127.0.0.1:8786",
        "ucx://127.0.0.1:8786",
        "tcp://127.0.0.1",
        "tls://h:70000",
        "tls://h:0",
    ],
)
def test_what_is_no_address_of_a_scheduler_is_wrong_usage(address: str) -> None:
    with pytest.raises(Usage, match="not the address of a scheduler"):
        choice_of(cluster=address)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--workers", "2", "--cluster", "tls://h:1"], "give one of them"),
        (["--workers", "2", "--tls-cert", "need.toml"], "--tls-cert: is for a cluster with TLS"),
        (["--cluster", "tcp://127.0.0.1:1", "--tls-key", "need.toml"], "--tls-key: is for a cluster with TLS"),
        (["--cluster", "tls://h:1", "--tls-ca-file", "none.pem"], "--tls-ca-file none.pem: no such file"),
        (["--cluster", "tls://h:1"], "which key? give --tls-ca-file a PEM file"),
    ],
)  # fmt: skip
def test_options_that_do_not_fit_together_are_one_line(options: list[str], words: str) -> None:
    ended = spindle(*DESIGN, *options)
    assert ended.status == 2
    assert words in ended.complaint


def test_a_scheduler_that_is_not_there_is_one_line() -> None:
    ended = spindle(*DESIGN, "--cluster", "tcp://127.0.0.1:9")
    assert ended.status == 1
    assert "--cluster tcp://127.0.0.1:9: no scheduler answers" in ended.complaint


def test_without_dask_one_line_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "distributed.py").write_text("raise ModuleNotFoundError(name='distributed')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "without"))
    ended = spindle(*DESIGN, "--workers", "2")
    assert ended.status == 2
    assert "pip install 'spindle[cluster]'" in ended.complaint


def test_workers_have_nothing_to_do_for_real_targets(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(
        'target = "null:1GiB"\nworkload = "randomio"\n[factors.workers]\nsets = "options.workers"\nvalues = [1, 2]\n'
    )
    ended = spindle("campaign", "run", "plan.toml", "--store", "store.db", "--workers", "2")
    assert ended.status == 2
    assert "none of its targets is computed by the simulator" in ended.complaint
    assert "it out where workers compute" in spindle(
        "campaign", "run", "plan.toml", "--store", "store.db", "--workers", "2", "--jobs", "2"
    ).complaint  # fmt: skip
