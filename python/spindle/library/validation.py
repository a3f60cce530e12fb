"""The simulator compared with measured cases of the real kernel."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spindle.validation.kernel.compare import KernelReport
    from spindle.validation.kernel.runner import Runner


def validate_kernel(folder: str | os.PathLike[str], runner: Runner | None = None) -> KernelReport:
    """Repeat the cases of a folder with a runner, the simulator unless given. Raises CasesError."""
    from spindle.validation.kernel.compare import report
    from spindle.validation.kernel.fast import Fast

    return report(Path(folder), runner or Fast())
