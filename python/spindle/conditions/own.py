"""The load's own processes, so that their work is not counted as that of others."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from spindle.host.devices import HERE, Machine, text_of
from spindle.host.number import whole_number

_TIMES = slice(11, 15)
"""utime, stime, cutime and cstime of /proc/PID/stat, counted from the state (proc_pid_stat(5))."""


@dataclass(frozen=True)
class OwnLoad:
    """A load in processes of its own, which may come and go."""

    pids: Callable[[], Collection[int]]

    def user_ticks(self, machine: Machine = HERE) -> int:
        """Time in user mode so far, in clock ticks, of the living processes and of the children they waited for."""
        return sum(_user_ticks(pid, machine) for pid in self.pids())


def _user_ticks(pid: int, machine: Machine) -> int:
    fields = (text_of(machine.proc / str(pid) / "stat") or "").rpartition(")")[2].split()
    user, _, of_children, _ = [whole_number(field) or 0 for field in fields[_TIMES]] if len(fields) >= 15 else [0] * 4
    return user + of_children
