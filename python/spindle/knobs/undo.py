"""The undo: works out from journals which value a knob should get back, and writes it.

A knob gets back the oldest value that a journal has. It must still have the latest value that Spindle left; otherwise
somebody else has changed it since, and it is reported and left alone. Knobs that move others (above all the scheduler)
are restored first, all others in the reverse order of the changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from spindle.base.plain import Plain
from spindle.host.errors import reason

from .catalogue import IOSCHED, SCHEDULER, Knob, Scope, known, may_move, movers_first
from .files import Files
from .journal import Change, Plan
from .places import KnobFolder

_STEP = "1"
"""Intermediate value on the way of a pair to 0 and 0."""
_PASSES = 3
"""Some knobs change each other; after the second pass only a check is left."""


class State(StrEnum):
    """State of a value that Spindle changed, before or after the undo."""

    CHANGED = "changed"
    """Still as Spindle left it: will be restored."""
    RESTORED = "restored"
    BACK = "back"
    """Somebody has restored it already."""
    REBOOT = "reset by reboot"
    CONFLICT = "conflict"
    """Somebody else has changed it since: left alone."""
    PERSISTED = "persisted"
    """Set at boot by the files of `spindle knobs persist`: left alone."""
    GONE = "gone"
    """The device or the knob no longer exists."""
    REPLACED = "replaced"
    """Another device has its name: left alone."""
    BUSY = "busy"
    """A running Spindle holds it."""
    FAILED = "failed"
    """The kernel refused the value."""
    UNKNOWN = "unknown"
    """This version of Spindle does not know the knob: left alone, and kept in the journal."""


@dataclass(frozen=True)
class Item(Plain):
    """One value of an undo."""

    knob: str
    """Its address: 'loop3.scheduler'."""
    start: str | None
    """The value before Spindle changed it."""
    left_at: str | None
    """The value that Spindle left; None: not known."""
    now: str | None
    state: State
    why: str = ""

    def __str__(self) -> str:
        start, now = self.start or "-", self.now or "-"
        match self.state:
            case State.CHANGED:
                return f"{self.knob}: {start} -> {now}"
            case State.RESTORED:
                return f"{self.knob}: {start} again"
            case State.BACK:
                return f"{self.knob}: {start} already"
            case State.REBOOT:
                return f"{self.knob}: {start}; the reboot had reset it"
            case State.CONFLICT:
                left = f"spindle had set {self.left_at}" if self.left_at else "spindle had changed it"
                return (
                    f"{self.knob}: conflict: {now} now, {left}, it was {start} before; somebody else has changed it "
                    f"since, left alone{self.why}"
                )
            case State.PERSISTED:
                return f"{self.knob}: {now}, as `spindle knobs persist` sets it at boot; left alone"
            case State.GONE:
                return f"{self.knob}: gone{self.why}; it was {start}"
            case State.REPLACED:
                return f"{self.knob}: left alone, another device has that name now; on the old one it was {start}"
            case State.BUSY:
                return f"{self.knob}: left to a running spindle{self.why}"
            case State.FAILED:
                return f"{self.knob}: {now}, not {start} again: {self.why}"
            case State.UNKNOWN:
                left = f", spindle had set {self.left_at}" if self.left_at else ""
                return (
                    f"{self.knob}: not known to this version of spindle, left alone; it was {start} before{left}; undo "
                    f"it with the version that changed it, or by hand, and then remove {self.why}"
                )


@dataclass(frozen=True)
class _Trace:
    """One knob through a series of changes."""

    knob: Knob
    start: str | None
    left_at: str | None
    ours: bool
    """Requested, or moved along with a requested change."""
    found: str | None
    """The value Spindle found first, if somebody else came between two changes: that value is the start then."""
    blind: bool
    """The last change may have moved it, and its outcome is not known."""
    loose: str | None
    """The value of a change with unknown outcome; '*': any value that its scheduler set."""


def concerned(change: Change) -> frozenset[str]:
    """Knobs that a change requested, moved, or may have moved. It also records the others."""
    asked = known(Scope(change.place["scope"]), change.knob)
    after = change.after if change.after is not None else change.before
    return frozenset(
        name
        for name, before in change.before.items()
        if name == change.knob or after.get(name) != before or (asked is not None and may_move(asked, name))
    )


def _explained(old: _Trace, before: str | None, change: Change) -> bool:
    """True if a change found the value that the one before it, or an undo of that, had left."""
    name = old.knob.name
    return (
        before in (old.left_at, old.start)
        or old.blind
        or (old.loose is not None and before == old.loose)
        or (old.loose is not None and before is not None and old.knob.values.may_become(old.loose, before))
        or (name.startswith(IOSCHED) and old.left_at is None)
        or any(before == plan.values.get(name) for plan in change.plans)
        or any(_moved_by(plan, name, old.knob.scope) for plan in change.plans)
    )


def _moved_by(plan: Plan, name: str, scope: Scope) -> list[str]:
    """Knobs of a plan that may have moved this knob."""
    return [mover for mover in plan.values if (knob := known(scope, mover)) is not None and may_move(knob, name)]


class Undo:
    """The undo of a series of changes (oldest first) at one place."""

    def __init__(
        self,
        place: KnobFolder,
        changes: Sequence[Change],
        files: Files,
        *,
        plans: Sequence[Plan] = (),
        rebooted: bool = False,
        persisted: Mapping[str, str] | None = None,
    ) -> None:
        self._place, self._files = place, files
        self._rebooted, self._persisted = rebooted, persisted or {}
        self._plans = plans
        self._now: dict[str, str | None] = {}
        self.unknown: list[str] = []
        """Knobs of these changes that this version does not know."""
        self._traces = self._follow(changes)
        self._order = movers_first(self._traces.items(), lambda one: one[1].knob)

    # --- looking ---

    def _value(self, knob: Knob) -> str | None:
        return self._place.value(knob, self._files)

    def _follow(self, changes: Sequence[Change]) -> dict[str, _Trace]:
        traces: dict[str, _Trace] = {}
        scheduler_seen = False
        for change in changes:
            seen = change.after is not None
            about = concerned(change)
            for name, before in change.before.items():
                knob = known(self._place.scope, name)
                if knob is None:
                    if name in about and name not in self.unknown:
                        self.unknown.append(name)
                    continue
                if name not in self._now:
                    self._now[name] = self._value(knob)
                asked = name == change.knob
                old = (
                    traces.pop(name, None) if asked else traces.get(name)
                )  # the latest requested one is restored first
                after = change.after.get(name) if change.after is not None else None
                # A parameter that came with an elevator of ours did not exist at the start.
                first = None if scheduler_seen and name.startswith(IOSCHED) else before
                start, found = (old.start, old.found) if old else (first, None)
                if old is not None and not _explained(old, before, change):
                    start, found = first, old.found or old.start
                traces[name] = _Trace(
                    knob=knob,
                    start=start,
                    found=found,
                    left_at=after if seen else before,
                    ours=(old is not None and old.ours) or asked or (seen and after != before),
                    blind=not seen and not asked and name in about,
                    loose=None if seen or name not in about else (change.wanted if asked else self._loose(change)),
                )
            for name in (change.after or {}).keys() - change.before.keys() & traces.keys():
                # Removed with an elevator and back again, with its default.
                traces[name] = replace(traces[name], left_at=(change.after or {})[name], loose=None, blind=False)
            scheduler_seen = scheduler_seen or change.knob == SCHEDULER
        return dict(reversed(traces.items()))

    def _loose(self, change: Change) -> str | None:
        """The value a change with unknown outcome may have given this knob; any, if the change came about."""
        knob = known(self._place.scope, change.knob)
        if knob is None:
            return None
        if change.knob not in self._now:
            self._now[change.knob] = self._value(knob)
        return "*" if self._now[change.knob] != change.before.get(change.knob) else None

    def _is_ours(self, name: str, trace: _Trace) -> bool:
        """True if the current value is the one that Spindle left."""
        now = self._now[name]
        if now == trace.left_at or trace.loose == "*":
            return True
        if any(name in plan.values and now == plan.values[name] for plan in self._plans):
            return True  # an undo got this far
        partner = trace.knob.zero_of
        if now == _STEP and any(plan.values.get(name) == plan.values.get(partner or "") == "0" for plan in self._plans):
            return True  # ... and was killed between two steps
        if trace.loose is not None and now is not None:
            return now == trace.loose or trace.knob.values.may_become(trace.loose, now)
        return self._half_undone(name)

    def _half_undone(self, name: str) -> bool:
        """True if an undo was killed after it changed the mover (such as the scheduler) and before the knob itself."""
        return any(
            self._now.get(mover) == plan.values[mover]
            for plan in self._plans
            if name in plan.values
            for mover in _moved_by(plan, name, self._place.scope)
        )

    def _kept_value(self, name: str) -> str | None:
        """Somebody else's value, which a killed undo had yet to set again."""
        plan = next((plan for plan in reversed(self._plans) if name in plan.foreign), None)
        if plan is None or not (self._half_undone(name) or self._now[name] == plan.values[name]):
            return None
        return plan.values[name]

    def _comes_back(self, name: str, trace: _Trace) -> bool:
        """True for a parameter of the replaced elevator: it returns, with its default, once that change is undone."""
        scheduler = self._traces.get(SCHEDULER)
        return (
            name.startswith(IOSCHED)
            and (trace.left_at is None or trace.loose == "*")
            and scheduler is not None
            and self._state(SCHEDULER, scheduler) is State.CHANGED
        )

    def items(self) -> list[Item]:
        """The changed values, in the order in which they would be restored."""
        found = []
        scheduler = self._traces.get(SCHEDULER)
        foreign = scheduler is not None and scheduler.ours and self._state(SCHEDULER, scheduler) is State.CONFLICT
        for name, trace in self._order:
            state = self._state(name, trace)
            if foreign and scheduler is not None and may_move(scheduler.knob, name) and state is State.CHANGED:
                state = State.CONFLICT  # it belongs to somebody else's scheduler now
            if name.startswith(IOSCHED) and trace.start is None:
                continue  # it came with a scheduler of ours and disappears with it
            if trace.ours or (state is State.CHANGED and (trace.loose == "*" or self._half_undone(name))):
                found.append(self._item(name, trace, state))
        return found

    def _state(self, name: str, trace: _Trace) -> State:
        now = self._now[name]
        if self._kept_value(name) is not None:
            return State.CONFLICT
        if now == trace.start:
            return State.REBOOT if self._rebooted else State.BACK
        if now is None:
            return State.CHANGED if self._comes_back(name, trace) else State.GONE
        if trace.start is None and not name.startswith(IOSCHED):
            return State.GONE  # it could not be read before, so there is nothing to go back to
        if not self._is_ours(name, trace):
            return State.CONFLICT
        address = self._place.address(trace.knob)
        if self._rebooted and self._persisted.get(address) == now:
            return State.PERSISTED
        return State.CHANGED

    def _item(self, name: str, trace: _Trace, state: State, why: str = "") -> Item:
        return Item(self._place.address(trace.knob), trace.start, trace.left_at, self._now[name], state, why)

    # --- putting back ---

    @property
    def plan(self) -> Plan:
        """The plan for the journal: the values to write, and the knobs they may move."""
        targets = self.targets
        written = [name for name, to in targets.items() if to is not None and self._now[name] != to]
        moving = [self._traces[name].knob for name in written]
        values = {
            name: to for name, to in targets.items() if name in written or any(may_move(one, name) for one in moving)
        }
        foreign = {name for item, name in self._named(self.items()) if item.state is State.CONFLICT}
        return Plan(values, frozenset(foreign & values.keys()))

    @property
    def targets(self) -> dict[str, str | None]:
        """The value that each knob will get (None: the kernel's choice). Values that somebody else set stay, also where
        the scheduler would reset them."""
        states = {item.knob: item.state for item in self.items()}
        found: dict[str, str | None] = {}
        for name, trace in self._order:
            state = states.get(self._place.address(trace.knob))
            if state is State.CONFLICT and (kept := self._kept_value(name)) is not None:
                found[name] = kept
            elif state is None:  # not ours: it stays as it is, even if the scheduler resets it
                found[name] = trace.start if self._is_ours(name, trace) else self._now[name]
            else:
                found[name] = trace.start if state in (State.CHANGED, State.BACK, State.REBOOT) else self._now[name]
        return found

    def put_back(self) -> list[Item]:
        """Restore the values and check them."""
        before, targets = self.items(), self.targets
        failures: dict[str, str] = {}
        for _ in range(_PASSES):
            wrong = [
                (trace.knob, target)
                for name, trace in self._order
                if (target := targets[name]) is not None
                and (now := self._value(trace.knob)) is not None
                and now != target
            ]
            if not wrong:
                break
            for knob, target in wrong:
                # The scheduler, written earlier in this pass, may have removed or corrected the knob.
                if (now := self._value(knob)) is not None and now != target:
                    failures.pop(knob.name, None)
                    if (trouble := self._write(knob, target, targets)) is not None:
                        failures[knob.name] = trouble
        return [self._outcome(item, name, targets, failures) for item, name in self._named(before)]

    def _named(self, items: Iterable[Item]) -> list[tuple[Item, str]]:
        names = {self._place.address(trace.knob): name for name, trace in self._traces.items()}
        return [(item, names[item.knob]) for item in items]

    def _outcome(self, item: Item, name: str, targets: Mapping[str, str | None], failures: Mapping[str, str]) -> Item:
        trace = self._traces[name]
        now, target = self._value(trace.knob), targets[name]
        state, why = item.state, item.why
        if now is not None and target is not None and now != target:
            state, why = State.FAILED, failures.get(name, "the kernel set another value")
        elif item.state is State.CHANGED:
            state = State.RESTORED
        elif item.state is State.CONFLICT and now is None:
            why = "; it went with the scheduler"
        start = item.start
        if trace.found is not None and state in (State.RESTORED, State.BACK, State.REBOOT):
            state, start = State.CONFLICT, trace.found
        shown = item.now if item.state is State.CONFLICT and now is None else now
        return Item(item.knob, start, item.left_at, shown, state, why)

    def _write(self, knob: Knob, target: str, targets: Mapping[str, str | None]) -> str | None:
        """Write a value. Return the kernel's error, if any."""
        path = self._place.path(knob)
        if path is None:
            return None
        partner = known(self._place.scope, knob.zero_of) if knob.zero_of is not None else None
        try:
            if target != "0" or partner is None:
                self._place.write(knob, target, self._files)
                return None
            # 0 means that the partner is in force. So the partner is written, and the kernel sets this one to 0.
            there = self._place.path(partner)
            if targets.get(partner.name, "0") in ("0", None) and there is not None and knob.name.endswith("bytes"):
                # Both are 0. Some kernels accept a ratio as new only if it differs.
                self._place.write(partner, _STEP, self._files)
                self._place.write(partner, "0", self._files)
            elif targets.get(partner.name) in ("0", None):
                self._place.write(knob, target, self._files)
        except OSError as error:
            return reason(error)
        return None
