"""Resolves a preset or a file, with options, to a workload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from spindle import _core
from spindle.result.workload import Workload, workload_from_json
from spindle.run.errors import Usage

if TYPE_CHECKING:  # `presets` resolves a workload without any record
    from spindle.result.record import WorkloadRequest

LARGEST_FILE_BYTES = 1 << 20
"""Workload files are shorter; a device or a disk image given by mistake is not."""

JOB_FILE = ".fio"
STDIN = "-"
"""A job file on the standard input."""

Overrides = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class ResolvedWorkload:
    """A workload in both forms: the core's, which runs, and the record's, which is readable."""

    text: str
    source: str
    name: str
    overrides: tuple[tuple[str, str], ...]
    core: _core.Workload
    spec: Workload

    @property
    def phases(self) -> list[ResolvedWorkload]:
        """The loads that run one after another, each an ordinary workload; empty for an ordinary one. Their options
        are those of the whole.
        """
        loads = zip(self.core.phases(), self.spec.phases, strict=True)
        return [replace(self, core=core, spec=phase.load) for core, phase in loads]

    @property
    def request(self) -> WorkloadRequest:
        """The workload as it was requested, for the record."""
        from spindle.result.record import WorkloadRequest

        return WorkloadRequest(source=self.source, toml=self.text, options=list(self.overrides))

    def with_overrides(self, more: Overrides) -> ResolvedWorkload:
        """The same workload with further options; the last one wins."""
        return resolve_text(self.text, self.source, self.name, (*self.overrides, *more))


def resolve(workload: str, overrides: Overrides = (), target: str | None = None) -> ResolvedWorkload:
    """Resolve a preset's name, the path of a TOML file, or of a fio job file, which needs `target`. Raises
    `_core.ConfigError`, `Usage` or `JobFileRefused`.
    """
    if is_job_file(workload):
        return _resolve_job_file(workload, overrides, target)
    path = Path(workload)
    if workload.endswith(".toml") or "/" in workload:
        text = read_text(path, "workload", "a preset (see `spindle presets`)")
        return resolve_text(text, workload, path.stem, overrides)
    return resolve_text(_core.preset_text(workload), f"preset {workload}", workload, overrides)


def is_job_file(workload: str) -> bool:
    """True for a fio job file."""
    return workload.endswith(JOB_FILE) or workload == STDIN


def _resolve_job_file(path: str, overrides: Overrides, target: str | None) -> ResolvedWorkload:
    from spindle.formats.fio_job import convert, toml_of

    return resolve_text(toml_of(convert(path, target).runnable()), path, Path(path).stem, overrides)


def resolve_text(text: str, source: str, name: str, overrides: Overrides = ()) -> ResolvedWorkload:
    """A workload given as TOML text."""
    core = _core.Workload.parse(text, source, name, list(overrides))
    return ResolvedWorkload(text, source, name, tuple(overrides), core, workload_from_json(core.to_json()))


def read_text(path: Path, kind: str, instead: str) -> str:
    """The text of a person's file. `kind`: its kind; `instead`: alternatives. Raises Usage."""
    try:
        if not path.is_file():
            what = "is a directory" if path.is_dir() else "is not a file" if path.exists() else "no such file"
            raise Usage(f"{kind} {path}: {what}; give a TOML file or {instead}")
        if path.stat().st_size > LARGEST_FILE_BYTES:
            raise Usage(f"{kind} {path}: larger than 1 MiB; this is not a {kind} file")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise Usage(f"{kind} {path}: not UTF-8 text at byte {error.start}; save it as UTF-8") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise Usage(f"{kind} {path}: cannot be read ({reason}); check its name and rights") from None
