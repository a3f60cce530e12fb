"""The machine file of a target: its own if it is modelled, else that of its block stack."""

from __future__ import annotations

from dataclasses import dataclass

from spindle import _core
from spindle.host.errors import TargetError
from spindle.inspect import inspect_stack, running
from spindle.inspect.machine import MeasuredDrive, machine_file, topmost
from spindle.inspect.model import Inventory
from spindle.prediction.calibration import calibrate
from spindle.run.errors import Usage
from spindle.run.targets import MachineTarget, PathTarget, Target
from spindle.run.watch import Watch


@dataclass(frozen=True)
class MachineFile:
    """A machine file and where it comes from."""

    text: str
    name: str
    """Its name in messages."""
    source: str
    """Where it comes from, for people."""
    limits: tuple[str, ...] = ()
    """Layers of the target that it leaves out."""


def machine_of(target: Target, watch: Watch, *, is_calibrated: bool = False) -> MachineFile:
    """The machine file of a target. `is_calibrated`: describe the device by a few seconds of reads, instead of by data
    sheets. Raises `Usage` or `TargetError`, one line each.
    """
    if isinstance(target, MachineTarget):
        if is_calibrated:
            raise Usage("`calibrate=`: a modelled machine has its numbers in its file; leave it out")
        return MachineFile(target.read(), target.asked, "its machine file")
    if not isinstance(target, PathTarget):
        raise Usage(f"{target.asked}: only a modelled machine, a device, a file or a folder has a prediction")
    if target.several is not None:
        raise Usage(f"{target.asked}: these are several; predict one of them")
    return _of_stack(target, watch, is_calibrated)


def _of_stack(target: PathTarget, watch: Watch, is_calibrated: bool) -> MachineFile:
    watch.step(f"inspecting {target.asked}")
    inventory = inspect_stack(target.asked, running())
    measured = calibrated(inventory, watch) if is_calibrated else None
    try:
        text = machine_file(inventory, _core.drive_names(), measured)
    except TargetError as error:
        raise TargetError(
            f"{error}; or measure it with `calibrate=True`, which reads the device for some seconds"
        ) from None
    source = f"the block stack of {target.asked}"
    if measured is not None:
        source += f", {topmost(inventory).id} measured by reads"
    return MachineFile(text, f"machine of {target.asked}", source, _left_out(inventory))


def calibrated(inventory: Inventory, watch: Watch) -> MeasuredDrive:
    """Measure the topmost device of a stack by reading it for some seconds. Raises as a run does."""
    return calibrate(PathTarget(topmost(inventory).path), watch)


def _left_out(inventory: Inventory) -> tuple[str, ...]:
    file_system = inventory.file_system(inventory.tops[0]) if inventory.tops else None
    if file_system is None:
        return ()
    return (f"the file system ({file_system.type}): its layout, journal and metadata; the load reaches the device",)
