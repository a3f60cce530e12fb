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
        type=int,
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


def where_of(values: dict[str, Any]) -> Choice:
    """The place; `values` as click gives them. Raises errors of one line."""
    from spindle.cluster.choice import choice_of

    names = ("workers", "cluster", "tls_ca_file", "tls_cert", "tls_key")
    return choice_of(*(values.pop(name) for name in names))
