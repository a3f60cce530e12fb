"""Knobs of arrays, drives, CPUs and interrupts, on laid-out files in the kernel's formats."""

from __future__ import annotations

from pathlib import Path

import pytest

from spindle.knobs import asking
from spindle.knobs.errors import KnobRefusal, KnobUsage
from spindle.knobs.places import named
from spindle.knobs.session import Outcome, Session
from tests.knobs.kernel_of_files import FakeKernel


def lay(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")
    return path


def turn(kernel: FakeKernel, *words: str) -> dict[str, tuple[str | None, Outcome]]:
    """Results of the changes; everything is undone at the end."""
    before = kernel.state()
    device = named("sdx", kernel.machine)
    with Session("with", kernel.machine, kernel) as session:
        done = session.change(asking.settings(device, words, kernel.machine))
    assert kernel.state() == before
    return {one.knob: (one.after, one.outcome) for one in done}


def test_limits_of_md_go_back_to_those_of_the_machine(kernel: FakeKernel) -> None:
    class Md(FakeKernel):
        """A kernel that prints '(system)' or '(local)' after the number, as drivers/md/md.c does."""

        def other_program_writes(self, path: Path, text: str) -> None:
            if path.name.startswith("sync_speed"):
                text = "1000 (system)" if text == "system" else f"{text} (local)"
            super().other_program_writes(path, text)

    md = Md(kernel.machine.sys.parent / "md")
    lay(md.queue("x").parent.parent / "md/sync_speed_min", "1000 (system)")
    lay(md.queue("x").parent.parent / "md/stripe_cache_size", "256")
    assert turn(md, "sync_speed_min=50000", "stripe_cache_size=4096") == {
        "sdx.sync_speed_min": ("50000", Outcome.SET),
        "sdx.stripe_cache_size": ("4096", Outcome.SET),
    }
    assert ("sync_speed_min", "system") in md.writes


def test_depth_and_cache_of_a_scsi_drive(kernel: FakeKernel) -> None:
    drive = kernel.queue("x").parent.parent
    lay(drive / "device/queue_depth", "31")
    lay(drive / "device/scsi_disk/0:0:1:0/cache_type", "write back")
    assert turn(kernel, "queue_depth=1", "cache_type=write-through") == {
        "sdx.queue_depth": ("1", Outcome.SET),
        "sdx.cache_type": ("write through", Outcome.SET),
    }


def test_a_governor_is_set_for_every_policy_and_named_by_any_of_its_cpus(kernel: FakeKernel) -> None:
    cpus = kernel.machine.sys / "devices/system/cpu"
    for policy in (0, 2):
        lay(cpus / f"cpufreq/policy{policy}/scaling_governor", "schedutil")
        lay(cpus / f"cpufreq/policy{policy}/scaling_available_governors", "performance schedutil")
    for cpu in range(4):
        (cpus / f"cpu{cpu}").mkdir()
        (cpus / f"cpu{cpu}/cpufreq").symlink_to(cpus / f"cpufreq/policy{cpu // 2 * 2}")
    assert set(turn(kernel, "cpu.governor=performance")) == {"cpu0.governor", "cpu2.governor"}
    assert set(turn(kernel, "cpu3.governor=performance")) == {"cpu2.governor"}
    with pytest.raises(KnobUsage, match="not a value of governor"):
        turn(kernel, "cpu.governor=fast")


def test_interrupts_are_set_by_number_or_for_a_device(kernel: FakeKernel) -> None:
    controller = kernel.machine.sys / "devices/pci0000:00/0000:00:02.0"
    for number in (35, 36):
        lay(kernel.machine.proc / f"irq/{number}/smp_affinity_list", "0-3")
        lay(controller / f"msi_irqs/{number}", "msix")
    (controller / "virtio1").mkdir()
    drive = kernel.add("vdx", "252:0")
    for path in sorted((drive / "device").iterdir()):
        path.unlink()
    (drive / "device").rmdir()
    (drive / "device").symlink_to(controller / "virtio1")
    settings = asking.settings(named("vdx", kernel.machine), ["irq.smp_affinity_list=0,1"], kernel.machine)
    assert [(one.address, one.value) for one in settings] == [
        ("irq35.smp_affinity_list", "0-1"),
        ("irq36.smp_affinity_list", "0-1"),
    ]
    assert turn(kernel, "irq36.smp_affinity_list=2,3") == {"irq36.smp_affinity_list": ("2-3", Outcome.SET)}


def test_an_interrupt_that_the_kernel_manages_refuses(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    lay(kernel.machine.proc / "irq/40/smp_affinity_list", "1")

    def refuse(path: Path, text: str) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(kernel, "write", refuse)
    with pytest.raises(KnobRefusal, match="input/output error"):
        turn(kernel, "irq40.smp_affinity_list=0")


@pytest.mark.parametrize("text", ["", "\0\0", "ünïcode", "x" * 10_000_000, "[", "none [", "1 (system"])
def test_garbage_in_a_file_is_refused_or_shown_and_never_a_traceback(kernel: FakeKernel, text: str) -> None:
    for name in ("scheduler", "nr_requests", "read_ahead_kb"):
        lay(kernel.queue(name), text)
    place = named("sdx", kernel.machine)
    for one in place.knobs(kernel):
        place.value(one, kernel)
        place.offered(one, kernel)
