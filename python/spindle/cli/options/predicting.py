"""`--predict` and `--calibrate`: what was measured beside what a machine should deliver."""

from __future__ import annotations

import click


def predict_options(command: click.decorators.FC) -> click.decorators.FC:
    """Both options; `calibrates` checks them."""
    calibrate = click.option(
        "--calibrate",
        is_flag=True,
        help="With --predict: describe a device without a data sheet by reading it for some seconds.",
    )
    predict = click.option(
        "--predict",
        metavar="[MACHINE]",
        is_flag=False,
        flag_value="",
        help="Print what the machine file MACHINE should deliver beside what was measured, with likely causes of "
        "differences. Without MACHINE: the machine of TARGET's block stack (`spindle help predict`).",
    )
    return predict(calibrate(command))


def check_calibrate(predict: str | None, calibrate: bool) -> None:
    """Raise `click.UsageError` if there is nothing to calibrate for."""
    if calibrate and predict is None:
        raise click.UsageError("--calibrate needs --predict")
