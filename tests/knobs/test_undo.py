"""Changes and their undoing on a kernel made of files: every order of changes, a death at every step."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spindle.knobs import asking, journal, locks
from spindle.knobs.errors import KnobRefusal, KnobUsage
from spindle.knobs.places import named
from spindle.knobs.restore import pending, restore
from spindle.knobs.session import ChangeResult, Outcome, Session
from spindle.knobs.undo import State
from tests.knobs.kernel_of_files import FakeKernel, Killed

WORDS = (
    "scheduler=none",
    "scheduler=mq-deadline",
    "scheduler=bfq",
    "scheduler=kyber",
    "nr_requests=64",
    "nr_requests=1",
    "nr_requests=200",
    "read_ahead_kb=4096",
    "read_ahead_kb=5",
    "max_sectors_kb=64",
    "write_cache=write through",
    "read_ahead_kb=64",
    "rotational=0",
    "iostats=0",
    "wbt_lat_usec=500",
    "iosched/read_expire=100",
    "iosched/async_depth=32",
    "iosched/slice_idle_us=8500",
    "iosched/slice_idle=3",
    "iosched/low_latency=0",
    "vm.dirty_ratio=5",
    "vm.dirty_bytes=100000000",
    "vm.dirty_background_ratio=0",
    "vm.dirty_background_bytes=50000000",
    "vm.swappiness=10",
)


def change(kernel: FakeKernel, *words: str, kind: str = "set", keep: bool = True) -> list[ChangeResult]:
    device = named("sdx", kernel.machine)
    with Session(kind, kernel.machine, kernel) as session:
        done = session.change(asking.settings(device, words, kernel.machine))
        if keep:
            session.keep()
        return done


def put_back(kernel: FakeKernel) -> dict[str, State]:
    return {item.knob: item.state for item in restore(kernel.machine, kernel).items}


def journals() -> list[Path]:
    return list(journal.paths())


# --- what a session does ---------------------------------------------------------------------------------------------


def test_everything_is_back_after_a_session_in_whatever_order_knobs_were_given(kernel: FakeKernel) -> None:
    before = kernel.state()
    words = ["read_ahead_kb=4096", "iosched/read_expire=100", "nr_requests=64", "scheduler=mq-deadline"]
    for seed in range(6):
        random.Random(seed).shuffle(words)
        change(kernel, *words, keep=False)
        assert kernel.state() == before
    assert not journals()


def test_the_scheduler_goes_first_and_then_nr_requests_both_ways(kernel: FakeKernel) -> None:
    device = named("sdx", kernel.machine)
    kernel.other_program_writes(kernel.queue("nr_requests"), "100")
    with Session("with", kernel.machine, kernel) as session:
        words = ("read_ahead_kb=4096", "nr_requests=64", "scheduler=mq-deadline")
        session.change(asking.settings(device, words, kernel.machine))
        assert [name for name, _ in kernel.writes] == ["scheduler", "nr_requests", "read_ahead_kb"]
        assert kernel.queue("nr_requests").read_text() == "64\n"
        kernel.writes.clear()
    assert kernel.writes[0] == ("scheduler", "none")
    assert kernel.queue("nr_requests").read_text() == "100\n"


def test_what_the_scheduler_resets_is_journalled_and_comes_back(kernel: FakeKernel) -> None:
    change(kernel, "scheduler=mq-deadline", keep=True)
    kernel.other_program_writes(kernel.queue("nr_requests"), "100")
    kernel.other_program_writes(kernel.queue("iosched/read_expire"), "77")
    shutil.rmtree(locks.folder())  # from here on that is the start
    before = kernel.state()
    change(kernel, "scheduler=bfq", "nr_requests=30", "iosched/slice_idle_us=8500", keep=False)
    assert kernel.state() == before


def test_a_pair_with_one_zero_is_restored_through_the_other(kernel: FakeKernel) -> None:
    before = kernel.state()
    change(kernel, "vm.dirty_bytes=100000000", keep=False)
    assert kernel.state() == before
    kernel.other_program_writes(kernel.vm("dirty_bytes"), "300000000")
    before = kernel.state()
    change(kernel, "vm.dirty_ratio=5", keep=False)
    assert kernel.state() == before


def test_a_pair_with_two_zeros_is_restored(kernel: FakeKernel) -> None:
    kernel.other_program_writes(kernel.vm("dirty_background_ratio"), "0")
    before = kernel.state()
    change(kernel, "vm.dirty_background_bytes=100000000", keep=False)
    assert kernel.state() == before


def test_a_kernel_that_clamps_is_reported_and_the_start_still_comes_back(kernel: FakeKernel) -> None:
    before = kernel.state()
    done = change(kernel, "read_ahead_kb=5", "nr_requests=1", keep=False)
    assert {(one.knob, one.after, one.outcome) for one in done} == {
        ("sdx.read_ahead_kb", "4", Outcome.CLAMPED),
        ("sdx.nr_requests", "4", Outcome.CLAMPED),
    }
    assert kernel.state() == before


@pytest.mark.parametrize(("word", "says"), [("nr_requests=300", "invalid argument"), ("io_poll=1", "ignored it")])
def test_a_kernel_that_refuses_or_ignores_leaves_nothing_changed(kernel: FakeKernel, word: str, says: str) -> None:
    before = kernel.state()
    with pytest.raises(KnobRefusal, match=says):
        change(kernel, "scheduler=bfq", "vm.swappiness=10", "max_sectors_kb=64", word)
    assert kernel.state() == before
    assert not journals()


def test_a_value_that_is_there_already_is_not_written(kernel: FakeKernel) -> None:
    assert change(kernel, "nr_requests=128")[0].outcome is Outcome.UNCHANGED
    assert not kernel.writes
    assert not journals()


def test_a_file_that_can_only_be_read_is_refused(kernel: FakeKernel) -> None:
    kernel.queue("nr_requests").chmod(0o444)
    with pytest.raises(KnobRefusal, match="cannot be written to"):
        change(kernel, "read_ahead_kb=64", "nr_requests=64")
    assert not kernel.writes


def test_an_unreadable_file_is_refused_as_it_could_not_be_undone(kernel: FakeKernel) -> None:
    kernel.queue("wbt_lat_usec").write_text("")
    with pytest.raises(KnobRefusal, match=r"could not be (undone|restored)"):
        change(kernel, "wbt_lat_usec=100")


def test_more_reserve_than_a_tenth_of_the_memory_is_refused(kernel: FakeKernel) -> None:
    with pytest.raises(KnobRefusal, match="tenth of the memory"):
        change(kernel, "vm.min_free_kbytes=9000000")


def test_two_values_for_one_thing_are_refused(kernel: FakeKernel) -> None:
    for words in (("nr_requests=5", "nr_requests=6"), ("vm.dirty_ratio=5", "vm.dirty_bytes=100000")):
        with pytest.raises(KnobUsage, match="exclude each other"):
            change(kernel, *words)


def test_without_a_journal_nothing_is_changed(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    locks.made_folder()
    monkeypatch.setattr("os.fsync", lambda _fd: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(KnobRefusal, match="no space left on device"):
        change(kernel, "nr_requests=64")
    assert not kernel.writes


def test_the_journal_is_on_the_disk_before_the_change(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    order: list[str] = []
    real = os.fsync

    def sync(fd: int) -> None:
        real(fd)
        order.append(f"sync {Path(os.readlink(f'/proc/self/fd/{fd}')).name}")

    monkeypatch.setattr(os, "fsync", sync)

    def write(path: Path, text: str) -> None:
        order.append(f"write {path.name}")
        FakeKernel.write(kernel, path, text)

    monkeypatch.setattr(kernel, "write", write)
    change(kernel, "nr_requests=64", "vm.swappiness=10")
    number = journals()[0].name
    assert order[-4:] == [f"sync {number}", "write nr_requests", f"sync {number}", "write swappiness"]
    assert "sync knobs" in order[:-4]  # the folder, too, before the first change


# --- restore ---------------------------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_restore_brings_back_the_start_after_any_change_and_any_death(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, data: st.DataObject
) -> None:
    root = tmp_path_factory.mktemp("kernel")
    monkeypatch.setenv("XDG_STATE_HOME", str(root / "state"))
    kernel = FakeKernel(root)
    for word in data.draw(st.lists(st.sampled_from(WORDS), max_size=3), label="start"):
        start(kernel, word)
    before = kernel.state()
    for words in data.draw(st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), max_size=4)):
        kernel.fuse = data.draw(st.none() | st.integers(0, 130), label="fuse")
        attempt(kernel, words, keep=data.draw(st.booleans(), label="keep"))
    kernel.fuse = data.draw(st.none() | st.integers(0, 60), label="fuse of a restore")
    if kernel.fuse is not None:
        die(lambda: restore(kernel.machine, kernel))
    kernel.fuse = None
    report = restore(kernel.machine, kernel)
    assert report.complete, [str(item) for item in report.items]
    assert kernel.state() == before
    assert not journals()
    shutil.rmtree(root)


def start(kernel: FakeKernel, word: str) -> None:
    """Somebody sets something before Spindle comes."""
    name, _, value = word.partition("=")
    path = kernel.vm(name.removeprefix("vm.")) if name.startswith("vm.") else kernel.queue(name)
    if path.exists():
        kernel.other_program_writes(path, value)


def attempt(kernel: FakeKernel, words: list[str], keep: bool) -> None:
    device = named("sdx", kernel.machine)
    session = Session("set" if keep else "with", kernel.machine, kernel)
    opened = []

    def go() -> None:
        try:
            session.change(asking.settings(device, words, kernel.machine))
            if keep:
                session.keep()
        except (KnobRefusal, KnobUsage):
            keep_ = False
        else:
            keep_ = keep
        opened.append(session._journal)
        session.close(undo=not keep_)

    die(go)
    # Locks of a dead process are free.
    session._locks.release()
    for one in (*opened, session._journal):
        if one is not None:
            one.keep()


def die(go: Callable[[], object]) -> None:
    with suppress(Killed):
        go()


def test_restore_undoes_several_sessions_back_to_the_first_start(kernel: FakeKernel) -> None:
    before = kernel.state()
    change(kernel, "scheduler=mq-deadline", "nr_requests=64", "vm.dirty_bytes=100000000")
    change(kernel, "scheduler=bfq", "iosched/low_latency=0", "vm.dirty_ratio=3")
    change(kernel, "nr_requests=20", "vm.swappiness=1")
    states = put_back(kernel)
    assert set(states.values()) <= {State.RESTORED, State.BACK}
    assert kernel.state() == before
    assert not journals()
    assert put_back(kernel) == {}


def test_changes_of_somebody_else_are_reported_and_left_alone(kernel: FakeKernel) -> None:
    before = kernel.state()
    change(kernel, "scheduler=mq-deadline", "read_ahead_kb=4096", "vm.swappiness=10")
    kernel.other_program_writes(kernel.vm("swappiness"), "33")
    report = restore(kernel.machine, kernel)
    conflict = report.having(State.CONFLICT)
    assert [(item.knob, item.start, item.left_at, item.now) for item in conflict] == [
        ("vm.swappiness", "60", "10", "33")
    ]
    assert not report.complete
    assert kernel.vm("swappiness").read_text() == "33\n"
    assert {**kernel.state(), str(kernel.vm("swappiness")): "60\n"} == before


def test_a_value_of_somebody_else_survives_even_the_scheduler_that_would_reset_it(kernel: FakeKernel) -> None:
    change(kernel, "scheduler=mq-deadline", "nr_requests=64")
    kernel.other_program_writes(kernel.queue("nr_requests"), "99")
    assert put_back(kernel)["sdx.nr_requests"] is State.CONFLICT
    assert kernel.queue("nr_requests").read_text() == "99\n"
    assert "[none]" in kernel.queue("scheduler").read_text()


def test_a_scheduler_of_somebody_else_is_left_alone_with_all_that_belongs_to_it(kernel: FakeKernel) -> None:
    change(kernel, "scheduler=mq-deadline", "iosched/read_expire=100", "read_ahead_kb=64")
    kernel.other_program_writes(kernel.queue("scheduler"), "bfq")
    states = put_back(kernel)
    assert states["sdx.scheduler"] is State.CONFLICT
    assert states["sdx.read_ahead_kb"] is State.RESTORED
    assert "[bfq]" in kernel.queue("scheduler").read_text()
    assert kernel.queue("nr_requests").read_text() == "256\n"


def test_a_value_that_somebody_set_between_two_changes_is_what_comes_back(kernel: FakeKernel) -> None:
    change(kernel, "vm.swappiness=10")
    kernel.other_program_writes(kernel.vm("swappiness"), "33")
    change(kernel, "vm.swappiness=20")
    report = restore(kernel.machine, kernel)
    assert [(item.state, item.start, item.now) for item in report.items] == [(State.CONFLICT, "60", "33")]
    assert kernel.vm("swappiness").read_text() == "33\n"


def test_a_value_that_somebody_put_back_already_is_no_conflict(kernel: FakeKernel) -> None:
    change(kernel, "read_ahead_kb=4096")
    change(kernel, "read_ahead_kb=64")
    kernel.other_program_writes(kernel.queue("read_ahead_kb"), "128")
    assert put_back(kernel) == {"sdx.read_ahead_kb": State.BACK}


def test_after_a_reboot_it_reports_the_values_that_the_reboot_reset(
    kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(kernel, "scheduler=mq-deadline", "vm.swappiness=10", "vm.dirty_ratio=5", "read_ahead_kb=4096")
    monkeypatch.setattr("spindle.knobs.restore.boot_id", lambda: "another boot")
    kernel.other_program_writes(kernel.queue("scheduler"), "none")
    kernel.other_program_writes(kernel.vm("swappiness"), "60")
    kernel.other_program_writes(kernel.vm("dirty_ratio"), "40")
    kernel.identify("sdx", diskseq="1", serial="S1")  # numbered anew
    states = put_back(kernel)
    assert states["sdx.scheduler"] is State.REBOOT
    assert states["vm.swappiness"] is State.REBOOT
    assert states["vm.dirty_ratio"] is State.CONFLICT
    assert states["sdx.read_ahead_kb"] is State.RESTORED  # a drive or driver that kept it
    assert kernel.vm("dirty_ratio").read_text() == "40\n"
    assert kernel.queue("read_ahead_kb").read_text() == "128\n"


def test_persisted_values_are_not_leftovers_after_a_reboot(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    change(kernel, "vm.swappiness=10")
    monkeypatch.setattr("spindle.knobs.restore.boot_id", lambda: "another boot")
    report = restore(kernel.machine, kernel, persisted={"vm.swappiness": "10"})
    assert [item.state for item in report.items] == [State.PERSISTED]
    assert kernel.vm("swappiness").read_text() == "10\n"


def test_changes_before_and_after_a_reboot_are_distinguished(
    kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(kernel, "vm.swappiness=10")
    kernel.other_program_writes(kernel.vm("swappiness"), "55")  # the new boot's own value
    for module in ("restore", "journal"):
        monkeypatch.setattr(f"spindle.knobs.{module}.boot_id", lambda: "another boot")
    change(kernel, "vm.swappiness=20")
    states = [item.state for item in restore(kernel.machine, kernel).items]
    assert states == [State.RESTORED, State.CONFLICT]
    assert kernel.vm("swappiness").read_text() == "55\n"


def test_a_device_of_the_same_name_is_not_mistaken_for_the_old_one(kernel: FakeKernel) -> None:
    change(kernel, "read_ahead_kb=4096")
    kernel.identify("sdx", diskseq="8", serial="S1")
    assert put_back(kernel) == {"sdx.read_ahead_kb": State.REPLACED}
    assert kernel.queue("read_ahead_kb").read_text() == "4096\n"


def test_a_kernel_without_sequence_numbers_knows_a_device_by_its_serial(kernel: FakeKernel) -> None:
    kernel.identify("sdx", diskseq=None, serial="S1")
    change(kernel, "read_ahead_kb=4096")
    kernel.identify("sdx", diskseq=None, serial="S2")
    assert put_back(kernel) == {"sdx.read_ahead_kb": State.REPLACED}


def test_after_a_reboot_a_drive_is_found_under_its_new_name(
    kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(kernel, "read_ahead_kb=4096")
    monkeypatch.setattr("spindle.knobs.restore.boot_id", lambda: "another boot")
    kernel.identify("sdx", diskseq="1", serial="other")
    kernel.add("sdy", "8:32", serial="S1")
    kernel.other_program_writes(kernel.queue("read_ahead_kb", "sdy"), "4096")
    assert put_back(kernel) == {"sdy.read_ahead_kb": State.RESTORED}
    assert kernel.queue("read_ahead_kb").read_text() == "4096\n"


def test_a_device_that_is_gone_is_reported_and_its_journal_closed(kernel: FakeKernel) -> None:
    change(kernel, "read_ahead_kb=4096")
    (kernel.machine.sys / "dev/block/8:16").unlink()
    assert put_back(kernel) == {"sdx.read_ahead_kb": State.GONE}
    assert not journals()


def test_looking_changes_nothing(kernel: FakeKernel) -> None:
    change(kernel, "scheduler=bfq", "vm.swappiness=10")
    before, lines = kernel.state(), journals()[0].read_bytes()
    assert {item.state for item in pending(kernel.machine, kernel).items} == {State.CHANGED}
    assert (kernel.state(), journals()[0].read_bytes()) == (before, lines)


def test_a_kernel_that_refuses_the_way_back_keeps_the_journal(
    kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(kernel, "read_ahead_kb=4096", "vm.swappiness=10")

    def refuse(path: Path, text: str) -> None:
        if path.name == "read_ahead_kb":
            raise OSError(5, "Input/output error")
        FakeKernel.write(kernel, path, text)

    with monkeypatch.context() as patched:
        patched.setattr(kernel, "write", refuse)
        report = restore(kernel.machine, kernel)
    assert [item.knob for item in report.having(State.FAILED)] == ["sdx.read_ahead_kb"]
    assert kernel.vm("swappiness").read_text() == "60\n"
    assert put_back(kernel) == {"sdx.read_ahead_kb": State.RESTORED}


# --- the journal itself ----------------------------------------------------------------------------------------------


def test_a_journal_torn_at_any_byte_of_its_last_line_is_understood(kernel: FakeKernel) -> None:
    """The last line is the intent of a change that was then not made: it is written before the change."""
    change(kernel, "read_ahead_kb=4096", "vm.swappiness=10")
    path = journals()[0]
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    assert b'"intent"' in lines[3]
    kept = b"".join(lines[:3])
    for cut in range(len(lines[3]) - 1):
        kernel.other_program_writes(kernel.queue("read_ahead_kb"), "4096")
        kernel.other_program_writes(kernel.vm("swappiness"), "60")
        path.write_bytes(kept + lines[3][:cut])
        report = restore(kernel.machine, kernel)
        assert {item.knob: item.state for item in report.items} == {"sdx.read_ahead_kb": State.RESTORED}, cut
        assert report.complete
        assert not journals()


def test_the_outcome_of_the_last_change_torn_away_is_found_out(kernel: FakeKernel) -> None:
    before = kernel.state()
    change(kernel, "scheduler=mq-deadline")
    change(kernel, "nr_requests=1")  # becomes 4
    for path in journals():
        lines = path.read_bytes().splitlines(keepends=True)
        assert b'"made"' in lines[-1]
        path.write_bytes(b"".join(lines[:-1]) + lines[-1][:20])
    assert restore(kernel.machine, kernel).complete
    assert kernel.state() == before


def test_a_torn_beginning_means_that_nothing_was_changed(kernel: FakeKernel) -> None:
    change(kernel, "read_ahead_kb=4096")
    path = journals()[0]
    path.write_bytes(path.read_bytes()[:25])
    assert put_back(kernel) == {}
    assert not journals()


def test_damage_in_the_middle_is_reported_and_the_rest_is_undone(kernel: FakeKernel) -> None:
    change(kernel, "read_ahead_kb=4096", "vm.swappiness=10")
    path = journals()[0]
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b"4096", b"4097")
    path.write_bytes(b"".join(lines))
    report = restore(kernel.machine, kernel)
    assert {item.knob: item.state for item in report.items} == {"vm.swappiness": State.RESTORED}
    assert "damaged" in report.notes[0]
    assert not report.complete
    assert path.with_suffix(".damaged").exists()
    assert restore(kernel.machine, kernel).complete


@pytest.mark.parametrize("garbage", [b"\xff\xfe\n\n" * 50, b"{}\n{}\n", b"00000000 {}\nx\n", b"[" * 100_000 + b"\n1\n"])
def test_a_file_that_is_not_a_journal_is_reported_and_left(kernel: FakeKernel, garbage: bytes) -> None:
    change(kernel, "read_ahead_kb=4096")
    path = journals()[0]
    path.write_bytes(garbage)
    report = restore(kernel.machine, kernel)
    assert "cannot be read" in report.notes[0]
    assert path.read_bytes().rstrip() == garbage.rstrip()


def test_a_journal_names_knobs_and_never_files(kernel: FakeKernel) -> None:
    """A forged journal could still only change knobs of the catalogue."""
    import json
    import zlib

    change(kernel, "read_ahead_kb=4096")
    path = journals()[0]
    victim = kernel.machine.proc / "meminfo"
    before = victim.read_text()
    lines = []
    for line in path.read_bytes().splitlines():
        record = json.loads(line[9:])
        for name in ("../../../../../../proc/meminfo", "iosched/../../../x", "dev"):
            if record["kind"] == "intent":
                record["before"][name] = "1"
                record["knob"] = name
            elif record["kind"] == "made":
                record["after"][name] = "2"
        data = json.dumps(record).encode()
        lines.append(b"%08x %s\n" % (zlib.crc32(data), data))
    path.write_bytes(b"".join(lines))
    restore(kernel.machine, kernel)
    assert victim.read_text() == before


def test_a_folder_that_others_may_write_to_is_not_trusted(kernel: FakeKernel) -> None:
    change(kernel, "read_ahead_kb=4096")
    locks.folder().chmod(0o777)
    for attack in (put_back, lambda one: change(one, "vm.swappiness=10")):
        with pytest.raises(KnobRefusal, match="others may write"):
            attack(kernel)
    locks.folder().chmod(0o700)
    assert put_back(kernel) == {"sdx.read_ahead_kb": State.RESTORED}


def test_a_full_disk_does_not_prevent_an_undo(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    before = kernel.state()
    device = named("sdx", kernel.machine)
    with Session("with", kernel.machine, kernel) as session:
        session.change(asking.settings(device, ("scheduler=bfq", "read_ahead_kb=64"), kernel.machine))
        monkeypatch.setattr(journal.Journal, "_append", lambda *_a, **_k: (_ for _ in ()).throw(OSError(28, "full")))
    assert kernel.state() == before


# --- two at once -----------------------------------------------------------------------------------------------------


def test_a_second_session_on_the_same_device_is_refused_by_name(kernel: FakeKernel) -> None:
    kernel.add("sdy", "8:32", serial="S2")
    first = Session("with", kernel.machine, kernel)
    with first:
        first.change(asking.settings(named("sdx", kernel.machine), ("read_ahead_kb=64",), kernel.machine))
        with pytest.raises(KnobRefusal, match=r"sdx: another spindle is changing it \(process \d+: `spindle"):
            change(kernel, "nr_requests=64")
        with pytest.raises(KnobRefusal, match="sdx"):
            change(kernel, "nr_requests=64", "vm.swappiness=10")
        assert kernel.vm("swappiness").read_text() == "60\n"
        change(kernel, "sdy.nr_requests=64", "vm.swappiness=10")  # nobody holds these
        busy = restore(kernel.machine, kernel)
        assert {item.knob: item.state for item in busy.items} == {
            "sdx.read_ahead_kb": State.BUSY,
            "sdy.nr_requests": State.RESTORED,
            "vm.swappiness": State.RESTORED,
        }
        assert kernel.queue("read_ahead_kb").read_text() == "64\n"
    assert kernel.queue("read_ahead_kb").read_text() == "128\n"


def test_a_value_of_somebody_else_survives_a_restore_that_is_killed_anywhere(tmp_path: Path) -> None:
    for fuse in range(50):
        kernel = FakeKernel(tmp_path / str(fuse))
        change(kernel, "scheduler=mq-deadline", "nr_requests=64", "read_ahead_kb=64")
        kernel.other_program_writes(kernel.queue("nr_requests"), "99")
        kernel.fuse = fuse
        die(partial(restore, kernel.machine, kernel))
        kernel.fuse = None
        restore(kernel.machine, kernel)
        assert kernel.queue("nr_requests").read_text() == "99\n", fuse
        assert "[none]" in kernel.queue("scheduler").read_text(), fuse
        assert kernel.queue("read_ahead_kb").read_text() == "128\n", fuse
        assert not journals()
