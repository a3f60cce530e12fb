"""Boot files: their content; they replace no file of anybody else, and removing them leaves no trace."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from spindle.knobs import asking, persist
from spindle.knobs.errors import KnobRefusal, KnobUsage
from spindle.knobs.persist import BootFile
from spindle.knobs.places import named
from tests.knobs.kernel_of_files import FakeKernel

WORDS = ("nr_requests=64", "scheduler=mq-deadline", "vm.swappiness=10", "vm.dirty_bytes=100000000")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The root of a system with udev and tuned, without sysctl.d."""
    (tmp_path / "root/etc/udev/rules.d").mkdir(parents=True)
    (tmp_path / "root/etc/udev/rules.d/60-other.rules").write_text("# somebody else's\n")
    (tmp_path / "root/etc/tuned").mkdir()
    return tmp_path / "root"


def tree(root: Path) -> dict[str, str]:
    return {str(p.relative_to(root)): p.read_text() if p.is_file() else "/" for p in sorted(root.rglob("*"))}


def drafts(kernel: FakeKernel, root: Path, *words: str, device: str = "sdx", tuned: bool = False) -> list[BootFile]:
    settings = asking.settings(named(device, kernel.machine), words, kernel.machine)
    return persist.drafts(settings, root, tuned, kernel.machine)


def test_removing_leaves_no_trace(kernel: FakeKernel, root: Path) -> None:
    before = tree(root)
    kernel.add("sdy", "8:32", serial="S2")
    persist.write(drafts(kernel, root, *WORDS, tuned=True), root)
    persist.write(drafts(kernel, root, "read_ahead_kb=4096", device="sdy"), root)
    assert len(persist.written(root)) == 4
    persist.remove(root)
    assert tree(root) == before


def test_showing_writes_nothing(kernel: FakeKernel, root: Path) -> None:
    before = tree(root)
    drafts(kernel, root, *WORDS, tuned=True)
    assert tree(root) == before


def test_the_rule_sets_the_scheduler_first_and_knows_the_drive_by_its_serial_number(
    kernel: FakeKernel, root: Path
) -> None:
    rule = drafts(kernel, root, *WORDS)[0].body.splitlines()[-1]
    assert rule == (
        'ACTION=="add", SUBSYSTEM=="block", ENV{DEVTYPE}=="disk", ATTR{device/serial}=="S1", '
        'ATTR{queue/scheduler}="mq-deadline", ATTR{queue/nr_requests}="64"'
    )


def test_a_serial_number_that_udev_would_take_for_a_pattern_is_not_used(kernel: FakeKernel, root: Path) -> None:
    kernel.identify("sdx", diskseq="7", serial='S*"[1]')
    assert 'KERNEL=="sdx"' in drafts(kernel, root, "nr_requests=64")[0].body


def test_sysctl_lines_are_what_sysctl_reads(kernel: FakeKernel, root: Path) -> None:
    persist.write(drafts(kernel, root, *WORDS), root)
    lines = (root / "etc/sysctl.d/90-spindle.conf").read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == ["vm.swappiness = 10", "vm.dirty_bytes = 100000000"]


def test_later_persisted_values_add_to_earlier_ones_and_win(kernel: FakeKernel, root: Path) -> None:
    persist.write(drafts(kernel, root, *WORDS), root)
    persist.write(drafts(kernel, root, "nr_requests=32", "read_ahead_kb=64", "vm.dirty_ratio=5"), root)
    assert persist.persisted(root) == {
        "sdx.scheduler": "mq-deadline",
        "sdx.nr_requests": "32",
        "sdx.read_ahead_kb": "64",
        "vm.swappiness": "10",
        "vm.dirty_ratio": "5",
    }


def test_one_device_can_be_removed_alone_and_the_rest_later_without_a_trace(kernel: FakeKernel, root: Path) -> None:
    shutil.rmtree(root / "etc")
    kernel.add("sdy", "8:32", serial="S2")
    persist.write(drafts(kernel, root, "nr_requests=64"), root)
    persist.write(drafts(kernel, root, "nr_requests=64", device="sdy"), root)
    assert [path.name for path in persist.remove(root, "sdx")] == ["61-spindle-sdx.rules"]
    assert set(persist.persisted(root)) == {"sdy.nr_requests"}
    persist.remove(root)
    assert tree(root) == {}


def test_a_file_of_somebody_else_is_neither_replaced_nor_removed(kernel: FakeKernel, root: Path) -> None:
    theirs = root / "etc/udev/rules.d/61-spindle-sdx.rules"
    theirs.write_text("# mine\n")
    with pytest.raises(KnobRefusal, match="not from spindle"):
        drafts(kernel, root, "nr_requests=64")
    assert persist.remove(root) == []
    assert theirs.read_text() == "# mine\n"


def test_settings_that_cannot_persist_are_refused(kernel: FakeKernel, root: Path) -> None:
    (kernel.machine.proc / "irq/35").mkdir(parents=True)
    (kernel.machine.proc / "irq/35/smp_affinity_list").write_text("0-3\n")
    with pytest.raises(KnobUsage, match="other numbers at every boot"):
        drafts(kernel, root, "irq35.smp_affinity_list=0")


def test_a_governor_persists_in_a_tuned_profile_only(kernel: FakeKernel, root: Path) -> None:
    policy = kernel.machine.sys / "devices/system/cpu/cpufreq/policy0"
    policy.mkdir(parents=True)
    (policy / "scaling_governor").write_text("powersave\n")
    with pytest.raises(KnobUsage, match="`tuned=`"):
        drafts(kernel, root, "cpu.governor=performance")
    body = drafts(kernel, root, "cpu.governor=performance", *WORDS, tuned=True)[-1].body
    assert "[cpu]\ngovernor=performance\n" in body
    assert "[sysctl]\nvm.swappiness=10\n" in body
    assert body.index("queue/scheduler=mq-deadline") < body.index("queue/nr_requests=64")


def test_udev_itself_finds_nothing_wrong_with_the_rule(kernel: FakeKernel, root: Path) -> None:
    udevadm = shutil.which("udevadm", path="/usr/bin:/bin:/usr/sbin:/sbin")
    if udevadm is None or "verify" not in subprocess.run([udevadm, "--help"], capture_output=True, text=True).stdout:
        pytest.skip("udevadm verify is not there (systemd 254)")
    persist.write(drafts(kernel, root, *WORDS), root)
    done = subprocess.run([udevadm, "verify", root / "etc/udev/rules.d/61-spindle-sdx.rules"], capture_output=True)
    assert done.returncode == 0, done.stderr


def test_a_rule_has_the_grammar_of_udev(kernel: FakeKernel, root: Path) -> None:
    """For machines without `udevadm verify`: KEY{attribute}OPERATOR"value", joined by commas (udev(7))."""
    token = r'[A-Z]+(\{[a-z0-9_/]+\}|\{DEVTYPE\})?(==|=)"[^"\\]*"'
    for line in drafts(kernel, root, *WORDS, "write_cache=write back")[0].body.splitlines():
        assert line.startswith("#") or re.fullmatch(rf"{token}(, {token})*", line), line


def test_it_asks_before_it_writes(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from spindle.cli.main import invoke

    if not Path("/proc/sys/vm/swappiness").exists():
        pytest.skip("needs /proc/sys/vm")
    before = tree(root)
    assert invoke(["knobs", "persist", "vm.swappiness=10", "--root", str(root)]) == 3
    shown = capsys.readouterr()
    assert "vm.swappiness = 10" in shown.out
    assert "--yes confirms beforehand" in shown.err
    assert tree(root) == before
    assert invoke(["knobs", "persist", "vm.swappiness=10", "--root", str(root), "--yes"]) == 0
    assert persist.persisted(root) == {"vm.swappiness": "10"}
    assert invoke(["knobs", "persist", "--remove", "--root", str(root), "--json"]) == 0
    assert tree(root) == before
