"""Selections and options of the verbs that compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from spindle.library.stores import Selection


def share(low: float, high: float, *, inclusive: bool = False) -> Callable[..., float]:
    """Return an option's callback that reads `5%`, `5 %` or `0.05` as 0.05."""

    def read(_context: click.Context, _parameter: click.Parameter, text: str) -> float:
        number = text.strip()
        try:
            value = float(number.removesuffix("%")) / (100 if number.endswith("%") else 1)
        except ValueError:
            value = float("nan")
        if not (low < value < high or (inclusive and value == low)):
            least = "from" if inclusive else "above"
            raise click.BadParameter(
                f"{text!r} is not a share {least} {low:.0%} and below {high:.0%}; write 5% or 0.05"
            )
        return value

    return read


def metric_names(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete a name in the shell."""
    from spindle.stats.names import METRICS

    return [name for entry in METRICS for name in entry.names if name.startswith(incomplete)]


def metric_option(command: click.decorators.FC) -> click.decorators.FC:
    """`--metric`."""
    return click.option(
        "--metric",
        "metrics",
        multiple=True,
        metavar="NAME",
        shell_complete=metric_names,
        help="What to compare: iops, bytes_per_s, mean_ns, read.p99_ns, STREAM/write.iops, device.r_await ... "
        "(`spindle metrics` lists them). May be repeated. Without it: throughput and the p99 latency of reads and of "
        "writes.",
    )(command)


def across_time_option(command: click.decorators.FC) -> click.decorators.FC:
    """`--across-time`."""
    return click.option(
        "--across-time",
        is_flag=True,
        help="Assume that the machine did not change over time: compare runs made one after the other.",
    )(command)


def invalid_option(command: click.decorators.FC) -> click.decorators.FC:
    """`--with-invalid`."""
    return click.option("--with-invalid", is_flag=True, help="Include runs whose verdict is invalid.")(command)


@contextmanager
def selections(where: str | None, texts: Sequence[str]) -> Iterator[list[Selection]]:
    """Yield the selections of a command line; open the store if one of them needs it."""
    from spindle.cli.options import storing
    from spindle.library.comparing import selection_of
    from spindle.store import needs_store

    if not any(needs_store(text) for text in texts):
        yield [selection_of(text) for text in texts]
        return
    with storing.opened(where, read_only=True) as store:
        yield [selection_of(text, store.raw) for text in texts]
