"""Files of real users: other line ends, logs around, truncated, damaged. Each is read or refused in one line."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from spindle import formats
from spindle.result.document import Unreadable, encode

SAMPLES = sorted((Path(__file__).parent / "samples").iterdir())


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
@pytest.mark.parametrize("made", ["crlf", "bom", "utf-16", "blank lines"])
def test_line_ends_and_encodings_of_other_systems_change_no_figure(sample: Path, made: str) -> None:
    text = sample.read_text()
    data = {
        "crlf": text.replace("\n", "\r\n").encode(),
        "bom": b"\xef\xbb\xbf" + text.encode(),
        "utf-16": text.encode("utf-16"),
        "blank lines": b"\n\n" + text.encode() + b"\n\n",
    }[made]
    plain = formats.read(sample)
    found = formats.read_bytes(data, sample.name)
    assert [each.streams for each in found] == [each.streams for each in plain]  # type: ignore[union-attr]
    assert [each.devices for each in found] == [each.devices for each in plain]  # type: ignore[union-attr]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_a_file_that_is_cut_off_is_read_or_refused(sample: Path) -> None:
    data = sample.read_bytes()
    for part in range(1, 20):
        read_or_refused(data[: len(data) * part // 20], sample.name)


def read_or_refused(data: bytes, name: str) -> bool:
    try:
        found = formats.read_bytes(data, name)
    except Unreadable as error:
        text = str(error)
        assert "\n" not in text
        assert text.startswith(name)
        assert len(text) < 400
        return False
    assert found
    for record in found:
        encode(record)
    return True


def test_a_thousand_mutated_files_are_read_or_refused_in_one_line() -> None:
    chance = random.Random(20_260_101)
    originals = [(path.name, path.read_bytes()) for path in SAMPLES]
    outcomes = [read_or_refused(mutated(data, chance, originals), name) for name, data in originals * 25][:1200]
    assert len(outcomes) >= 1000
    assert any(outcomes)
    assert not all(outcomes)


NASTY = [
    b"-1", b"1e999", b"nan", b"inf", b"99999999999999999999999", b"null", b"[]", b"{}", b'""', b"\x00", b"\xff\xfe",
    b"\x1b[2J", b"\\ud800", b"\n", b"\r", b",", b";", b"|", b"+++++", b"0", b"9" * 5000, b"true", b"[" * 3000,
]  # fmt: skip


def mutated(data: bytes, chance: random.Random, others: list[tuple[str, bytes]]) -> bytes:
    """A text with one to four changes: bytes, words, lines, cuts, a piece of another file."""
    made = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(made)) if made else 0
        end = min(len(made), at + chance.choice([1, 1, 4, 40, 400]))
        match chance.randrange(7):
            case 0:
                made[at:end] = bytes(chance.randrange(256) for _ in range(chance.randint(0, 8)))
            case 1:
                del made[at:end]
            case 2:
                made[at:at] = chance.choice(NASTY)
            case 3:  # a number becomes something else
                while at < len(made) and not 48 <= made[at] <= 57:
                    at += 1
                end = at
                while end < len(made) and (48 <= made[end] <= 57 or made[end] in b".,"):
                    end += 1
                made[at:end] = chance.choice(NASTY)
            case 4:
                lines = bytes(made).split(b"\n")
                chance.shuffle(lines)
                made = bytearray(b"\n".join(lines))
            case 5:
                other = chance.choice(others)[1]
                made[at:at] = other[: chance.randrange(len(other))]
            case 6:
                del made[at:]
    return bytes(made)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "unknown format; tried spindle, fio-json"),
        (b"hello\n", "unknown format"),
        (b"\x7fELF\x00\x01", "binary"),
        (b"Device tps\n" + b"sda 1\n" * 500_001, "more than 500000 lines"),
        (b"1" * (32 << 20) + b"1", "longer than 32 MiB"),
        (b"{}", "not a result"),
        (b'{"fio version": "fio-3.33"}', "without jobs"),
        (b'{"fio version": "fio-3.33", "jobs": [1]}', "not a list of jobs"),
        (b'{"fio version": "fio-3.33",\n "jobs": [{"a', "f:2: the JSON ends in the middle"),
        (b'{"fio version": "fio-3.33",\n "jobs": [}', "f:2: not JSON"),
        (b'{"fio version": ' + b"[" * 100_000, "nested too deep"),
        (b"3;fio-3.33;a;0;0;1;2;3;4\n", "9 fields where terse version 3 has at least 92"),
        (b"2;a;0;0;1;2;3;4\n", "version 2 is not read"),
        (b"Device tps kB/s\nsda 1.0\n", "f:2: 1 values under 2 columns"),
        (b"Device tps kB/s\nsda 1.0 x\n", "'x' is not a number"),
        (b"1.96,1.96,h,1,5,1G,,1,2,3\n", "unknown format"),
        (b'{"sysstat": {"hosts": [{"statistics": [{"disk": [{"disk_device": 1}', "cut off"),
        (b'{"sysstat": {"hosts": 1, "x": "disk-device"}}', "no `sysstat`, `hosts`, `statistics`"),
    ],
)
def test_an_unreadable_file_gives_one_line_with_the_position(data: bytes, says: str) -> None:
    with pytest.raises(Unreadable) as error:
        formats.read_bytes(data, "f")
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_fits_two_formats_needs_the_format() -> None:
    data = b"".join((SAMPLES[0].parent / name).read_bytes() for name in ("iostat-2006.txt", "randomio.txt"))
    with pytest.raises(Unreadable, match="looks like randomio or iostat; say which with `from=`"):
        formats.read_bytes(data, "f")
    assert formats.read_bytes(data[data.index(b"# randomio") :], "f", "randomio")


def test_progress_lines_of_dd_are_not_a_result() -> None:
    ended = (SAMPLES[0].parent / "dd-busybox.txt").read_bytes()
    progress = b"1048576 bytes (1.0 MB, 1.0 MiB) copied, 1 s, 1.0 MB/s\r2097152 bytes (2.1 MB) copied, 2 s, 1.0 MB/s\n"
    [found] = formats.read_bytes(progress + ended, "f")
    assert found.streams[0].operations["copy"].bytes == 67108864  # type: ignore[union-attr]


def test_fio_is_found_after_a_long_log() -> None:
    sample = (SAMPLES[0].parent / "fio-2.json").read_bytes()
    assert formats.read_bytes(b"Jobs: 1 (f=1): [r(1)][50.0%][r=1MiB/s]\r" * 5000 + sample, "f")


def test_an_unknown_format_is_reported_with_the_known_ones() -> None:
    with pytest.raises(Unreadable, match="no format `xls`; the formats are spindle, fio-json"):
        formats.read_bytes(b"", "f", "xls")


def test_the_same_file_has_the_same_identity_and_its_results_different_ones() -> None:
    sample = SAMPLES[0].parent / "bonnie-1.98.csv"
    ids = [record.id for record in formats.read(sample)]
    assert ids == [record.id for record in formats.read_bytes(sample.read_bytes(), "elsewhere.csv")]
    assert len(set(ids)) == 3


def test_impossible_numbers_are_unknown() -> None:
    job = {
        "jobname": "a",
        "read": {"total_ios": 1, "io_bytes": 10**30, "iops": -5, "bw": "x", "lat_ns": {"N": 1, "max": -1}},
    }
    [record] = formats.read_bytes(json.dumps({"fio version": "fio-3.0", "jobs": [job]}).encode(), "f")
    op = record.streams[0].operations["read"]  # type: ignore[union-attr]
    assert (op.requests, op.bytes, op.iops, op.bytes_per_s, op.latency) == (1, None, None, None, None)
