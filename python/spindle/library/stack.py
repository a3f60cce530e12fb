"""`spindle.inspect` and `spindle.doctor`: the block stack, and its problems."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from spindle import _core
from spindle.base.suggestions import meant
from spindle.doctor import RULES, Diagnosis, diagnose, script
from spindle.doctor.finding import Finding, Severity
from spindle.doctor.rule import Rule
from spindle.host.outputs import Output
from spindle.host.paths import target_path
from spindle.inspect import Inventory, inspect_stack, open_capture, running
from spindle.inspect import capture as captured
from spindle.inspect.machine import MeasuredDrive, machine_file
from spindle.library.arguments import public
from spindle.library.options import several
from spindle.library.outputs import output_of
from spindle.library.session import session
from spindle.library.shown import Printable
from spindle.library.table import Table
from spindle.prediction.source import calibrated
from spindle.run.errors import Usage

if TYPE_CHECKING:
    from spindle.report.terminal.style import Style

Name = str | os.PathLike[str]


class Stack(Printable):
    """A block stack from mount point to controller, with its settings. `print` shows it as a tree."""

    def __init__(self, inventory: Inventory) -> None:
        self.inventory = inventory
        """All its parts, typed; sizes are bytes."""

    def _data(self) -> object:
        return self.inventory

    def to_machine(self, source: str = "the machine file", *, calibrate: bool = False) -> str:
        """A machine file (TOML) of the stack, for `spindle.run` and `spindle.Machine`. `calibrate`: describe its
        topmost device by reading it for some seconds, instead of by data sheets. Raises `spindle.Error`, which names
        the file `source`."""
        measured = _measured(self.inventory) if calibrate else None
        text = machine_file(self.inventory, _core.drive_names(), measured)
        _core.Machine.parse(text, source)  # nothing that the simulator would refuse
        return text

    def page(self, style: Style) -> list[str]:
        """As `Printable`."""
        from spindle.report.terminal.inspect import inventory_page

        return list(inventory_page(self.inventory, style))

    def __repr__(self) -> str:
        return f"<Stack of {self.inventory.target or 'the machine'}>"


def _measured(inventory: Inventory) -> MeasuredDrive:
    with session() as watch:
        return calibrated(inventory, watch)


@public
def inspect(target: Name | None = None, *, root: Name | None = None) -> Stack:
    """Read the block stack under a mount point, a file or a block device; None: everything. Nothing is changed.

    `root`: a capture instead of this machine, a folder with sys and proc in it or a tar. Raises `spindle.Error`.
    """
    place = running() if root is None else open_capture(os.fspath(root))
    return Stack(inspect_stack(_named(target), place))


@public
def capture(path: Name, target: Name | None = None, *, mask_serials: bool = False, force: bool = False) -> Stack:
    """Save all that was read of a stack to a tar (.tar or .tar.gz), for `inspect(root=...)` elsewhere.

    `mask_serials`: replace serial numbers and world-wide names. Raises `spindle.Error`.
    """
    output = output_of(path, "capture", "`path=`", force=force)
    output.check()
    return saved(output, _named(target), mask_serials)


def saved(output: Output, target: str | None, mask_serials: bool) -> Stack:
    """Save a capture. The stack returned is the one that the capture shows, masked or not."""
    taken = captured(target, mask_serials, _core.__version__)
    output.save(taken.tar(compressed=output.path.name.endswith((".gz", ".tgz"))))
    return Stack(inspect_stack(target, taken.held) if mask_serials else taken.inventory)


class Findings(Printable, Sequence[Finding]):
    """The problems of a stack, each with its evidence, effect and remedy; none of the remedies was run."""

    def __init__(self, diagnosis: Diagnosis) -> None:
        self.diagnosis = diagnosis
        """The findings, and the rules that could not be applied."""

    def __len__(self) -> int:
        return len(self.diagnosis.findings)

    def __getitem__(self, at: Any) -> Any:
        """One finding, or several."""
        return self.diagnosis.findings[at]

    @property
    def fix_plan(self) -> str:
        """The remedies as a shell script, in a safe order."""
        return "\n".join(script(self.diagnosis)) + "\n"

    def to_table(self) -> Table:
        """A row for each finding: `rule`, `object`, `severity`, `summary`, `evidence`, `effect`."""
        names = ("rule", "object", "severity", "summary", "evidence", "effect")
        return Table({name: [str(getattr(each, name)) for each in self.diagnosis.findings] for name in names})

    @property
    def bad(self) -> list[Finding]:
        """The findings above a note."""
        return [each for each in self.diagnosis.findings if each.severity is not Severity.NOTE]

    @property
    def worst(self) -> Finding | None:
        """The worst of these; None: there is none."""
        return max(self.bad, key=lambda each: each.severity.rank, default=None)

    def _data(self) -> object:
        return self.diagnosis

    def page(self, style: Style) -> list[str]:
        """As `Printable`."""
        from spindle.report.terminal.doctor import diagnosis_page

        return list(diagnosis_page(self.diagnosis, style))

    def __repr__(self) -> str:
        return f"<{len(self)} findings>"

    def _repr_html_(self) -> str:
        return self.to_table()._repr_html_()


@public
def doctor(
    target: Name | None = None,
    *,
    root: Name | None = None,
    rules: str | Sequence[str] = (),
    workload: Literal["random", "sequential"] | None = None,
) -> Findings:
    """Find the problems of the block stack under a target; None: everything. Nothing is changed.

    `root`: a capture, as of `inspect`. `rules`: names of rules, without them all. `workload`: the use of the stack, on
    which some rules depend. Raises `spindle.Error`.
    """
    return Findings(diagnose(inspect(target, root=root).inventory, rules_named(several(rules)), workload))


def rules_named(names: Sequence[str]) -> list[Rule]:
    """The rules of these names; of none all. Raises `Usage`."""
    known = {rule.name: rule for rule in RULES}
    for name in names:
        if name not in known:
            raise Usage(f"no rule `{name}`; {meant(name, known, '`spindle doctor` with `list=True` names them')}")
    return [rule for rule in RULES if not names or rule.name in names]


def _named(target: Name | None) -> str | None:
    return None if target is None else target_path(os.fspath(target))
