"""Records of durability tests and of the check after a crash. Times are ns."""

from __future__ import annotations

from msgspec import Struct

from spindle.result.journal import DurabilityFigures, Findings, Header, Verdict


class WriteTest(Struct, frozen=True, kw_only=True):
    """A completed durability test."""

    kind: str = "durability-run"
    journal: str
    header: Header
    figures: DurabilityFigures


class DurabilityCheck(Struct, frozen=True, kw_only=True):
    """A check of a target against a journal."""

    kind: str = "durability-check"
    target: str
    findings: Findings
    notes: list[str]
    """Further remarks for people."""

    @property
    def verdict(self) -> Verdict:
        """The outcome in one word."""
        return self.findings.verdict

    @property
    def sound(self) -> bool:
        """True if nothing is lost and order was kept."""
        return self.findings.verdict == "kept"


class Cut(Struct, frozen=True, kw_only=True):
    """A power cut in the lab, and the check after it."""

    at_ns: int
    """Virtual time of the cut."""
    findings: Findings | None
    """None: the target could not be read again."""
    said: str | None = None
    """The reason."""

    @property
    def verdict(self) -> str:
        """The outcome in one word."""
        return self.findings.verdict if self.findings else "unusable"
