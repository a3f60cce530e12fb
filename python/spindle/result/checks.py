"""The verdicts: one table of their names and meanings. Their limits: docs/reference/verdicts.md."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spindle.base.plain import Plain

PAGE = "docs/reference/verdicts.md"


@dataclass(frozen=True)
class Check(Plain):
    """One verdict."""

    COMPUTED = ("page",)
    name: str
    meaning: str
    """The question that it answers, or the problem that it warns of."""
    of: str
    """The results that have this verdict."""

    @property
    def page(self) -> str:
        """The page with its limit."""
        return PAGE


_CONDITIONS = {
    "array-sync": "an array is checked, rebuilt or degraded",
    "cpu": "other programs use the CPUs",
    "dirty-pages": "memory holds data that is still to be written",
    "governor": "the CPUs do not run at full clock",
    "jobs": "background jobs that disturb disks are running",
    "other-io": "the device serves other programs",
    "self-test": "a drive tests itself",
    "steal": "the hypervisor takes CPU time",
    "swap": "memory is swapped",
    "temperature": "a drive is as hot as where it slows down",
    "throttling": "the CPUs are slowed down for heat",
    "watch": "nobody watched the machine: `spindle-agent` measured",
}
CONDITIONS = tuple(_CONDITIONS)
"""Checks of the machine, before the run and during it."""


def _of_the_machine(when: str) -> Iterator[Check]:
    for name, meaning in _CONDITIONS.items():
        yield Check(f"{when}-{name}", f"{when} the run: {meaning}", "runs on this machine")


_LOAD, _REAL, _NAMES = "runs", "runs on this machine", "operations on names"
_SEARCH, _OTHER = "searches", "results of other tools"

CHECKS: dict[str, Check] = {
    check.name: check
    for check in (
        Check("status", "the run goes on: its figures so far (`status_interval=`)", _LOAD),
        Check("interrupted", "the run was stopped or ended by an error: its figures are partial", _LOAD),
        Check("errors", "requests failed", _LOAD),
        Check("verify", "what was read back is not what was written", _REAL),
        Check("target", "the target changed or vanished; of a search: the bound was not bracketed", _LOAD),
        Check("too-short", "too little time or too few requests for the figures", _LOAD),
        Check("late", "a request that was under way at the end took longer than all that are counted", _REAL),
        Check("cache-share", "a cache answered, not the device", _REAL),
        Check("cache-below", "a cache below a loop device answered", _REAL),
        Check("discards", "discards did not reach the device", _REAL),
        Check("working-set", "the bytes used are too few for the caches", _LOAD),
        Check("sample-size", "the test file is smaller than the caches ask for", _REAL),
        Check("littles-law", "rates, latencies and outstanding requests contradict each other", _LOAD),
        Check("steady", "throughput did not keep its level", _LOAD),
        Check("group-limit", "a control group limits the load", _REAL),
        Check("generator-bound", "the load generator is the limit", _REAL),
        Check("saturated", "the load does not saturate the device", _LOAD),
        Check("achieved-depth", "fewer requests were outstanding than asked for", _LOAD),
        Check("on-time", "open loop: fewer requests were served than asked for", _LOAD),
        Check("starved", "open loop: workers fell behind their rate", _LOAD),
        Check("other-io", "the device moved bytes that are not the load's", _REAL),
        Check("log", "completions are missing from the log", _REAL),
        Check("preconditioned", "the target was not steady after preconditioning", _REAL),
        Check("fresh-drive", "a modelled flash drive was fresh: its writes found erased pages", "modelled runs"),
        Check("settings", "a setting changed during the run", _REAL),
        *_of_the_machine("before"),
        *_of_the_machine("during"),
        Check("quiet-machine", "the machine was made quiet for the run, and how far", _REAL),
        Check("put-back", "a setting that was changed for the run is not as before", _REAL),
        Check("names-cached", "names were in the kernel's caches before the run", _NAMES),
        Check("names-in-memory", "changes of names were not synced", _NAMES),
        Check("phases", "all phases were carried out", "phases"),
        Check("combinations", "values of `vary=` that do not fit each other were left out", "`vary=`"),
        Check("load", "a command as the load ended early, or its device served nothing", "campaigns"),
        Check("knee", "throughput still grew at the end of the sweep", _SEARCH),
        Check("curve", "the open-loop curve ends before saturation", _SEARCH),
        Check("monotone", "a bound failed at a smaller load than one at which all bounds held", _SEARCH),
        Check("need", "`spindle assess`: the target takes the load of the need", _SEARCH),
        Check("undecided", "points of the search are too near to a bound", _SEARCH),
        Check("imported", "the conditions are unknown: another tool measured", _OTHER),
        Check("since-boot", "the figures are those since the machine started", _OTHER),
        Check("unit", "the file does not name its unit", _OTHER),
    )
}
"""By name, in the order in which a person should read them."""
