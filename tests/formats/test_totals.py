"""Nothing in another tool's file is counted twice, and the printed tables of sysstat and bonnie++ are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spindle import formats
from spindle.result.imported import DeviceSeries
from spindle.result.record import ImportedRecord
from spindle.stats.metric import values

SAMPLES = Path(__file__).parent / "samples"
KIB = 1024

pytestmark = pytest.mark.promise(22)


def imported(data: bytes, name: str = "f") -> list[ImportedRecord]:
    return [record for record in formats.read_bytes(data, name) if isinstance(record, ImportedRecord)]


def sample(name: str) -> ImportedRecord:
    [record] = imported((SAMPLES / name).read_bytes(), name)
    return record


def reports(name: str) -> list[dict[str, Any]]:
    text, decoder, at, found = (SAMPLES / name).read_text(), json.JSONDecoder(), 0, []
    while (at := text.find("{", at)) >= 0:
        document, at = decoder.raw_decode(text, at)
        found.append(document)
    return found


def test_the_sum_that_fio_writes_next_to_reads_and_writes_is_not_added_to_them() -> None:
    [job] = reports("fio-unified-both.json")[0]["jobs"]
    found = values(sample("fio-unified-both.json"))
    assert found["iops"] == pytest.approx(job["mixed"]["iops"])
    assert found["read.iops"] == job["read"]["iops"]
    assert "mixed.iops" not in found


def test_a_sum_without_its_parts_is_read() -> None:
    document = reports("fio-unified-both.json")[0]
    for name in ("read", "write", "trim", "sync"):
        del document["jobs"][0][name]
    [record] = imported(json.dumps(document).encode())
    assert values(record)["iops"] == document["jobs"][0]["mixed"]["iops"]


def test_terse_lines_with_the_sum_of_all_directions_have_their_figures_and_cpu_shares() -> None:
    fields = (SAMPLES / "fio-unified-both-terse4.txt").read_text().split(";")
    record = sample("fio-unified-both-terse4.txt")
    found = values(record)
    assert found["iops"] == int(fields[7]) + int(fields[48])
    assert found["iops"] == pytest.approx(int(fields[5 + 3 * 41 + 2]), abs=2)  # fio rounds each
    assert record.streams[0].extra["sys_cpu"] == float(fields[5 + 4 * 41 + 1].rstrip("%"))
    fields = (SAMPLES / "fio-unified-mixed-terse3.txt").read_text().split(";")
    record = sample("fio-unified-mixed-terse3.txt")
    assert values(record)["iops"] == values(record)["mixed.iops"] == int(fields[7])
    assert record.streams[0].extra["sys_cpu"] == float(fields[47].rstrip("%"))


def test_snapshots_of_fio_are_one_run_with_the_figures_of_its_end() -> None:
    documents = reports("fio-status-interval.json")
    record = sample("fio-status-interval.json")
    assert len(documents) == 4
    assert values(record)["read.iops"] == documents[-1]["jobs"][0]["read"]["iops"]
    [stream] = record.streams
    assert sum(round(each.values["read.iops"] * (each.seconds or 0)) for each in stream.series) == pytest.approx(
        documents[-1]["jobs"][0]["read"]["total_ios"], abs=len(stream.series)
    )


def repeated(count: int, *, seconds: float, more: int = 0) -> bytes:
    """Runs one after the other, each reported at its end."""
    one = reports("fio-status-interval.json")[-1]
    made = []
    for at in range(count):
        copy = json.loads(json.dumps(one))
        copy["timestamp_ms"] += round(at * seconds * 1000)
        copy["timestamp"] = copy["timestamp_ms"] // 1000
        copy["jobs"][0]["elapsed"] = max(1, -int(-seconds // 1))
        copy["jobs"][0]["read"]["total_ios"] += at * more
        made.append(json.dumps(copy))
    return "\n".join(made).encode()


@pytest.mark.parametrize("seconds", [0.5, 0.9, 1.2, 4.0, 600.0])
def test_the_same_job_run_again_is_another_run(seconds: float) -> None:
    assert len(imported(repeated(3, seconds=seconds, more=5))) == 3


def test_runs_with_snapshots_in_one_file_are_separate() -> None:
    first = reports("fio-status-interval.json")
    later = json.loads(json.dumps(first))
    for document in later:
        document["timestamp_ms"] += 60_000
    found = imported("\n".join(json.dumps(each) for each in [*first, *later]).encode())
    assert [len(record.streams[0].series) for record in found] == [4, 4]


def test_the_start_that_newer_versions_of_fio_write_decides() -> None:
    documents = reports("fio-status-interval.json")
    for document in documents:
        document["jobs"][0]["job_start"] = 1_795_373_238_000
    assert len(imported("\n".join(json.dumps(each) for each in documents).encode())) == 1
    documents[2]["jobs"][0]["job_start"] += 1
    assert len(imported("\n".join(json.dumps(each) for each in documents).encode())) == 3


def test_snapshots_in_terse_output_are_one_run() -> None:
    lines = (SAMPLES / "fio-status-interval-terse.txt").read_text().splitlines()
    record = sample("fio-status-interval-terse.txt")
    assert [stream.name for stream in record.streams] == ["a", "b"]
    assert values(record)["read.iops"] == float(lines[-1].split(";")[7])
    alone = "\n".join(line for line in lines if ";b;" in line)
    [record] = imported(alone.encode())
    assert values(record)["read.iops"] == float(lines[-1].split(";")[7])
    behind = "\n".join(line.replace(";b;0;", ";b;1;") for line in lines)  # after a stonewall
    assert len(imported(behind.encode())) == 1


def test_clones_and_repetitions_in_terse_output_are_not_snapshots() -> None:
    line = (SAMPLES / "fio-terse4.txt").read_text().strip()
    fields = line.split(";")
    fields[5], fields[8] = str(int(fields[5]) + 4), str(int(fields[8]) + 3)
    [record] = imported(f"{line}\n{';'.join(fields)}\n".encode())
    assert len(record.streams) == 2
    assert "iops" not in values(record)


def device(name: str, of: str = "vda") -> DeviceSeries:
    return next(each for each in sample(name).devices if each.name == of)


@pytest.mark.parametrize("name", ["sar-d.txt", "sar-dp.txt", "sar-ud.txt"])
def test_means_of_sar_are_those_that_it_prints(name: str) -> None:
    lines = [line.split() for line in (SAMPLES / name).read_text().splitlines() if line.startswith("Average:")]
    last = next(cells for cells in lines if "vda" in cells)
    tps, *_, wait, busy = [float(cell) for cell in last if cell not in ("Average:", "vda")]
    found = device(name)
    assert found.mean["tps"] == pytest.approx(tps, abs=0.01)
    assert found.mean["await"] == pytest.approx(wait, abs=0.01)
    assert found.mean["%util"] == pytest.approx(busy, abs=0.01)
    assert [moment.seconds for moment in found.moments] == [1.0, 1.0]


def test_sar_of_another_age_and_language_is_read() -> None:
    text = """Linux 2.6.18 (alt)  22.11.2006

11:59:50 PM       DEV       tps  rd_sec/s  wr_sec/s  avgrq-sz  avgqu-sz     await     svctm     %util
12:00:00 AM    dev8-0    100,00   2048,00   4096,00     61,44      1,50     15,00      2,00     20,00

Durchschn.:       DEV       tps  rd_sec/s  wr_sec/s  avgrq-sz  avgqu-sz     await     svctm     %util
Durchschn.:    dev8-0    100,00   2048,00   4096,00     61,44      1,50     15,00      2,00     20,00
"""
    [record] = imported(text.encode())
    [found] = record.devices
    assert (found.name, record.host, found.moments[0].seconds) == ("dev8-0", "alt", 10.0)
    assert (found.mean["rMB/s"], found.mean["wMB/s"], found.mean["areq-sz"], found.mean["aqu-sz"]) == (1, 2, 30.72, 1.5)


@pytest.mark.parametrize("name", ["sadf-dh.txt", "sadf-p.txt"])
def test_all_forms_of_sadf_have_the_same_figures(name: str) -> None:
    assert sample(name).devices == sample("sadf-d.txt").devices


def test_sadf_has_times_cpus_and_means() -> None:
    assert device("sadf-d.txt").mean["tps"] == pytest.approx((183 + 0 + 59) / 3)
    assert device("sadf-d.txt").moments[0].at == "2026-11-22T18:47:31Z"
    assert [moment.values["%user"] for moment in sample("sadf-du.txt").machine] == [44.95, 48.76, 52.82]
    assert device("sadf-du.txt").mean == device("sadf-d.txt").mean


def test_the_table_of_bonnie_has_the_figures_of_its_csv() -> None:
    table = values(sample("bonnie-table.txt"))
    assert table["char-write/write.bytes_per_s"] == 1118 * KIB
    assert table["seeks/seek.max_ns"] == 8105e3
    assert table["random-create/create.max_ns"] == 1003e3
    assert "block-write/write.bytes_per_s" not in table  # it was too fast to be measured
    assert values(sample("bonnie-table-1.03.txt")) == values(sample("bonnie-1.03.csv"))


def test_the_table_above_the_csv_is_the_same_run() -> None:
    record = sample("bonnie-table-and-csv.txt")
    assert record.settings["format"] == "1.98"
    assert values(record)["sequential-create/create.iops"] == 1935


def test_tables_of_several_runs_have_blanks_where_a_phase_was_not_run() -> None:
    of_csv = imported((SAMPLES / "bonnie-1.98.csv").read_bytes())
    of_table = imported((SAMPLES / "bonnie-tables.txt").read_bytes())
    assert [values(record) for record in of_table] == [values(record) for record in of_csv]
    assert [record.host for record in of_table] == ["sample", "sample", "filesonly"]


def test_mebibytes_of_bonnie_are_mebibytes() -> None:
    text = (SAMPLES / "bonnie-table.txt").read_text().replace("1118k", "97.7m").replace("1770k", " 1.2g")
    [record] = imported(text.encode())
    assert values(record)["char-write/write.bytes_per_s"] == pytest.approx(97.7 * KIB**2)
    assert values(record)["char-read/read.bytes_per_s"] == pytest.approx(1.2 * KIB**3)
