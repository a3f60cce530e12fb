"""The groups of `spindle run --help`, each named by its first option: a new option belongs where it is declared."""

from __future__ import annotations

RUN = {
    "--create": "Target and test file",
    "--section": "Workload",
    "--precondition": "Before the measurement",
    "--find-knee": "Searches: many runs, one result",
    "--set": "Workload",
    "--vary": "Searches: many runs, one result",
    "--seconds": "End of the run",
    "--ramp": "Measurement",
    "--operation": "Metadata operations",
    "--pattern": "Pattern: where the next request goes",
    "--size": "Size and place of requests",
    "--write-fraction": "Reads, writes and their content",
    "--direct": "Page cache and syncs",
    "--workers": "Load: concurrency and rate",
    "--start-delay": "Start and end of a stream",
    "--directories": "Target and test file",
    "--engine": "Measurement",
    "--erase": "Device safety",
    "--trace": "Output",
    "--strict": "Before the measurement",
    "--quiet": "Output",
    "--help-all": "Help",
}
"""First option -> title."""

_KEYS = (
    *("--set", "--seconds", "--ramp", "--operation", "--pattern", "--size", "--write-fraction", "--direct"),
    *("--workers", "--start-delay", "--directories"),
)
PREDICT = {
    "--calibrate": "Target",
    **{first: title for first, title in RUN.items() if first in _KEYS},
    "--json": "Output",
    "--help-all": "Help",
}
"""The same of `spindle predict --help`."""

COMMON = frozenset(
    {
        *("--create", "--keep", "--kernel", "--calibrate", "--predict", "--erase", "--yes"),
        *("--set", "--vary", "--find-knee", "--latency-target", "--precondition"),
        *("--seconds", "--until-steady", "--ramp", "--seed", "--operation", "--pattern", "--region"),
        *("--size", "--write-fraction", "--verify", "--direct", "--fsync-fraction"),
        *("--workers", "--depth", "--rate", "--filesize", "--engine", "--tolerate-errors"),
        *("--log", "--store", "--tag", "--json", "--why", "--output", "--strict", "--wait-idle"),
        *("--quiet", "--force", "--help", "--help-all"),
    }
)
"""The options that the short `--help` shows."""
