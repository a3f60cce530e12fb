"""Knobs that move others: declared, undone, set again, reported; on real queues, and on a kernel with surprises."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from spindle.knobs import asking
from spindle.knobs.catalogue import KNOBS, Scope, knob, movers_first
from spindle.knobs.errors import KnobRefusal
from spindle.knobs.persist import drafts
from spindle.knobs.places import named
from spindle.knobs.restore import restore
from spindle.knobs.session import ChangeResult, Outcome, Session
from spindle.knobs.undo import State
from tests.knobs.kernel_of_files import FakeKernel
from tests.knobs.sweep import Effects, files_of, swept, table
from tests.queue import Queue
from tests.workbench import Workbench

pytestmark = pytest.mark.promise(3)
ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/reference/knobs.md").read_text()


class Surprising(FakeKernel):
    """A kernel newer than the catalogue: `nomerges` sets the read-ahead, `io_poll` works and moves `nomerges`."""

    def other_program_writes(self, path: Path, text: str) -> None:
        super().other_program_writes(path, text)
        if path.name == "nomerges":
            self._lay(path.with_name("read_ahead_kb"), "1024")
        if path.name == "io_poll":
            self._lay(path, text)
            self._lay(path.with_name("nomerges"), "2")


def change(kernel: FakeKernel, *words: str, keep: bool = True) -> dict[str, ChangeResult]:
    with Session("set", kernel.machine, kernel) as session:
        done = session.change(asking.settings(named("sdx", kernel.machine), words, kernel.machine))
        if keep:
            session.keep()
    return {one.knob.partition(".")[2]: one for one in done}


@pytest.mark.alone
def test_no_knob_of_any_queue_here_has_a_side_effect_that_the_catalogue_does_not_list(
    bench: Workbench, tmp_path: Path
) -> None:
    effects = swept(tmp_path, thorough=False)
    print("\n".join(table(effects)))
    assert not effects.undeclared()
    assert not effects.faults
    assert len(effects.written) > 20
    if os.uname().release.startswith("6.18."):
        assert not effects.unseen()


@pytest.mark.alone
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP])
def test_a_sweep_that_is_ended_leaves_no_device_and_no_other_value(
    bench: Workbench, untouched_vm: None, tmp_path: Path, signum: signal.Signals
) -> None:
    before, values = _own_devices(), files_of(named(Scope.VM))
    for part, is_under_way in (
        (f"swept(Path({str(tmp_path)!r}), True)", lambda: _own_devices() != before),
        ("sweep_memory(Effects(), True)", lambda: files_of(named(Scope.VM))["dirty_bytes"] != values["dirty_bytes"]),
    ):
        with subprocess.Popen([sys.executable, "-c", _SWEEP.format(part=part)], stderr=subprocess.PIPE) as sweeping:
            _wait_until(is_under_way)
            sweeping.send_signal(signum)
            assert sweeping.wait(30) == 128 + signum, sweeping.stderr.read()  # type: ignore[union-attr]
        assert _own_devices() == before
        assert files_of(named(Scope.VM)) == values


_SWEEP = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from tests.knobs.sweep import *
from spindle.host.signals import Stopped, unwinding
try:
    with unwinding():
        {{part}}
except Stopped as stopped:
    sys.exit(128 + stopped.signum)
"""


def _wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def _own_devices() -> set[str]:
    return {path.name for path in Path("/sys/block").glob("loop4[0-9][0-9][0-9]")}


def test_the_table_of_moves_on_the_page_is_the_catalogues() -> None:
    shown = re.findall(r"^\| `(\S+)` \| `(\S+)` \| (?:stays|put back)", PAGE, re.MULTILINE)
    of = [line.split(" | ") for line in table(Effects())[2:]]
    assert shown == [(one[0].strip("| `"), one[1].strip("`")) for one in of]


def test_a_knob_that_resets_the_read_ahead_leaves_it_as_it_was_on_a_real_queue(loop: Callable[[], Queue]) -> None:
    queue = loop()
    queue["rotational"] = "1"
    queue["read_ahead_kb"] = "128"
    before = queue.values()
    for word in ("write_cache=write through", "iostats=0", "add_random=1", "max_sectors_kb=512", "rotational=0"):
        with Session("with") as session:
            session.change(asking.settings(named(queue.name), [word]))
            assert queue["read_ahead_kb"] == "128", word
        assert queue.values() == before, word


def test_a_share_of_the_page_cache_in_millionths_survives_a_change_of_its_percents(loop: Callable[[], Queue]) -> None:
    place = named(loop().name)
    fine = place.folder / "bdi/max_ratio_fine"
    if not fine.exists():
        pytest.skip("this kernel knows percents only (Linux 6.2)")
    fine.write_text("123456")
    with Session("with") as session:
        (made,) = session.change(asking.settings(place, ["bdi/max_ratio=50"]))
        assert fine.read_text() == "500000\n"
        assert not made.surprises()
    assert fine.read_text() == "123456\n"


def test_a_requested_read_ahead_is_in_force_whatever_else_is_set(loop: Callable[[], Queue]) -> None:
    queue = loop()
    queue["rotational"] = "1"
    queue["read_ahead_kb"] = "128"
    before = queue.values()
    words = [
        "read_ahead_kb=64",
        "scheduler=mq-deadline",
        "write_cache=write through",
        "max_sectors_kb=512",
        "iostats=0",
    ]
    with Session("with") as session:
        made = session.change(asking.settings(named(queue.name), words))
        assert queue["read_ahead_kb"] == "64"
        assert {one.outcome for one in made} == {Outcome.SET}
    assert queue.values() == before


def test_the_read_ahead_is_set_last_and_movers_before_what_they_move() -> None:
    order = [one.name for one in movers_first(reversed(KNOBS), lambda one: one)]
    for mover in KNOBS:
        for moved in (*mover.moves, *mover.disturbs):
            if "*" not in moved and mover.name not in knob(moved if moved in order else mover.id).moves:
                assert order.index(mover.name) < order.index(moved) or _mutual(mover.name, moved), (mover.name, moved)
    of_queue = [name for name in order if name in {one.name for one in KNOBS if one.scope == "device"}]
    assert of_queue[-1] == "read_ahead_kb"


def _mutual(one: str, other: str) -> bool:
    found = next(each for each in KNOBS if each.name == other)
    return one in found.moves


def test_expected_side_effects_of_a_change_are_reported(kernel: FakeKernel) -> None:
    made = change(kernel, "scheduler=mq-deadline")["scheduler"]
    assert [(one.knob, one.before, one.after, one.expected) for one in made.moved] == [
        ("sdx.nr_requests", "128", "256", True)
    ]
    assert not made.surprises()


def test_an_unexpected_side_effect_is_reported_and_undone(tmp_path: Path) -> None:
    kernel = Surprising(tmp_path / "machine")
    before = kernel.state()
    made = change(kernel, "nomerges=1")["nomerges"]
    assert kernel.queue("read_ahead_kb").read_text() == "1024\n"
    assert "sdx.read_ahead_kb: 128 -> 1024: the kernel changed it" in made.surprises()[0]
    assert {item.state for item in restore(kernel.machine, kernel).items} == {State.RESTORED}
    assert kernel.state() == before


def test_a_requested_value_that_a_later_change_moved_is_set_again(tmp_path: Path) -> None:
    kernel = Surprising(tmp_path / "machine")
    before = kernel.state()
    done = change(kernel, "nomerges=1", "io_poll=1", "read_ahead_kb=64")
    assert {name: one.outcome for name, one in done.items()} == dict.fromkeys(done, Outcome.SET)
    assert kernel.queue("nomerges").read_text() == "1\n"
    assert kernel.queue("read_ahead_kb").read_text() == "64\n"
    restore(kernel.machine, kernel)
    assert kernel.state() == before


def test_the_reported_old_value_is_that_before_the_call_even_if_it_was_moved_on_the_way(
    kernel: FakeKernel,
) -> None:
    moved = kernel.queue("read_ahead_kb")
    done = change(kernel, "max_sectors_kb=512", "read_ahead_kb=64", "scheduler=mq-deadline", "nr_requests=64")
    assert str(done["read_ahead_kb"]) == "sdx.read_ahead_kb: 128 -> 64"
    assert str(done["nr_requests"]) == "sdx.nr_requests: 128 -> 64"
    assert moved.read_text() == "64\n"
    restore(kernel.machine, kernel)
    assert moved.read_text() == "128\n"


def test_a_requested_old_value_is_unchanged_even_if_it_was_moved_and_set_again(
    kernel: FakeKernel,
) -> None:
    before = kernel.state()
    done = change(kernel, "max_sectors_kb=512", "read_ahead_kb=128", "scheduler=mq-deadline", "nr_requests=128")
    assert [str(done[name]) for name in ("read_ahead_kb", "nr_requests")] == [
        "sdx.read_ahead_kb: 128 already",
        "sdx.nr_requests: 128 already",
    ]
    restore(kernel.machine, kernel)
    assert kernel.state() == before


def test_values_that_exclude_each_other_are_reported_with_those_in_force(kernel: FakeKernel) -> None:
    before = kernel.state()
    done = change(kernel, "scheduler=bfq", "iosched/slice_idle=3", "iosched/slice_idle_us=8500")
    lost = [one for one in done.values() if one.outcome is Outcome.MOVED]
    assert len(lost) == 1
    in_force = kernel.queue(lost[0].knob.partition(".")[2]).read_text().strip()
    assert f"{in_force} is in force, not {lost[0].wanted}" in str(lost[0])
    assert restore(kernel.machine, kernel).complete
    assert kernel.state() == before


def test_a_read_ahead_of_somebody_else_survives_an_undo_that_moves_it(kernel: FakeKernel) -> None:
    change(kernel, "max_sectors_kb=512")
    kernel.other_program_writes(kernel.queue("read_ahead_kb"), "64")
    assert restore(kernel.machine, kernel).complete
    assert kernel.queue("read_ahead_kb").read_text() == "64\n"
    assert kernel.queue("max_sectors_kb").read_text() == "1280\n"


def test_a_discard_size_that_could_not_be_undone_is_refused(loop: Callable[[], Queue]) -> None:
    queue = loop()
    before = queue.values()
    for value in ("0", "8192"):
        with Session("with") as session, pytest.raises(KnobRefusal, match=r"could not be (undone|restored)"):
            session.change(asking.settings(named(queue.name), [f"discard_max_bytes={value}"]))
    assert queue.values() == before


def test_boot_files_set_movers_first_also_when_they_are_added_later(kernel: FakeKernel, tmp_path: Path) -> None:
    from spindle.knobs.persist import write

    device = named("sdx", kernel.machine)
    for word in ("read_ahead_kb=64", "max_sectors_kb=512", "scheduler=bfq"):
        files = drafts(asking.settings(device, [word], kernel.machine), tmp_path, machine=kernel.machine)
        write(files, tmp_path)
    assert [address.partition(".")[2] for address in files[0].sets] == ["scheduler", "max_sectors_kb", "read_ahead_kb"]
