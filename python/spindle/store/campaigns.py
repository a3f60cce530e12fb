"""Campaigns: planned trials, their results, and the process that runs them."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
from sqlalchemy import Connection, delete, func, insert, select

from spindle.result.record import Record, new_id

from . import schema
from .adding import Document, add
from .check import campaign_problems
from .database import Database
from .errors import StoreRefused, StoreUsage
from .lock import Lock, lock_of
from .recordings import Recording, add_recording
from .rows import canonical, digest
from .seal import insert_sealed, seal_all, sealed, update_sealed
from .times import now
from .words import storable

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class PlannedTrial:
    """A trial to run."""

    block: int
    cell: Mapping[str, str]
    """Factor -> level, as text."""
    detail: Mapping[str, Any] = field(default_factory=dict)
    """The campaign's own data for it (JSON), for example its seed."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A planned trial and its result."""

    key: int
    number: int
    """From 1, in the order of the plan."""
    block: int
    cell: dict[str, str]
    detail: dict[str, Any]
    state: str
    """`planned`, `running`, `done`; `failed` or `invalid` after its last attempt."""
    attempts: int
    """Number of attempts, including a running one."""
    reason: str
    """Reason for the outcome of the last attempt; empty if it succeeded."""
    run_id: str | None
    """Id of the last attempt's record."""
    started: str | None
    ended: str | None


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One attempt at a trial."""

    trial: int
    """Its number."""
    attempt: int
    """From 1."""
    state: str
    """`running`, `done`, `failed` or `invalid`."""
    reason: str
    run_id: str | None
    started: str
    ended: str | None


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """A plan that is being run, or was."""

    key: int
    id: str
    name: str
    plan: str
    """Its text."""
    seed: int
    created: str
    state: str
    """`planned`, `running`, `stopped` or `done`, as set by `set_state`."""
    detail: dict[str, Any]


class Campaigns:
    """The campaigns of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(
        self,
        name: str,
        *,
        plan: str,
        seed: int,
        trials: Sequence[PlannedTrial],
        detail: Mapping[str, Any] | None = None,
    ) -> Campaign:
        """Create a campaign with all its trials, in one transaction. Raises StoreUsage if the name is taken or
        invalid.
        """
        check_name(name)
        row = {
            "id": new_id(),
            "name": name,
            "plan": plan,
            "seed": str(seed),
            "created": now(),
            "state": "planned",
            "detail": canonical(detail or {}),
            "planned": len(trials),
        }

        def work(connection: Connection) -> Campaign:
            there = _find(connection, name)
            if there is not None:
                if there.id == row["id"]:
                    return there  # the answer was lost on the way
                raise StoreUsage(
                    f"campaign {name}: it exists already, since {there.created[:10]}; resume it, or give another name"
                )
            insert_sealed(connection, schema.campaigns, row)
            made = _get(connection, name)
            _plan(connection, made.key, trials)
            return made

        return self._database.write(work)

    def find(self, name: str) -> Campaign | None:
        """Find a campaign by name or id."""
        return self._database.read(lambda connection: _find(connection, name))

    def get(self, name: str) -> Campaign:
        """Find a campaign by name or id. Raises StoreUsage that lists the existing ones."""
        return self._database.read(lambda connection: _get(connection, name))

    def all(self) -> list[Campaign]:
        """All campaigns, the oldest first."""
        query = select(schema.campaigns).order_by(schema.campaigns.c.key)
        return self._database.read(lambda connection: [_campaign(row) for row in connection.execute(query)])

    def trials(self, name: str) -> list[Trial]:
        """Its trials in order."""
        return self._database.read(lambda connection: _trials(connection, _get(connection, name).key))

    def attempts(self, name: str) -> list[Attempt]:
        """Every attempt at every trial in order, with the failed ones."""
        return self._database.read(lambda connection: _attempts(connection, _get(connection, name).key))

    def fingerprint(self, name: str) -> str:
        """SHA-256 over the results of a campaign: trials, attempts and documents, but no clock times.

        Equal for two campaigns with identical results, no matter how often they were interrupted.
        """

        def work(connection: Connection) -> str:
            key = _get(connection, name).key
            query = (
                select(
                    schema.trials.c.number,
                    schema.trials.c.block,
                    schema.trials.c.cell,
                    schema.trials.c.state,
                    schema.attempts.c.attempt,
                    schema.attempts.c.state,
                    schema.attempts.c.reason,
                    schema.records.c.id,
                    schema.records.c.sha256,
                )
                .select_from(
                    schema.trials.outerjoin(schema.attempts).outerjoin(
                        schema.records, schema.records.c.key == schema.attempts.c.record_key
                    )
                )
                .where(schema.trials.c.campaign_key == key)
                .order_by(schema.trials.c.number, schema.attempts.c.attempt)
            )
            return digest(msgspec.json.encode([list(row) for row in connection.execute(query)]))

        return self._database.read(work)

    @contextmanager
    def hold(self, name: str, *, given_up: str | None = None) -> Iterator[CampaignHold]:
        """Reserve the campaign for this process, on all machines.

        Trials that a dead process left running have no results. They are planned again; with `given_up` they have
        failed for this reason, so that no trial begins twice. Raises StoreRefused if another process runs it.
        """
        campaign = self.get(name)
        lock = lock_of(self._database, campaign.id, campaign.name)
        lock.take()
        try:
            yield CampaignHold(self._database, campaign, lock, given_up)
        finally:
            lock.release()


class CampaignHold:
    """A campaign that this process runs."""

    def __init__(self, database: Database, campaign: Campaign, lock: Lock, given_up: str | None) -> None:
        self._database = database
        self._lock = lock
        self._given_up = given_up
        self._token = secrets.token_hex(8)
        self.campaign = campaign
        self._database.write(self._begin)

    def _begin(self, connection: Connection) -> None:
        mine = schema.campaigns.c.key == self.campaign.key
        problems = list(campaign_problems(connection, self.campaign.key, self.campaign.name))
        if problems:
            raise StoreRefused(f"{problems[0]}; it is not run, `spindle store check` lists all damage")
        update_sealed(connection, schema.campaigns, mine, {"holder": self._token})
        if self._given_up is None:
            _plan_again(connection, self.campaign.key)
        else:
            _give_up(connection, self.campaign.key, self._given_up)

    def trials(self) -> list[Trial]:
        """All trials in order, with their current state."""
        return self._database.read(lambda connection: _trials(connection, self.campaign.key))

    def next(self) -> Trial | None:
        """Start the first planned trial; None: all are done."""

        def work(connection: Connection) -> Trial | None:
            _plan_again(connection, self.campaign.key)  # the answer was lost on the way, or it was never finished
            key = connection.execute(
                select(schema.trials.c.key)
                .where(schema.trials.c.campaign_key == self.campaign.key, schema.trials.c.state == "planned")
                .order_by(schema.trials.c.number)
                .limit(1)
            ).scalar()
            if key is None:
                return None
            return _begun(connection, key)

        return self._mine(work)

    def claim(self, numbers: Sequence[int]) -> list[Trial]:
        """Start these trials, which are planned, in one durable transaction. Raises StoreRefused if one is not."""

        def work(connection: Connection) -> list[Trial]:
            found = {trial.number: trial for trial in _trials(connection, self.campaign.key)}
            for number in numbers:
                state = found[number].state if number in found else "not there"
                if state != "planned":
                    raise StoreRefused(f"campaign {self.campaign.name}: trial {number} is {state}; it begins once")
            return [_begun(connection, found[number].key) for number in numbers]

        return self._mine(work)

    def plan_again(self, numbers: Sequence[int]) -> None:
        """Plan these trials once more, whatever became of them, unless they are done."""

        def work(connection: Connection) -> None:
            for trial in _trials(connection, self.campaign.key):
                if trial.number in numbers and trial.state in ("failed", "invalid"):
                    _set_trial(connection, trial.key, "planned")

        self._mine(work)

    def finish(self, trial: Trial, record: Record, recording: Recording | None = None) -> str:
        """Store its record and mark it done, in one durable transaction. Returns the id of the run."""
        run_id = self._end(trial, "done", "", record, recording, "done")
        assert run_id is not None
        return run_id

    def reject(
        self,
        trial: Trial,
        state: str,
        reason: str,
        *,
        record: Record | None = None,
        recording: Recording | None = None,
        again: bool,
    ) -> str | None:
        """Store the attempt as `failed` or `invalid` with its reason; `again`: plan the trial once more."""
        assert state in ("failed", "invalid")
        return self._end(trial, state, reason, record, recording, "planned" if again else state)

    def extend(self, trials: Sequence[PlannedTrial]) -> None:
        """Add trials after the existing ones."""
        after = max((trial.number for trial in self.trials()), default=0)

        def work(connection: Connection) -> None:
            last = select(func.max(schema.trials.c.number)).where(schema.trials.c.campaign_key == self.campaign.key)
            if (connection.execute(last).scalar() or 0) == after:
                _plan(connection, self.campaign.key, trials, after)
                mine = schema.campaigns.c.key == self.campaign.key
                update_sealed(connection, schema.campaigns, mine, {"planned": after + len(trials)})

        self._mine(work)

    def set_state(self, state: str, detail: Mapping[str, Any] | None = None) -> None:
        """Set the state of the campaign: `running`, `stopped`, `done`."""
        values: dict[str, Any] = {"state": state}
        if detail is not None:
            values["detail"] = canonical(detail)
        mine = schema.campaigns.c.key == self.campaign.key

        def work(connection: Connection) -> None:
            update_sealed(connection, schema.campaigns, mine, values)

        self._mine(work)

    def _end(
        self,
        trial: Trial,
        state: str,
        reason: str,
        record: Record | None,
        recording: Recording | None,
        trial_state: str,
    ) -> str | None:
        document = Document.of(record) if record is not None else None

        def work(connection: Connection) -> str | None:
            attempt = (schema.attempts.c.trial_key == trial.key) & (schema.attempts.c.attempt == trial.attempts)
            there = connection.execute(select(schema.attempts).where(attempt)).first()
            if there is None:
                raise StoreRefused(f"campaign {self.campaign.name}: trial {trial.number} is no longer this process's")
            kept = add(connection, document, (), None) if document is not None else None
            if there.state != "running":  # the answer was lost on the way
                return kept.id if kept is not None else None
            ended = {
                "state": state,
                "reason": storable(reason),
                "record_key": kept.key if kept is not None else None,
                "ended": now(),
            }
            update_sealed(connection, schema.attempts, attempt, ended)
            if recording is not None:
                add_recording(connection, recording, trial.key, trial.attempts)
            _set_trial(connection, trial.key, trial_state)
            return kept.id if kept is not None else None

        return self._mine(work)

    def _mine(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in a transaction if the campaign is still this process's: a server's lock ends with its
        connection.
        """

        def checked(connection: Connection) -> T:
            self._lock.keep()
            holder = connection.execute(
                select(schema.campaigns.c.holder).where(schema.campaigns.c.key == self.campaign.key)
            ).scalar()
            if holder != self._token:
                raise StoreRefused(f"campaign {self.campaign.name}: another process has taken it over; this one stops")
            return work(connection)

        return self._database.write(checked)


def check_name(name: str) -> None:
    """Raise StoreUsage unless the name works in a selection and in a shell."""
    if not name or len(name) > 100 or any(char in "/,=:" or char.isspace() or not char.isprintable() for char in name):
        raise StoreUsage(f"{name!r}: not a name; take letters, digits, '-', '_' and '.', at most 100")


def _find(connection: Connection, name: str) -> Campaign | None:
    table = schema.campaigns
    row = connection.execute(select(table).where((table.c.name == name) | (table.c.id == name))).first()
    return _campaign(row) if row is not None else None


def _get(connection: Connection, name: str) -> Campaign:
    found = _find(connection, name)
    if found is None:
        names = connection.execute(select(schema.campaigns.c.name).order_by(schema.campaigns.c.key.desc())).scalars()
        known = ", ".join(list(names)[:5])
        raise StoreUsage(f"campaign {name}: there is none; {f'there are {known}' if known else 'the store has none'}")
    return found


def _campaign(row: Any) -> Campaign:
    return Campaign(
        key=row.key,
        id=row.id,
        name=row.name,
        plan=row.plan,
        seed=int(row.seed),
        created=row.created,
        state=row.state,
        detail=msgspec.json.decode(row.detail),
    )


def _plan(connection: Connection, campaign_key: int, trials: Sequence[PlannedTrial], after: int = 0) -> None:
    if not trials:
        return
    rows = [
        {
            "campaign_key": campaign_key,
            "number": number,
            "block": trial.block,
            "cell": canonical(trial.cell),
            "detail": canonical(trial.detail),
            "state": "planned",
        }
        for number, trial in enumerate(trials, after + 1)
    ]
    connection.execute(insert(schema.trials), rows)
    table = schema.trials.c
    seal_all(connection, schema.trials, (table.campaign_key == campaign_key) & (table.number > after))
    keys = connection.execute(
        select(table.number, table.key).where(table.campaign_key == campaign_key, table.number > after)
    )
    of_number: dict[int, int] = dict(keys.all())
    factors = [
        {"trial_key": of_number[number], "factor": factor, "level": level}
        for number, trial in enumerate(trials, after + 1)
        for factor, level in trial.cell.items()
    ]
    if factors:
        connection.execute(insert(schema.trial_factors), factors)


def _plan_again(connection: Connection, campaign_key: int) -> None:
    """Plan running trials without a process again; they have no results."""
    mine = select(schema.trials.c.key).where(schema.trials.c.campaign_key == campaign_key)
    connection.execute(
        delete(schema.attempts).where(schema.attempts.c.state == "running", schema.attempts.c.trial_key.in_(mine))
    )
    running = (schema.trials.c.campaign_key == campaign_key) & (schema.trials.c.state == "running")
    update_sealed(connection, schema.trials, running, {"state": "planned"})


def _give_up(connection: Connection, campaign_key: int, reason: str) -> None:
    """Running trials without a process have failed."""
    mine = select(schema.trials.c.key).where(schema.trials.c.campaign_key == campaign_key)
    running = (schema.attempts.c.state == "running") & schema.attempts.c.trial_key.in_(mine)
    update_sealed(connection, schema.attempts, running, {"state": "failed", "reason": storable(reason), "ended": now()})
    begun = (schema.trials.c.campaign_key == campaign_key) & (schema.trials.c.state == "running")
    update_sealed(connection, schema.trials, begun, {"state": "failed"})


def _begun(connection: Connection, key: int) -> Trial:
    found = _trial(connection, key)
    begun = {"attempt": found.attempts + 1, "state": "running", "reason": "", "started": now()}
    connection.execute(insert(schema.attempts).values(sealed(schema.attempts, {"trial_key": found.key, **begun})))
    _set_trial(connection, found.key, "running")
    return _trial(connection, found.key)


def _set_trial(connection: Connection, key: int, state: str) -> None:
    update_sealed(connection, schema.trials, schema.trials.c.key == key, {"state": state})


def _trial(connection: Connection, key: int) -> Trial:
    return _read_trials(connection, schema.trials.c.key == key)[0]


def _trials(connection: Connection, campaign_key: int) -> list[Trial]:
    return _read_trials(connection, schema.trials.c.campaign_key == campaign_key)


def _read_trials(connection: Connection, condition: Any) -> list[Trial]:
    attempts = schema.attempts.alias()
    last = (
        select(attempts.c.trial_key, func.max(attempts.c.attempt).label("attempt"))
        .where(attempts.c.trial_key.in_(select(schema.trials.c.key).where(condition).correlate(None)))
        .group_by(attempts.c.trial_key)
        .subquery()
    )
    query = (
        select(
            schema.trials,
            last.c.attempt,
            schema.attempts.c.reason,
            schema.attempts.c.started,
            schema.attempts.c.ended,
            schema.records.c.id.label("run_id"),
        )
        .select_from(
            schema.trials.outerjoin(last, last.c.trial_key == schema.trials.c.key)
            .outerjoin(
                schema.attempts,
                (schema.attempts.c.trial_key == last.c.trial_key) & (schema.attempts.c.attempt == last.c.attempt),
            )
            .outerjoin(schema.records, schema.records.c.key == schema.attempts.c.record_key)
        )
        .where(condition)
        .order_by(schema.trials.c.number)
    )
    return [
        Trial(
            key=row.key,
            number=row.number,
            block=row.block,
            cell=msgspec.json.decode(row.cell),
            detail=msgspec.json.decode(row.detail),
            state=row.state,
            attempts=row.attempt or 0,
            reason=row.reason or "",
            run_id=row.run_id,
            started=row.started,
            ended=row.ended,
        )
        for row in connection.execute(query)
    ]


def _attempts(connection: Connection, campaign_key: int) -> list[Attempt]:
    query = (
        select(schema.trials.c.number, schema.attempts, schema.records.c.id.label("run_id"))
        .select_from(
            schema.attempts.join(schema.trials).outerjoin(
                schema.records, schema.records.c.key == schema.attempts.c.record_key
            )
        )
        .where(schema.trials.c.campaign_key == campaign_key)
        .order_by(schema.trials.c.number, schema.attempts.c.attempt)
    )
    return [
        Attempt(
            trial=row.number,
            attempt=row.attempt,
            state=row.state,
            reason=row.reason,
            run_id=row.run_id,
            started=row.started,
            ended=row.ended,
        )
        for row in connection.execute(query)
    ]
