"""A target that is not there: the advice names only what the verb has."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from program import Ended


@pytest.mark.promise(26)
@pytest.mark.parametrize(
    "line",
    [
        ("quick", "/nonexistent"),
        ("run", "randomio", "/nonexistent"),
        ("durability", "/nonexistent", "--journal", "j"),
        ("inspect", "/nonexistent"),
        ("doctor", "/nonexistent"),
        ("monitor", "/nonexistent", "--count", "1"),
        ("knobs", "list", "/nonexistent"),
    ],
)
def test_the_advice_for_a_target_that_is_not_there_names_what_the_verb_has(
    invoke: Callable[..., Ended], here: object, line: tuple[str, ...]
) -> None:
    done = invoke(*line)
    assert done.status in (1, 2)
    help_of_verb = invoke(*[word for word in line if word in ("knobs", "list")] or line[:1], "--help").out
    for verb, option in re.findall(r"(?:`spindle (\w+) )?(--[a-z-]+)", done.complaint):
        assert option in (invoke(verb, "--help").out if verb else help_of_verb), done.complaint
