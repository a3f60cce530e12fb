"""Quick parts of what the benches show of the lab (docs/explanation/lab.md). They need its kernel (`make lab`)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHES = Path(__file__).resolve().parents[2] / "benches"


def bench(name: str, *options: str) -> str:
    command = [sys.executable, str(BENCHES / name), *options]
    said = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert said.returncode == 0, said.stdout + said.stderr
    return said.stdout


def test_rates_and_service_times_are_those_of_the_drives(four: Path) -> None:
    lines = bench("lab_exact.py", "--requests", "960").splitlines()
    assert len([line for line in lines if line.endswith(" 0 ns")]) == 7


def test_blocks_of_md_are_where_the_maps_have_them(four: Path, tmp_path: Path) -> None:
    assert "20 arrays" in bench("lab_maps.py", "--random", "20", "--seed", "7", "--keep", str(tmp_path / "lists"))
    assert "20 arrays of lists, 0 differ" in bench("lab_maps.py", "--random", "0", "--lists", str(tmp_path / "lists"))


def test_runs_beside_others_are_equal(four: Path) -> None:
    said = bench("lab_equal.py", "--runs", "4", "--busy", "--case", "raid6 4 xfs")
    assert said.count("4 runs, 0 different") == len(said.splitlines()) > 0
