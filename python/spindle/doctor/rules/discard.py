"""Discards that a layer does not pass on to flash below it. See docs/reference/doctor."""

from __future__ import annotations

from shlex import quote

from spindle.inspect.model import Device

from ..crypt import refresh
from ..finding import Finding, Needs, Phase, Severity, Step, StepEffect
from ..rule import Results, Rule, RuleInput
from ..stack import PARITY, Stack, rotates
from . import luks_queues


def _check(case: RuleInput) -> Results:
    for device in case.stack.inventory.devices:
        if (held := _held_back(device)) and _below_takes_it(case.stack, device):
            yield _not_handed_on(device, held)
            continue
        layer = _layer(device)
        queue = device.queue
        if layer is None or queue is None or queue.discard_max_bytes != 0 or not _below_takes_it(case.stack, device):
            continue
        crypt = layer == "dm-crypt"
        queues = luks_queues.missing(case, device) if crypt else []
        yield Finding(
            rule=RULE.name,
            object=device.id,
            severity=Severity.NOTE,
            summary=f"{device.id} does not pass discards on to the flash below",
            evidence=f"discard_max_bytes 0 at {layer}, more than 0 below",
            why="Flash that does not know the free blocks keeps copying them when it makes room."
            + (" dm-crypt drops discards by default, as they reveal which blocks are in use." if crypt else ""),
            effect="The drives lose spare room as they fill: more wear, and in the end slower writes.",
            steps=[
                Step(
                    phase=Phase.TUNE,
                    about="let discards pass, if it may be seen which blocks are in use; then run fstrim weekly"
                    + (
                        "; together with the remedy of luks-queues, as flags that are not named are dropped"
                        if queues
                        else ""
                    ),
                    commands=[refresh(device, ["allow_discards", *queues])],
                )
                if crypt
                else Step(
                    phase=Phase.KEEP,
                    about="let md pass discards, if all drives return zeros for discarded blocks (DRAT, RZAT); needs a "
                    "reboot",
                    commands=["echo 'options raid456 devices_handle_discard_safely=Y' > /etc/modprobe.d/raid456.conf"],
                    needs=[Needs.OFFLINE],
                )
            ],
        )


def _held_back(device: Device) -> str | None:
    """The word in the table of a thin pool or a cache that keeps discards from the flash, though the layer accepts
    them."""
    words = ("ignore_discard", "no_discard_passdown")
    segments = device.dm.segments if device.dm is not None else []
    found = [word for segment in segments for word in words if word in segment.options]
    return next(iter(found), None)


def _not_handed_on(device: Device, word: str) -> Finding:
    dm = device.dm
    name = f"{dm.volume_group}/{dm.logical_volume}" if dm is not None and dm.volume_group is not None else None
    return Finding(
        rule=RULE.name,
        object=device.id,
        severity=Severity.NOTE,
        summary=f"{device.id} does not pass discards on to the flash below",
        evidence=f"{word} in its table; the layers below accept discards",
        why="Flash that does not know the free blocks keeps copying them when it makes room.",
        effect="The drives lose spare room as they fill: more wear, and in the end slower writes.",
        steps=[
            Step(
                phase=Phase.TUNE,
                act=StepEffect.METADATA,
                about="pass them on; then run fstrim weekly",
                commands=[f"lvchange --discards passdown {quote(name.removesuffix('-tpool'))}"] if name else [],
            )
        ],
    )


def _layer(device: Device) -> str | None:
    """The layer, if it is known to drop discards by default."""
    if device.dm is not None and any(segment.target == "crypt" for segment in device.dm.segments):
        return "dm-crypt"
    if device.md is not None and device.md.level in PARITY:
        return f"md {device.md.level}"
    return None


def _below_takes_it(stack: Stack, device: Device) -> bool:
    below = [found for name in device.below if (found := stack.device(name)) is not None]
    queues = [stack.queue(found) for found in below]
    flash = [rotates(found) is False for found, _ in stack.bottoms(device)]
    return (
        bool(flash) and all(flash) and all(queue is not None and (queue.discard_max_bytes or 0) > 0 for queue in queues)
    )


RULE = Rule("discard", "Discards reach the flash.", _check, ("queue.discard_max_bytes", "dm.segments"))
