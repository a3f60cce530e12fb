"""`spindle.assess`: is this storage good enough for a purpose?"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from spindle.assess import assess as assessing
from spindle.assess import assessment
from spindle.assess.need import need_of
from spindle.library.arguments import public
from spindle.library.options import consent_of, preflight_of
from spindle.library.session import Progress, watched
from spindle.library.shown import Printable
from spindle.library.stores import Store, keeping
from spindle.report.terminal.style import Style
from spindle.result.record import Record
from spindle.run.consent import Consent
from spindle.run.preparation import PreflightOptions
from spindle.run.targets import parse

Name = str | os.PathLike[str]
Amount = str | float | None
SHOWN = 3
"""Most findings of the doctor in the next steps."""


class Assessment(assessment.Assessment, Printable, frozen=True):
    """The answer, its margin, the bottleneck and the next steps. `print` shows it as a page."""

    def page(self, style: Style) -> list[str]:
        """As `Printable`."""
        from spindle.report.terminal.assessment import assessment_page

        return assessment_page(self, style)

    @property
    def is_enough(self) -> bool:
        """True if the answer is yes."""
        return self.answer == "yes"

    def __repr__(self) -> str:
        return f"<Assessment of {self.target.asked} for {self.purpose}: {self.answer}>"


@public
def assess(
    target: Name,
    purpose: Literal["postgres", "mysql", "vm-host", "mail", "backup", "video"],
    *,
    tps: Amount = None,
    reads: Amount = None,
    guests: Amount = None,
    mailboxes: Amount = None,
    messages: Amount = None,
    streams: Amount = None,
    recordings: Amount = None,
    bit_rate: Amount = None,
    rate: Amount = None,
    read_rate: Amount = None,
    commit_p99: str | None = None,
    read_p99: str | None = None,
    write_p99: str | None = None,
    data: str | int | None = None,
    seconds: float | None = None,
    erase: Name | None = None,
    erase_signature: str | None = None,
    erase_stacked: bool = False,
    erase_shared: bool = False,
    confirm: Callable[[str], bool] | None = None,
    strict: bool = False,
    wait_idle: float = 0.0,
    quiet_machine: bool = False,
    sync: Literal["target", "machine"] = "target",
    drop_caches: bool = False,
    store: Store | str | os.PathLike[str] | bool | None = None,
    tags: Sequence[str] = (),
    progress: Progress = False,
) -> Assessment:
    """Find out if storage is good enough for a purpose: yes, no or cannot say, with the margin.

    `target`: a folder, a file, a block device or a modelled machine. `purpose`: its numbers are those that
    docs/reference/assess.md names for it (`tps=500, commit_p99="5ms"`), others are refused; None is the default.
    `data`: size of the data (bytes, or with a unit); None: the whole target, in a folder what the caches require.
    `seconds`: length of the run at the need; the other runs take half of it.

    A load that writes writes to a file that is made in a folder and removed at the end, or to a device that `erase`
    names. `store`, `tags`: keep the search with its answer. The rest is as of `spindle.run`. Raises `spindle.Error`.
    """
    given = {
        "tps": tps,
        "reads": reads,
        "guests": guests,
        "mailboxes": mailboxes,
        "messages": messages,
        "streams": streams,
        "recordings": recordings,
        "bit_rate": bit_rate,
        "rate": rate,
        "read_rate": read_rate,
        "commit_p99": commit_p99,
        "read_p99": read_p99,
        "write_p99": write_p99,
    }
    with keeping(store, tags) as keep:
        return assessed(
            os.fspath(target),
            purpose,
            given,
            keep,
            seconds=seconds,
            data=data,
            consent=consent_of(erase, erase_signature, erase_stacked, erase_shared, confirm),
            preflight_options=preflight_of(
                strict=strict, sync=sync, drop_caches=drop_caches, wait_idle=wait_idle, quiet_machine=quiet_machine
            ),
            progress=progress,
        )


def assessed(
    target: str,
    purpose: str,
    given: Mapping[str, object],
    keep: Callable[[Record], None],
    *,
    seconds: float | None,
    data: str | int | None,
    consent: Consent,
    preflight_options: PreflightOptions,
    progress: Progress,
) -> Assessment:
    """The same with options as the command line has them; `keep` takes the record. Raises `spindle.Error`."""
    need = need_of(purpose, given, seconds, data)
    place = parse(target)
    with watched(progress) as watch:
        found, record = assessing.assess(
            place,
            need,
            watch,
            consent=consent,
            preflight_options=preflight_options,
            findings=lambda: _findings(target),
        )
    keep(record)
    return Assessment(**{name: getattr(found, name) for name in found.__struct_fields__})


def _findings(target: str) -> Sequence[str]:
    """The worst problems of the target's block stack, each in a line."""
    from spindle.base.errors import SpindleError
    from spindle.library.stack import doctor

    try:
        bad = sorted(doctor(target).bad, key=lambda each: -each.severity.rank)
    except SpindleError:  # no block stack: nothing to be found
        return []
    return [f"{each.summary} ({each.object})" for each in bad[:SHOWN]]
