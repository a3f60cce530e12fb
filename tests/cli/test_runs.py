"""Whole runs on real files: figures, verdicts, records, signals, what is left behind."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from spindle import _core
from spindle.result.document import decode, schema
from spindle.result.figures import Figures, figures_from_json
from spindle.result.record import KneeRecord, PhasesRecord, RunRecord
from spindle.result.workload import FixedSize
from tests.program import Invoke, ended, spindle, started
from tests.workbench import Workbench

pytestmark = pytest.mark.skipif(
    os.statvfs(".").f_bavail * os.statvfs(".").f_frsize < 1 << 30, reason="needs 1 GiB of free space"
)


def run(invoke: Invoke, *arguments: str) -> RunRecord:
    ended = invoke("run", *arguments, "--json")
    assert ended.status == 0, ended
    found = decode(ended.out.encode(), "stdout")
    assert isinstance(found, RunRecord)
    return found


def on_a_disk(folder: Path) -> None:
    """These are about the device's counters."""
    from spindle.host.stack import device_of

    if device_of(folder) is None:
        pytest.skip(f"{folder} is on no block device")


def wait_for(path: Path, bytes_at_least: int = 1) -> None:
    until = time.monotonic() + 20
    while not path.exists() or path.stat().st_size < bytes_at_least:
        assert time.monotonic() < until, f"{path} did not come"
        time.sleep(0.02)


RANDOMIO = ["--workers", "16", "--write-fraction", "0.2", "--fsync-fraction", "0.1", "--size", "64KiB"]


def test_randomio_on_a_file_of_its_own_prints_its_table_and_leaves_nothing(invoke: Invoke, here: Path) -> None:
    ended = invoke("run", "randomio", "t.bin", "--create", "32MiB", *RANDOMIO, "--seconds", "1")
    assert ended.status == 0, ended
    row = ended.out.splitlines()[ended.out.splitlines().index("-" * 8 + "+" + "-" * 35 + "+" + "-" * 34) + 1]
    total, read, write = (cells.split() for cells in row.split("|"))
    assert len(total) == 1
    assert len(read) == len(write) == 5
    assert float(total[0]) == pytest.approx(float(read[0]) + float(write[0]), abs=0.2)
    assert float(write[0]) / float(total[0]) == pytest.approx(0.2, abs=0.1)
    assert list(here.glob("*.bin")) == []


def test_the_json_matches_the_schema_and_is_alone_on_stdout(invoke: Invoke, here: Path) -> None:
    ended = invoke("run", "randomio", "t.bin", "--create", "32MiB", *RANDOMIO, "--seconds", "1", "--json")
    assert ended.status == 0
    printed = json.loads(invoke("schema", "result").out)
    assert printed == schema("result")
    jsonschema.Draft202012Validator(printed).validate(json.loads(ended.out))


def test_the_record_keeps_every_figure_of_the_core(invoke: Invoke, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from spindle.run import runner

    kept: list[str] = []

    def kept_too(text: str) -> Figures:
        kept.append(text)
        return figures_from_json(text)

    monkeypatch.setattr(runner, "figures_from_json", kept_too)
    found = invoke("run", "randomio", "t.bin", "--create", "16MiB", "--seconds", "0.5", "--json")
    assert json.loads(found.out)["figures"] == json.loads(kept[0])


def test_a_buffered_reader_of_a_small_file_is_invalid_with_the_share_in_numbers(invoke: Invoke, here: Path) -> None:
    on_a_disk(here)
    ended = invoke(
        "run", "seeker", "t.bin", "--create", "10MiB", "--buffered", "--seconds", "none", "--requests", "500000"
    )
    assert ended.status == 1
    assert re.search(
        r"invalid cache-share: reads: the application moved .*B, \S+ .*B of it: .*99\.\d+ % came from a cache",
        ended.out,
    )
    assert ended.out.index("invalid cache-share") < ended.out.index("Results:")


def test_the_same_with_direct_io_is_valid(invoke: Invoke, here: Path) -> None:
    on_a_disk(here)
    ended = invoke("run", "seeker", "t.bin", "--create", "10MiB", "--seconds", "1")
    assert ended.status == 0, ended.out
    assert "invalid" not in ended.out


def test_a_file_system_in_memory_is_unknown_not_ok(bench: Workbench, invoke: Invoke) -> None:
    point = bench.mount("none", "-t", "tmpfs", "-o", "size=16M")
    target = str(point / "t.bin")
    ended = invoke("run", "seeker", target, "--create", "4MiB", "--buffered", "--seconds", "0.3")
    assert ended.status == 0, ended
    assert "warn    cache-share: unknown: no block device with counters is under tmpfs" in ended.out


def test_every_preset_runs_on_the_null_target(invoke: Invoke) -> None:
    for preset in _core.preset_names():
        ended = invoke("run", preset, "null:1GiB", "--seconds", "0.2", "--json")
        assert ended.status == 0, ended
        record = decode(ended.out.encode(), "stdout")
        assert isinstance(record, RunRecord | PhasesRecord)
        for found in record.runs if isinstance(record, PhasesRecord) else [record]:
            assert found.figures.requests > 0, preset
            assert found.figures.generator.engine == "null"


def test_the_same_seed_asks_for_the_same_requests_and_the_record_names_it(invoke: Invoke) -> None:
    found = run(invoke, "oltp", "null:1GiB", "--seconds", "none", "--requests", "5000", "--seed", "7", "--workers", "1")
    again = run(invoke, "oltp", "null:1GiB", "--seconds", "none", "--requests", "5000", "--seed", "7", "--workers", "1")
    assert found.seed == 7
    assert found.figures.streams[0].total_bytes == again.figures.streams[0].total_bytes


def test_an_option_for_one_stream_reaches_that_stream_alone(invoke: Invoke) -> None:
    found = run(
        invoke, "mixed", "null:1GiB", "--seconds", "0.2", "--set", "random.size=8KiB", "--set", "random.workers=2"
    )
    by_name = {stream.name: stream for stream in found.workload.streams}
    assert by_name["random"].size == FixedSize(bytes=8192)
    assert by_name["sequential"].size == FixedSize(bytes=1 << 20)


def test_a_saved_result_is_shown_unchanged(invoke: Invoke, here: Path) -> None:
    first = invoke("run", "randomio", "null:1GiB", "--seconds", "0.2", "--output", "r.json")
    assert first.status == 0
    assert invoke("show", "r.json").out == first.out
    (here / "plain").touch()
    assert (here / "r.json").stat().st_mode == (here / "plain").stat().st_mode


def test_a_kept_file_stays_and_is_forgotten_by_the_next_start(invoke: Invoke, here: Path, state_folder: Path) -> None:
    assert invoke("run", "seeker", "t.bin", "--create", "4MiB", "--keep", "--seconds", "0.3").status == 0
    assert (here / "t.bin").stat().st_size == 4 << 20
    ended = invoke("run", "seeker", "t.bin", "--seconds", "0.3")
    assert ended.status == 0
    assert ended.err == ""
    assert (here / "t.bin").exists()


def test_find_knee_sweeps_and_plots(invoke: Invoke, here: Path) -> None:
    ended = invoke(
        "run", "saturate", "t.bin", "--create", "64MiB", "--find-knee", "--seconds", "0.1", "--output", "k.json"
    )
    assert ended.status == 0, ended
    assert "<- knee" in ended.out
    assert "mean latency" in ended.out
    found = decode((here / "k.json").read_bytes(), "k.json")
    assert isinstance(found, KneeRecord)
    assert [point.outstanding for point in found.sweep.points][:3] == [1, 2, 4]
    assert [run.workload.outstanding for run in found.runs] == [point.outstanding for point in found.sweep.points]
    jsonschema.Draft202012Validator(schema("result")).validate(json.loads((here / "k.json").read_text()))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_keeps_the_figures_marks_them_and_removes_the_file(
    invoke: Invoke, amid: Callable[[Callable[[], object]], None], number: signal.Signals, here: Path
) -> None:
    amid(lambda: os.kill(os.getpid(), number))
    found = invoke("run", "randomio", "t.bin", "--create", "8MiB", "--seconds", "30", "-o", "r.json")
    assert found.status == 1, found
    assert re.search(
        r"invalid interrupted: stopped after [0-9.]+ m?s of 30 s, [0-9 ]+ requests: the figures are partial", found.out
    )
    assert "total |  read:" in found.out
    assert "Traceback" not in found.err
    assert not (here / "t.bin").exists()
    saved = decode((here / "r.json").read_bytes(), "r.json")
    assert isinstance(saved, RunRecord)
    assert saved.figures.requests > 0


def test_a_signal_while_the_file_is_written_removes_it(here: Path) -> None:
    process = started("run", "randomio", "t.bin", "--create", "512MiB", "--seconds", "30", cwd=here)
    wait_for(here / "t.bin")
    process.send_signal(signal.SIGTERM)
    found = ended(process)
    assert found.status == 1
    assert "stopped by SIGTERM before the first result" in found.complaint
    assert not (here / "t.bin").exists()


def test_the_next_start_removes_the_files_of_a_killed_run_and_nothing_else(here: Path) -> None:
    (here / "spindle-test-of-mine.bin").write_bytes(b"mine")
    process = started("run", "randomio", "t.bin", "--create", "8MiB", "--seconds", "30", cwd=here)
    wait_for(here / "t.bin", 8 << 20)
    process.kill()
    ended(process)
    assert (here / "t.bin").exists()
    found = spindle("run", "seeker", "null:1MiB", "--seconds", "0.2", cwd=here)
    assert found.status == 0
    assert re.fullmatch(r"spindle: removed .*t\.bin \(.*\), a test file .*\n", found.err)
    assert sorted(path.name for path in here.glob("*.bin")) == ["spindle-test-of-mine.bin"]


def test_a_pipe_gets_no_progress_line_of_a_short_run(here: Path) -> None:
    found = spindle("run", "seeker", "null:1MiB", "--seconds", "1", cwd=here)
    assert found.err == ""


def test_strict_takes_a_warning_for_a_failure(invoke: Invoke, here: Path) -> None:
    arguments = ["run", "seeker", "t.bin", "--create", "4MiB", "--seconds", "0.3"]
    assert invoke(*arguments).status == 0
    assert invoke(*arguments, "--strict").status == 1
    assert invoke("run", "seeker", "null:1MiB", "--seconds", "0.3", "--strict").status == 0
