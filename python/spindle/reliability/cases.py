"""Arrays by which the computations are compared with each other, in tests and in `make bench-reliability`."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from .group import Group, Wear

_TEXTBOOK: dict[str, Any] = {"rebuild_stages": 1, "replace_hours": 0.0}


def closed_cases() -> list[Group]:
    """Arrays with a closed form, without and with unreadable sectors, of good and bad drives."""
    shapes: list[dict[str, Any]] = [
        {"level": "raid0", "drives": 4},
        {"level": "raid1", "drives": 2},
        {"level": "raid5", "drives": 4},
        {"level": "raid5", "drives": 8},
        {"level": "raid6", "drives": 6},
        {"level": "raid6", "drives": 12},
        {"level": "raid10", "drives": 4},
        {"level": "raid10", "drives": 12},
        {"level": "raid50", "drives": 12, "groups": 2},
        {"level": "raid60", "drives": 24, "groups": 2},
    ]
    return [
        Group(**shape, **_TEXTBOOK, afr=afr, capacity_bytes=18e12, rebuild_hours=hours, ure_per_bit=errors)
        for shape in shapes
        for afr in (0.0035, 0.015)
        for hours in (10.0, 40.0)
        for errors in (0.0, 1e-16, 1e-15)
    ]


def random_cases(count: int, seed: int) -> Iterator[Group]:
    """Random arrays of every level with every parameter."""
    draw = random.Random(seed)
    for _ in range(count):
        yield Group(
            **_shape(draw),
            afr=10 ** draw.uniform(-2.5, -1.3),
            capacity_bytes=10 ** draw.uniform(11.5, 13.4),
            rebuild_hours=10 ** draw.uniform(0.3, 1.9),
            spares=draw.choice((0, 0, 1, 2)),
            replace_hours=draw.choice((0.0, 4.0, 24.0, 72.0)),
            ure_per_bit=draw.choice((0.0, 1e-17, 1e-16, 1e-15)),
            latent_per_year=draw.choice((0.0, 0.0, 0.02, 0.2)),
            scrub_days=draw.choice((7.0, 30.0, 90.0)),
            batch_correlation=draw.choice((1.0, 1.0, 3.0, 10.0)),
            wear=draw.choice((Wear(), Wear(), Wear(shape=1.5, age_years=1.0), Wear(shape=3.0, age_years=4.0))),
            rebuild_stages=draw.choice((1, 1, 3, 10)),
        )


def _shape(draw: random.Random) -> dict[str, Any]:
    level = draw.choice(("raid1", "raid5", "raid6", "raid10", "raid10", "raid50", "raid60"))
    if level == "raid1":
        return {"level": level, "drives": draw.choice((2, 2, 3))}
    if level == "raid10":
        layout = draw.choice(("n2", "n2", "f2", "o2", "n3"))
        return {"level": level, "drives": draw.choice((4, 5, 6, 8, 12, 16)), "layout": layout}
    if level in ("raid50", "raid60"):
        return {"level": level, "drives": draw.choice((8, 12, 16)), "groups": 2}
    return {"level": level, "drives": draw.randint(4, 14)}
