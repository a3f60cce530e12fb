"""Workloads drawn from every key that can be an option: a preset with some of them set."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from spindle import _core
from spindle.run.resolve import ResolvedWorkload, resolve

KEYS: dict[str, dict[str, Any]] = {key["name"]: key for key in json.loads(_core.workload_keys())}
OPTIONS = [name for name, key in KEYS.items() if key["option"]]

SIZE = st.builds("{}{}".format, st.integers(1, 60).map(lambda n: n * 512), st.sampled_from(["B", "KiB", "kB"]))
DURATION = st.builds("{}{}".format, st.integers(1, 5000), st.sampled_from(["us", "ms", "s"]))
PERCENT = st.integers(0, 1000).map(lambda n: f"{n / 10}%")
IOPS = st.integers(1, 10**6).map(lambda n: f"{n / 7:.3f} IOPS")
OF_KIND: dict[str, st.SearchStrategy[str]] = {
    "flag": st.sampled_from(["true", "false"]),
    "fraction": st.one_of(PERCENT, st.floats(0, 1).map("{:.17f}".format)),
    "size": SIZE,
    "sizes": st.one_of(
        SIZE,
        st.builds("{}-{}".format, SIZE, SIZE),
        st.lists(st.builds("{}:{}".format, SIZE, st.integers(1, 50)), min_size=1, max_size=4).map(",".join),
        st.builds("log-normal:mean={},sigma={}".format, SIZE, st.floats(0.1, 2)),
    ),
    "duration": DURATION,
    "seconds": DURATION,
    "iops": IOPS,
    "rate": st.one_of(IOPS, SIZE.map("{}/s".format)),
    "region": st.builds("{}%-{}".format, st.integers(0, 30), st.one_of(PERCENT, SIZE)),
}


def value(key: dict[str, Any]) -> st.SearchStrategy[str]:
    """A value of the key's kind, its example or its default."""
    least, most = key.get("range") or (0, 100)
    usual = st.sampled_from([key["example"], key["default"]])
    match key["kind"]:
        case "choice":
            return st.sampled_from(key["choices"])
        case "integer":
            return st.one_of(usual, st.integers(int(least), min(int(most), int(least) + 40)).map(str))
        case "number":
            return st.one_of(usual, st.floats(least, min(most, least + 9)).map("{:.6f}".format))
        case kind:
            return st.one_of(usual, OF_KIND.get(kind, usual))


@st.composite
def workloads(draw: st.DrawFn) -> ResolvedWorkload | None:
    """None: the keys that were drawn exclude each other."""
    chosen = {name: draw(value(KEYS[name])) for name in draw(st.lists(st.sampled_from(OPTIONS), max_size=6))}
    for name in list(chosen):
        _meet(chosen, name, draw)
    try:
        return resolve(draw(st.sampled_from(_core.preset_names())), list(chosen.items()))
    except _core.ConfigError:
        return None


def _meet(chosen: dict[str, str], name: str, draw: st.DrawFn) -> None:
    """Sets what a key needs, and what that needs."""
    needs = KEYS[name].get("needs")
    if needs:
        need = draw(st.sampled_from(needs))
        chosen[need["key"]] = draw(st.sampled_from(need.get("values") or [KEYS[need["key"]]["example"]]))
        _meet(chosen, need["key"], draw)
