"""Plans whose trials are carried out on several hosts: every host has the cells of the plan, on storage of its own, in
the same order and at the same time. What a host cannot do is refused beforehand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

from spindle.campaign.cells import Cell
from spindle.campaign.plan import HOST, Plan, PlanHost, Settings, Trials
from spindle.knobs.asking import value_of
from spindle.knobs.catalogue import KNOBS, Scope, knob, movers_first
from spindle.result.record import Record
from spindle.run.errors import Usage
from spindle.run.resolve import ResolvedWorkload
from spindle.run.runner import LoadRunner
from spindle.run.targets import AS_IT_IS, Opening
from spindle.run.targets.null import is_named
from spindle.run.watch import Watch
from spindle.store import CampaignHold, Trial

_STORED = "hosts"
"""Key of the hosts in the detail of a campaign."""
_HERE_ONLY = ("kernel", "machine", "filesystem", "setup", "teardown", "load")
"""Settings that `spindle-agent` does not carry out."""
_ON_HOSTS = (Scope.DEVICE, Scope.VM, Scope.RAID)
"""Those of CPUs and interrupts have names that differ from host to host."""


@dataclass(frozen=True)
class OnHost:
    """The target of a host. It is opened there, by the guard of that host."""

    host: str
    target: str
    is_modelled = False
    place = None
    several = None

    @property
    def refusals(self) -> Mapping[str, str]:
        """See `Target`: `check_possible` names what is refused."""
        return {}

    @property
    def asked(self) -> str:
        """See `Target`."""
        return f"{self.host}:{self.target}"

    @property
    def keeps_nothing(self) -> bool:
        """True for the null target."""
        return is_named(self.target)

    def open(
        self, resolved: ResolvedWorkload, watch: Watch, how: Opening = AS_IT_IS
    ) -> AbstractContextManager[LoadRunner]:
        """See `Target`: never here."""
        raise AssertionError("trials on hosts are carried out by a crew")


@dataclass(frozen=True, kw_only=True)
class HostTrial:
    """A trial that a host is to carry out."""

    trial: Trial
    host: str
    workload: ResolvedWorkload
    create_bytes: int | None
    destroys: bool
    """True if it writes over data, so that it begins at most once."""
    knobs: Mapping[str, Any]
    """Settings that the host changes for it, as `knobs_of` has them."""


class Crew(Protocol):
    """The hosts of a campaign. They are asked through `fleet`."""

    @property
    def given_up(self) -> str:
        """Reason of trials whose end is not known, as the process that had begun them was killed."""

    @property
    def lost(self) -> Mapping[str, Mapping[str, Any]]:
        """Hosts that are not asked any more -> `reason`, and the exit `status`."""

    def check(self, destroyed: Sequence[str]) -> None:
        """Raise Usage unless there is consent to lose the data of these hosts, which are named once for each cell."""

    def carry_out(
        self, step: Sequence[HostTrial], rules: Trials, held: CampaignHold, watch: Watch, label: str
    ) -> Sequence[tuple[Trial, Record]]:
        """Carry out the trials at the same time. Each is claimed in the store before its host is asked, and ended
        there. Returns the valid results. Raises Stopped.
        """


def on_hosts(plan: Plan, hosts: Sequence[PlanHost]) -> Plan:
    """The plan, carried out on these hosts; none: here. Raises Usage."""
    if not hosts:
        return plan
    if plan.search is not None:
        raise Usage(f"{plan.source}: design.kind: a search goes on on one machine; leave `hosts=` out")
    if any(factor.name == HOST for factor in plan.factors):
        raise Usage(
            f"{plan.source}: factors.{HOST}: with `hosts=` this is the factor of the hosts; give it another name"
        )
    return replace(plan, hosts=tuple(hosts))


def described(plan: Plan) -> dict[str, Any]:
    """The hosts as the detail of the campaign has them."""
    return {_STORED: [asdict(one) for one in plan.hosts]} if plan.hosts else {}


def stored_hosts(detail: Mapping[str, Any]) -> list[PlanHost]:
    """The hosts of a stored campaign; none: it was carried out here. Raises KeyError or TypeError."""
    return [PlanHost(**one) for one in detail.get(_STORED, ())]


def check_possible(plan: Plan, cell: Cell) -> None:
    """Raise Usage for a setting that a host does not carry out, naming the factor that sets it."""
    for key in _HERE_ONLY:
        if getattr(cell.settings, key) not in ({}, (), None, False):
            raise Usage(f"{plan.source}: {_set_by(plan, key)}: hosts only carry out loads; leave it out, or `hosts=`")
    if cell.settings.target != plan.always.target:
        raise Usage(
            f"{plan.source}: {_set_by(plan, 'target')}: the file of hosts says the target of each; leave it out"
        )


def knobs_of(settings: Settings, target: str, where: str) -> dict[str, Any]:
    """The settings that a host is to change, and those that these may move, as `spindle-agent` takes them; empty: none.
    Raises Usage or KnobUsage.
    """
    wanted = []
    for name, text in settings.knobs.items():
        one = knob(name.removeprefix("dev.") if name.startswith("dev.raid.") else name)
        if one.scope not in _ON_HOSTS:
            raise Usage(
                f"{where}: knobs.{name}: hosts change settings of their target, of vm and of raid; leave it out"
            )
        if one.scope is Scope.DEVICE and is_named(target):
            raise Usage(f"{where}: knobs.{name}: {target} is no device; name one in the file of hosts, or leave it out")
        wanted.append((one, value_of(one, str(text), f"knobs.{name}={text}")))
    for one, _ in wanted:
        if any(other.scope is one.scope and other.name == one.zero_of for other, _ in wanted):
            raise Usage(
                f"{where}: knobs.{one.id} and its counterpart {one.zero_of} exclude each other; give one of them"
            )
    scopes = {one.scope for one, _ in wanted}
    known = [one for one in movers_first(KNOBS, lambda one: one) if one.scope in scopes]
    if not wanted:
        return {}
    return {
        "wanted": [
            {"scope": one.scope, "name": one.name, "value": value}
            for one, value in movers_first(wanted, lambda pair: pair[0])
        ],
        "known": [
            {
                "scope": one.scope,
                "name": one.name,
                "files": one.where,
                "zero_of": one.zero_of,
                "disturbs": one.disturbs,
            }
            for one in known
        ],
    }


def _set_by(plan: Plan, key: str) -> str:
    """`factors.scheduler: knobs.scheduler`, or the key of the plan itself."""

    def named(settings: Settings) -> str | None:
        found = getattr(settings, key)
        if found in ({}, (), None, False):
            return None
        return f"{key}.{next(iter(found))}" if isinstance(found, dict) else key

    for factor in plan.factors:
        for level in factor.levels:
            if (word := named(level.settings)) is not None:
                return f"factors.{factor.name}: {word}"
    return named(plan.always) or key
