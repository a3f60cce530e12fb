"""Measured cases of the real kernel, repeated and compared."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spindle.validation.kernel.compare import KernelReport
    from spindle.validation.kernel.runner import Runner


def validate_kernel(
    folder: str | os.PathLike[str],
    runner: Runner | None = None,
    *,
    kernel: str | None = None,
    only: Sequence[str] = (),
    jobs: int = 1,
) -> KernelReport:
    """Repeat the cases of a folder with a runner, the simulator unless given. `kernel`: with the lab's kernel of this
    version, or the `newest`, in `jobs` labs at a time. `only`: patterns of names of cases. Raises CasesError,
    LabMissing or LabError.
    """
    from spindle.run.targets.kernel import NEWEST
    from spindle.validation.kernel.compare import report
    from spindle.validation.kernel.exact import Exact
    from spindle.validation.kernel.fast import Fast

    if kernel is not None:
        runner = Exact(None if kernel == NEWEST else kernel, jobs)
    return report(Path(folder), runner or Fast(), only)
