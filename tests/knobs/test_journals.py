"""Journals that cannot be trusted or understood are reported and kept, and never carried out."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spindle.knobs import asking, journal, locks
from spindle.knobs.errors import KnobRefusal
from spindle.knobs.places import named
from spindle.knobs.restore import Restoration, pending, restore
from spindle.knobs.session import Session
from spindle.knobs.undo import State
from tests.knobs.kernel_of_files import FakeKernel

pytestmark = pytest.mark.promise(4)


def change(kernel: FakeKernel, *words: str) -> Path:
    """Make a change and keep it; returns its journal."""
    with Session("set", kernel.machine, kernel) as session:
        session.change(asking.settings(named("sdx", kernel.machine), words, kernel.machine))
        session.keep()
    return max(journal.paths())


def rewrite(path: Path, edit: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
    """Replace the lines, with right check sums, as another version could have written them."""
    lines = []
    for line in path.read_bytes().splitlines():
        record = edit(json.loads(line[9:]))
        if record is not None:
            data = json.dumps(record).encode()
            lines.append(b"%08x %s\n" % (zlib.crc32(data), data))
    path.write_bytes(b"".join(lines))


def renamed(old: str, new: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """An edit that replaces one knob's name by another."""

    def edit(record: dict[str, Any]) -> dict[str, Any]:
        if record.get("knob") == old:
            record["knob"] = new
        for values in ("before", "after"):
            if values in record and old in record[values]:
                record[values][new] = record[values].pop(old)
        return record

    return edit


def spoken(report: Restoration) -> str:
    return "\n".join([*report.refused, *report.notes, *(str(item) for item in report.items)])


# --- what this version does not know ---------------------------------------------------------------------------------


def test_an_unknown_knob_is_reported_and_kept_and_the_rest_is_undone(kernel: FakeKernel) -> None:
    path = change(kernel, "nomerges=2", "iostats=0", "vm.swappiness=10")
    rewrite(path, renamed("nomerges", "future_knob"))
    assert State.UNKNOWN in {item.state for item in pending(kernel.machine, kernel).items}
    for _ in range(3):  # as often as it is asked
        report = restore(kernel.machine, kernel)
        assert not report.complete
        assert [(item.knob, item.start, item.left_at) for item in report.having(State.UNKNOWN)] == [
            ("sdx.future_knob", "0", "2")
        ]
        assert str(path) in spoken(report)
        assert path.exists()
    assert kernel.queue("iostats").read_text() == "1\n"
    assert kernel.vm("swappiness").read_text() == "60\n"
    # What was put back is not put back again, whoever changes it later.
    kernel.other_program_writes(kernel.queue("iostats"), "0")
    restore(kernel.machine, kernel)
    assert kernel.queue("iostats").read_text() == "0\n"
    rewrite(path, renamed("future_knob", "nomerges"))  # the version that knows it
    rewrite(path, lambda record: {**record, "except": ["nomerges"]} if "except" in record else record)
    assert restore(kernel.machine, kernel).complete
    assert kernel.queue("nomerges").read_text() == "0\n"
    assert not path.exists()


def test_an_unknown_value_that_was_only_noted_and_did_not_move_is_not_reported(kernel: FakeKernel) -> None:
    path = change(kernel, "iostats=0")
    rewrite(path, renamed("wbt_lat_usec", "future_knob"))
    assert restore(kernel.machine, kernel).complete
    assert not path.exists()


@pytest.mark.parametrize("scope", ["gpu", "vm2", ""])
def test_an_unknown_place_is_reported_and_kept(kernel: FakeKernel, scope: str) -> None:
    path = change(kernel, "vm.swappiness=10")

    def edit(record: dict[str, Any]) -> dict[str, Any]:
        if record["kind"] == "intent":
            record["place"] = {**record["place"], "label": scope or "vm", "scope": "gpu" if scope == "gpu" else "vm"}
            if not scope:
                record["place"].pop("label")
        return record

    rewrite(path, edit)
    report = restore(kernel.machine, kernel)
    assert not report.complete
    assert str(path) in spoken(report)
    assert path.exists()


def test_a_device_described_in_a_newer_way_is_reported_and_kept_and_not_called_gone(kernel: FakeKernel) -> None:
    path = change(kernel, "iostats=0")

    def edit(record: dict[str, Any]) -> dict[str, Any]:
        if record["kind"] == "intent":
            record["place"]["device"]["slot"] = 7
        return record

    rewrite(path, edit)
    report = restore(kernel.machine, kernel)
    assert {item.state for item in report.items} == {State.UNKNOWN}
    assert path.exists()


def test_lines_of_a_kind_that_this_version_does_not_know_keep_the_journal(kernel: FakeKernel) -> None:
    path = change(kernel, "iostats=0")
    data = json.dumps({"kind": "firmware", "from": "1", "to": "2"}).encode()
    path.write_bytes(path.read_bytes() + b"%08x %s\n" % (zlib.crc32(data), data))
    report = restore(kernel.machine, kernel)
    assert "does not understand" in spoken(report)
    assert not report.complete
    assert path.exists()
    assert kernel.queue("iostats").read_text() == "1\n"


def test_a_journal_of_another_machine_or_format_says_what_to_do(kernel: FakeKernel) -> None:
    path = change(kernel, "iostats=0")
    original = path.read_bytes()
    rewrite(path, lambda record: {**record, "host": "elsewhere", "boot": "x"} if record["kind"] == "begin" else record)
    assert "run `spindle restore` there" in spoken(restore(kernel.machine, kernel))
    path.write_bytes(original)
    rewrite(path, lambda record: {**record, "version": 99} if record["kind"] == "begin" else record)
    assert "run `spindle restore` of that one" in spoken(restore(kernel.machine, kernel))
    assert path.exists()


# --- what somebody else could have written ---------------------------------------------------------------------------


def by_another_owner(path: Path) -> None:
    os.chown(path, 65534, 65534)


def of_nobody_known(path: Path) -> None:
    os.chown(path, 4_000_000, 4_000_000)


def writable_by_all(path: Path) -> None:
    path.chmod(0o666)


def writable_by_the_group(path: Path) -> None:
    path.chmod(0o660)


def a_link(path: Path) -> None:
    path.rename(path.with_suffix(".elsewhere"))
    path.symlink_to(path.with_suffix(".elsewhere"))


def a_second_name(path: Path) -> None:
    os.link(path, path.with_suffix(".second"))


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


SPOILERS = (by_another_owner, of_nobody_known, writable_by_all, writable_by_the_group, a_link, a_second_name, a_pipe)


@pytest.mark.parametrize("spoil", SPOILERS)
def test_a_journal_that_somebody_else_could_have_written_is_refused_with_what_to_do(
    need_root: None, kernel: FakeKernel, spoil: Callable[[Path], None], invoke: Callable[..., Any]
) -> None:
    path = change(kernel, "iostats=0", "nr_requests=64")
    spoil(path)
    before = kernel.state()
    for look in (pending, restore, restore):
        report = look(kernel.machine, kernel)
        assert [str(path) in line for line in report.refused] == [True]
        assert "remove" in report.refused[0]
        assert not report.complete
    assert kernel.state() == before
    assert os.path.lexists(path)
    ended = invoke("restore")
    assert ended.status == 3
    assert len(ended.err.splitlines()) == 1
    assert "was carried out" in ended.err
    assert "running" not in ended.err


def test_journals_beside_a_refused_one_are_carried_out(need_root: None, kernel: FakeKernel) -> None:
    refused = change(kernel, "iostats=0")
    change(kernel, "vm.swappiness=10")
    writable_by_all(refused)
    assert not restore(kernel.machine, kernel).complete
    assert kernel.vm("swappiness").read_text() == "60\n"
    assert kernel.queue("iostats").read_text() == "0\n"
    refused.chmod(0o600)  # what the line says
    assert restore(kernel.machine, kernel).complete
    assert kernel.queue("iostats").read_text() == "1\n"


def test_a_folder_above_that_others_may_write_to_is_refused(kernel: FakeKernel, state_folder: Path) -> None:
    change(kernel, "iostats=0")
    for folder in (state_folder, state_folder.parent):
        folder.chmod(0o777)
        with pytest.raises(KnobRefusal, match="others may write"):
            restore(kernel.machine, kernel)
        with pytest.raises(KnobRefusal, match="others may write"):
            change(kernel, "vm.swappiness=10")
        folder.chmod(0o1777)  # as /tmp: nobody can put another folder in the place of ours
        assert {item.state for item in pending(kernel.machine, kernel).items} == {State.CHANGED}
        folder.chmod(0o700)


def test_a_link_of_another_user_on_the_way_to_the_folder_is_refused(
    need_root: None, kernel: FakeKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(kernel, "iostats=0")
    link = tmp_path / "link"
    link.symlink_to(os.environ["XDG_STATE_HOME"])
    monkeypatch.setenv("XDG_STATE_HOME", str(link))
    assert {item.state for item in pending(kernel.machine, kernel).items} == {State.CHANGED}  # a link of our own
    os.lchown(link, 65534, 65534)
    with pytest.raises(KnobRefusal, match="symbolic link of the user"):
        restore(kernel.machine, kernel)


def test_a_journal_made_with_a_careless_umask_is_private(kernel: FakeKernel) -> None:
    before = os.umask(0)
    try:
        path = change(kernel, "iostats=0")
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600
    assert locks.folder().stat().st_mode & 0o077 == 0
    assert restore(kernel.machine, kernel).complete
