"""A campaign of sixty short trials on a modelled drive."""

from __future__ import annotations

from spindle.campaign.execution import CheckedPlan, made_ready
from spindle.campaign.source import read_plan

SIXTY = """
about = "elevators on one drive"
target = "one-sata"
workload = "randomio"

[options]
seconds = 0.1
size = "64KiB"

[factors.scheduler]
sets = "knobs.scheduler"
values = ["none", "mq-deadline", "bfq", "kyber"]

[factors.workers]
sets = "options.workers"
values = [1, 16, 64]

[trials]
count = 5
"""


def ready(text: str = SIXTY, *assignments: str, name: str = "small") -> CheckedPlan:
    return made_ready(read_plan(text, "small.toml", name, assignments))
