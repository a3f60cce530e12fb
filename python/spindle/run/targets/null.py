"""`null:SIZE` completes every request at once: it measures the load generator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from spindle import _core
from spindle.host import groups
from spindle.result import target as record
from spindle.result.workload import Workload
from spindle.run.engine import LoadPart
from spindle.run.errors import Usage
from spindle.run.load import RunningLoad
from spindle.run.log import logged
from spindle.run.resolve import ResolvedWorkload
from spindle.run.runner import LocalRunner
from spindle.run.watch import Watch

from .target import AS_IT_IS, Opening

PREFIX = record.NULL_PREFIX


def is_named(name: str) -> bool:
    """True if this is the name of a null target, here or on another host."""
    return name.startswith(PREFIX)


_REFUSALS = {
    "create": "the null target needs no file; leave it out",
    "filesystem": "the null target has no device; leave it out",
    "erase": "the null target keeps nothing; leave it out",
    "precondition": "the null target keeps nothing; leave it out",
    "verify": "the null target stores nothing; leave it out",
    "trace": "only a modelled machine has a trace of its drives; give a machine file as target",
}


@dataclass(frozen=True)
class NullTarget:
    """The null target."""

    asked: str
    is_modelled = False
    place = None
    several = None

    @property
    def refusals(self) -> Mapping[str, str]:
        """See `Target`."""
        uncounted = f"nothing can be counted on {self.asked}; name the device that the command uses"
        return _REFUSALS | {"load.command": uncounted}

    @classmethod
    def parse(cls, name: str) -> NullTarget | None:
        """None: the name is of another kind."""
        return cls(name) if is_named(name) else None

    @property
    def size_bytes(self) -> int:
        """Size of the target. Raises `Usage`."""
        try:
            size = _core.parse_size(self.asked.removeprefix(PREFIX))
        except _core.ConfigError as error:
            raise Usage(f"target {self.asked}: {error}; write for example {PREFIX}1GiB") from None
        if size <= 0:
            raise Usage(f"target {self.asked}: its size must be above 0; write for example {PREFIX}1GiB")
        return size

    @contextmanager
    def open(self, resolved: ResolvedWorkload, watch: Watch, how: Opening = AS_IT_IS) -> Iterator[NullRunner]:
        """See `Target`."""
        yield NullRunner(self.asked, how.engine_options, watch, self.size_bytes)


@dataclass
class NullRunner(LocalRunner):
    """The null target, open."""

    _is_on_storage = False

    def target(
        self, spec: Workload | None = None, trouble: str | None = None, limits: groups.Limits | None = None
    ) -> record.Target:
        """As `LoadRunner`."""
        return record.Target(asked=self.asked, kind=record.NULL, size_bytes=self.size_bytes, has_device=False)

    def _start(self, resolved: ResolvedWorkload, part: LoadPart) -> Callable[[], RunningLoad]:
        log_file = part.file_of(self.engine_options.log)

        def start(log: int | None) -> RunningLoad:
            self._run = run = _core.Run.null(resolved.core, self.size_bytes, log=log)
            return run

        return lambda: logged(log_file, start)
