"""Assesses a target for a need."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from msgspec import structs

from spindle.assess.answer import answer_of, caveats_of, margin_of
from spindle.assess.assessment import Answer, Assessment, Bottleneck, Drives, Number
from spindle.assess.bottleneck import Excess, bottleneck
from spindle.assess.drives import drives_enough
from spindle.assess.margin import NeedSearch, too_much
from spindle.assess.need import LOG_SHARE, MODELLED_REQUESTS, Need
from spindle.base.commands import given, shell
from spindle.result.record import Level, TargetRecord, Verdict
from spindle.run import order
from spindle.run.consent import NO_CONSENT, Consent
from spindle.run.order import Order
from spindle.run.preparation import AS_IT_IS, PreflightOptions
from spindle.run.targets import Target
from spindle.run.targets.modelled import MachineTarget
from spindle.run.watch import Watch

MIB = 1 << 20


def assess(
    target: Target,
    need: Need,
    watch: Watch,
    *,
    consent: Consent = NO_CONSENT,
    preflight_options: PreflightOptions = AS_IT_IS,
    findings: Callable[[], Sequence[str]] = tuple,
) -> tuple[Assessment, TargetRecord]:
    """Offer the load of the need, search for the largest multiple, and answer; the record of the search has the answer
    as a verdict. `findings`: problems of the block stack, each in a line. Raises errors of one line each.
    """
    if target.is_modelled:
        need = replace(need, requests=MODELLED_REQUESTS)
    search = NeedSearch(need)
    load = need.load()
    wanted = Order(
        workload=need.purpose.preset,
        target=target,
        text=load.text,
        overrides=load.overrides,
        create=_create(target, need),
        search=search,
        consent=consent,
        preflight_options=preflight_options,
    )
    record = order.carry_out(wanted, watch)
    assert isinstance(record, TargetRecord)
    runs = {run.id: run for run in record.runs}
    limit = None
    if (failed := too_much(record.search)) is not None:
        limit = bottleneck(Excess(need, record.search, failed, [runs[run] for run in failed.runs], search.alone))
    at_need = [runs[run] for run in point.runs] if (point := record.search.at(1.0)) is not None else []
    answer, reason = answer_of(record.search, at_need, limit)
    drives = drives_enough(target, need, watch) if answer == "no" and isinstance(target, MachineTarget) else None
    found = Assessment(
        purpose=need.purpose.name,
        workload=need.purpose.preset,
        target=record.target,
        need=numbers_of(need),
        answer=answer,
        reason=reason,
        headline=need.purpose.headline,
        margin=margin_of(record.search),
        bottleneck=limit,
        drives=drives,
        next_steps=list(_next_steps(target, need, answer, limit, drives, findings)),
        caveats=caveats_of(at_need),
        search=record.search,
        runs=record.runs,
    )
    return found, structs.replace(record, verdicts=[verdict_of(found, need)])


def verdict_of(found: Assessment, need: Need) -> Verdict:
    """The answer as the verdict of its record."""
    margin = found.margin
    known = {"margin": margin.value, "least": margin.least, "most": margin.most}
    known |= {"data": need.data_bytes, "seconds": need.seconds}
    known |= {each.key: each.value for each in found.need}
    steps = [
        words for words in (found.bottleneck.words if found.bottleneck is not None else "", *found.next_steps) if words
    ]
    return Verdict(
        check="need",
        level=Level.OK if found.answer == "yes" else Level.WARN,
        evidence=f"{found.purpose}: {found.answer}: {found.reason}",
        advice="; ".join(steps),
        numbers={name: value for name, value in known.items() if value is not None},
    )


def numbers_of(need: Need) -> list[Number]:
    """The numbers of a need, with the source of each default."""
    amounts = [
        Number(
            key=each.key,
            value=need.amounts[each.key],
            kind=each.kind,
            whole=each.is_whole,
            words=each.words,
            source=None if each.key in need.given else each.source,
        )
        for each in need.purpose.amounts
    ]
    limits = [
        Number(
            key=each.key,
            value=float(need.limits_ns[each.key]),
            kind="time",
            whole=False,
            words=each.words,
            source=None if each.key in need.given else each.source,
        )
        for each in need.purpose.limits
        if set(each.streams) & set(need.streams)
    ]
    return [*amounts, *limits]


def _create(target: Target, need: Need) -> str | None:
    """The size of the test file in a folder, if the user gave that of the data."""
    if target.place is None or target.several is not None or not target.place.is_dir() or need.data_bytes is None:
        return None
    return str(-(-int(need.data_bytes / (1 - LOG_SHARE)) // MIB) * MIB)


def _next_steps(
    target: Target,
    need: Need,
    answer: Answer,
    limit: Bottleneck | None,
    drives: Drives | None,
    findings: Callable[[], Sequence[str]],
) -> Iterator[str]:
    if answer == "yes":
        return
    if limit is not None and limit.kind in ("generator", "group-limit"):
        where = "on more CPUs" if limit.kind == "generator" else "outside this control group"
        yield f"measure again {where}: this is not the limit of the storage"
        return
    if drives is not None:
        yield _with_drives(drives)
    if limit is not None and limit.kind == "sharing" and len(need.streams) > 1:
        yield f"give the stream {limit.stream} a device of its own, and assess again"
    if target.is_modelled:
        return
    for line in findings():
        yield f"spindle doctor: {line}"
    goal = _goal(need, limit)
    yield f"try other settings: {shell('spindle', 'tune', target.asked, need.purpose.preset, *given(minimise=goal))}"
    yield "assess a machine file of it (`spindle inspect` with `machine=FILE`): that says how many drives would do"


def _goal(need: Need, limit: Bottleneck | None) -> str:
    """The metric to be tuned: the p99 of the bound that failed first."""
    bound = next((each for each in need.bounds if limit is not None and each.stream == limit.stream), need.bounds[0])
    operation = bound.operation
    if operation == "all":
        stream = next(each for each in need.load().spec.streams if each.name == bound.stream)
        operation = "write" if stream.mix.write > 0 else "read"
    return f"{bound.stream}/{operation}.p99" if len(need.streams) > 1 else f"{operation}.p99"


def _with_drives(drives: Drives) -> str:
    if drives.enough is None:
        return f"more of these drives do not help: {drives.most} as {drives.level} do not meet the need either"
    return f"{drives.enough} of these drives as {drives.level} would do; it has {drives.now}"
