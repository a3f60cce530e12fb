"""CPUs that sleep deeply or lower their clock between requests of NVMe drives. See docs/reference/doctor."""

from __future__ import annotations

from spindle.inspect.model import Inventory

from ..finding import Finding, Phase, Severity, Step, UnjudgedPart, machine_knob
from ..rule import Results, Rule, RuleInput

DEEP_US = 100
"""Time of a flash page read: a CPU that takes this long to wake doubles a request."""
SLOW_GOVERNORS = ("powersave", "conservative", "userspace")
"""Governors of drivers that obey them: the lowest clock, or slow steps up
(Documentation/admin-guide/pm/cpufreq.rst)."""
OWN_CHOICE = ("intel_pstate", "amd-pstate-epp", "amd_pstate_epp")
"""Drivers whose `powersave` is the usual dynamic governor (intel_pstate.rst)."""


def _check(case: RuleInput) -> Results:
    inventory = case.stack.inventory
    if not any(drive.transport == "nvme" for _, drive in case.stack.drives()):
        return
    slow = _slow_clock(inventory)
    deep = [state for state in inventory.idle_states if not state.disabled and state.latency_us >= DEEP_US]
    if slow:
        yield _clock(inventory, slow)
    if deep:
        names = ", ".join(f"{state.name} {state.latency_us} µs" for state in deep)
        yield _sleep(names, max(state.latency_us for state in deep))
    for field, known in (("governors", inventory.governors), ("idle_states", inventory.idle_states)):
        if not known and not slow and not deep:
            yield UnjudgedPart(
                rule=RULE.name, object="machine", why=inventory.unknown.get(field, f"{field} are not known")
            )
            return


def _slow_clock(inventory: Inventory) -> list[str]:
    if inventory.frequency_driver in OWN_CHOICE:
        return []
    return [f"{name} on {count} CPUs" for name, count in inventory.governors.items() if name in SLOW_GOVERNORS]


def _clock(inventory: Inventory, slow: list[str]) -> Finding:
    return Finding(
        rule=RULE.name,
        object="machine",
        severity=Severity.WARN,
        summary="CPUs stay at a low clock while NVMe drives wait for them",
        evidence=f"governor {', '.join(slow)}, driver {inventory.frequency_driver or 'not known'}",
        why="A process that waits for I/O leaves its CPU idle most of the time, so the governor keeps the clock "
        "low; but the kernel's work for each request runs on that CPU.",
        effect="The kernel's part of each request takes longer, in proportion to the clock.",
        steps=machine_knob(cpu__governor="performance"),
    )


def _sleep(names: str, latency: int) -> Finding:
    return Finding(
        rule=RULE.name,
        object="machine",
        severity=Severity.NOTE,
        summary="idle CPUs sleep so deeply that NVMe requests wait for them",
        evidence=f"enabled: {names} to wake up",
        why="A CPU that waits for one request at a time is idle until the interrupt, and enters the deepest state that "
        "seems worthwhile.",
        effect=f"Up to {latency} µs more per request at depth 1, where flash itself takes about {DEEP_US}; nothing at "
        "high depth. Switching it off costs power.",
        numbers={"latency_us": latency},
        steps=[
            Step(
                phase=Phase.TUNE,
                about="keep idle CPUs out of such states until the next boot; measure with one request at a time",
                commands=[f"cpupower idle-set -D {DEEP_US}"],
                on=["machine"],
            )
        ],
    )


RULE = Rule("cpu-latency", "CPUs wake up as fast as NVMe drives answer.", _check)
