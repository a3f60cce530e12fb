"""Checks that the state of the machine makes the figures comparable."""

from __future__ import annotations

from typing import Any

from spindle.base import units
from spindle.result.record import Level, MachineActivity, RunRecord, Sample, Verdict

STEAL = 0.02
"""Share of CPU time taken by the hypervisor that shows in latencies."""
OTHERS = 0.20
"""Share of all CPU time used by others that affects the load."""
BURST = 0.50
"""Share in one interval that affects the load's slowest requests, however short it was."""
BURST_SHARE = 0.05
"""Share of the run that bursts must take to affect a 99th percentile."""
SWAPPING_PER_S = 1.0
"""Pages a second: as before the run."""
ADVICE = {
    "other_io": "find the program (iotop, pidstat -d) and run again without it",
    "jobs": "wait until it has ended, or stop it, and run again",
    "cpu": "find the program (top) and run again without it",
    "governor": "`quiet_machine=True` sets the governor `performance` for the run",
    "throttling": "cool the machine and run again",
    "array_sync": "wait until it is done (cat /proc/mdstat; `quiet_machine=True` pauses a check), or repair the array",
    "self_test": "wait until it is done, or end it with smartctl --abort",
    "swap": "free memory, or switch swap off for the measurement (`quiet_machine=True`)",
    "watch": "repeat it with `spindle run` if a decision depends on it",
    "dirty_pages": 'write it out first (`sync="machine"`), or find the program that writes',
}
"""The remedy for each finding of the machine's checks."""
PASSING_SHARE = 0.05
"""Share of the run for which a setting may differ before the figures belong to two settings."""
SHOWN = 4
"""Number of changes that are named; the record has all."""


def settings_changed(record: RunRecord) -> list[Verdict]:
    """A run with two settings belongs to neither."""
    settings = record.settings
    if not settings.before:
        return []
    if settings.changed:
        named = ", ".join(f"{change.name}: {change.before} -> {change.after}" for change in settings.changed[:SHOWN])
        more = len(settings.changed) - SHOWN
        return [
            Verdict(
                check="settings",
                level=Level.INVALID,
                evidence=f"settings changed during the run: {named}{f' and {more} more' if more > 0 else ''}",
                advice="find who changes them (udev, tuned, another test) and run again",
                numbers={"changed": float(len(settings.changed))},
            )
        ]
    if settings.temporary:
        return [_passing(record)]
    return [
        Verdict(
            check="settings",
            level=Level.OK,
            evidence=f"{len(settings.before)} settings, all as before",
            numbers={"changed": 0.0},
        )
    ]


def _passing(record: RunRecord) -> Verdict:
    """Settings that were restored before the end; the longer they differed, the less the figures belong to either."""
    passing = record.settings.temporary
    seconds = max(record.figures.elapsed_ns / 1e9, 1e-9)
    longest = max(one.to_s - one.from_s for one in passing)
    named = ", ".join(
        f"{one.name}: {one.before} -> {one.during} from {units.seconds(round(one.from_s, 1))} to "
        f"{units.seconds(round(one.to_s, 1))}"
        for one in passing[:SHOWN]
    )
    more = len(passing) - SHOWN
    return Verdict(
        check="settings",
        level=Level.INVALID if longest > PASSING_SHARE * seconds else Level.WARN,
        evidence=f"settings were changed during the run and put back: {named}{f' and {more} more' if more > 0 else ''}",
        advice="find who changes them (udev, tuned, another test) and run again",
        numbers={"changed": float(len(passing)), "longest_s": longest},
    )


def during_the_run(record: RunRecord) -> list[Verdict]:
    """The machine's conditions during the load."""
    during = record.activity
    found = [verdict_of(finding, "during-") for finding in during.findings if finding["level"] != "ok"]
    if not any(verdict.check == "during-array-sync" and verdict.level is Level.INVALID for verdict in found):
        found += _working_arrays(during)
    return [*found, *_throttled(during), *_too_hot(during), *_swapped(during), *_steal(during), *_cpu_others(during)]


def _working_arrays(during: MachineActivity) -> list[Verdict]:
    """Arrays that resynced or checked for a part of the run and had finished before its end."""
    seen: dict[str, list[Sample]] = {}
    for sample in during.samples:
        for name, action in sample.array_actions.items():
            seen.setdefault(f"{name} was busy with its {action}", []).append(sample)
    return [
        Verdict(
            check="during-array-sync",
            level=Level.INVALID,
            evidence=f"{text} from {_begin(samples[0])} to {units.seconds(samples[-1].at_s)} of the run",
            advice="run again, now that it is done",
            numbers={"from_s": samples[0].at_s - samples[0].seconds, "to_s": samples[-1].at_s},
        )
        for text, samples in seen.items()
    ]


def _throttled(during: MachineActivity) -> list[Verdict]:
    if not during.throttle_events:
        return []
    first = next((sample for sample in during.samples if sample.throttle_events), None)
    return [
        Verdict(
            check="during-throttling",
            level=Level.WARN,
            evidence=f"CPUs were slowed down for heat {during.throttle_events} times during the run"
            + (f", first at {units.seconds(first.at_s)}" if first is not None else ""),
            advice="cool the machine, or lower the load, and run again",
            numbers={"events": float(during.throttle_events)} | ({"first_s": first.at_s} if first is not None else {}),
        )
    ]


def _too_hot(during: MachineActivity) -> list[Verdict]:
    """Drives that reached the temperature at which they slow themselves down."""
    found = []
    for name, limit in during.temperature_limits.items():
        samples = [sample for sample in during.samples if name in sample.temperatures]
        hottest = max(samples, key=lambda sample: sample.temperatures[name], default=None)
        if hottest is not None and (highest := hottest.temperatures[name]) >= limit:
            found.append(
                Verdict(
                    check="during-temperature",
                    level=Level.WARN,
                    evidence=f"{name} reached {highest:.0f} C at {units.seconds(hottest.at_s)}; from {limit:.0f} C on "
                    "it slows itself down",
                    advice="cool the drive and run again",
                    numbers={"celsius": highest, "limit_celsius": limit, "at_s": hottest.at_s},
                )
            )
    return found


def _swapped(during: MachineActivity) -> list[Verdict]:
    seconds = sum(sample.seconds for sample in during.samples)
    pages = sum(sample.swapped_pages or 0 for sample in during.samples)
    if not seconds or pages / seconds <= SWAPPING_PER_S:
        return []
    most = max(during.samples, key=lambda sample: (sample.swapped_pages or 0) / sample.seconds)
    return [
        Verdict(
            check="during-swap",
            level=Level.WARN,
            evidence=f"the machine swapped {units.count(pages)} pages during the run, most at "
            f"{units.seconds(most.at_s)}",
            advice=ADVICE["swap"],
            numbers={"pages": float(pages), "worst_at_s": most.at_s},
        )
    ]


def _steal(during: MachineActivity) -> list[Verdict]:
    if during.cpu_steal is None or during.cpu_steal <= STEAL:
        return []
    return [
        Verdict(
            check="during-steal",
            level=Level.WARN,
            evidence=f"the hypervisor took {units.percent(during.cpu_steal)} of the CPU time during the run"
            + _worst(during, "cpu_steal"),
            advice="the host is crowded: run again at another time and compare",
            numbers={"steal": during.cpu_steal},
        )
    ]


def _cpu_others(during: MachineActivity) -> list[Verdict]:
    """A little all of the time, or a lot some of the time."""
    mean = during.cpu_others
    if mean is None:
        return []
    seconds = sum(sample.seconds for sample in during.samples)
    burst_s = sum(sample.seconds for sample in during.samples if (sample.cpu_others or 0.0) > BURST)
    often = seconds > 0 and burst_s / seconds >= BURST_SHARE
    if mean <= OTHERS and not often:
        return []
    text = f"other programs used {units.percent(mean)} of all CPU time during the run"
    if mean <= OTHERS:
        text += f", and more than {units.percent(BURST)} for {units.seconds(round(burst_s, 1))}"
    return [
        Verdict(
            check="during-cpu",
            level=Level.WARN,
            evidence=text + _worst(during, "cpu_others"),
            advice="find the program (top) and run again without it",
            numbers={"others": mean, "burst_seconds": burst_s},
        )
    ]


def _worst(during: MachineActivity, name: str) -> str:
    """The worst interval, if there are several."""
    samples = [sample for sample in during.samples if getattr(sample, name) is not None]
    if len(samples) < 2:
        return ""
    worst = max(samples, key=lambda sample: float(getattr(sample, name)))
    return f" (worst: {units.percent(getattr(worst, name))} at {units.seconds(round(worst.at_s, 1))})"


def _begin(sample: Sample) -> str:
    return units.seconds(max(0.0, round(sample.at_s - sample.seconds, 1)))


def quiet_machine(record: RunRecord) -> list[Verdict]:
    """Settings that were changed to make the machine quiet must be restored; a warning lists what could not be made
    quiet.
    """
    prepared = record.preparation
    found = [
        Verdict(
            check="put-back",
            level=Level.WARN,
            evidence=f"{one.name} is not {one.before} again, as it was before the run: {one.reason}",
            advice="`spindle knobs diff` shows what is left changed, `spindle restore` tries again",
        )
        for one in prepared.changed_settings
        if one.restored is False
    ]
    found += [
        Verdict(check="quiet-machine", level=Level.WARN, evidence=note, advice="see `spindle help measurement`")
        for note in prepared.notes
    ]
    if prepared.changed_settings and not found:
        named = ", ".join(f"{one.name} {one.before} -> {one.during}" for one in prepared.changed_settings[:SHOWN])
        more = len(prepared.changed_settings) - SHOWN
        found.append(
            Verdict(
                check="quiet-machine",
                level=Level.OK,
                evidence=f"for the run: {named}{f' and {more} more' if more > 0 else ''}; put back",
                numbers={"changes": float(len(prepared.changed_settings))},
            )
        )
    return found


def preconditioned(record: RunRecord) -> list[Verdict]:
    """Flash that is not steady yet keeps changing while it is measured."""
    done = record.preparation.precondition
    if done is None or done.skipped:
        return []
    numbers = {"fill_bytes": float(done.fill_bytes), "load_bytes": float(done.load_bytes), "seconds": done.load_seconds}
    wrote = f"{units.size(done.fill_bytes)} in {done.passes} passes, then {done.load}"
    if not done.steady:
        return [
            Verdict(
                check="preconditioned",
                level=Level.WARN,
                evidence=f"{wrote} for {units.seconds(round(done.load_seconds))} without becoming steady",
                advice='give it longer: `precondition_time="2h"`',
                numbers=numbers,
            )
        ]
    return [
        Verdict(
            check="preconditioned",
            level=Level.OK,
            evidence=f"{wrote}, steady after {units.seconds(round(done.load_seconds))}",
            numbers=numbers,
        )
    ]


def fresh_drive(record: RunRecord) -> list[Verdict]:
    """A flash drive that was never used writes faster than it ever will again."""
    states = record.target.detail.get("flash_states") or []
    fresh = [slot for slot, state in enumerate(states) if state == "fresh"]
    written = record.figures.total_write_bytes
    if not fresh or not written:
        return []
    names = "the flash drive was" if len(states) == 1 else f"{len(fresh)} of {len(states)} drives were"
    counters = record.counters
    moved = counters.delta.get("flash_moved_bytes") if counters is not None else None
    how = f"; erased pages ran out, and collection moved {units.size(moved)}" if moved else " found erased pages"
    return [
        Verdict(
            check="fresh-drive",
            level=Level.WARN,
            evidence=f"{names} fresh: {units.size(written)} written{how}",
            advice='for the speed of a drive in use set `state = "used"` in its `[[drive]]`',
            numbers={"write_bytes": float(written), "fresh_drives": float(len(fresh))}
            | ({} if moved is None else {"moved_bytes": moved}),
        )
    ]


def target_changed(record: RunRecord) -> list[Verdict]:
    """A target that vanished or changed its size was not measured to the end."""
    trouble = record.target.detail.get("trouble")
    if not trouble:
        return []
    return [
        Verdict(
            check="target",
            level=Level.INVALID,
            evidence=str(trouble),
            advice="see what the kernel log (dmesg) says about it",
        )
    ]


def before_the_run(record: RunRecord) -> list[Verdict]:
    """The findings of the idle check, unchanged."""
    return [verdict_of(finding) for finding in record.preflight.get("findings", [])]


def verdict_of(finding: dict[str, Any], when: str = "before-") -> Verdict:
    """A finding of the machine's checks as a verdict."""
    return Verdict(
        check=when + finding["check"].replace("_", "-"),
        level=Level(finding["level"]),
        evidence=finding["text"],
        advice="" if finding["level"] == "ok" else ADVICE.get(finding["check"], ""),
        numbers={name: float(value) for name, value in finding.get("evidence", {}).items()},
    )
