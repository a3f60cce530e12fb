"""Preview of a plan: cells, trials, order, time, and changes of the machine."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spindle.campaign.commands import filled
from spindle.campaign.execution import CheckedPlan, trial_seconds
from spindle.campaign.order import Trial
from spindle.campaign.prepare import ReadyCell
from spindle.host.guard import consent_needed
from spindle.knobs.files import Files


@dataclass(frozen=True)
class Preview:
    """The preview of a plan."""

    ready: CheckedPlan
    first: Sequence[Trial]
    """The trials that are known in advance, in order."""
    changes: Sequence[str]
    """Changes of the machine, one line each."""

    @property
    def seconds(self) -> tuple[float, float] | None:
        """Shortest and longest time; None: unknown in advance."""
        each = trial_seconds(self.ready)
        at_once = max(1, len(self.ready.plan.hosts))
        return (each * self.ready.least / at_once, each * self.ready.most / at_once) if each is not None else None

    @property
    def machine_seconds(self) -> float | None:
        """Modelled machines: the machine's time for the smallest number of trials."""
        spans = [one.seconds for one in self.ready.prepared if one.on.is_modelled]
        known = [one for one in spans if one is not None]
        if not known or len(known) != len(spans):
            return None
        return sum(known) / len(known) * self.ready.least

    def to_dict(self) -> dict[str, Any]:
        """The preview as plain data."""
        plan = self.ready.plan
        return {
            "campaign": plan.name,
            "about": plan.about,
            "factors": {factor.name: factor.labels for factor in plan.all_factors},
            "cells": [dict(one.cell.levels) for one in self.ready.prepared],
            "trials": {"least": self.ready.least, "most": self.ready.most},
            "order": [{"block": one.block, "cell": dict(one.cell.levels)} for one in self.first],
            "seconds": list(self.seconds) if self.seconds is not None else None,
            "machine_seconds": self.machine_seconds,
            "changes": list(self.changes),
        }


def preview(ready: CheckedPlan) -> Preview:
    """Make the preview; it changes nothing. Raises as the knobs of a device."""
    first = ready.first
    lines = [line for one in ready.prepared for line in _changes(one)]
    return Preview(ready, first, [*_knobs(ready.prepared), *dict.fromkeys(lines)])


def _knobs(cells: Sequence[ReadyCell]) -> list[str]:
    """`loop3.scheduler: none -> bfq, kyber, put back after each trial`."""
    files = Files()
    found: dict[str, tuple[str, dict[str, None]]] = {}
    for prepared in cells:
        for setting in prepared.knobs() if not prepared.on.is_modelled else []:
            now = setting.place.value(setting.knob, files)
            if now != setting.value:
                before = now if now is not None else "not there now"
                found.setdefault(setting.address, (before, {}))[1][setting.value] = None
    return [
        f"{address}: {before} -> {', '.join(wanted)}; put back after each trial"
        for address, (before, wanted) in found.items()
    ]


def _changes(prepared: ReadyCell) -> list[str]:
    if prepared.on.is_modelled:
        return []
    lines = []
    if prepared.filesystem is not None:
        lines.append(
            f"{prepared.target}: all data on it is lost; {prepared.filesystem.type} is made on it for each trial"
            f"{_agrees(prepared)}"
        )
    elif prepared.create_bytes is not None:
        lines.append(f"{prepared.target}: made, a test file of {prepared.create_bytes} bytes, and removed at the end")
    elif prepared.writes:
        lines.append(f"{prepared.target}: all data on it is lost; the workload writes{_agrees(prepared)}")
    settings = prepared.settings
    for what, those in (("before each trial", settings.setup), ("after each trial", settings.teardown)):
        lines += [f"{what}: `{shlex.join(command)}`" for command in those]
    if prepared.load is not None:
        lines.append(f"as the load: `{shlex.join(filled(prepared.load.command, prepared.target))}`")
    return lines


def _agrees(prepared: ReadyCell) -> str:
    """The consent that it needs."""
    options = consent_needed(prepared.target)
    return f"; needs {' '.join(options)}" if options else ""
