"""`spindle run --verify` on files: its output, its files and its errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spindle.report.terminal.page import page
from spindle.report.terminal.style import Style
from spindle.result.document import decode
from spindle.result.figures import BlockCheck, Fault, FaultPlace, ReadBack, Verification
from spindle.result.record import Level, PhasesRecord, RunRecord, Verdict
from spindle.result.rules import judge
from tests.documents import present

Invoke = Callable[..., Any]
MIXED = ("run", "randomio", "t.bin", "--create", "4MiB", "--verify", "--requests", "4000", "--write-fraction", "50%")


def run_of(text: str) -> RunRecord:
    found = decode(text.encode(), "stdout")
    assert isinstance(found, RunRecord)
    return found


def verdict_of(record: RunRecord) -> Verdict | None:
    return next((verdict for verdict in judge(record) if verdict.check == "verify"), None)


def seen_of(record: RunRecord) -> Verification:
    assert record.figures.verification is not None
    return record.figures.verification


def test_clean_data_is_checked_in_the_load_and_read_back_and_no_block_is_wrong(invoke: Invoke) -> None:
    done = invoke(*MIXED, "--json")
    assert done.status == 0, done.err
    seen = seen_of(run_of(done.out))
    assert (seen.block_bytes, seen.wrong) == (4096, 0)
    assert seen.during_load.blocks > 100
    assert seen.read_back is not None
    assert seen.read_back.complete
    assert 500 < seen.read_back.expected == seen.read_back.found.blocks <= 1024


def test_without_verify_nothing_is_said_of_it(invoke: Invoke) -> None:
    record = run_of(invoke("run", "randomio", "null:1GiB", "--requests", "1000", "--json").out)
    assert record.figures.verification is None
    assert verdict_of(record) is None


def test_buffered_data_is_read_back_after_the_page_cache_was_dropped(invoke: Invoke) -> None:
    seen = seen_of(run_of(invoke(*MIXED, "--buffered", "--json").out))
    assert seen.read_back is not None
    assert not seen.read_back.direct
    assert (seen.wrong, seen.read_back.complete) == (0, True)


def test_a_later_phase_checks_what_an_earlier_one_wrote_and_all_is_read_back_once(invoke: Invoke, here: Path) -> None:
    (here / "two.toml").write_text(
        """
        verify = true
        [[phase]]
        name = "fill"
        pattern = "sequential"
        size = "64KiB"
        bytes = "4MiB"
        write_fraction = 1
        [[phase]]
        name = "reread"
        requests = 2000
        """
    )
    done = invoke("run", "two.toml", "t.bin", "--create", "4MiB", "--json")
    assert done.status == 0, done
    record = decode(done.out.encode(), "stdout")
    assert isinstance(record, PhasesRecord)
    fill, reread = (seen_of(record.runs[index]) for index in (0, 1))
    assert (fill.block_bytes, fill.read_back, fill.read_back_later) == (65536, None, True)
    assert reread.run == fill.run
    assert (reread.block_bytes, reread.during_load.blocks, reread.wrong) == (4096, 2000, 0)
    assert reread.read_back is not None
    assert reread.read_back.expected == 1024
    assert [present(verdict_of(run)).level for run in record.runs] == [Level.OK, Level.OK]
    text = "\n".join(page(record, Style(width=120, colour=False)))
    assert "verified: 7.81 MiB read in the load; 4 MiB that were written, read back past the page cache" in text


def test_a_state_is_read_back_on_another_day_and_planted_faults_are_found(invoke: Invoke, here: Path) -> None:
    done = invoke(*MIXED, "--keep", "--verify-state", "state", "--json")
    assert done.status == 0, done.err
    expected = seen_of(run_of(done.out)).read_back.expected  # type: ignore[union-attr]
    sound = invoke("verify", "--state", "state", "--json")
    assert (sound.status, sound.json["read_back"]["expected"]) == (0, expected)
    assert sound.json["target"] == str(here / "t.bin")
    with (here / "t.bin").open("r+b") as file:
        for block in range(1024):
            file.seek(block * 4096 + 5)
            file.write(b"x")
    (here / "t.bin").rename(here / "moved.bin")
    wrong = invoke("verify", "--state", "state", "moved.bin", "--json")
    assert wrong.status == 1
    (fault,) = wrong.json["read_back"]["found"]["faults"]
    # One byte in 256 had that value already.
    assert fault["kind"] == "corrupt"
    assert expected * 0.95 < fault["blocks"] <= expected
    shown = invoke("verify", "--state", "state", "moved.bin")
    assert shown.status == 1
    assert f"wrong blocks: {fault['blocks']}" in shown.out


def test_the_files_of_a_set_are_verified_and_found_again_in_their_folder(invoke: Invoke, here: Path) -> None:
    (here / "set.toml").write_text(
        """
        verify = true
        write_fraction = "60%"
        requests = 3000
        [[files]]
        nrfiles = 3
        filesize = "1MiB"
        """
    )
    done = invoke("run", "set.toml", ".", "--keep", "--verify-state", "state", "--json")
    assert done.status == 0, done
    expected = seen_of(run_of(done.out)).read_back.expected  # type: ignore[union-attr]
    assert 300 < expected <= 768
    (kept,) = here.glob("spindle-test-*")
    moved = kept.rename(here / "moved")
    assert invoke("verify", "--state", "state").status == 2
    sound = invoke("verify", "--state", "state", "moved", "--json")
    assert (sound.status, sound.json["read_back"]["expected"]) == (0, expected)
    first, *_, last = sorted(path for path in moved.rglob("*") if path.is_file())
    one, other = first.read_bytes(), last.read_bytes()
    first.write_bytes(other)
    last.write_bytes(one)
    swapped = invoke("verify", "--state", "state", "moved", "--json")
    assert swapped.status == 1
    kinds = {fault["kind"] for fault in swapped.json["read_back"]["found"]["faults"]}
    assert "misplaced" in kinds
    assert kinds <= {"misplaced", "never-written"}


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("run", "randomio", "null:1GiB", "--verify"), 2, "--verify: the null target stores nothing"),
        (("run", "randomio", "six-sata-raid10.toml", "--verify"), 2, "--verify"),
        (("run", "randomio", "t.bin", "--create", "1MiB", "--verify-state", "s"), 2, "use it with --verify"),
        (("run", "randomio", "t.bin", "--create", "1MiB", "--verify", "--verify-state", "s"), 2, "--keep"),
        (
            ("run", "randomio", "t.bin", "--create", "1MiB", "--verify", "--buffered", "--size", "1000"),
            2,
            "multiples of 512 bytes",
        ),
        (("verify", "--state", "missing"), 2, "--state missing: No such file"),
        (("verify", "--state", "."), 2, "--state .: Is a directory"),
    ],
)
def test_nonsense_is_an_error_of_one_line(
    invoke: Invoke, here: Path, arguments: tuple[str, ...], status: int, words: str
) -> None:
    if "six-sata-raid10.toml" in arguments:
        from spindle import _core

        (here / "six-sata-raid10.toml").write_text(_core.machine_text(_core.machine_names()[0]))
    done = invoke(*arguments)
    assert done.status == status, done
    assert words in done.complaint


def test_a_damaged_state_is_refused(invoke: Invoke, here: Path) -> None:
    assert invoke(*MIXED, "--keep", "--verify-state", "state").status == 0
    whole = (here / "state").read_bytes()
    for damaged in (b"", b"{}", whole[:-1], whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:]):
        (here / "state").write_bytes(damaged)
        done = invoke("verify", "--state", "state")
        assert done.status == 2, done
        assert "give a file that --verify-state saved" in done.complaint


def test_files_of_others_are_written_no_more_than_without_verify(invoke: Invoke, here: Path) -> None:
    (here / "own.bin").write_bytes(bytes(1 << 20))
    done = invoke("run", "randomio", "own.bin", "--verify", "--requests", "10", "--write-fraction", "50%")
    assert done.status == 3
    assert (here / "own.bin").read_bytes() == bytes(1 << 20)


def found(**kinds: int) -> BlockCheck:
    faults = [
        Fault(
            kind=kind.replace("_", "-"),
            blocks=blocks,
            first=[FaultPlace(file=0, offset=8192, description=f"{kind}: 1 sector from sector 0 on")],
        )
        for kind, blocks in kinds.items()
    ]
    return BlockCheck(blocks=1000, unknown=0, raced=0, faults=faults)


def with_findings(record: RunRecord, during: BlockCheck, back: ReadBack | None) -> RunRecord:
    from msgspec.structs import replace

    seen = Verification(block_bytes=4096, run="0" * 16, delayed_writes=0, during_load=during, read_back=back)
    record = replace(record, figures=replace(record.figures, verification=seen))
    return replace(record, verdicts=judge(record))


def back_of(checked: BlockCheck, complete: bool = True) -> ReadBack:
    return ReadBack(expected=1000, complete=complete, direct=True, elapsed_ns=1, found=checked)


@pytest.fixture
def record(invoke: Invoke) -> RunRecord:
    return run_of(invoke("run", "randomio", "t.bin", "--create", "1MiB", "--requests", "100", "--json").out)


def test_one_wrong_block_makes_a_run_invalid_and_the_page_shows_where(record: RunRecord) -> None:
    wrong = with_findings(record, found(torn=1), back_of(found(stale=2, never_written=1)))
    verdict = verdict_of(wrong)
    assert verdict is not None
    assert verdict.level is Level.INVALID
    assert "1 torn (at byte 8192)" in verdict.evidence
    assert "2 stale (the first at byte 8192)" in verdict.evidence
    assert (verdict.numbers["wrong"], verdict.numbers["never-written"]) == (4.0, 1.0)
    text = "\n".join(page(wrong, Style(width=100, colour=False)))
    assert "wrong blocks read in the load: 1 of 1 000" in text
    assert "byte 8192: 1 sector from sector 0 on" in text


def test_a_read_back_that_was_stopped_or_found_nothing_to_read_is_a_warning(record: RunRecord) -> None:
    stopped = verdict_of(with_findings(record, found(), back_of(found(), complete=False)))
    assert stopped is not None
    assert stopped.level is Level.WARN
    nothing = BlockCheck(blocks=0, unknown=500, raced=0, faults=[])
    unread = verdict_of(with_findings(record, nothing, None))
    assert unread is not None
    assert unread.level is Level.WARN
    sound = verdict_of(with_findings(record, found(), back_of(found())))
    assert sound is not None
    assert sound.level is Level.OK


def test_the_page_counts_correct_blocks_unless_some_are_wrong(record: RunRecord) -> None:
    def text_of(during: BlockCheck, back: ReadBack | None) -> str:
        return "\n".join(page(with_findings(record, during, back), Style(width=120, colour=False)))

    begin = "verified: 3.91 MiB read in the load; 3.91 MiB that were written, read back past the page cache: "
    assert f"{begin}no block is wrong" in text_of(found(), back_of(found()))
    assert "no block is wrong" not in text_of(found(), back_of(found(), complete=False))
    assert "no block is wrong" not in text_of(found(), back_of(found(torn=1)))
    assert "verified: 3.91 MiB read in the load: no block is wrong" in text_of(found(), None)
    assert "no block is wrong" not in text_of(BlockCheck(blocks=0, unknown=5, raced=0, faults=[]), None)
