"""`steadystate`: a run that ends once its rate is steady."""

from __future__ import annotations

from .finding import Level
from .job import TypedJob
from .quantity import Keys, duration

METRICS = {"iops": "iops", "bw": "bandwidth"}


def steady_of(jobs: list[TypedJob]) -> Keys:
    """Return the keys of the load. Obstacles are reported."""
    asked = [each for each in jobs if each.job.steady is not None and each.job.steady_us]
    for each in jobs:
        if each.job.steady is not None and not each.job.steady_us:
            each.say(Level.NOTE, "steadystate", "of no effect without steadystate_duration, as in fio")
    if not asked:
        return {}
    first, wanted = asked[0], asked[0].job.steady
    if len(asked) < len(jobs) or len({(each.job.steady, each.job.steady_us) for each in asked}) > 1:
        first.say(Level.ERROR, "steadystate", "differs between jobs that run at the same time; give all the same")
    if wanted is None or not wanted.percent:
        first.say(Level.ERROR, "steadystate", "a bound of 0 is never met")
        return {}
    text = "judged by the fifths of its duration, for all jobs together; fio looks at each second"
    first.say(Level.DIFFERS, "steadystate", text)
    seconds = first.job.steady_us / 10**6
    # A sample within p % of the mean: extremes are at most 2 p % apart. A slope of p % a second: p x seconds in all.
    bound = min(wanted.percent * (seconds if wanted.slope else 2), 100)
    keys: Keys = {"until_steady": True, "steady_metric": METRICS[wanted.metric]}
    keys["steady_window"] = duration(first.job.steady_us)
    keys["steady_range"] = "100%" if wanted.slope else f"{bound:g}%"
    keys["steady_slope"] = f"{bound:g}%"
    keys["steady_drift"] = "none"
    ramp = first.job.steady_ramp_us
    if ramp and first.job.ramp_us:
        first.say(Level.ERROR, "steadystate_ramp_time", "beside ramp_time; give one of them")
    elif ramp:
        first.say(Level.DIFFERS, "steadystate_ramp_time", "what is run in it does not count at all")
        keys["ramp"] = duration(ramp)
    return keys
