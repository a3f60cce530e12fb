"""Spindle: measures, explains, tunes and predicts the performance of storage on Linux.

    result = spindle.run("oltp", "six-sata-f2", workers=48)
    print(result.iops, result.read.p99, result.level)

docs/reference/library.md shows the rest. Every error is a `spindle.Error`.
"""

from __future__ import annotations

import importlib
import sys

TYPE_CHECKING = False  # as `typing` has it, which takes time to import
if TYPE_CHECKING:
    from typing import Any

    from spindle._core import Machine, __version__
    from spindle.base.errors import SpindleError as Error
    from spindle.library.assessing import Assessment, assess
    from spindle.library.campaigns import campaign
    from spindle.library.checking import Regression, check
    from spindle.library.comparing import Comparison, compare
    from spindle.library.conversion import ConvertedJob, convert
    from spindle.library.designing import Design, design
    from spindle.library.durability import durability, receive_journals, verify
    from spindle.library.fleets import FleetResult, fleet
    from spindle.library.models import array_map, drive, drives
    from spindle.library.monitoring import monitor
    from spindle.library.predicting import Prediction, predict
    from spindle.library.quick import quick
    from spindle.library.reliability import array_advice, array_risk
    from spindle.library.report import report
    from spindle.library.restoring import restore
    from spindle.library.result import Result, Sweep, read
    from spindle.library.running import run, simulate, sweep
    from spindle.library.schemas import schema
    from spindle.library.serving import serve_drive
    from spindle.library.settings import knobs
    from spindle.library.stack import capture, doctor, inspect
    from spindle.library.stores import Selection, Store, open_store, results
    from spindle.library.tuning import tune

__all__ = [
    "Assessment",
    "Comparison",
    "ConvertedJob",
    "Design",
    "Error",
    "FleetResult",
    "Machine",
    "Prediction",
    "Regression",
    "Result",
    "Selection",
    "Store",
    "Sweep",
    "__version__",
    "array_advice",
    "array_map",
    "array_risk",
    "assess",
    "campaign",
    "capture",
    "check",
    "compare",
    "convert",
    "design",
    "doctor",
    "drive",
    "drives",
    "durability",
    "fleet",
    "inspect",
    "knobs",
    "monitor",
    "open_store",
    "predict",
    "quick",
    "read",
    "receive_journals",
    "report",
    "restore",
    "results",
    "run",
    "schema",
    "serve_drive",
    "simulate",
    "sweep",
    "tune",
    "verify",
]

_MODULES = {
    "_core": ("Machine", "__version__"),
    "library.assessing": ("Assessment", "assess"),
    "library.campaigns": ("campaign",),
    "library.checking": ("Regression", "check"),
    "library.comparing": ("Comparison", "compare"),
    "library.conversion": ("ConvertedJob", "convert"),
    "library.designing": ("Design", "design"),
    "library.durability": ("durability", "receive_journals", "verify"),
    "library.fleets": ("FleetResult", "fleet"),
    "library.models": ("array_map", "drive", "drives"),
    "library.reliability": ("array_advice", "array_risk"),
    "library.monitoring": ("monitor",),
    "library.predicting": ("Prediction", "predict"),
    "library.quick": ("quick",),
    "library.report": ("report",),
    "library.result": ("Result", "Sweep", "read"),
    "library.running": ("run", "simulate", "sweep"),
    "library.schemas": ("schema",),
    "library.serving": ("serve_drive",),
    "library.restoring": ("restore",),
    "library.settings": ("knobs",),
    "library.stack": ("capture", "doctor", "inspect"),
    "library.stores": ("Selection", "Store", "open_store", "results"),
    "library.tuning": ("tune",),
}
_FROM = {name: module for module, names in _MODULES.items() for name in names}


def _found(name: str) -> Any:
    if name == "Error":
        return importlib.import_module("spindle.base.errors").SpindleError
    return getattr(importlib.import_module(f"spindle.{_FROM[name]}"), name)


def __getattr__(name: str) -> Any:
    """Import what is used when it is used: the command line starts without the rest."""
    if name != "Error" and name not in _FROM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = _found(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


class _Function:
    """A function of the library that has the name of a room: `spindle.run(...)` calls it, `spindle.run.order` is a
    module of the room."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return _found(self.__name__)(*arguments, **options)

    @property
    def __wrapped__(self) -> Any:
        return _found(self.__name__)

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(f"spindle.{self.__name__}"), name)

    def __repr__(self) -> str:
        return f"<function spindle.{self.__name__}>"


class _Package(type(sys)):  # type: ignore[misc]
    """Keeps those functions where they are when the room of that name is imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if not isinstance(self.__dict__.get(name), _Function):
            super().__setattr__(name, value)


if not TYPE_CHECKING:
    campaign, doctor, inspect = _Function("campaign"), _Function("doctor"), _Function("inspect")
    design = _Function("design")
    knobs, monitor, report = _Function("knobs"), _Function("monitor"), _Function("report")
    assess, fleet = _Function("assess"), _Function("fleet")
    run, tune = _Function("run"), _Function("tune")
    sys.modules[__name__].__class__ = _Package
