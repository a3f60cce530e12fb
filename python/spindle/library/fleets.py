"""`spindle fleet`: one load on many hosts, from the arguments to the hosts side by side."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from spindle.fleet import comparison
from spindle.fleet.comparison import FACTOR, KIND, FleetComparison
from spindle.fleet.crew import HostCrew
from spindle.fleet.hosts import Host, check_consent, consents, read
from spindle.fleet.launch import LOST, Launch, Member
from spindle.lab.load import find_agent
from spindle.library.arguments import Name, public
from spindle.library.options import overrides_of
from spindle.library.session import Progress, watched
from spindle.library.shown import Printable
from spindle.run.errors import Usage
from spindle.run.resolve import Overrides, ResolvedWorkload, resolve
from spindle.run.watch import Watch
from spindle.store import PlannedTrial, Store, open_store

if TYPE_CHECKING:
    from spindle.report.terminal.style import Style


@dataclass(frozen=True, kw_only=True)
class FleetOptions:
    """The hosts of a call, and what was agreed to for each."""

    hosts: Name
    """A file with name, destination of ssh and target of each."""
    erase: Sequence[str] = ()
    """`HOST:DEVICE`."""
    erase_content: Sequence[str] = ()
    """Hosts."""
    erase_stacked: Sequence[str] = ()
    """Hosts."""
    agent: Name | None = None
    """The binary for hosts without spindle-agent."""
    all_or_none: bool = False
    """Start nothing unless every host is ready."""

    def crew(self) -> HostCrew:
        """The hosts, with their consents and the agent. Raises errors of one line."""
        from spindle import __version__

        found = read(Path(os.fspath(self.hosts)))
        agreed = consents(found, self.erase, self.erase_content, self.erase_stacked)
        return HostCrew(found, agreed, agent_for(self.agent, found), __version__)


class FleetResult(Printable):
    """The hosts of a run side by side. `print` shows them as a table."""

    def __init__(self, found: FleetComparison, status: int = 0) -> None:
        self.comparison = found
        """Figures of each host, of all together, and the hosts that are slow or missing."""
        self.status = status
        """Exit status: 0 if every host has a valid result, else the worst of theirs."""

    def _data(self) -> object:
        data = msgspec.to_builtins(self.comparison)
        assert isinstance(data, dict)
        return data | {"slow": self.comparison.slow}

    def page(self, style: Style) -> list[str]:
        """As `Printable`."""
        from spindle.report.terminal.fleet import fleet_page

        return fleet_page(self.comparison, style)

    def __repr__(self) -> str:
        return f"<Fleet {self.comparison.name}: {len(self.comparison.missing)} hosts without a result>"


@public
def fleet(
    workload: Name,
    hosts: Name,
    *,
    erase: Sequence[str] = (),
    erase_content: Sequence[str] = (),
    erase_stacked: Sequence[str] = (),
    name: str | None = None,
    store: Name | None = None,
    agent: Name | None = None,
    all_or_none: bool = False,
    progress: Progress = False,
    **keys: object,
) -> FleetResult:
    """Run one load on many hosts at one instant, and compare the hosts.

    `workload`, `keys`: as of `spindle.run`. `hosts`: a file with name, destination of ssh and target of each
    (docs/reference/fleet.md). `erase`: `HOST:DEVICE`, the consent to lose the data of that device; `erase_content`,
    `erase_stacked`: hosts whose device may be other than empty, or built of other devices. `name`: of the run in the
    store; by default made of the time. `agent`: the binary for hosts without spindle-agent. `all_or_none`: nothing
    starts unless every host is ready. `progress`: a live line on stderr. Hosts without a valid result are in
    `comparison.missing`. Raises `spindle.Error`.
    """
    options = FleetOptions(
        hosts=hosts,
        erase=erase,
        erase_content=erase_content,
        erase_stacked=erase_stacked,
        agent=agent,
        all_or_none=all_or_none,
    )
    return launched(workload, options, overrides_of(keys), watched(progress), name=name or new_name(), store=store)


def new_name() -> str:
    """A name made of the time."""
    return f"fleet-{datetime.now(UTC):%Y%m%dT%H%M%S}"


def launched(
    workload: Name,
    options: FleetOptions,
    overrides: Overrides,
    watching: AbstractContextManager[Watch],
    *,
    name: str,
    store: Name | None,
) -> FleetResult:
    """Run a load on all hosts of a file at one instant. Raises errors of one line; what becomes of single hosts is in
    the result."""
    crew = options.crew()
    load = _load(os.fspath(workload), overrides)
    _check_consents(load, crew)
    detail: dict[str, Any] = {
        "kind": KIND,
        "workload": load.name,
        "source": load.source,
        "overrides": list(load.overrides),
        "consents": sorted(crew.consents),
    }
    with open_store(store) as opened:
        trials = [PlannedTrial(block=1, cell={FACTOR: host.name}, detail=_described(host)) for host in crew.hosts]
        opened.campaigns.create(name, plan=load.text, seed=load.spec.seed, trials=trials, detail=detail)
        return _carried_out(name, opened, crew, load, watching, options.all_or_none)


def resumed(
    name: str,
    options: FleetOptions,
    watching: AbstractContextManager[Watch],
    *,
    again: Sequence[str] = (),
    store: Name | None,
) -> FleetResult:
    """Run the hosts of a run that have not begun, and those of `again`. Consent is given anew. Raises errors of one
    line."""
    crew = options.crew()
    with open_store(store, create=False) as opened:
        campaign = opened.campaigns.get(name)
        comparison.compared(campaign, opened)  # of a fleet
        detail = campaign.detail
        load = _resolved(campaign.plan, detail)
        known = {trial.cell[FACTOR]: trial for trial in opened.campaigns.trials(name)}
        source = os.fspath(options.hosts)
        for host in crew.hosts:
            if host.name not in known:
                raise Usage(f"{source}: {host.name} was not a host of {name}; begin another run with it")
            if dict(known[host.name].detail) != _described(host):
                raise Usage(f"{source}: {host.name} is not as it was when {name} began; begin another run")
        for one in again:
            if one not in known:
                raise Usage(f"`again=` {one}: not a host of {name}")
        _check_consents(load, crew)
        return _carried_out(name, opened, crew, load, watching, options.all_or_none, again)


def compared(name: str, store: Name | None) -> FleetResult:
    """The hosts of a run, from the store. Raises errors of one line."""
    with open_store(store, read_only=True) as opened:
        return FleetResult(comparison.compared(opened.campaigns.get(name), opened))


def _carried_out(
    name: str,
    opened: Store,
    crew: HostCrew,
    load: ResolvedWorkload,
    watching: AbstractContextManager[Watch],
    all_or_none: bool,
    again: Sequence[str] = (),
) -> FleetResult:
    with watching as watch, opened.campaigns.hold(name, given_up=LOST) as hold:
        numbers = {trial.cell[FACTOR]: trial.number for trial in hold.trials()}
        hold.plan_again([numbers[one] for one in again])
        trials = {trial.cell[FACTOR]: trial for trial in hold.trials() if trial.state == "planned"}
        members = [Member(host=host, trial=trials[host.name]) for host in crew.hosts if host.name in trials]
        if members:
            hold.set_state("running")
            launch = Launch(members, load, crew.consents, hold, watch, crew.version)
            try:
                launch.carry_out(crew.agent, all_or_none)
            finally:
                noted = hold.campaign.detail | opened.campaigns.get(name).detail
                noted["hosts"] = noted.get("hosts", {}) | {one.host.name: _noted(one) for one in members}
                ended = all(trial.state not in ("planned", "running") for trial in hold.trials())
                hold.set_state("done" if ended else "stopped", noted)
    found = comparison.compared(opened.campaigns.get(name), opened)
    status = max((one.status for one in members), default=0)
    return FleetResult(found, status or (1 if found.missing else 0))


def _noted(one: Member) -> dict[str, Any]:
    """Facts about a host that its record does not have."""
    clock = {"clock_offset_ns": one.clock.offset_ns, "clock_error_ns": one.clock.error_ns} if one.clock else {}
    return {"state": one.state, "reason": one.reason, "skews_ns": one.skews_ns} | clock


def _described(host: Host) -> dict[str, Any]:
    """As the store has it."""
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(host))
    return {key: value for key, value in found.items() if value not in (None, [])}


def _load(workload: str, overrides: Overrides) -> ResolvedWorkload:
    load = resolve(workload, overrides)
    _check_load(load)
    return load


def _resolved(text: str, detail: dict[str, Any]) -> ResolvedWorkload:
    from spindle.run.resolve import resolve_text

    overrides = [(str(key), str(value)) for key, value in detail["overrides"]]
    return resolve_text(text, detail["source"], detail["workload"], overrides)


def _check_load(load: ResolvedWorkload) -> None:
    if load.spec.makes_files:
        raise Usage(f"workload {load.name}: works on sets of files, which spindle-agent does not make; take another")


def _check_consents(load: ResolvedWorkload, crew: HostCrew) -> None:
    for host in crew.hosts:
        check_consent(host, crew.consents.get(host.name), load.spec.writes)


def agent_for(asked: Name | None, hosts: Sequence[Host]) -> Path | None:
    """The binary for the hosts that have none. Raises errors of one line."""
    if all(host.agent is not None for host in hosts):
        return None
    if asked is None:
        return find_agent()
    path = Path(os.fspath(asked))
    if not path.is_file():
        raise Usage(f"`agent=` {path}: no such file; `make agent` builds build/spindle-agent")
    return path
