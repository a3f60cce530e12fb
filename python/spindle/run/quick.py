"""A quick look: a device's rates in about a minute, from reads (and a file of its own for the mix).

Each step is a preset with other numbers; each gives a record with its own verdicts.
"""

from __future__ import annotations

import stat
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from spindle import _core
from spindle.base import units
from spindle.host.errors import not_found
from spindle.host.testfile import TestFile
from spindle.result.record import (
    Knee,
    Level,
    QuickRecord,
    RunRecord,
    Step,
    Tool,
    Verdict,
    new_id,
    utc_now,
)
from spindle.result.target import Target
from spindle.run import knee, quick_findings, targets
from spindle.run.engine import AS_USUAL, EngineOptions
from spindle.run.errors import Usage
from spindle.run.files import OF_A_LOOK, ChosenSize, own_file, sized_file
from spindle.run.preparation import AS_IT_IS, PreflightOptions, QuietMachine, calm_machine, check_rights, look_at_place
from spindle.run.resolve import Overrides, ResolvedWorkload, resolve
from spindle.run.runner import LoadRunner
from spindle.run.targets import Opening, PathTarget, parse
from spindle.run.total_time import TotalTimeWatch
from spindle.run.watch import Watch

INTERVAL_NS = 250_000_000
"""Short intervals, so that short steps can be judged steady or not."""
SWEEP_LARGEST = 256
RISING = "random-read-rising"


@dataclass(frozen=True)
class Lengths:
    """Lengths of the steps, s."""

    step_s: float = 5
    sweep_step_s: float = 3
    zone_s: float = 3
    file_bytes: int | None = None
    """None: the size that the caches require, if space and time permit."""


A_MINUTE = Lengths()

_SEQUENTIAL: Overrides = (("direct", "true"), ("depth", "4"))
_RANDOM: Overrides = (
    ("write-fraction", "0"),
    ("fsync-fraction", "0"),
    ("size", "4KiB"),
    ("direct", "true"),
    ("workers", "1"),
    ("depth", "1"),
)
_MIX: Overrides = (("direct", "true"),)


@dataclass
class _QuickState:
    """The results so far."""

    lengths: Lengths
    whole: TotalTimeWatch
    steps: list[Step] = field(default_factory=list)
    runs: list[RunRecord] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    sweep: Knee | None = None
    stopped: bool = False

    def add(self, name: str, about: str, runs: list[RunRecord]) -> None:
        self.runs.extend(runs)
        self.steps.append(Step(name=name, about=about, runs=[run.id for run in runs]))


def _mode_of(place: Path) -> int:
    """0 if the path does not exist; the guard reports that."""
    try:
        return place.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except (OSError, ValueError) as error:
        raise not_found(place, error) from None


def quick(
    asked: str | None,
    watch: Watch,
    engine_options: EngineOptions = AS_USUAL,
    lengths: Lengths = A_MINUTE,
    preflight_options: PreflightOptions = AS_IT_IS,
) -> QuickRecord:
    """Look at a target; without one (or with a directory), at a test file made there."""
    check_rights(preflight_options)
    run_id, started = new_id(), utc_now()
    on = parse(asked or ".")
    if on.is_modelled:
        raise Usage(f"{asked}: a quick look needs real storage; use `spindle run` for a modelled machine")
    mode = _mode_of(on.place) if on.place is not None else 0
    made = stat.S_ISDIR(mode)
    whole = TotalTimeWatch(watch, _loads(lengths, made, stat.S_ISBLK(mode)))
    look, watch = _QuickState(lengths, whole), whole
    engine_options = replace(engine_options, interval_ns=INTERVAL_NS)
    with ExitStack() as stack:
        calm = stack.enter_context(calm_machine(on.place, preflight_options, watch))
        file, sized = None, None
        if made:
            folder = Path(on.asked)
            look_at_place(folder, preflight_options, watch)
            if lengths.file_bytes is None:
                file, sized = stack.enter_context(sized_file(folder, _random().spec, OF_A_LOOK, watch))
            else:
                file = stack.enter_context(own_file(folder, lengths.file_bytes, watch))
            on = PathTarget(str(file.path))
        at = _Place(on, file, sized, engine_options, calm)
        target, idle = _reads(at, watch, look)
        if not look.stopped:
            _mix(at, watch, look)
    watch.end()
    record = QuickRecord(
        id=run_id,
        started=started,
        tool=Tool(version=_core.__version__),
        target=target,
        preflight=idle,
        steps=look.steps,
        runs=look.runs,
        sweep=look.sweep,
        assessment=quick_findings.findings_of(target, look.steps, look.runs, look.sweep, look.skipped),
        verdicts=_verdicts(look),
        skipped=look.skipped,
    )
    return calm.outcome_in(record)


def _loads(lengths: Lengths, made: bool, device: bool) -> list[tuple[str, float]]:
    """Name and seconds of each load; of the rising concurrency the largest possible number."""
    points = SWEEP_LARGEST.bit_length()
    return [
        ("sequential-read", lengths.step_s),
        ("random-read", lengths.step_s),
        *[(RISING, lengths.sweep_step_s)] * points,
        *((name, lengths.zone_s) for name in ("first-part", "last-part") if device),
        *[("mix", lengths.step_s)][: int(made)],
    ]


@dataclass(frozen=True)
class _Place:
    """The target of the look, and the way to open it."""

    on: targets.Target
    file: TestFile | None
    sized: ChosenSize | None
    engine_options: EngineOptions
    calm: QuietMachine

    def open(self, resolved: ResolvedWorkload, watch: Watch) -> AbstractContextManager[LoadRunner]:
        how = Opening(engine_options=self.engine_options, calm=self.calm, file=self.file, sized=self.sized)
        return self.on.open(resolved, watch, how)


def _random() -> ResolvedWorkload:
    return resolve("randomio", _RANDOM)


def _reads(at: _Place, watch: Watch, look: _QuickState) -> tuple[Target, dict[str, object]]:
    """All read steps, with one claim on the target."""
    sequential = resolve("sdd-read", _SEQUENTIAL).with_overrides(_seconds(look.lengths.step_s))
    random = _random()
    with at.open(sequential, watch) as opened:
        target, idle = opened.target(sequential.spec), opened.idle()
        plan = [
            ("sequential-read", "sequential read, 1 MiB requests, 4 outstanding", sequential),
            (
                "random-read",
                "random read, 4 KiB, one at a time",
                random.with_overrides(_seconds(look.lengths.step_s)),
            ),
        ]
        for name, about, resolved in plan:
            if _one(opened, name, about, resolved, look):
                return target, idle
        look.whole.begins(RISING)
        swept = knee.sweep(
            opened,
            random.with_overrides(_seconds(look.lengths.sweep_step_s)),
            largest=SWEEP_LARGEST,
            on_point=lambda _point: look.whole.begins(RISING),
        )
        look.sweep, look.stopped = swept.knee, swept.stopped
        look.add(RISING, "random read, 4 KiB, rising concurrency", swept.runs)
        if not look.stopped:
            _zones(opened, sequential, look)
    return target, idle


def _zones(opened: LoadRunner, sequential: ResolvedWorkload, look: _QuickState) -> None:
    device = opened.device
    if device is None or not opened.target().traits.is_device:
        look.skipped.append("first against last part: the place of a file on the device is unknown; name the device")
        return
    for name, about, region in (
        ("first-part", "sequential read of the first 5 %", "0%-5%"),
        ("last-part", "sequential read of the last 5 %", "95%-100%"),
    ):
        if _one(
            opened, name, about, sequential.with_overrides([("region", region), *_seconds(look.lengths.zone_s)]), look
        ):
            return


def _mix(at: _Place, watch: Watch, look: _QuickState) -> None:
    if at.file is None:
        look.skipped.append("read/write mix: only a file made for the test is written; name a directory for one")
        return
    mix = resolve("oltp", _MIX).with_overrides(_seconds(look.lengths.step_s))
    with at.open(mix, watch) as opened:
        shares = ", ".join(f"{units.percent(stream.mix.write)} writes" for stream in mix.spec.streams)
        _one(opened, "mix", f"database mix: {shares}, {mix.spec.outstanding} outstanding", mix, look)


def _seconds(length: float) -> Overrides:
    return [("seconds", f"{length:g}")]


def _one(opened: LoadRunner, name: str, about: str, resolved: ResolvedWorkload, look: _QuickState) -> bool:
    """Measure one step; True if the look should stop."""
    look.whole.begins(name)
    measured = opened.measure(resolved, about)
    look.add(name, about, [measured.record])
    look.stopped = measured.stopped
    return measured.stopped


def _verdicts(look: _QuickState) -> list[Verdict]:
    found = knee.verdicts(look.sweep, stopped=False) if look.sweep is not None else []
    if look.stopped:
        found.insert(
            0,
            Verdict(
                check="interrupted",
                level=Level.INVALID,
                evidence=f"stopped after {len(look.steps)} steps: the look is partial",
                advice="run it again to its end",
                numbers={"steps": float(len(look.steps))},
            ),
        )
    return found
