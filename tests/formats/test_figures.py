"""Figures of imported files are those in the files, in Spindle's units; values missing in a file are missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spindle import _core, formats
from spindle.result.document import decode, encode
from spindle.result.imported import DeviceSeries, PartialOp, PartialStream
from spindle.result.record import ImportedRecord, Level
from spindle.stats.metric import values
from tests.documents import present

SAMPLES = Path(__file__).parent / "samples"
KIB, MIB, US, MS = 1024, 1 << 20, 1e3, 1e6


def imported(name: str) -> list[ImportedRecord]:
    found = formats.read(SAMPLES / name)
    assert all(isinstance(record, ImportedRecord) for record in found)
    return found  # type: ignore[return-value]


def only(name: str) -> ImportedRecord:
    [record] = imported(name)
    return record


def stream(record: ImportedRecord, name: str) -> PartialStream:
    return next(each for each in record.streams if each.name == name)


def device(record: ImportedRecord, name: str) -> DeviceSeries:
    return next(each for each in record.devices if each.name == name)


@pytest.mark.parametrize("sample", sorted(path.name for path in SAMPLES.iterdir()))
def test_every_sample_is_detected_by_its_content_and_becomes_a_record(sample: str) -> None:
    for record in imported(sample):
        assert record.source.file == sample
        assert decode(encode(record), sample) == record
        assert record.level is not Level.OK
        [detected] = [each.name for each in formats.FORMATS.values() if each.name == record.source.format]
        assert formats.read(SAMPLES / sample, detected) == imported(sample)


FIO = ("fio-randrw.json", "fio-numjobs.json", "fio-plus.json", "fio-stonewall.json", "fio-warnings.json")


def fio_document(name: str) -> Any:
    text = (SAMPLES / name).read_text()
    return json.loads(text[text.index("{") :])


@pytest.mark.parametrize("sample", FIO)
def test_figures_of_fio_are_those_of_its_json(sample: str) -> None:
    record, document = only(sample), fio_document(sample)
    assert len(record.streams) == len(document["jobs"])
    for ours, theirs in zip(record.streams, document["jobs"], strict=True):
        assert ours.group == theirs["groupid"]
        for name in ("read", "write", "trim"):
            raw = theirs[name]
            assert (name in ours.operations) == bool(raw["total_ios"])
            if name in ours.operations:
                check_fio(ours.operations[name], raw)
        assert ours.extra["usr_cpu"] == theirs["usr_cpu"]
        assert ours.settings == theirs.get("job options", {})


def check_fio(ours: PartialOp, raw: Any) -> None:
    assert (ours.requests, ours.bytes) == (raw["total_ios"], raw["io_bytes"])
    assert (ours.iops, ours.bytes_per_s) == (raw["iops"], raw["bw_bytes"])
    for latency, times in ((ours.latency, raw["lat_ns"]), (ours.completion, raw["clat_ns"])):
        assert latency is not None
        assert (latency.min_ns, latency.max_ns) == (times["min"], times["max"])
        assert (latency.mean_ns, latency.sdev_ns) == (times["mean"], times["stddev"])
        assert latency.percentiles == [(float(rank), ns) for rank, ns in times.get("percentile", {}).items()]
    assert (ours.submission is None) == (raw["slat_ns"]["N"] == 0)


def test_jobs_of_fio_that_ran_together_add_up_and_jobs_after_a_stonewall_do_not() -> None:
    together, jobs = values(only("fio-numjobs.json")), fio_document("fio-numjobs.json")["jobs"]
    assert together["read.iops"] == sum(job["read"]["iops"] for job in jobs)
    assert together["both-1/read.iops"] == jobs[1]["read"]["iops"]
    apart = values(only("fio-stonewall.json"))
    assert "iops" not in apart
    assert {"seq-write/write.iops", "rand-read/read.iops"} <= set(apart)


def test_percentiles_of_fio_are_those_of_the_whole_latency_if_the_file_has_them() -> None:
    jobs = fio_document("fio-stonewall.json")["jobs"]
    found = values(only("fio-stonewall.json"))
    assert found["rand-read/read.p99_ns"] == jobs[1]["read"]["lat_ns"]["percentile"]["99.000000"]
    assert found["seq-write/write.p99_ns"] == jobs[0]["write"]["clat_ns"]["percentile"]["99.000000"]
    assert found["seq-write/fsync.p99_ns"] == jobs[0]["sync"]["lat_ns"]["percentile"]["99.000000"]


def test_the_bins_of_json_plus_become_a_histogram() -> None:
    latency = only("fio-plus.json").streams[0].operations["read"].completion
    raw = fio_document("fio-plus.json")["jobs"][0]["read"]["clat_ns"]
    assert latency is not None
    assert latency.histogram is not None
    assert sum(count for _, count in _core.histogram_counts(latency.histogram)) == raw["N"]
    [median, p99] = _core.histogram_percentiles([latency.histogram], [50.0, 99.0])
    assert median == pytest.approx(raw["percentile"]["50.000000"], rel=0.02)
    assert p99 == pytest.approx(raw["percentile"]["99.000000"], rel=0.02)


def test_fio_2_counts_kib_and_microseconds() -> None:
    op = only("fio-2.json").streams[0].operations["read"]
    assert (op.bytes, op.bytes_per_s, op.iops) == (1048576 * KIB, 17476 * KIB, 4369.07)
    assert op.latency is not None
    assert (op.latency.min_ns, op.latency.mean_ns) == (71_000, pytest.approx(901_990))
    assert op.completion is not None
    assert op.completion.percentiles == [(1.0, 445_000), (50.0, 588_000), (99.0, 3_435_000), (99.99, 28_181_000)]
    assert list(only("fio-2.json").streams[0].operations) == ["read"]


def test_clients_of_fio_are_separate_and_their_sum_is_left_out() -> None:
    assert [each.name for each in only("fio-clients.json").streams] == ["randrw@a", "randrw@b"]


def test_runs_of_fio_in_one_file_are_a_record_each(tmp_path: Path) -> None:
    one = (SAMPLES / "fio-randrw.json").read_text()
    (tmp_path / "runs.json").write_text(
        one + "fio: warning between\n" + one.replace('"iops" : 66120', '"iops" : 66121')
    )
    first, second = (values(record) for record in formats.read(tmp_path / "runs.json"))
    assert second["read.iops"] - first["read.iops"] == pytest.approx(1.0)


@pytest.mark.parametrize("version", [3, 4, 5])
def test_fields_of_terse_output_are_where_the_howto_says(version: int) -> None:
    record = only(f"fio-terse{version}.txt")
    fields = (SAMPLES / f"fio-terse{version}.txt").read_text().strip().split(";")
    length = 47 if version == 5 else 41
    for place, name in enumerate(("read", "write")):
        own, op = fields[5 + place * length :], record.streams[0].operations[name]
        assert (op.bytes, op.bytes_per_s, op.iops) == (int(own[0]) * KIB, int(own[1]) * KIB, int(own[2]))
        assert op.completion is not None
        assert op.latency is not None
        assert op.completion.mean_ns == pytest.approx(float(own[10]) * US)
        assert op.completion.percentile(99.0) == int(own[24].split("=")[1]) * 1000
        assert op.latency.mean_ns == pytest.approx(float(own[34]) * US)
        assert present(op.latency.mean_ns) >= present(op.completion.mean_ns)
    assert record.streams[0].extra["usr_cpu"] == float(fields[5 + length * (2 if version == 3 else 3)].rstrip("%"))
    assert record.streams[0].name == f"terse{version}"


def test_two_terse_lines_of_the_same_job_are_not_added_up(tmp_path: Path) -> None:
    line = (SAMPLES / "fio-terse4.txt").read_text()
    (tmp_path / "t.txt").write_text(line + line)
    [record] = formats.read(tmp_path / "t.txt")
    assert "iops" not in values(record)
    assert "terse4#2/read.iops" in values(record)


BONNIE = {
    "bonnie-1.96.csv": {
        "char-write/write.bytes_per_s": 786 * KIB,
        "block-write/write.bytes_per_s": 132456 * KIB,
        "block-write/write.max_ns": 452 * MS,
        "rewrite/rewrite.bytes_per_s": 65432 * KIB,
        "block-read/read.bytes_per_s": 187654 * KIB,
        "seeks/seek.iops": 412.3,
        "seeks/seek.max_ns": 243 * MS,
        "sequential-create/create.iops": 22345,
        "random-delete/delete.iops": 29876,
        "random-delete/delete.max_ns": 789 * US,
    },
    "bonnie-2.00.csv": {
        "block-write/write.bytes_per_s": 1234567 * KIB,
        "rewrite/rewrite.max_ns": 2e9,
        "seeks/seek.iops": 9876.5,
        "random-delete/delete.max_ns": 99 * US,
    },
    "bonnie-1.03.csv": {
        "char-write/write.bytes_per_s": 45678 * KIB,
        "block-write/write.bytes_per_s": 234567 * KIB,
        "block-read/read.bytes_per_s": 345678 * KIB,
        "seeks/seek.iops": 512.4,
    },
}


@pytest.mark.parametrize("sample", BONNIE)
def test_phases_of_bonnie_have_their_rates_and_worst_latencies(sample: str) -> None:
    found = values(only(sample))
    assert {name: found[name] for name in BONNIE[sample]} == pytest.approx(BONNIE[sample])
    assert "bytes_per_s" not in found


def test_a_phase_too_fast_for_bonnie_is_unknown_and_a_phase_that_was_not_run_is_missing() -> None:
    found = values(only("bonnie-1.96.csv"))
    assert "sequential-stat/stat.iops" not in found
    assert found["sequential-stat/stat.max_ns"] == 123 * US
    first, second, third = imported("bonnie-1.98.csv")
    assert stream(first, "char-write").operations["write"].bytes_per_s == 2026 * KIB
    assert stream(first, "char-write").extra == {"%CP": 45.0}
    assert (first.host, first.settings["file size"], first.settings["seeks"]) == ("sample", "64M", "8192")
    assert "char-write" not in [each.name for each in second.streams]
    assert len(third.streams) == 6


def test_columns_of_iozone_are_those_of_the_requested_tests() -> None:
    assert {name: rate for name, rate in values(only("iozone.txt")).items() if name.count(".") == 1} == {
        "write-4KiB-of-16MiB/write.bytes_per_s": 44632 * KIB,
        "rewrite-4KiB-of-16MiB/write.bytes_per_s": 42865 * KIB,
        "random-read-4KiB-of-16MiB/read.bytes_per_s": 24719 * KIB,
        "random-write-4KiB-of-16MiB/write.bytes_per_s": 11304 * KIB,
    }
    assert only("iozone.txt").target == "/mnt/t"


def test_columns_of_iozone_are_known_by_their_position_without_a_command_line(tmp_path: Path) -> None:
    lines = (SAMPLES / "iozone.txt").read_text().splitlines(keepends=True)
    (tmp_path / "t.txt").write_text("".join(line for line in lines if "Command line" not in line))
    [record] = formats.read(tmp_path / "t.txt")
    assert values(record) == values(only("iozone.txt"))


def test_all_columns_of_iozone_are_read() -> None:
    record = only("iozone-full.txt")
    assert len(record.streams) == 26
    assert stream(record, "freread-8KiB-of-64KiB").operations["read"].bytes_per_s == 3203069 * KIB


def test_the_excel_part_of_iozone_has_the_same_figures_as_its_table() -> None:
    whole, tables = values(only("iozone-excel.txt")), values(only("iozone-excel-only.txt"))
    assert whole == tables
    assert whole["reread-16KiB-of-1MiB/read.bytes_per_s"] == 1204501 * KIB
    assert "write-16KiB-of-2MiB/write.bytes_per_s" not in whole
    assert "unit" in [verdict.check for verdict in only("iozone-excel-only.txt").verdicts]
    assert "unit" not in [verdict.check for verdict in only("iozone-excel.txt").verdicts]


def test_throughput_of_iozone_is_that_of_the_children() -> None:
    record = only("iozone-threads.txt")
    assert stream(record, "initial-writers-4").operations["write"].bytes_per_s == pytest.approx(109333.84 * KIB)
    assert stream(record, "readers-4").operations["read"].bytes_per_s == pytest.approx(111377.63 * KIB)
    assert stream(record, "initial-writers-4").extra["Min throughput per process"] == 27333.84


def test_operations_per_second_of_iozone_are_not_bytes() -> None:
    op = stream(only("iozone-ops.txt"), "random-read-4KiB-of-1GiB").operations["read"]
    assert (op.iops, op.bytes_per_s) == (2107.0, None)


def test_rows_of_randomio_are_intervals_of_one_run() -> None:
    record = only("randomio.txt")
    read = record.streams[0].operations["read"]
    assert read.iops == pytest.approx((406.5 + 496.4) / 2)
    assert read.latency is not None
    assert read.latency.mean_ns == pytest.approx((406.5 * 40.2 + 496.4 * 30.1) / (406.5 + 496.4) * MS)
    assert (read.latency.min_ns, read.latency.max_ns) == (0.1 * MS, 575.8 * MS)
    assert [moment.values["write.iops"] for moment in record.streams[0].series] == [134.9, 166.1]
    assert record.settings == {
        "threads": "20", "write fraction": "0.25", "fsync fraction": "0.1", "size": "4096", "seconds": "10",
    }  # fmt: skip
    assert read.bytes_per_s is None


def test_randomio_without_writes_has_none() -> None:
    assert list(only("randomio-reads.txt").streams[0].operations) == ["read"]


@pytest.mark.parametrize(
    ("sample", "operation", "size", "seconds"),
    [
        ("dd-busybox.txt", "copy", 67108864, 0.034563),
        ("dd-bsd.txt", "copy", 1073741824, 0.271545),
        ("dd-german.txt", "copy", 67108864, 0.0578038),
        ("dd-chinese.txt", "copy", 1073741824, 5.43328),
        ("sdd.txt", "copy", 1073741824, 10.5),
        ("sdd-onull.txt", "read", 536870912, 6.25),
    ],
)
def test_copies_have_the_bytes_and_the_time_of_the_file(sample: str, operation: str, size: int, seconds: float) -> None:
    [found] = only(sample).streams
    op = found.operations[operation]
    assert (op.bytes, found.seconds) == (size, seconds)
    assert op.bytes_per_s == pytest.approx(size / seconds)


def test_each_run_of_dd_is_a_record_and_an_old_dd_gives_only_block_counts() -> None:
    assert [record.streams[0].operations["copy"].bytes for record in imported("dd-gnu.txt")] == [67108864] * 2
    [old] = only("dd-old.txt").streams
    assert old.operations["copy"] == PartialOp()
    assert old.extra == {"records in": 1024, "partial records in": 1, "records out": 1024, "partial records out": 1}


def test_megabytes_of_hdparm_are_binary() -> None:
    first, second = imported("hdparm-old.txt")
    assert (first.target, second.target) == ("/dev/md1", "/dev/hdc")
    assert stream(first, "buffered-disk").operations["read"].bytes_per_s == pytest.approx(28.83 * MIB)
    assert stream(second, "buffer-cache").operations["read"].bytes_per_s == pytest.approx(228.57 * MIB)
    assert "bytes_per_s" not in values(first)
    text = (SAMPLES / "hdparm-direct.txt").read_text()
    rate = float(text.split("=")[1].split()[0])
    assert values(only("hdparm-direct.txt"))["read.bytes_per_s"] == pytest.approx(rate * MIB)


def test_iostat_of_2006_in_sectors() -> None:
    sda = device(only("iostat-2006.txt"), "sda")
    assert len(sda.moments) == 3
    assert sda.mean["r/s"] == 200.0, "the first report, since boot, is not in the mean"
    assert sda.mean["rMB/s"] == pytest.approx(12800 / 2048)
    assert sda.mean["areq-sz"] == 28.0
    assert sda.mean["await"] == pytest.approx((120 * 16 + 360 * 24) / 480), "weighted by requests"
    assert sda.mean["svctm"] == pytest.approx((120 * 8 + 360 * 2) / 480)
    assert sda.mean["aqu-sz"] == 4.0
    assert "since-boot" in [verdict.check for verdict in only("iostat-2006.txt").verdicts]
    assert only("iostat-2006.txt").machine[1].values["%iowait"] == 60.0


def test_iostat_with_decimal_commas() -> None:
    vdb = device(only("iostat-comma.txt"), "vdb")
    assert (vdb.mean["r/s"], vdb.mean["w_await"], vdb.mean["%util"]) == (7.56, 384.36, 4.35)
    assert vdb.mean["rMB/s"] == pytest.approx(585.49 / 1024)


def test_todays_iostat_in_kb_and_in_mb() -> None:
    lines = [line.split() for line in (SAMPLES / "iostat-x.txt").read_text().splitlines()]
    rows = [line for line in lines if line and line[0] == "vda"]
    vda = device(only("iostat-x.txt"), "vda")
    assert [moment.values["r/s"] for moment in vda.moments] == [float(row[1]) for row in rows]
    assert [moment.values["rMB/s"] for moment in vda.moments] == [float(row[2]) / 1024 for row in rows]
    in_mb = device(only("iostat-xmt.txt"), "vda")
    assert (in_mb.mean["r/s"], in_mb.mean["rMB/s"], in_mb.mean["%util"]) == (6452.0, 390.84, 60.4)
    assert in_mb.moments[1].at == "11/21/26 12:56:51"


def test_plain_iostat_has_rates_and_no_totals() -> None:
    found = device(only("iostat-d.txt"), "vda").mean
    assert set(found) == {"tps", "rMB/s", "wMB/s", "dMB/s"}


def test_json_of_iostat() -> None:
    parts = json.loads((SAMPLES / "iostat.json").read_text())["sysstat"]["hosts"][0]["statistics"]
    [raw] = [disk for disk in parts[1]["disk"] if disk["disk_device"] == "vda"]
    found = device(only("iostat.json"), "vda").mean
    assert (found["r/s"], found["w_await"], found["%util"]) == (raw["r/s"], raw["w_await"], raw["util"])
    assert found["wMB/s"] == raw["wkB/s"] / 1024
    assert only("iostat.json").host == "vm"


def test_json_of_sar() -> None:
    parts = json.loads((SAMPLES / "sadf.json").read_text())["sysstat"]["hosts"][0]["statistics"]
    raw = [disk for part in parts for disk in part["disk"] if disk["disk-device"] == "vda"]
    found = device(only("sadf.json"), "vda")
    assert [moment.values["tps"] for moment in found.moments] == [disk["tps"] for disk in raw]
    assert found.mean["rMB/s"] == pytest.approx(sum(disk["rkB"] for disk in raw) / len(raw) / 1024)
    weights = sum(disk["tps"] for disk in raw)
    assert found.mean["await"] == pytest.approx(sum(disk["tps"] * disk["await"] for disk in raw) / weights)
    assert found.moments[0].seconds == 1.0
    assert found.moments[0].at == "2026-11-21T12:56:57Z"


def test_runs_of_vdbench_are_their_averages() -> None:
    record = only("vdbench-flatfile.html")
    read = stream(record, "rd1").operations["read"]
    assert (read.iops, read.bytes_per_s) == (10124.0, pytest.approx(39.55 * MIB))
    assert read.latency is not None
    assert (read.latency.mean_ns, read.latency.max_ns) == (pytest.approx(0.789 * MS), 10 * MS)
    assert [moment.values["read.iops"] for moment in stream(record, "rd1").series] == [9876.0, 10124.0]
    mixed = stream(record, "rd2").operations["mixed"]
    assert (mixed.iops, mixed.bytes_per_s) == (1002.0, pytest.approx(7.83 * MIB))
    assert stream(record, "rd2").settings["rdpct"] == "70.0"


def test_reads_and_writes_of_vdbench_are_separate_if_they_are_in_the_file() -> None:
    heading = "tod Run Interval reqrate rate MB/sec read% resp read_resp write_resp MB_read MB_write"
    row = "16:28:56.060 rd1 avg_2-3 max 1000.0 8.0 75.0 1.5 1.0 3.0 6.0 2.0"
    [record] = formats.read_bytes(f"{heading}\n{row}\n".encode(), "flatfile.html")
    found = values(record)
    assert (found["iops"], found["read.iops"], found["write.iops"]) == (1000.0, 750.0, 250.0)
    assert (found["bytes_per_s"], found["write.bytes_per_s"]) == (8 * MIB, 2 * MIB)
    assert found["write.mean_ns"] == 3 * MS


def test_the_reads_of_a_mix_of_elbencho_come_from_separate_columns() -> None:
    heading = "operation,threads,IOPS [last],MiB/s [last],rwmix read IOPS [last],rwmix read MiB/s [last]"
    [record] = formats.read_bytes(f"{heading}\nRWMIX30,4,700,70,300,30\n".encode(), "mix.csv")
    found = values(record)
    assert (found["write.iops"], found["read.iops"], found["iops"]) == (700.0, 300.0, 1000.0)
    assert found["read.bytes_per_s"] == 30 * MIB


def test_phases_of_elbencho_are_those_of_the_last_thread() -> None:
    first, second = imported("elbencho.csv")
    write = stream(first, "write-1MiB-8t-4d").operations["write"]
    assert (write.iops, write.bytes_per_s, write.bytes) == (2941.0, 2941 * MIB, 8192 * MIB)
    assert write.latency is not None
    assert (write.latency.min_ns, write.latency.mean_ns, write.latency.max_ns) == (1_661_000, 9.383e6, 120_903_000)
    assert stream(first, "mkdirs-8t").operations["create"].iops == 1466.0
    assert [each.name for each in second.streams] == ["read-1MiB-8t-4d"], "the same phase again is another repetition"
    assert (first.workload, first.source.version) == ("night", "3.0-14")


def test_ioping_has_the_same_figures_as_text_raw_and_json() -> None:
    text = only("ioping.txt").streams[0].operations["read"]
    assert (text.requests, text.bytes, text.iops) == (4, 16 * KIB, 11_600.0)
    assert text.latency is not None
    assert (text.latency.min_ns, text.latency.mean_ns) == (46_500, 86_300.0)
    old = only("ioping-0.9.txt").streams[0].operations["request"]
    assert (old.iops, old.bytes_per_s, old.bytes) == (1200.0, pytest.approx(4.8 * MIB), None)
    raw = (SAMPLES / "ioping-B.txt").read_text().split()
    found = only("ioping-B.txt").streams[0].operations["request"]
    assert (found.requests, found.iops, found.bytes_per_s) == (int(raw[0]), int(raw[2]), int(raw[3]))
    stat = json.loads((SAMPLES / "ioping.json").read_text())[-1]["stat"]
    found = only("ioping.json").streams[0].operations["read"]
    assert (found.iops, found.bytes_per_s) == (stat["iops"], stat["bps"])
    assert found.latency is not None
    assert found.latency.max_ns == stat["max"]
