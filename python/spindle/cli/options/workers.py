"""Options of verbs whose simulations may run in worker processes, or on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from spindle.cli.options.added import added

if TYPE_CHECKING:
    from spindle.cluster.choice import Choice

_OPTIONS = (
    click.option(
        "--workers",
        type=click.IntRange(1, 1024),
        metavar="N",
        help="Simulate in N worker processes; what they have done is kept if the run is killed.",
    ),
    click.option(
        "--cluster",
        metavar="URL",
        help="Simulate on the Dask cluster of this scheduler: tls://HOST:8786, or tcp://127.0.0.1:8786.",
    ),
    click.option("--tls-ca-file", metavar="FILE", help="--cluster: the authority of its certificates (PEM)."),
    click.option("--tls-cert", metavar="FILE", help="--cluster: your certificate (PEM)."),
    click.option("--tls-key", metavar="FILE", help="--cluster: your key (PEM). Default: Dask's configuration."),
)


def worker_options(function: click.decorators.FC) -> click.decorators.FC:
    """Options that say where simulations run."""
    return added(function, _OPTIONS)


def where_of(values: dict[str, Any], jobs: int = 1) -> Choice:
    """The place; `values` as click gives them. Raises errors of one line."""
    from spindle.cluster.choice import choice_of
    from spindle.run.errors import Usage

    names = ("workers", "cluster", "tls_ca_file", "tls_cert", "tls_key")
    found = choice_of(*(values.pop(name) for name in names))
    if jobs > 1 and not found.is_here:
        raise Usage("`jobs=`: is for trials in this process; leave it out where workers compute")
    return found
