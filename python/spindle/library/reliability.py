"""`spindle.array_risk` and `array_advice`: the risk of an array, and the array that suits the drives that are there."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from spindle import _core
from spindle.advice import purpose as purposes
from spindle.advice.alternatives import Alternative, Conditions, alternatives
from spindle.advice.script import FileSystem, Step, steps
from spindle.base.offers import Uncertain
from spindle.host.signatures import UnknownContent, signatures_of
from spindle.inspect.gather import inspect_stack
from spindle.inspect.model import Device
from spindle.inspect.tree import running
from spindle.library.arguments import public
from spindle.library.options import within
from spindle.library.shown import Printable
from spindle.prediction.rebuild import rebuild_hours as simulated_hours
from spindle.reliability.drives import ASSUMED_RATE, DriveSet, of_model, of_size, parse_drives
from spindle.reliability.group import GROUPED, Group, Wear
from spindle.reliability.loss import Loss, loss
from spindle.reliability.montecarlo import Estimate, estimate
from spindle.report.terminal import advice as advice_page
from spindle.report.terminal import reliability as risk_page
from spindle.report.terminal.reliability import Input
from spindle.report.terminal.style import Style
from spindle.run.errors import Usage

UNDER_LOAD = 3.0
"""A rebuild beside other load may take this many times as long as on an idle array; it bounds the interval."""


class Risk(Printable, Struct, frozen=True, kw_only=True):
    """The probability that an array loses data."""

    group: Group
    loss: Loss
    least: float
    """Probability with the favourable end of each input."""
    most: float
    """Probability with the unfavourable end of each input."""
    inputs: list[Input]
    estimate: Estimate | None
    """A Monte Carlo simulation of the same array; None: not asked for."""

    def page(self, style: Style) -> list[str]:
        """As `Printable`."""
        return risk_page.page(self.group, self.loss, (self.least, self.most), self.inputs, self.estimate, style)


class Advice(Printable, Struct, frozen=True, kw_only=True):
    """The array that suits the drives, the alternatives, and the commands that set it up."""

    drives: DriveSet
    purpose: str
    conditions: Conditions
    alternatives: list[Alternative]
    """The best first."""
    steps: list[Step]
    """The setup of the first alternative."""

    @property
    def best(self) -> Alternative:
        """The chosen array."""
        return self.alternatives[0]

    @property
    def script(self) -> str:
        """The setup as a shell script. Read it before you run it."""
        return "".join(f"# {step.reason}\n{step.command}\n" for step in self.steps)

    def page(self, style: Style) -> list[str]:
        """As `Printable`."""
        return advice_page.page(
            self.drives, purposes.purpose_of(self.purpose), self.conditions, self.alternatives, self.steps, style
        )


@public
def array_risk(
    level: str,
    drives: str,
    *,
    layout: str = "n2",
    groups: int = 1,
    spares: int = 0,
    afr: float | None = None,
    ure_per_bit: float | None = None,
    rebuild_hours: float | None = None,
    replace_hours: float = 24.0,
    latent_per_year: float = 0.0,
    scrub_days: float | None = 30.0,
    batch_correlation: float = 1.0,
    wear_shape: float = 1.0,
    age_years: float = 0.0,
    years: float = 1.0,
    simulate: bool = False,
    seed: int = 1,
) -> Risk:
    """Compute the probability that an array loses data.

    `level`: raid0, raid1, raid4, raid5, raid6, raid10, raid50 or raid60. `drives`: `8x18TB`, or `8xMODEL` of the
    catalogue, whose sheet gives `afr` (share that fails in a year) and `ure_per_bit`; the spares come in addition.
    `rebuild_hours`: None, simulated for a model, assumed for a size. `years`: the time looked at. `simulate`: also by
    Monte Carlo. `docs/explanation/reliability.md` explains the model. Raises `spindle.Error`.
    """
    within(years, "`years=`", 0.01, 100)
    of = _with_given(parse_drives(drives), afr, ure_per_bit)
    rebuild, rebuild_source = _rebuild(of, level, layout, groups, rebuild_hours)
    group = Group(
        level=level,
        layout=layout,
        drives=of.count,
        groups=groups,
        spares=spares,
        afr=of.afr.value,
        ure_per_bit=of.unreadable_rate.value,
        capacity_bytes=float(of.capacity_bytes),
        rebuild_hours=rebuild.value,
        replace_hours=replace_hours,
        latent_per_year=latent_per_year,
        scrub_days=scrub_days,
        batch_correlation=batch_correlation,
        wear=Wear(shape=wear_shape, age_years=age_years),
    )
    return Risk(
        group=group,
        loss=loss(group, years),
        least=loss(_at(group, of.afr.least, of.unreadable_rate.least, rebuild.least), years).probability,
        most=loss(_at(group, of.afr.most, of.unreadable_rate.most, rebuild.most), years).probability,
        inputs=_inputs(of, group, rebuild, rebuild_source),
        estimate=estimate(group, years, lives=60_000, within=0.05, seed=seed) if simulate else None,
    )


@public
def array_advice(
    drives: str,
    *,
    purpose: str = "mixed",
    survive: int = 1,
    spares: int | None = None,
    most_loss: float = 0.02,
    replace_hours: float = 24.0,
    batch_correlation: float = 1.0,
    file_system: str = "xfs",
) -> Advice:
    """Advise on an array of drives that are already there. Nothing is executed or written.

    `drives`: `6x12TB`, `6xMODEL` of the catalogue, or devices such as `/dev/sdb,/dev/sdc,/dev/sdd`. `purpose`:
    database, mixed, stream or archive. `survive`: drives of which any may fail. `spares`: None, 0 and 1 are compared.
    `most_loss`: largest yearly probability of a loss. `file_system`: xfs, ext4 or none. Raises `spindle.Error`.
    """
    if purpose not in purposes.NAMES:
        raise Usage(f"`purpose=` {purpose!r} is unknown; allowed are {', '.join(purposes.NAMES)}")
    if file_system not in ("xfs", "ext4", "none"):
        raise Usage(f"`file_system=` {file_system!r} is unknown; allowed are xfs, ext4 and none")
    within(survive, "`survive=`", 1, 3)
    within(most_loss, "`most_loss=`", 0, 1)
    if spares is not None:
        within(spares, "`spares=`", 0, 8)
    of, devices = _devices(drives.split(",")) if drives.startswith("/") else (parse_drives(drives), None)
    conditions = Conditions(
        survive=survive,
        spares=spares,
        most_loss=most_loss,
        replace_hours=replace_hours,
        batch_correlation=batch_correlation,
    )
    found = alternatives(of, purposes.purpose_of(purpose), conditions)
    kind: FileSystem = file_system  # type: ignore[assignment]
    return Advice(
        drives=of,
        purpose=purpose,
        conditions=conditions,
        alternatives=found,
        steps=steps(found[0], of, devices, kind),
    )


def _with_given(of: DriveSet, afr: float | None, unreadable: float | None) -> DriveSet:
    """The drives with the rates that the caller gives, which have no range."""
    changes: dict[str, object] = {}
    if afr is not None:
        within(afr, "`afr=`", 0, 0.999)
        changes |= {"afr": Uncertain(afr, afr, afr), "afr_source": "given"}
    if unreadable is not None:
        within(unreadable, "`ure_per_bit=`", 0, 1e-6)
        changes |= {
            "unreadable_rate": Uncertain(unreadable, unreadable, unreadable),
            "unreadable_source": "given",
        }
    return msgspec.structs.replace(of, **changes)


def _rebuild(of: DriveSet, level: str, layout: str, groups: int, given: float | None) -> tuple[Uncertain, str]:
    """Hours of a rebuild with their range, and their source."""
    if given is not None:
        return Uncertain(given, given, given), "given"
    if of.model is None or level == "raid0":
        hours = of.capacity_bytes / ASSUMED_RATE / 3600
        source = f"assumed: {ASSUMED_RATE / 1e6:.0f} MB/s"
    else:
        Group(level=level, layout=layout, drives=of.count, groups=groups, afr=0, capacity_bytes=1, rebuild_hours=1)
        one = GROUPED.get(level, level)
        hours = simulated_hours(of.model, one, of.count // groups, layout=layout)
        source = "simulated on an idle array"
    return Uncertain(hours, hours, UNDER_LOAD * hours), f"{source}; up to {UNDER_LOAD:.0f} times beside other load"


def _at(group: Group, afr: float, unreadable: float, rebuild: float) -> Group:
    return msgspec.structs.replace(group, afr=afr, ure_per_bit=unreadable, rebuild_hours=rebuild)


def _inputs(of: DriveSet, group: Group, rebuild: Uncertain, rebuild_source: str) -> list[Input]:
    given = "given or default"
    wear = group.wear
    found = [
        Input("failures a year", of.afr, "share", of.afr_source),
        Input("unreadable bits", of.unreadable_rate, "rate", of.unreadable_source),
        Input("rebuild", rebuild, "hours", rebuild_source),
        Input("replacement", _exact(group.replace_hours), "hours", given),
    ]
    if group.latent_per_year:
        found.append(Input("latent errors a drive and year", _exact(group.latent_per_year), "number", given))
        if group.scrub_days is not None:
            found.append(Input("scrub interval", _exact(group.scrub_days), "days", given))
    if group.batch_correlation != 1:
        found.append(Input("batch correlation", _exact(group.batch_correlation), "number", given))
    if wear.shape != 1:
        found.append(Input("Weibull shape", _exact(wear.shape), "number", given))
        found.append(Input("age of the drives", _exact(wear.age_years), "years", given))
    return found


def _exact(value: float) -> Uncertain:
    return Uncertain(value, value, value)


def _devices(paths: Sequence[str]) -> tuple[DriveSet, list[str]]:
    """The drives behind device paths. Reads only. Raises `Usage`."""
    names = [path.strip() for path in paths]
    if len(set(names)) < len(names):
        raise Usage("`drives=`: a device is named twice")
    found = [_device(name) for name in names]
    models = {_catalogued(device.drive.model if device.drive else None) for device in found}
    model = models.pop() if len(models) == 1 else None
    smallest = min(device.size_bytes or 0 for device in found)
    of = of_model(len(names), model) if model else of_size(len(names), smallest)
    return msgspec.structs.replace(of, capacity_bytes=smallest), names


def _device(name: str) -> Device:
    """An empty block device that nothing uses. Raises `Usage`."""
    inventory = inspect_stack(name, running())
    device = next((each for each in inventory.devices if each.id in inventory.tops), None)
    if device is None or not device.size_bytes:
        raise Usage(f"`drives=`: {name} is not a block device whose size can be read")
    if device.above:
        raise Usage(f"`drives=`: {name} is in use by {', '.join(device.above)}; give empty drives")
    try:
        fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
        try:
            content = signatures_of(fd)
        finally:
            os.close(fd)
    except (OSError, UnknownContent) as error:
        raise Usage(f"`drives=`: {name}: its content cannot be read: {error}") from None
    if content:
        kinds = ", ".join(map(str, content))
        raise Usage(f"`drives=`: {name} has content ({kinds}); give empty drives, or their number and size")
    return device


def _catalogued(model: str | None) -> str | None:
    """The drive of the catalogue whose name a model's words contain."""
    words = (model or "").replace("-", " ").split()
    return next((name for name in _core.drive_names() if name in words or name == model), None)
