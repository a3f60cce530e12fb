"""One load on all hosts: connect, claim, start together, collect.

A host's trial is claimed in the store before its agent gets the order, so that no load begins twice, whatever is
killed. A host that fails is out; the others go on.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from spindle.formats import agent as documents
from spindle.host.signals import ENDING
from spindle.knobs.undo import Item, State
from spindle.result.document import Unreadable
from spindle.result.record import Level, PhasesRecord, RunRecord
from spindle.run.resolve import ResolvedWorkload
from spindle.run.watch import Moment, Watch
from spindle.store import CampaignHold, Trial

from . import commands
from .channel import SILENT_S, Channel
from .clock import ClockOffset
from .errors import HostError
from .hosts import Consent, Host

LEAD_NS = 300_000_000
"""From the order to the start: every host has it by then, and reads its counters once more."""
LOOK_S = 0.5
RESTORE_S = 15.0
"""For the settings of a host: an agent that has lost its orders notices after 6 s."""
LOST = "the process that gave the orders ended; whether the load ran is not known"
"""Reason of trials that a killed process left running."""


@dataclass
class Member:
    """A host of the run, and what became of it."""

    host: Host
    trial: Trial
    repeats: int = 0
    """Times that the trial is made again after a failure."""
    once: bool = True
    """Its load writes over data, so that it is not made again if it may have begun and its end is not known."""
    state: str = "planned"
    """`planned`: not begun; `running`; `done`; `invalid`: its verdicts are; `failed`."""
    reason: str = ""
    status: int = 0
    """Exit status for the whole: 0 fine, 1 failed or invalid, 2 usage, 3 refused for safety."""
    record: RunRecord | PhasesRecord | None = None
    run_id: str | None = None
    clock: ClockOffset | None = None
    skews_ns: list[int] = field(default_factory=list)
    """For each phase: its start there less the common start, on this machine's clock."""
    channel: Channel | None = None
    phase: int = 0
    starts_at_ns: int = 0
    requests: int = 0
    bytes: int = 0
    elapsed_ns: int = 0
    errors: int = 0
    has_changed: bool = False
    """Settings of the host may be changed: its agent had the order, and has not reported yet that they are back."""

    @property
    def may_be_again(self) -> bool:
        """True if the trial may be made again although its end is not known."""
        if not self.starts_at_ns:
            return self.repeats > 0  # its load never began
        return not self.once and self.trial.attempts <= self.repeats

    @property
    def is_open(self) -> bool:
        """True while its agent may report."""
        return self.channel is not None


class Launch:
    """The run of one load. `members` has every host in the order of the file, also after an error."""

    def __init__(
        self,
        members: Sequence[Member],
        workload: ResolvedWorkload,
        consents: Mapping[str, Consent],
        hold: CampaignHold,
        watch: Watch,
        version: str,
        *,
        tolerate: Sequence[str] = (),
        label: str = "",
        knobs: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        """`tolerate`: verdicts that may be invalid. `label`: begins the lines of progress. `knobs`: host -> settings
        that it changes until its result, as `campaign.hosts.knobs_of` has them."""
        self.members = list(members)
        self._workload, self._consents, self._hold, self._watch = workload, consents, hold, watch
        self._version, self._tolerate, self._label = version, tolerate, f"{label}: " if label else ""
        self._knobs = knobs or {}
        self._begun_at = 0.0
        self.stopped_by: int | None = None
        """The signal that stopped all loads."""

    def carry_out(self, agent: Path | None, all_or_none: bool) -> None:
        """Run it to its end. `agent`: the binary for hosts without one. `all_or_none`: nothing starts unless every
        host is ready."""
        asyncio.run(self._all(agent, all_or_none))

    async def _all(self, agent: Path | None, all_or_none: bool) -> None:
        loop = asyncio.get_running_loop()
        before = {number: signal.getsignal(number) for number in ENDING}
        for number in ENDING:
            loop.add_signal_handler(number, self._hang_up, number)
        showing = asyncio.ensure_future(self._show())
        try:
            self._watch.step(f"{self._label}connecting to {len(self.members)} hosts")
            await self._each(self.members, lambda one: self._connect(one, agent))
            if self._may_begin(all_or_none):
                await self._run(all_or_none)
        finally:
            showing.cancel()
            await asyncio.gather(*(self._put_back(one, agent) for one in self.members if one.has_changed))
            await asyncio.gather(*(one.channel.close() for one in self.members if one.channel is not None))
            blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)  # between two handlers, one would kill
            for number, handler in before.items():
                loop.remove_signal_handler(number)
                signal.signal(number, handler)
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            self._watch.end()

    async def _run(self, all_or_none: bool) -> None:
        self._claim()
        await self._each(self._open(), self._order)
        self._watch.step(f"{self._label}hosts prepare their targets")
        await self._each(self._open(), self._advance)
        while self._open() and self._may_begin(all_or_none):
            await self._each(self._open(), self._set_clock)
            start_ns = time.monotonic_ns() + LEAD_NS
            self._begun_at = time.monotonic()
            await self._each(self._open(), lambda one, start_ns=start_ns: self._start(one, start_ns))  # type: ignore[misc]
            await self._each(self._open(), self._advance)
            all_or_none = False  # once begun, one that is lost does not spoil the others

    def _open(self) -> list[Member]:
        return [one for one in self.members if one.is_open]

    def _may_begin(self, all_or_none: bool) -> bool:
        if not all_or_none or all(one.is_open for one in self.members):
            return True
        for one in self._open():
            self._end(one, "failed", "not started: another host was not ready, and all or none were asked for", 1, True)
        return False

    async def _each(self, members: Sequence[Member], work: Callable[[Member], Coroutine[Any, Any, None]]) -> None:
        """Do it for all at once. A host that fails is out."""

        async def one(member: Member) -> None:
            try:
                await work(member)
            except HostError as error:
                # Refusals come before anything is written, so these trials may begin again.
                again = error.exit_code != 1 or member.may_be_again
                member.has_changed &= not error.reported
                self._end(member, "failed", error.why, error.exit_code, again=again)
                if member.channel is not None:
                    await member.channel.close()
                    member.channel = None

        await asyncio.gather(*(one(member) for member in members))

    # --- one host ---

    async def _connect(self, one: Member, agent: Path | None) -> None:
        channel = await Channel.open(one.host, agent if one.host.agent is None else None)
        one.channel = channel
        channel.check_version(self._version)

    def _claim(self) -> None:
        ready = self._open()
        for one, trial in zip(ready, self._hold.claim([one.trial.number for one in ready]), strict=True):
            one.trial, one.state = trial, "running"

    async def _order(self, one: Member) -> None:
        assert one.channel is not None
        consent = self._consents.get(one.host.name, Consent())
        if knobs := self._knobs.get(one.host.name):
            one.has_changed = True
            await one.channel.order("knobs", target=one.host.target, **knobs)
            while (found := await one.channel.report()).get("kind") != "knobs":
                continue
            self._say_restored(one, found, is_left=True)
        words = commands.of_run(one.host, consent, self._workload.overrides)
        load = self._workload
        await one.channel.order("run", options=words, name=load.name, source=load.source, toml=load.text)

    async def _set_clock(self, one: Member) -> None:
        assert one.channel is not None
        await one.channel.measure_clock()
        one.clock = one.channel.clock

    async def _start(self, one: Member, start_ns: int) -> None:
        assert one.channel is not None
        one.starts_at_ns = start_ns
        await one.channel.order("start", at_ns=one.channel.clock.there(start_ns))

    async def _advance(self, one: Member) -> None:
        """To the next phase that is ready, or to the result."""
        assert one.channel is not None
        limit: float | None = None
        while True:
            found = await one.channel.report(limit)
            match found.get("kind"):
                case "started":
                    one.skews_ns.append(one.channel.clock.here(int(found["at_ns"])) - one.starts_at_ns)
                    limit = None if self._reads_back else SILENT_S
                case "progress":
                    one.requests, one.bytes = int(found["requests"]), int(found["bytes"])
                    one.elapsed_ns, one.errors = int(found["elapsed_ns"]), int(found["errors"])
                case "restored":
                    self._say_restored(one, found, is_left=not one.has_changed)
                    one.has_changed = False
                case "ready":
                    one.phase = int(found["phase"])
                    return
                case "result":
                    self._keep(one, found)
                    await one.channel.close()
                    one.channel = None
                    return

    def _say_restored(self, one: Member, found: dict[str, Any], is_left: bool) -> None:
        """Print settings that could not be put back, and those that were, if a killed agent left them (`is_left`)."""
        for item in (Item(**{**each, "state": State(each["state"])}) for each in found["items"]):
            if item.state in (State.CONFLICT, State.FAILED, State.BUSY):
                self._watch.say(f"spindle: {one.host.name}: {item}")
            elif item.state is State.RESTORED and is_left:
                self._watch.say(f"spindle: {one.host.name}: restored after its agent was killed: {item}")

    async def _put_back(self, one: Member, agent: Path | None) -> None:
        """Settings of a host whose agent was lost: another session there puts back what is left, or says that it is
        done."""
        if one.channel is not None:
            await one.channel.close()
            one.channel = None
        name = one.host.name
        try:
            channel = await Channel.open(one.host, agent if one.host.agent is None else None)
            try:
                await channel.order("restore")
                found = await channel.report(RESTORE_S)
            finally:
                await channel.close()
        except HostError as error:
            self._watch.say(
                f"spindle: {name}: lost while settings of it were changed ({error.why}); its agent puts them back when "
                "its orders end, and the next session after a crash; `spindle-agent restore` there says so"
            )
            return
        one.has_changed = False
        self._say_restored(one, found, is_left=True)
        if not found["items"]:
            self._watch.say(f"spindle: {name}: its settings are back, although its agent was lost")

    @property
    def _reads_back(self) -> bool:
        return any(stream.verify for load in self._workload.spec.loads for stream in load.streams)

    def _keep(self, one: Member, found: dict[str, Any]) -> None:
        data = msgspec.json.encode(found["document"])
        try:
            one.record = documents.read(data, one.host.name)
        except Unreadable as error:
            self._end(one, "failed", str(error), 1, False)
            return
        runs = one.record.runs if isinstance(one.record, PhasesRecord) else [one.record]
        found_bad = [each for run in runs for each in run.verdicts if each.level is Level.INVALID]
        invalid = next((each for each in found_bad if each.check not in self._tolerate), None)
        if invalid is not None:
            # Its end is known. One that was stopped by Ctrl-C goes on with the campaign.
            again = one.trial.attempts <= one.repeats or (self.stopped_by is not None and one.repeats > 0)
            self._end(one, "invalid", f"{invalid.check}: {invalid.evidence}", 1, again)
            return
        one.state = "done"
        one.run_id = self._hold.finish(one.trial, one.record)

    def _end(self, one: Member, state: str, reason: str, status: int, again: bool) -> None:
        """Note a trial without a valid result; one that was not claimed stays planned."""
        begun = one.state == "running"
        one.state, one.reason, one.status = state, reason, status
        if begun:
            one.run_id = self._hold.reject(one.trial, state, reason, record=one.record, again=again)

    def _hang_up(self, number: int) -> None:
        """Ctrl-C: the agents stop their loads; what they measured is kept."""
        self.stopped_by = number
        self._watch.say("spindle: stopping on all hosts; the figures up to now are kept")
        for one in self._open():
            assert one.channel is not None
            one.channel.hang_up()

    async def _show(self) -> None:
        before = 0
        while True:
            await asyncio.sleep(LOOK_S)
            running = [one for one in self._open() if one.skews_ns]
            if not running or not self._begun_at:
                continue
            requests = sum(one.requests for one in running)
            longest = max(one.elapsed_ns for one in running) / 1e9
            if requests == before or longest <= 0:
                continue
            before = requests
            self._watch.moment(
                Moment(
                    label=f"{self._label}{len(running)} of {len(self.members)} hosts",
                    phase="measure",
                    done_fraction=None,
                    left_s=None,
                    iops=requests / longest,
                    bytes_per_s=sum(one.bytes for one in running) / longest,
                    errors=sum(one.errors for one in running),
                )
            )
