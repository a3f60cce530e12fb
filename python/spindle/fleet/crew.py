"""The hosts of a campaign: each step of it is a launch, in which every host carries out the same cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from spindle.base.words import listed
from spindle.campaign.hosts import HostTrial
from spindle.campaign.plan import PlanHost, Trials
from spindle.host.signals import Stopped
from spindle.result.record import Record
from spindle.run.errors import Usage
from spindle.run.watch import Watch
from spindle.store import CampaignHold, Trial

from .hosts import Consent, Host, check_consent
from .launch import LOST, Launch, Member

PATIENCE = 2
"""Failures of a host one after another, after which it is not asked any more."""


@dataclass
class HostCrew:
    """As `campaign.hosts.Crew`."""

    hosts: Sequence[Host]
    consents: Mapping[str, Consent]
    agent: Path | None
    """spindle-agent for hosts that have none."""
    version: str
    lost: dict[str, dict[str, Any]] = field(default_factory=dict)
    _failures: Counter[str] = field(default_factory=Counter)
    given_up = LOST

    @property
    def of_plan(self) -> list[PlanHost]:
        """The hosts, as a plan has them."""
        return [PlanHost(name=one.name, target=one.target, create=one.create) for one in self.hosts]

    def check_same(self, hosts: Sequence[PlanHost], source: str) -> None:
        """Raise Usage unless these hosts are those that a campaign began with; some may be missing now."""
        known = {one.name: one for one in hosts}
        for one in self.of_plan:
            if known.get(one.name) != one:
                raise Usage(f"{source}: {one.name} is not as it was when the campaign began; begin another one")
        if missing := [name for name in known if name not in {one.name for one in self.hosts}]:
            raise Usage(f"{source}: {listed(missing[:8])}: hosts of the campaign that are not in the file")

    def check(self, destroyed: Sequence[str]) -> None:
        """As `Crew`: a device is written to again and again, so its content is no reason to refuse it."""
        for host in self.hosts:
            consent = self.consents.get(host.name)
            check_consent(host, consent, host.name in destroyed)
            if consent is not None and host.name in destroyed and not consent.content:
                raise Usage(
                    f"{host.name}: the second trial finds what the first one wrote to {host.target}; agree with "
                    f"`erase_content=` {host.name} too"
                )

    def carry_out(
        self, step: Sequence[HostTrial], rules: Trials, held: CampaignHold, watch: Watch, label: str
    ) -> Sequence[tuple[Trial, Record]]:
        """As `Crew`."""
        known = {host.name: host for host in self.hosts}
        members = [
            Member(
                host=_with_file(known[one.host], one.create_bytes),
                trial=one.trial,
                repeats=rules.repeats,
                once=one.destroys,
            )
            for one in step
        ]
        consents = {one.host: self.consents[one.host] for one in step if one.destroys}
        launch = Launch(
            members,
            step[0].workload,
            consents,
            held,
            watch,
            self.version,
            tolerate=rules.tolerate,
            label=label,
            knobs={one.host: one.knobs for one in step if one.knobs},
        )
        launch.carry_out(self.agent, all_or_none=False)
        if launch.stopped_by is not None:
            raise Stopped(launch.stopped_by)
        for one in members:
            self._judge(one, watch)
        return [(one.trial, one.record) for one in members if one.state == "done" and one.record is not None]

    def _judge(self, one: Member, watch: Watch) -> None:
        """Say what became of it; a host that refuses, or fails again and again, is lost."""
        name = one.host.name
        if one.state == "done":
            self._failures[name] = 0
            return
        self._failures[name] += one.state == "failed"
        watch.say(f"spindle: {name}: trial {one.trial.number} {one.state}: {one.reason}")
        if one.state == "failed" and (one.status != 1 or self._failures[name] >= PATIENCE):
            self.lost[name] = {"reason": one.reason, "status": one.status}
            watch.say(f"spindle: {name}: lost, its other trials are left")


def _with_file(host: Host, create_bytes: int | None) -> Host:
    return replace(host, create=str(create_bytes)) if create_bytes is not None else host
