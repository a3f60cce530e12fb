"""`spindle.monitor` gives intervals, a summary, a table, and a recording in a store."""

from __future__ import annotations

from pathlib import Path

import pytest

import spindle


def test_each_step_is_an_interval_and_the_summary_covers_them() -> None:
    watched = spindle.monitor(interval=0.05, count=3, cgroups=False)
    seen = list(watched)
    assert len(seen) == watched.summary.intervals == 3
    assert watched.summary.seconds == pytest.approx(sum(each.seconds for each in seen))
    assert set(watched.summary.host) == set(seen[0].host)


def test_a_table_has_a_row_for_each_interval_and_device() -> None:
    watched = spindle.monitor(interval=0.05, count=2)
    table = watched.to_table()
    assert list(table.columns)[:3] == ["end_ns", "seconds", "device"]
    assert "r/s" in table.columns
    assert len(table) == 2 * len(set(table["device"]))
    assert table._repr_html_().startswith("<table>")


def test_a_recording_is_in_the_store(tmp_path: Path) -> None:
    with spindle.open_store(tmp_path / "s.db") as store:
        watched = spindle.monitor(interval=0.05, count=2, store=store)
        assert watched.recording is None
        for _ in watched:
            assert watched.recording is not None
        (found,) = store.recordings
        assert found.id == watched.recording
        assert found.interval_s == 0.05


@pytest.mark.parametrize(
    ("devices", "options", "words"),
    [
        ((), {"interval": 0}, "`interval=` 0: is not a number from 0.05 to 86400"),
        ((), {"interval": float("inf")}, "`interval=` inf"),
        ((), {"count": 0}, "`count=` 0"),
        (("no-such-disk",), {}, "no-such-disk"),
    ],
)
def test_a_wrong_argument_is_refused_at_once(devices: tuple[str, ...], options: dict[str, float], words: str) -> None:
    with pytest.raises(spindle.Error) as refused:
        spindle.monitor(*devices, **options)  # type: ignore[arg-type]
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
