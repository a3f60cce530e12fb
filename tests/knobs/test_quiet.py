"""`--quiet-machine`: changes for a run and their undo, on a kernel made of files and on a real swap area of the
test's own. The machine's own swap is never touched."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import subprocess
import sys
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spindle.conditions import IdleCheck
from spindle.conditions.quiet import QuietLog, quieting
from spindle.host.devices import HERE, Device, DevNumber, by_name
from spindle.host.mounts import swaps
from spindle.knobs import journal, swap
from spindle.knobs.catalogue import SWAP_AREA, TEMPORARY, knob
from spindle.knobs.errors import KnobUsage
from spindle.knobs.files import Files
from spindle.knobs.places import named, of_swap
from spindle.knobs.restore import interrupted, restore
from spindle.knobs.undo import State
from spindle.result.document import decode
from spindle.result.record import Level, QuietSetting, RunRecord
from tests.knobs.kernel_of_files import FakeKernel, Killed
from tests.workbench import Workbench

COMMAND = [sys.executable, "-m", "spindle.cli"]


class Busy(FakeKernel):
    """An array at its monthly check, swap areas with and without a priority, CPUs that save power."""

    def __init__(self, root: Path, areas: int = 3, cpus: int = 2) -> None:
        super().__init__(root)
        self.md = self.add("md0", "9:0", serial=None)
        for name, text in {"md/sync_action": "check", "md/uuid": "5e:1f"}.items():
            self._lay(self.md / name, text)
        for number in range(cpus):
            folder = self.machine.sys / f"devices/system/cpu/cpufreq/policy{number}"
            self._lay(folder / "scaling_governor", "schedutil")
            self._lay(folder / "scaling_available_governors", "performance schedutil powersave")
        self._lay(self.machine.proc / "meminfo", "MemTotal: 16000000 kB\nMemAvailable: 8000000 kB")
        given = {"swap.a": "5", "swap.b": swap.AUTO, "swap.c": swap.AUTO}
        self.areas = {root / name: state for name, state in list(given.items())[:areas]}
        self.sizes = dict.fromkeys(self.areas, (1000, 100))
        self.stubborn: set[Path] = set()
        for area in self.areas:
            area.touch()
        self._list()

    @property
    def devices(self) -> list[Device]:
        array = by_name("md0", self.machine)
        assert array is not None
        return [array]

    def state(self) -> dict[str, str]:
        return {**super().state(), "swaps": (self.machine.proc / "swaps").read_text()}

    def governor(self, number: int = 0) -> Path:
        return self.machine.sys / f"devices/system/cpu/cpufreq/policy{number}/scaling_governor"

    def swap(self, area: Path) -> str:
        self._burn()
        return self.areas[area]

    def switch_swap(self, area: Path, wanted: str, is_same: Callable[[int], bool]) -> None:
        self._burn()
        if area in self.stubborn:
            raise OSError(errno.ENOMEM, "Cannot allocate memory")
        self.writes.append((area.name, wanted))
        del self.areas[area]
        self.areas[area] = wanted  # the last one that is switched on comes last among those without a priority
        self._list()
        self._burn()

    def _list(self) -> None:
        lines, automatic = ["Filename Type Size Used Priority"], -1
        for area, state in self.areas.items():
            if state == swap.OFF:
                continue
            automatic -= state == swap.AUTO
            size, used = self.sizes[area]
            lines.append(f"{area} file {size} {used} {automatic if state == swap.AUTO else state}")
        self._lay(self.machine.proc / "swaps", "\n".join([lines[0], *sorted(lines[1:])]))


@pytest.fixture
def busy(tmp_path: Path) -> Busy:
    return Busy(tmp_path / "machine")


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> Callable[[Busy, int | None], bool]:
    """Quiets a machine and dies, as by kill -9, after this many steps (None: in the middle of the run). True: it
    died."""
    opened: list[journal.Journal] = []
    begin = journal.Journal.begin

    def kept(kind: str) -> journal.Journal:
        opened.append(begin(kind))
        return opened[-1]

    monkeypatch.setattr(journal.Journal, "begin", kept)

    def die(busy: Busy, steps: int | None) -> bool:
        busy.fuse = steps
        with suppress(Killed), quieting(busy.devices, busy.machine, busy):
            if steps is None:
                busy.fuse = 0
        died, busy.fuse = busy.fuse is not None and busy.fuse < 0, None
        while opened:
            opened.pop().keep()  # the kernel closes the files of the dead
        return died

    return die


def outcomes(quiet: QuietLog) -> dict[str, bool | None]:
    return {change.name.rpartition("/")[2]: change.restored for change in quiet.changes}


def journals() -> list[Path]:
    return list(journal.paths())


# --- a kernel made of files ------------------------------------------------------------------------------------------


def test_checks_swap_and_clocks_are_quiet_meanwhile_and_back_afterwards(busy: Busy) -> None:
    before = busy.state()
    with quieting(busy.devices, busy.machine, busy) as quiet:
        assert (busy.md / "md/sync_action").read_text() == "idle\n"
        assert swaps(busy.machine) == []
        assert {busy.governor(number).read_text() for number in (0, 1)} == {"performance\n"}
        assert set(outcomes(quiet).values()) == {None}
    assert busy.state() == before
    assert outcomes(quiet) == dict.fromkeys(
        ["md0.sync_action", "swap.a.priority", "swap.b.priority", "swap.c.priority", "cpu0.governor", "cpu1.governor"],
        True,
    )
    assert quiet.notes == []
    assert not journals()


def test_swap_areas_come_back_in_their_order(busy: Busy) -> None:
    priorities = {one.path: one.priority for one in swaps(busy.machine)}
    with quieting([], busy.machine, busy):
        pass
    assert [name for name, wanted in busy.writes if wanted == swap.OFF] == ["swap.c", "swap.b", "swap.a"]
    assert [name for name, wanted in busy.writes if wanted in ("5", swap.AUTO)] == ["swap.a", "swap.b", "swap.c"]
    assert {one.path: one.priority for one in swaps(busy.machine)} == priorities


@pytest.mark.parametrize("action", ["resync", "recover", "reshape"])
def test_activity_that_restores_redundancy_goes_on(busy: Busy, action: str) -> None:
    busy._lay(busy.md / "md/sync_action", action)
    with quieting(busy.devices, busy.machine, busy) as quiet:
        assert (busy.md / "md/sync_action").read_text() == f"{action}\n"
    assert any(note.startswith(f"md0: its {action} goes on") for note in quiet.notes)


def test_a_quiet_array_is_left_as_it_is(busy: Busy) -> None:
    busy._lay(busy.md / "md/sync_action", "idle")
    with quieting(busy.devices, busy.machine, busy) as quiet:
        pass
    assert not [change for change in quiet.changes if change.name.startswith("md0")]


def test_swap_that_does_not_fit_into_memory_stays_on(busy: Busy) -> None:
    area = next(iter(busy.areas))
    busy.sizes[area] = (9_000_000, 6_300_000)  # with 10 % of 16 GB kept free, 6.4 GB of 8 can be had
    busy._list()
    with quieting([], busy.machine, busy) as quiet:
        assert swaps(busy.machine) == []
    assert quiet.notes == []
    busy.sizes[area] = (9_000_000, 6_500_000)
    busy._list()
    with quieting([], busy.machine, busy) as quiet:
        assert len(swaps(busy.machine)) == 3
    assert quiet.notes == ["swap stays on: 6.7 GB are swapped, but only 6.6 GB of memory are free for it"]


def test_a_change_that_the_kernel_refuses_is_reported_and_the_rest_is_done(busy: Busy) -> None:
    before = busy.state()
    busy.stubborn = {area for area in busy.areas if area.name == "swap.b"}
    with quieting(busy.devices, busy.machine, busy) as quiet:
        assert [Path(one.path).name for one in swaps(busy.machine)] == ["swap.b"]
        assert busy.governor().read_text() == "performance\n"
    (note,) = quiet.notes
    assert "swap.b.priority=off: the kernel refuses it: cannot allocate memory" in note
    assert "everything is as it was" not in note
    assert busy.state() == before


def test_a_governor_that_the_driver_does_not_offer_is_not_asked_for(busy: Busy) -> None:
    busy._lay(busy.governor(1).with_name("scaling_available_governors"), "powersave schedutil")
    with quieting([], busy.machine, busy) as quiet:
        assert busy.governor(1).read_text() == "schedutil\n"
    assert "cpu1.governor" not in outcomes(quiet)


def test_an_error_and_a_signal_put_everything_back(busy: Busy) -> None:
    before = busy.state()
    for error in (RuntimeError, KeyboardInterrupt):
        with pytest.raises(error), quieting(busy.devices, busy.machine, busy):
            raise error
        assert busy.state() == before
        assert not journals()


def test_changes_of_somebody_else_meanwhile_are_left_and_reported(busy: Busy) -> None:
    with quieting(busy.devices, busy.machine, busy) as quiet:
        busy._lay(busy.md / "md/sync_action", "recover")  # a drive has failed, and a spare is used
        busy._lay(busy.governor(), "powersave")
    assert (busy.md / "md/sync_action").read_text() == "recover\n"
    assert busy.governor().read_text() == "powersave\n"
    left = {change.name: change for change in quiet.changes if change.restored is False}
    assert set(left) == {"md0.sync_action", "cpu0.governor"}
    assert "recover" in left["md0.sync_action"].reason


def test_dead_at_every_single_step_restore_puts_everything_back(
    tmp_path: Path, dying: Callable[[Busy, int | None], bool]
) -> None:
    """Nothing is cleaned up, and the next call finds only the journal."""
    steps = 0
    while True:
        busy = Busy(tmp_path / f"machine{steps}", areas=2, cpus=1)
        before = busy.state()
        if not dying(busy, steps):
            break
        report = restore(busy.machine, busy)
        assert busy.state() == before, steps
        assert not report.having(State.FAILED, State.CONFLICT, State.REPLACED), (steps, report.items)
        assert not journals()
        steps += 1
    assert steps > 40


def test_after_a_reboot_restore_says_what_the_boot_has_reset(
    busy: Busy, dying: Callable[[Busy, int | None], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = busy.state()
    assert dying(busy, None)
    assert busy.state() != before
    for area, state in {"swap.a": "5", "swap.b": swap.AUTO, "swap.c": swap.AUTO}.items():  # as a boot sets it
        busy.switch_swap(next(one for one in busy.areas if one.name == area), state, lambda _: True)
    busy._lay(busy.md / "md/sync_action", "check")
    for number in (0, 1):
        busy._lay(busy.governor(number), "schedutil")
    monkeypatch.setattr("spindle.knobs.restore.boot_id", lambda: "another boot")
    report = restore(busy.machine, busy)
    assert {item.state for item in report.items} == {State.REBOOT}
    assert "the reboot had reset it" in str(report.items[0])
    assert busy.state() == before


def test_the_next_run_reports_a_run_that_was_killed(busy: Busy, dying: Callable[[Busy, int | None], bool]) -> None:
    assert dying(busy, None)
    lines = interrupted()
    assert any(line.startswith("md0: ") and "`spindle restore` undoes them" in line for line in lines)


def test_temporary_states_are_not_offered_as_knobs(busy: Busy) -> None:
    place = named("md0", busy.machine)
    assert "sync_action" not in [one.name for one in place.knobs(busy)]
    for one in TEMPORARY:
        with pytest.raises(KnobUsage):
            knob(one.id)


# --- the record ------------------------------------------------------------------------------------------------------


@pytest.fixture
def on_busy(busy: Busy, monkeypatch: pytest.MonkeyPatch) -> Busy:
    """`--quiet-machine` quiets the machine of files instead of this one, which is not watched before the run."""
    monkeypatch.setattr("spindle.run.preparation.conditions.idle_check", lambda _devices: IdleCheck(0.0, [], {}))
    monkeypatch.setattr("spindle.run.preparation.quieting", lambda _devices: quieting(busy.devices, busy.machine, busy))
    return busy


def record_of_run(folder: Path) -> RunRecord:
    from spindle.cli.main import invoke

    out = folder / "r.json"
    words = ["randomio", str(folder / "t.bin"), "--create", "16MiB", "--seconds", "0.2", "--quiet"]
    invoke(["run", *words, "--quiet-machine", "--output", str(out)])
    found = decode(out.read_bytes(), "r.json")
    assert isinstance(found, RunRecord)
    return found


def test_the_record_lists_the_changes_and_that_they_are_undone(on_busy: Busy, tmp_path: Path) -> None:
    before = on_busy.state()
    found = record_of_run(tmp_path)
    assert on_busy.state() == before
    by_name_of = {one.name: one for one in found.preparation.changed_settings}
    assert (by_name_of["md0.sync_action"].before, by_name_of["md0.sync_action"].during) == ("check", "idle")
    assert all(one.restored for one in found.preparation.changed_settings)
    verdict = next(one for one in found.verdicts if one.check == "quiet-machine")
    assert verdict.level is Level.OK
    assert "md0.sync_action check -> idle" in verdict.evidence
    assert found.settings.changed == []


def test_a_change_that_could_not_be_undone_is_a_warning(
    on_busy: Busy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = on_busy.switch_swap

    def stubborn(area: Path, wanted: str, is_same: Callable[[int], bool]) -> None:
        if wanted != swap.OFF and area.name == "swap.a":
            raise OSError(errno.EINVAL, "Invalid argument")
        real(area, wanted, is_same)

    monkeypatch.setattr(on_busy, "switch_swap", stubborn)
    found = record_of_run(tmp_path)
    verdict = next(one for one in found.verdicts if one.check == "put-back")
    assert "swap.a.priority is not 5 again" in verdict.evidence
    assert "invalid argument" in verdict.evidence
    assert "swap.a.priority is not 5 again" in capsys.readouterr().err


# --- a real swap area ------------------------------------------------------------------------------------------------


HOLD = """
import sys
from pathlib import Path
from spindle.knobs.catalogue import SWAP_AREA
from spindle.knobs.places import of_swap
from spindle.knobs.session import Session, Setting

with Session("quiet") as session:
    session.change([Setting(of_swap(Path(sys.argv[1])), SWAP_AREA, "off")])
    print("off", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(params=["7", "auto"])
def area(bench: Workbench, request: pytest.FixtureRequest) -> tuple[str, str]:
    """A swap area on a loop device of this test, and its priority."""
    device = bench.loop(size=16 << 20)
    bench.run("mkswap", device)
    priority = ["--priority", request.param] if request.param != "auto" else []
    bench.run("swapon", *priority, device)
    bench.undo.callback(bench.run, "swapoff", device, check=False)
    if device not in [one.path for one in swaps(HERE)]:
        pytest.skip("this kernel has no swap")
    return device, request.param


def holding(device: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, device], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "off\n"
    return process


def restored() -> list[dict[str, Any]]:
    done = subprocess.run([*COMMAND, "restore", "--json"], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    items: list[dict[str, Any]] = json.loads(done.stdout)["items"]
    return items


def test_a_real_swap_area_comes_back_with_its_priority_after_kill_9(area: tuple[str, str]) -> None:
    device, priority = area
    process = holding(device)
    assert swap.state_of(Path(device)) == swap.OFF
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert swap.state_of(Path(device)) == swap.OFF
    (item,) = restored()
    assert (item["knob"], item["state"]) == (f"swap:{device}.priority", "restored")
    assert swap.state_of(Path(device)) == priority


def test_a_real_swap_area_comes_back_at_the_end(area: tuple[str, str]) -> None:
    device, priority = area
    process = holding(device)
    process.communicate("")
    assert swap.state_of(Path(device)) == priority
    assert restored() == []


def test_another_device_under_the_same_name_is_left_alone(area: tuple[str, str]) -> None:
    """The journal is changed as if it were about the device that had this name before."""
    device, _ = area
    if not Path("/sys/block", Path(device).name, "diskseq").exists():
        pytest.skip("this kernel does not number devices (diskseq, Linux 5.15)")
    process = holding(device)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (path,) = journals()
    lines = []
    for line in path.read_bytes().splitlines():
        record = json.loads(line[9:])
        if record["kind"] == "intent":
            record["place"]["device"]["diskseq"] -= 1
        data = json.dumps(record).encode()
        lines.append(b"%08x %s\n" % (zlib.crc32(data), data))
    path.write_bytes(b"".join(lines))
    done = subprocess.run([*COMMAND, "restore", "--json"], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    (item,) = json.loads(done.stdout)["items"]
    assert item["state"] == "replaced"
    assert swap.state_of(Path(device)) == swap.OFF


@pytest.mark.promise(4)
@pytest.mark.parametrize("how", ["another node under the name", "a link under the name", "another device"])
def test_a_swap_area_whose_name_leads_elsewhere_now_is_not_switched(bench: Workbench, tmp_path: Path, how: str) -> None:
    """The other one is a swap area too, and whoever moves the name is faster than the switch."""
    meant, other = Path(bench.loop(size=16 << 20)), Path(bench.loop(size=16 << 20))
    for one in (meant, other):
        bench.run("mkswap", one)
        bench.undo.callback(bench.run, "swapoff", one, check=False)
    place = of_swap(meant)
    name = tmp_path / "area"
    match how:
        case "another node under the name":
            os.mknod(name, 0o600 | stat.S_IFBLK, other.stat().st_rdev)
        case "a link under the name":
            name.symlink_to(meant)
        case _:
            name = other
    with pytest.raises(OSError, match=r"name leads to something else|symbolic links"):
        replace(place, folder=name).write(SWAP_AREA, swap.AUTO, Files())
    assert not {one.dev for one in swaps(HERE)} & {DevNumber.of(one.stat().st_rdev) for one in (meant, other)}
    place.write(SWAP_AREA, swap.AUTO, Files())
    assert swap.state_of(meant) == swap.AUTO


@pytest.mark.promise(4)
@pytest.mark.parametrize("spoil", ["mode", "owner"])
def test_a_swap_file_that_others_can_write_to_is_not_switched_on(bench: Workbench, tmp_path: Path, spoil: str) -> None:
    file = tmp_path / "swap"
    file.write_bytes(bytes(16 << 20))
    file.chmod(0o600)
    bench.run("mkswap", file)
    bench.undo.callback(bench.run, "swapoff", file, check=False)
    os.chown(file, 65534, 65534) if spoil == "owner" else file.chmod(0o666)
    with pytest.raises(PermissionError, match="others may write"):
        of_swap(file).write(SWAP_AREA, swap.AUTO, Files())
    assert str(file) not in [one.path for one in swaps(HERE)]


def test_a_swap_area_is_a_place_of_its_own_and_not_its_device(area: tuple[str, str]) -> None:
    place = of_swap(Path(area[0]))
    assert place.key != named(area[0]).key
    assert place.lock != named(area[0]).lock
    assert place.address(SWAP_AREA) == f"swap:{area[0]}.priority"


def test_a_change_has_no_end_before_it_is_over() -> None:
    assert QuietSetting(name="cpu0.governor", before="schedutil", during="performance").restored is None
