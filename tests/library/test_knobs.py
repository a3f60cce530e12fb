"""`spindle.knobs`: settings are changed for a `with` block and are as before behind it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import spindle
from spindle.library.settings import changing, wanted_of
from tests.knobs.kernel_of_files import FakeKernel


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return FakeKernel(tmp_path / "kernel")


def test_settings_are_put_back_at_the_end_of_the_block(kernel: FakeKernel) -> None:
    before = kernel.state()
    wanted = wanted_of(["sdx", "scheduler=none", "vm.swappiness=10"], machine=kernel.machine)
    with changing(wanted, False, print, machine=kernel.machine, files=kernel) as done:
        assert {one.knob: one.after for one in done} == {"sdx.scheduler": "none", "vm.swappiness": "10"}
        assert kernel.state() != before
    assert kernel.state() == before


def test_an_error_in_the_block_puts_them_back_too(kernel: FakeKernel) -> None:
    before = kernel.state()
    wanted = wanted_of(["sdx", "read_ahead_kb=4096"], machine=kernel.machine)
    with (
        pytest.raises(ZeroDivisionError),
        changing(wanted, False, print, machine=kernel.machine, files=kernel),
    ):
        _ = 1 / 0
    assert kernel.state() == before


def test_a_value_that_the_kernel_changes_is_refused_if_strict_and_remarked_else(kernel: FakeKernel) -> None:
    before, said = kernel.state(), list[str]()
    wanted = wanted_of(["sdx", "read_ahead_kb=5"], machine=kernel.machine)
    with changing(wanted, False, said.append, machine=kernel.machine, files=kernel) as [made]:
        assert said == [str(made)]
    with pytest.raises(spindle.Error), changing(wanted, True, said.append, machine=kernel.machine, files=kernel):
        pytest.fail("the block must not begin")
    assert kernel.state() == before


@pytest.mark.parametrize(
    ("words", "named", "text"),
    [
        (("vm.swappines=10",), {}, "swappiness"),
        ((), {}, "nothing to set"),
        (("no-such-device",), {"scheduler": "none"}, "no-such-device"),
    ],
)
def test_wrong_settings_are_errors_and_nothing_changes(
    words: tuple[str, ...], named: dict[str, Any], text: str
) -> None:
    with pytest.raises(spindle.Error, match=text), spindle.knobs(*words, **named):
        pytest.fail("the block must not begin")
