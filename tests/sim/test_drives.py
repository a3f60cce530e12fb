"""`spindle drives`: the catalogue, and one drive drawn."""

from __future__ import annotations

import json
from pathlib import Path

from spindle import _core
from spindle.report.terminal.chart import Curve, lines
from spindle.report.terminal.style import Style
from tests.program import spindle


def test_every_drive_of_the_catalogue_is_listed() -> None:
    done = spindle("drives")
    assert done.status == 0, done.err
    listed = [line.split()[0] for line in done.out.splitlines()[1:]]
    assert listed == _core.drive_names()


def test_a_drive_is_drawn_with_its_sources() -> None:
    done = spindle("drives", "show", "HDS725050KLA360")
    assert done.status == 0, done.err
    for words in ("Seek: ms", "Sequential reads", "Random 4 KiB reads", "Sources:", "Deskstar 7K500 data sheet"):
        assert words in done.out
    shown = json.loads(spindle("drives", "show", "970-PRO-1TB", "--json").out)
    assert shown["kind"] == "flash"
    assert shown["seek_curve"] == []


def test_an_unknown_drive_is_one_line_with_the_nearest_name() -> None:
    done = spindle("drives", "show", "HDS725050KLA361")
    assert done.status == 2
    assert "HDS725050KLA360" in done.err
    assert done.err.count("\n") == 1


def test_curves_are_saved_as_pictures(tmp_path: Path) -> None:
    for name, begin in (("d.png", b"\x89PNG"), ("d.svg", b"<svg")):
        done = spindle("drives", "show", "WD10EACS", "--chart", tmp_path / name)
        assert done.status == 0, done.err
        assert (tmp_path / name).read_bytes().startswith(begin)


def test_only_pictures_are_drawn_and_only_to_files_of_their_own(tmp_path: Path) -> None:
    for path in (tmp_path / "d.txt", Path("/dev/null")):
        done = spindle("drives", "show", "WD10EACS", "--chart", path)
        assert done.status == 2
        assert done.err.count("\n") == 1


def test_a_curve_fits_its_place() -> None:
    curve = Curve("Line", [(0.0, 0.0), (10.0, 5.0)], "x", "y", str, str)
    text = lines(curve, Style(width=60))
    assert max(map(len, text)) <= 60
    rows = [line.split("|", 1)[1] for line in text if "|" in line]
    assert rows[0].rstrip().endswith("o")
    assert rows[-1].startswith("o")
    assert lines(curve, Style(width=20)) == []
