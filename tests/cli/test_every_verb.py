"""Every verb answers arguments that nothing can be with one line, exit status 2 or 1, and no traceback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from spindle.cli.main import spindle
from spindle.library.stores import open_store
from tests.program import Invoke

NOT_UTF8 = "\udcff"
TOO_LONG = "x" * 5000
WITHOUT_TARGET = ("run", "quick", "verify", "durability", "inspect", "doctor", "predict", "tune")
"""Verbs whose target may be empty by mistake: `spindle quick "$DISK"` with a name that the shell does not know."""


TAKE_ANY = (("fio",), ("lab", "exec"))
"""Verbs that take options of other programs."""


def verbs(
    command: click.Command = spindle, context: click.Context | None = None, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Each verb, and each below it, with the words that name it."""
    context = context or click.Context(command)
    if not isinstance(command, click.Group):
        yield path, command
        return
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from verbs(found, click.Context(found, parent=context, info_name=name), (*path, name))


VERBS = dict(verbs())
WITH_ARGUMENTS = {
    path: [each for each in command.params if isinstance(each, click.Argument)]
    for path, command in VERBS.items()
    if any(isinstance(each, click.Argument) for each in command.params)
}


def refused(invoke: Invoke, *words: str) -> str:
    """The one line about a command line that cannot be carried out."""
    ended = invoke(*words)
    assert ended.status in (1, 2, 3), ended
    assert ended.out == ""
    assert "defect of spindle" not in ended.complaint
    return ended.complaint


@pytest.mark.parametrize("path", VERBS, ids=" ".join)
def test_an_option_that_does_not_exist_is_an_error_of_the_verb(path: tuple[str, ...], invoke: Invoke) -> None:
    complaint = refused(invoke, *path, "--qqqqq")
    if path not in TAKE_ANY:
        assert "no such option --qqqqq" in complaint
        assert f"`spindle {' '.join(path)} --help`" in complaint


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty store."""
    place = tmp_path_factory.mktemp("store") / "store.db"
    with open_store(place):
        return place


@pytest.mark.parametrize("name", [NOT_UTF8, TOO_LONG], ids=["not UTF-8", "too long"])
@pytest.mark.parametrize("path", WITH_ARGUMENTS, ids=" ".join)
def test_a_name_that_nothing_can_have_is_one_line(
    path: tuple[str, ...], name: str, invoke: Invoke, here: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPINDLE_STORE", str(store))
    refused(invoke, *path, *([name] * len(WITH_ARGUMENTS[path])), *NEEDED.get(path, ()))


NEEDED = {("check",): ("--baseline", "tag:a"), ("report",): ("-o", "r.html"), ("store", "export"): ("-o", "r.json")}
"""Options without which a verb looks at nothing."""


@pytest.mark.parametrize("verb", WITHOUT_TARGET)
def test_an_empty_target_is_not_the_current_folder(verb: str, invoke: Invoke, here: Path) -> None:
    words = ["seeker", ""] if verb == "run" else ["", "seeker"] if verb in ("predict", "tune") else [""]
    assert "the target has no name" in refused(invoke, verb, *words)
    assert not list(here.iterdir())


@pytest.mark.parametrize("verb", [("campaign", "ls"), ("campaign", "show"), ("campaign", "resume"), ("store", "ls")])
def test_a_mistyped_store_is_not_made(verb: tuple[str, ...], invoke: Invoke, here: Path) -> None:
    assert "mistyped.db: no such store" in refused(invoke, *verb, "--store", "mistyped.db")
    assert not list(here.iterdir())


def test_a_flag_with_a_value_names_the_help_of_its_verb(invoke: Invoke) -> None:
    assert "`spindle quick --help`" in refused(invoke, "quick", "--sqpoll=1")
    assert "`spindle knobs profile save --help`" in refused(invoke, "knobs", "profile", "save", "--json=1")


def test_a_device_file_is_not_a_store(invoke: Invoke) -> None:
    assert "/dev/null: not a regular file" in refused(invoke, "store", "ls", "--store", "/dev/null")


def test_a_mistyped_machine_or_option_has_the_nearest_name(invoke: Invoke, here: Path) -> None:
    assert "did you mean `one-sata`?" in refused(invoke, "run", "seeker", "one-satta")
    assert "did you mean `--size`?" in refused(invoke, "run", "seeker", "one-sata", "--siez", "4KiB")
