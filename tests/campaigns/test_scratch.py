"""File systems made for a trial: tools reach only the device that was checked, and a busy moment ends nothing."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from spindle import _core
from spindle.campaign import scratch
from spindle.campaign.leftovers import scratches
from spindle.campaign.plan import FileSystem
from spindle.host import busy, kernel, patience
from spindle.host.devices import HERE, DevNumber
from spindle.host.errors import Refusal
from spindle.host.guard import StreamAccess, hold_device, open_target
from spindle.host.held import PRIVATE
from spindle.host.mounts import devices_of, own_mounts
from spindle.host.testfile import TestFile
from spindle.run.consent import Consent
from spindle.run.errors import RunFailed
from spindle.run.resolve import resolve
from spindle.run.watch import SilentWatch
from spindle.store import open_store
from tests.program import Ended
from tests.workbench import DETACH_LOOP, LOOPS, Workbench

Invoke = Callable[..., Ended]
PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"
MIB = 1 << 20
PLAN = """
workload = "randomio"
options = { seconds = 0.1, workers = 1, size = "4KiB" }
[filesystem]
size = "4MiB"
[factors.depth]
sets = "options.depth"
values = [1, 2]
[trials]
count = 1
repeats = 0
order = "sequential"
tolerate = TOLERATE
"""
TOLERATE = [
    "achieved-depth", "before-cpu", "before-dirty-pages", "before-other-io", "before-swap", "cache-share", "during-cpu",
    "generator-bound", "late", "littles-law", "other-io", "saturated", "settings", "steady", "too-short",
    "working-set",
]  # fmt: skip


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN.replace("TOLERATE", repr(TOLERATE)))
    return path


@pytest.fixture
def device(bench: Workbench) -> Iterator[str]:
    made = bench.loop(size=64 * MIB)
    yield made
    for point in mounts_of(made):
        subprocess.run(["umount", "--lazy", point], check=False)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PAUSES_S", (0.01, 0.02))


def mounts_of(device: str) -> list[str]:
    number = DevNumber.of(os.stat(device).st_rdev)
    return [one.point for one in own_mounts(HERE) if number in devices_of(one, HERE)]


def types_on(device: str) -> str:
    return subprocess.run(["blkid", "-p", device], capture_output=True, text=True, check=False).stdout


class Said(SilentWatch):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)


@pytest.mark.parametrize("kind", ["ext2", "ext3", "ext4", "xfs", "btrfs"])
def test_each_kind_is_made_and_taken_away(bench: Workbench, kind: str) -> None:
    if shutil.which(f"mkfs.{kind}", path=PATH) is None:
        pytest.skip(f"mkfs.{kind} is not installed")
    device, said = bench.loop(size=400 * MIB), Said()
    with scratch.made("c", device, FileSystem(type=kind), Consent(erase=device), said) as folder:
        assert mounts_of(device) == [str(folder)]
        with pytest.raises(Refusal, match="is mounted on"), hold_device(device, erase=device):
            pass
    assert not folder.exists()
    assert types_on(device) == ""
    assert said.lines == []


# --- only the device that was checked --------------------------------------------------------------------------------


def instead(folder: Path, monkeypatch: pytest.MonkeyPatch, tool: str, first: str, only: str = "") -> None:
    """A tool that does something else right before it does its work."""
    real = shutil.which(tool, path=PATH)
    if real is None:
        pytest.skip(f"{tool} is not installed")
    folder.mkdir(exist_ok=True)
    script = folder / tool
    script.write_text(f'#!/bin/sh\ncase "$*" in *{only}*) {first};; esac\nexec {real} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{PATH}")


def named(kind: str, place: Path, device: str) -> str:
    """Another name of a device."""
    if kind == "link":
        place.symlink_to(device)
    else:
        os.mknod(place, 0o600 | stat.S_IFBLK, os.stat(device).st_rdev)
    return str(place)


def renamed(kind: str, place: str, device: str) -> str:
    """A shell command that makes the name mean another device."""
    number = os.stat(device).st_rdev
    made = (
        f"ln -s {device} {place}.new"
        if kind == "link"
        else f"mknod {place}.new b {os.major(number)} {os.minor(number)}"
    )
    return f"rm -f {place}.new; {made}; mv {place}.new {place}"


@pytest.fixture
def precious(bench: Workbench) -> str:
    made: str = bench.loop(size=64 * MIB)
    bench.run("mkfs.ext4", "-q", "-O", "^has_journal", "-E", "lazy_itable_init=0", made)
    bench.run("sync")
    return made


@pytest.mark.promise(2)
@pytest.mark.parametrize("kind", ["link", "node"])
@pytest.mark.parametrize("tool", ["mkfs.ext4", "mount", "wipefs"])
def test_a_name_that_changes_its_meaning_before_a_tool_runs_harms_nothing(
    device: str, precious: str, monkeypatch: pytest.MonkeyPatch, tool: str, kind: str,
    content: Callable[[str], str], tmp_path: Path,
) -> None:  # fmt: skip
    before = content(precious)
    name = named(kind, tmp_path / "disk", device)
    only = "--all" if tool == "wipefs" else ""  # the guard looks with wipefs too
    instead(tmp_path / "bin", monkeypatch, tool, renamed(kind, name, precious), only)
    consent = Consent(erase=name)
    with scratch.made("c", name, FileSystem(type="ext4"), consent, SilentWatch()) as folder:
        assert mounts_of(device) == [str(folder)]
    with (
        pytest.raises(Refusal, match="is another device than the one that was agreed"),
        scratch.made("c", name, FileSystem(type="ext4"), consent.after_writing(), SilentWatch()),
    ):
        pass
    assert content(precious) == before
    assert types_on(device) == ""
    assert not mounts_of(device)
    assert not list(Path("/dev").glob(f"{Path(PRIVATE).name}*"))


@pytest.mark.promise(2)
def test_a_campaign_ends_when_the_name_of_its_device_means_another_one(
    device: str, precious: str, plan: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    content: Callable[[str], str],
) -> None:  # fmt: skip
    before = content(precious)
    name = named("link", tmp_path / "disk", device)
    instead(tmp_path / "bin", monkeypatch, "mkfs.ext4", renamed("link", name, precious))
    done = invoke("run", str(plan), "--target", name, "--erase", name, "--yes")
    assert done.status == 3
    assert "is another device than the one that was agreed" in done.complaint
    assert content(precious) == before
    assert types_on(device) == ""


@pytest.mark.promise(2)
def test_a_loop_device_cannot_be_set_up_anew_while_tools_work_on_it(
    bench: Workbench, device: str, plan: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = bench.image(64 * MIB)
    anew = f"flock {LOOPS} sh -c 'losetup -d {device}; losetup {device} {other}'"
    instead(tmp_path / "bin", monkeypatch, "mkfs.ext4", anew)
    invoke("run", str(plan), "--target", device, "--erase", device, "--yes")
    assert not any(map(any, [other.read_bytes()]))


@pytest.mark.promise(2)
def test_a_loop_device_that_is_another_file_at_the_next_trial_is_refused(
    bench: Workbench, device: str, plan: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = bench.image(64 * MIB)
    clear = scratch.clear

    def exchanged(campaign: str, which: str | None = None) -> None:
        clear(campaign, which)
        if exchanged.calls == 1:  # type: ignore[attr-defined]
            bench.exchange(device, other)
        exchanged.calls += 1  # type: ignore[attr-defined]

    exchanged.calls = 0  # type: ignore[attr-defined]
    monkeypatch.setattr(scratch, "clear", exchanged)
    done = invoke("run", str(plan), "--target", device, "--erase", device, "--yes")
    assert done.status == 3
    assert "is another device than the one that was agreed" in done.complaint
    assert not any(map(any, [other.read_bytes()]))


@pytest.mark.promise(2)
def test_consent_is_for_the_device_that_was_opened_first(bench: Workbench, tmp_path: Path) -> None:
    first, second = bench.loop(), bench.loop()
    link = tmp_path / "link"
    link.symlink_to(first)
    consent = Consent(erase=str(link))
    streams = [StreamAccess(write=True, direct=False)]
    with consent.opened(str(link), streams):
        pass
    with consent.after_writing().opened(str(link), streams):
        pass
    link.unlink()
    link.symlink_to(second)
    for again in (consent, consent.after_writing()):
        with (
            pytest.raises(Refusal, match="another device than the one that was agreed"),
            again.opened(str(link), streams),
        ):
            pass
        with pytest.raises(Refusal, match="another device than the one that was agreed"), again.held(str(link)):
            pass


@pytest.mark.promise(2)
def test_a_loop_device_with_the_same_number_is_another_device(bench: Workbench) -> None:
    device = bench.loop()
    consent = Consent(erase=device)
    with consent.held(device):
        pass
    bench.exchange(device, bench.image())
    with pytest.raises(Refusal, match="another device than the one that was agreed"), consent.held(device):
        pass


@pytest.mark.promise(2)
def test_a_device_is_kept_while_it_is_held(bench: Workbench) -> None:
    device = bench.loop()
    with hold_device(device, erase=device) as held, held.node(PRIVATE + "0") as node:
        held.check(node)
        assert stat.S_IMODE(os.stat(os.path.dirname(node)).st_mode) == 0o700
        bench.run(*DETACH_LOOP, device)
        with pytest.raises(RuntimeError, match="busy"):
            bench.run("losetup", device, bench.image())
        os.unlink(node)
        os.mknod(node, 0o600 | stat.S_IFBLK, os.stat(bench.loop()).st_rdev)
        with pytest.raises(Refusal, match="no longer the device that was checked"):
            held.check(node)
    assert not os.path.exists(os.path.dirname(node))


@pytest.mark.promise(2)
@pytest.mark.parametrize(
    "words",
    ['mkfs = ["-J", "device=DEVICE"]', 'mkfs = ["DEVICE"]', 'mkfs = ["-z", "/tmp/undo"]', 'mount = ["logdev=DEVICE"]',
     'mkfs = ["-l", "logdev=x"]', 'mount = ["loop"]'],
)  # fmt: skip
def test_arguments_of_mkfs_and_mount_name_no_other_device(
    bench: Workbench, device: str, plan: Path, invoke: Invoke, words: str
) -> None:
    other = bench.loop()
    plan.write_text(plan.read_text().replace("[filesystem]", "[filesystem]\n" + words.replace("DEVICE", other)))
    done = invoke("run", str(plan), "--target", device, "--erase", device, "--yes")
    assert done.status == 2
    assert "only the target may be written" in done.complaint


# --- busy for a moment -----------------------------------------------------------------------------------------------


def in_it(folder: Path, seconds: float = 600) -> subprocess.Popen[bytes]:
    code = f"import time; print(flush=True); time.sleep({seconds})"
    process = subprocess.Popen([sys.executable, "-c", code], cwd=folder, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return process


@pytest.mark.promise(28)
def test_a_file_system_that_is_busy_for_a_moment_is_unmounted_a_moment_later(device: str) -> None:
    said = Said()
    with scratch.made("c", device, FileSystem(type="ext4"), Consent(erase=device), said) as folder:
        process = in_it(folder, 0.3)
    process.communicate()
    assert not mounts_of(device)
    assert types_on(device) == ""
    assert said.lines == []
    assert not folder.exists()


@pytest.mark.promise(28)
def test_a_busy_one_is_reported_with_its_holder_and_removed_later(device: str, hasty: None) -> None:
    said, consent = Said(), Consent(erase=device)
    with scratch.made("c", device, FileSystem(type="ext4"), consent, said) as folder:
        process = in_it(folder)
    name = f"process {process.pid} ({Path(f'/proc/{process.pid}/comm').read_text().strip()}) works in it"
    assert len(said.lines) == 1
    assert f"its file system on {folder} is busy: {name}" in said.lines[0]
    with (
        pytest.raises(RunFailed, match="works in it"),
        scratch.made("c", device, FileSystem(type="ext4"), consent, said),
    ):
        pass
    assert mounts_of(device) == [str(folder)]
    process.kill()
    process.communicate()
    with scratch.made("c", device, FileSystem(type="ext4"), consent.after_writing(), said):
        assert mounts_of(device) != [str(folder)]
    assert not mounts_of(device)
    assert not list(scratches("c"))


@pytest.mark.promise(28)
def test_a_trial_after_a_busy_one_is_given_up_and_the_campaign_goes_on(
    device: str, plan: Path, invoke: Invoke, place: Path, hasty: None, tmp_path: Path
) -> None:
    holder = tmp_path / "holder"
    script = (
        f"test -e {holder} || (cd $(findmnt -no TARGET {device} || awk '/spindle-campaign/ {{print $2}}' /proc/mounts)"
    )
    script += f" && exec sleep 600 >/dev/null 2>&1 & echo $! > {holder})"
    plan.write_text(f'setup = [[\'sh\', \'-c\', """{script}"""]]\n' + plan.read_text())
    done = invoke("run", str(plan), "--target", device, "--erase", device, "--yes")
    try:
        assert done.status == 1
        with open_store(place) as store:
            first, second = store.campaigns.trials("plan")
        assert first.state == "done"
        assert second.state == "failed"
        assert "(sleep) works in it" in second.reason
    finally:
        with suppress(ProcessLookupError):
            os.kill(int(holder.read_text()), 9)
    resumed = invoke("resume", "plan", "--erase", device, "--yes")
    assert "was removed" in resumed.err
    assert not mounts_of(device)
    assert types_on(device) == ""


@pytest.mark.promise(28)
@pytest.mark.parametrize("tool", ["mkfs.ext4", "mount"])
def test_a_tool_that_finds_the_device_busy_is_tried_again(
    device: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tool: str
) -> None:
    flag = tmp_path / "was-busy"
    busy_once = f"test -e {flag} || {{ touch {flag}; echo device or resource busy >&2; exit 32; }}"
    instead(tmp_path / "bin", monkeypatch, tool, busy_once)
    with scratch.made("c", device, FileSystem(type="ext4"), Consent(erase=device), SilentWatch()) as folder:
        assert mounts_of(device) == [str(folder)]
    assert flag.exists()


@pytest.mark.promise(28)
def test_before_mkfs_is_tried_again_the_device_is_checked_again(
    bench: Workbench, device: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    flag = tmp_path / "was-busy"
    swap = f"test -e {flag} || {{ touch {flag}; mkswap {device} >/dev/null; echo busy >&2; exit 1; }}"
    instead(tmp_path / "bin", monkeypatch, "mkfs.ext4", swap)
    with (
        pytest.raises(Refusal, match="has a signature: swap"),
        scratch.made("c", device, FileSystem(type="ext4"), Consent(erase=device), SilentWatch()),
    ):
        pass
    assert "swap" in types_on(device)


@pytest.mark.promise(28)
def test_a_tool_that_fails_for_another_reason_is_not_tried_again(
    device: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    count = tmp_path / "count"
    instead(tmp_path / "bin", monkeypatch, "mkfs.ext4", f"echo >> {count}; echo no such option >&2; exit 1")
    with (
        pytest.raises(RunFailed, match=r"mkfs\.ext4: no such option"),
        scratch.made("c", device, FileSystem(type="ext4"), Consent(erase=device), SilentWatch()),
    ):
        pass
    assert count.read_text() == "\n"


@pytest.mark.promise(28)
def test_a_claim_that_somebody_takes_in_between_fails_the_trial_and_not_the_campaign(
    bench: Workbench, device: str, plan: Path, invoke: Invoke, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_away = scratch._take_away
    code = "import os, sys; os.open(sys.argv[1], os.O_RDONLY | os.O_EXCL); print(flush=True); sys.stdin.read()"

    def then_claimed(*arguments: Any) -> bool:
        there = take_away(*arguments)
        bench.python(code, device)
        return there

    monkeypatch.setattr(scratch, "_take_away", then_claimed)
    invoke("run", str(plan), "--target", device, "--erase", device, "--yes")
    with open_store(place) as store:
        first, second = store.campaigns.trials("plan")
    assert (first.state, second.state) == ("done", "failed")
    assert "is held exclusively by another program, maybe process" in second.reason


HELD = {
    "works in it": "import os, sys, time; os.chdir(sys.argv[1])",
    "has its root in it": "import os, sys, time; os.chroot(sys.argv[1])",
    "/x open": "import os, sys, time; os.open(sys.argv[1] + '/x', os.O_CREAT)",
    "/x mapped": (
        "import ctypes, os, sys, time\nf = os.open(sys.argv[1] + '/x', os.O_CREAT | os.O_RDWR)\nos.truncate(f, 4096)\n"
        "ctypes.CDLL(None).mmap(0, 4096, 1, 2, f, 0)\nos.close(f)"
    ),
}


@pytest.mark.promise(28)
@pytest.mark.parametrize("how", HELD)
def test_who_holds_a_mount_is_named_with_how(bench: Workbench, how: str) -> None:
    device = bench.loop()
    bench.run("mkfs.ext4", "-q", device)
    point = bench.mount(device)
    assert busy.holders_of(str(point)) == "no user of it can be seen"
    process = bench.python(HELD[how] + "\nprint('held', flush=True)\nsys.stdin.read()", str(point))
    assert busy.holders_of(str(point)).startswith(f"process {process.pid} (")
    assert how in busy.holders_of(str(point))


@pytest.mark.promise(28)
def test_a_loop_device_and_a_mount_in_it_are_named_as_holders(bench: Workbench) -> None:
    device = bench.loop()
    bench.run("mkfs.ext4", "-q", device)
    point = bench.mount(device)
    (point / "image").write_bytes(bytes(MIB))
    inner = bench.loop(point / "image")
    (point / "inside").mkdir()
    bench.run("mount", "-t", "tmpfs", "none", point / "inside")
    bench.undo.callback(bench.run, "umount", "--lazy", point / "inside", check=False)
    assert busy.holders_of(str(point)) == f"{point}/inside is mounted in it and {inner} is set up over a file in it"


@pytest.mark.promise(28)
def test_a_file_system_can_be_unmounted_right_after_a_load_on_it(bench: Workbench) -> None:
    """The kernel keeps files that are registered with an io_uring for some 100 ms after that is closed."""
    device = bench.loop(size=64 * MIB)
    bench.run("mkfs.ext4", "-q", device)
    point = bench.mount(device)
    workload = resolve("sdd-read", [("seconds", "0.1"), ("size", "4KiB")])
    streams = [StreamAccess()]
    with TestFile.create(point / "t.bin", 4 * MIB) as file, open_target(file, streams) as target:
        run = _core.Run(workload.core, target.engine_files(), engine="io_uring")
        while not run.wait(0.2):
            pass
        run.figures()
        del run
    kernel.unmount(str(point))


# --- what is said beforehand -----------------------------------------------------------------------------------------


@pytest.mark.promise(26)
def test_a_dry_run_says_what_will_have_to_be_agreed_to(
    bench: Workbench, device: str, plan: Path, invoke: Invoke
) -> None:
    said = " ".join(invoke("run", str(plan), "--target", device, "--dry-run").out.split())
    assert f"{device}: all data on it is lost; ext4 is made on it for each trial; needs --erase {device}" in said
    assert "--erase-signature" not in said
    bench.run("mkfs.xfs" if shutil.which("mkfs.xfs", path=PATH) is None else "mkfs.ext4", "-q", device)
    upper = bench.loop(device)
    plan.write_text(
        'workload = "sdd-write"\n[factors.depth]\nsets = "options.depth"\nvalues = [1, 2]\n[trials]\ncount = 1\n'
    )
    said = " ".join(invoke("run", str(plan), "--target", upper, "--dry-run").out.split())
    assert f"the workload writes; needs --erase {upper} --erase-stacked --erase-signature ext4" in said
    plan.write_text(plan.read_text().replace("sdd-write", "sdd-read"))
    assert "--erase" not in invoke("run", str(plan), "--target", upper, "--dry-run").out


@pytest.mark.promise(26)
def test_erase_that_names_no_target_of_a_campaign_is_refused(bench: Workbench, plan: Path, invoke: Invoke) -> None:
    target, other = bench.loop(), bench.loop()
    plan.write_text('workload = "sdd-read"\n[trials]\ncount = 1\n')
    done = invoke("run", str(plan), "--target", target, "--erase", other, "--yes")
    assert done.status == 3
    assert f"--erase names {other}, which is not a target of this campaign" in done.complaint
