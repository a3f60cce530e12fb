"""Numbers as text: for columns of a given width, and shares and changes in sentences."""

from __future__ import annotations

from decimal import Decimal

from spindle.base import units

TIMES = 10.0
"""From so many times on a change is shown as a multiple: `x 580`, as nobody sees it in `+57900 %`."""


def fitting(value: float, width: int, decimals: int) -> str:
    """At least `decimals` decimals, and more for small values as far as the width allows: 81.8, 0.052."""
    text = f"{value:.{decimals}f}"
    if 0 < abs(value) < 10:
        for more in range(decimals + 1, width - 1):
            if abs(value) >= 10 ** (decimals - more + 2):
                break
            longer = f"{value:.{more}f}"
            if len(longer) > width:
                break
            text = longer
    return text.rjust(width)


def plain(value: float) -> str:
    """Three significant digits or whole: <0.001, 0.052, 5.12, 51.2, 512, 5123."""
    if value == 0:
        return "0"
    if 0 < value < 0.0005:
        return "<0.001"
    if abs(value) >= 100:
        return f"{value:.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    if abs(value) >= 1:
        return f"{value:.2f}"
    return f"{value:.3f}"


def written(value: float) -> str:
    """Nine significant digits, as a user writes them: 0.0000125, never 1.25e-05, which no key takes."""
    return format(Decimal(f"{value:.9g}"), "f")


def as_change(share: float, sign: bool = False) -> str:
    """`0.35 %`, `4.2 %`, `12 %`, `99.8 %`, `x 580`; never more digits than mean something."""
    value = 100 * share
    size = abs(value)
    if share >= TIMES - 1:
        return f"x {multiple(1 + share)}"
    if 99.5 <= size < 100:  # nearly all is not all
        return f"{value:{'+' if sign else ''}.{1 if size < 99.95 else 2}f} %" if size < 99.995 else _nearly(value)
    decimals = 0 if size >= 9.95 else 1 if size >= 0.95 else 2
    text = f"{value:+.{decimals}f}" if sign else f"{value:.{decimals}f}"
    if float(text) == 0:
        return "0 %" if value == 0 else f"under {'-' if value < 0 else ''}0.01 %" if not sign else f"{text} %"
    return f"{text} %"


def share_of(ratio: float) -> str:
    """`58 % of`, `580 times`."""
    return f"{multiple(ratio)} times" if ratio >= TIMES else f"{units.percent(ratio)} of"


def _nearly(value: float) -> str:
    return f"over {'-' if value < 0 else ''}99.99 %"


def multiple(ratio: float) -> str:
    """`12`, `580`, `58 000`: two or three digits that mean something."""
    if ratio >= 1e6:
        return "over 1 000 000"
    digits = 2 if ratio < 100 else 3
    return f"{float(f'{ratio:.{digits}g}'):,.0f}".replace(",", " ")
