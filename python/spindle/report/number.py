"""Numbers for columns of a given width."""

from __future__ import annotations


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
