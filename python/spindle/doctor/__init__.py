"""Diagnosis of a block stack: problems, why they matter, and the commands that would fix them. Nothing is ever run.

Data flows one way: an `Inventory` (live or captured) -> `stack.Stack` (queries on it) -> the rules, each a small module
of its own -> a `Diagnosis`; `plan` makes a script of its steps.

Public::

    diagnose(inventory, rules=RULES, workload=None) -> Diagnosis
    script(diagnosis) -> list[str]         # the steps of all findings in a safe order
    RULES, Diagnosis, Finding, Severity
"""

from .diagnose import diagnose, schema
from .finding import Diagnosis, Finding, Severity, Step, UnjudgedPart
from .plan import script
from .rules import RULES

__all__ = ["RULES", "Diagnosis", "Finding", "Severity", "Step", "UnjudgedPart", "diagnose", "schema", "script"]
