"""Published measurements of real arrays, predicted (`spindle validate published`)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spindle import _core
from spindle.report.charts.published import published_charts
from spindle.run.simulate import read_figures
from spindle.validation.published import large_file, randomio, sequential
from spindle.validation.published.compare import FigureComparison, TablesError, goals, piece_of, report
from spindle.validation.published.prediction import Quantity, sdd_megabytes_per_s
from spindle.validation.published.sensitivity import Banded, variants
from spindle.validation.published.sensitivity import report as sensitivity
from tests.program import spindle

SETUPS = """\
# a note
setup,drives,target,layout,chunk_kib,scheduler,ncq,note,iops,r_iops,r_avg_ms,w_avg_ms
raid10_md,6xHitachi,raw,f2,64,,on,,454.6,364.0,126.8,19.8
raid1_3w,2xWD10EACS,raw,raid1-hw,64,{scheduler},on,nr_requests=128,155.8,124.5,348.5,144.0
"""
COLUMNS = "array,threads,io_bytes,iops,r_avg_ms,w_avg_ms\n"


def test_random_loads_behind_a_controller_have_the_rates_that_were_measured(tmp_path: Path) -> None:
    (tmp_path / "randomio_setups_2008.csv").write_text(SETUPS.format(scheduler="cfq"))
    found = {(of.row.split()[0], of.figure): of for of in report(tmp_path).compared}
    assert abs(found["raid10_md", "iops"].error) < 0.05
    assert abs(found["raid1_3w", "iops"].error) < 0.05
    # Cached writes that wait longer than they did leave reads more of the drives.
    assert abs(found["raid10_md", "r_avg_ms"].error) < 0.15


def test_cached_writes_wait_while_drives_are_read(tmp_path: Path) -> None:
    """Below md from 16 threads on; on the controller's own array, where barriers stop the unit, from 8."""
    rows = ["md10fs,16,512,792.3,24.8,1.6", "3w10fs,8,512,635.0,14.8,4.0", "3w10fs,48,512,897.4,58.8,32.0"]
    (tmp_path / "randomio_2008.csv").write_text(COLUMNS + "\n".join(rows) + "\n")
    waits = [of for of in report(tmp_path).compared if of.quantity is Quantity.WRITE_LATENCY]
    assert len(waits) == 3
    assert all(abs(of.error) < 0.5 for of in waits), [of.predicted for of in waits]


def test_a_request_a_page_takes_as_long_as_it_took(tmp_path: Path) -> None:
    """A drive takes 0.1 ms for what it has in its buffer, not the time of a random read."""
    (tmp_path / "sequential_2008.csv").write_text(
        "setup,drives,read_mb_s,write_mb_s,note\nraid10_md_f2,6xHitachi,305,118,read-ahead 0: 22 MB/s read\n"
    )
    [read] = [one for one in report(tmp_path).compared if one.figure == "read_mb_s, read-ahead 0"]
    assert read.published == 22
    assert abs(read.error) < 0.15


def test_an_elevator_makes_no_difference_before_a_deep_controller(tmp_path: Path) -> None:
    predicted = []
    for scheduler in ("noop", "deadline", "cfq"):
        (tmp_path / "randomio_setups_2008.csv").write_text(SETUPS.format(scheduler=scheduler))
        predicted.append(next(of.predicted for of in report(tmp_path).compared if "raid1_3w" in of.row))
    assert max(predicted) < 1.02 * min(predicted)


def test_a_partition_at_sector_63_costs_what_it_cost_with_requests_of_a_chunk(tmp_path: Path) -> None:
    rows = ["3w10fs,64,512,913.7,77.0,41.7", "3w10fs,64,65536,553.5,127.2,68.3"]
    (tmp_path / "randomio_2008.csv").write_text(COLUMNS + "\n".join(rows) + "\n")
    small, large = (of for of in report(tmp_path).compared if of.figure == "iops")
    assert large.predicted / small.predicted == pytest.approx(large.published / small.published, rel=0.25)


def test_parity_streams_collapse_with_growing_chunks_as_they_did(tmp_path: Path) -> None:
    rows = [
        "cfq,raid5,left-symmetric,64,1.74,2.71",
        "cfq,raid5,left-symmetric,512,1.34,2.88",
        "cfq,raid5,left-symmetric,2048,0.580,3.50",
    ]
    (tmp_path / "md_stream_2008.csv").write_text(
        "scheduler,level,layout,chunk_kib,write_x,read_x\n" + "\n".join(rows) + "\n"
    )
    found = [of for of in report(tmp_path).compared if of.figure == "write_x"]
    assert all(abs(of.error) < 0.25 for of in found), [of.predicted for of in found]


def test_near_copies_are_read_and_written_as_fast_as_they_were(tmp_path: Path) -> None:
    rows = ["cfq,raid10,n2,64,1.78,1.89", "cfq,raid10,n2,512,1.84,2.15", "cfq,raid10,n2,2048,1.83,2.70"]
    (tmp_path / "md_stream_2008.csv").write_text(
        "scheduler,level,layout,chunk_kib,write_x,read_x\n" + "\n".join(rows) + "\n"
    )
    found = report(tmp_path).compared
    assert all(abs(of.error) < 0.10 for of in found), [(of.row, of.figure, of.predicted) for of in found]


def test_writes_wait_for_one_of_the_commands_that_all_units_share(tmp_path: Path) -> None:
    """512 readers fill the 254 commands of the driver."""
    (tmp_path / "randomio_2008.csv").write_text(COLUMNS + "md10fs,512,512,1110.2,522.7,202.3\n")
    [write] = [of for of in report(tmp_path).compared if of.figure == "w_avg_ms"]
    assert abs(write.error) < 0.25, write.predicted


def test_read_ahead_of_8_mib_gives_twelve_drives_to_one_reader(tmp_path: Path) -> None:
    columns = "raid,test,tool,fs,read_ahead,trial,metric,value,unit,cpu_pct\n"
    rows = [
        "raid0,7,bonnie++,xfs,untuned,1,seq_read,88178,KiB/s,",
        "raid0,8,bonnie++,xfs,tuned,1,seq_read,410799,KiB/s,",
    ]
    (tmp_path / "hw_raid_2004.csv").write_text(columns + "\n".join(rows) + "\n")
    untuned, tuned = report(tmp_path).compared
    assert tuned.predicted > 2 * untuned.predicted
    assert abs(tuned.error) < 0.15


def test_a_single_file_is_in_one_piece_and_its_seeks_end_with_an_fsync() -> None:
    row = {
        "layout": "n2",
        "fs": "xfs",
        "mkfs": "",
        "write_kib_s": "1",
        "rewrite_kib_s": "1",
        "read_kib_s": "1",
        "seeks_s": "1",
    }
    seeks = next(of for of in large_file.of_bonnie(row) if of.figure == "seeks_s").runs[0]
    assert "groups" not in seeks.machine
    # Its readers and writers share one lock.
    assert "file_size" not in seeks.machine
    assert "workers = 5" in seeks.workload
    assert "end_fsync = true" in seeks.workload
    assert "fsync_fraction = '100%'" in seeks.workload


def test_seekers_of_2004_do_not_sync() -> None:
    row = {"raid": "raid0", "tool": "bonnie++", "fs": "xfs", "read_ahead": "untuned", "trial": "1"}
    row |= {"metric": "seeks", "value": "411.7", "unit": "1/s"}
    seeks = next(large_file.of_hardware(row)).runs[0]
    assert "workers = 3" in seeks.workload
    assert "end_fsync" not in seeks.workload


def test_setups_have_the_array_and_files_of_their_words() -> None:
    def text(setup: str, drives: str, layout: str = "", target: str = "raw") -> str:
        row = dict.fromkeys(("chunk_kib", "scheduler", "ncq", "note", "r_avg_ms", "w_avg_ms"), "")
        row |= {"setup": setup, "drives": drives, "layout": layout, "target": target, "iops": "100"}
        [prediction] = randomio.of_setups(row)
        return prediction.runs[0].machine

    assert "level = 'raid0'" in text("raid0_md", "6xHitachi")
    assert "type = 'controller'\nlevel = 'raid6'" in text("raid6_3w", "6xHitachi")
    assert "[array]" not in text("single_3w", "1xHitachi")
    # On the device there is no file system; a drive of 1 TB is used as a whole.
    raw, files = (text("raid1_3w", "2xWD10EACS", "raid1-hw", target) for target in ("raw", "xfs"))
    assert "[files]" not in raw
    assert "region" not in raw
    assert "[partition]\nstart = '32256'\n[files]\ntype = 'xfs'" in files
    with pytest.raises(ValueError, match="2xST3250: expected a count and Hitachi or WD10EACS"):
        text("raid1_md", "2xST3250")


def test_streams_of_one_drive_have_no_array() -> None:
    row = {"setup": "single_3w", "drives": "1xWD10EACS", "read_mb_s": "80", "write_mb_s": "", "note": ""}
    [prediction] = sequential.predictions(row)
    text = prediction.runs[0].machine
    assert "[array]" not in text
    assert "model = 'WD10EACS'\ncount = 1" in text


def test_sdd_counts_kbytes_of_1024_bytes() -> None:
    """Its README: 33790 KiB in 10.601 s are 3187 kBytes/sec."""
    machine = "[host]\nkernel = '6.1'\n[[drive]]\nservice = '4ms'\ncapacity = '1GiB'\n"
    load = "pattern = 'sequential'\nsize = '16KiB'\nseconds = 'none'\nrequests = 100\n"
    simulation = _core.Simulation(_core.Machine.parse(machine, "m", []), _core.Workload.parse(load, "w", "w"))
    # 16 KiB in 4 ms are 4000 KiB/s.
    assert sdd_megabytes_per_s(read_figures(simulation.figures())) == pytest.approx(4.0, rel=0.01)


@pytest.mark.parametrize("setup", ["raid10_3w", "raid10_md_f2"])
def test_a_stream_is_written_as_long_as_it_was(setup: str) -> None:
    """Caches take a part of a shorter one."""
    row = {"setup": setup, "drives": "6xHitachi", "read_mb_s": "", "write_mb_s": "188", "note": ""}
    [prediction] = sequential.predictions(row)
    assert "bytes = '10000MiB'" in prediction.runs[0].workload


@pytest.mark.parametrize(("setup", "synced"), [("raid10_md_f2", True), ("raid0_md", False), ("raid10_3w", False)])
def test_an_array_of_md_with_copies_has_been_synced(setup: str, synced: bool) -> None:
    row = {"setup": setup, "drives": "6xHitachi", "read_mb_s": "305", "write_mb_s": "", "note": ""}
    [prediction] = sequential.predictions(row)
    machine = prediction.runs[0].machine
    _core.Machine.parse(machine, "row", [])
    assert ("synced = true" in machine) == synced


def test_a_file_system_that_no_rule_knows_is_named(tmp_path: Path) -> None:
    head = "raid,test,tool,fs,read_ahead,trial,metric,value,unit,cpu_pct\n"
    (tmp_path / "hw_raid_2004.csv").write_text(head + "raid0,1,bonnie++,jfs,tuned,1,seeks,200,1/s,0\n")
    [skipped] = report(tmp_path).skipped
    assert skipped.reason == "file system jfs: expected raw, ext2, xfs, ext3"


def test_a_row_that_no_rule_reads_is_named_and_the_others_are_predicted(tmp_path: Path) -> None:
    rows = ["zfs,1,512,100,10,1", "md10fs,1,512,112.3,11.2,0.2", "md7fs,1,512,100,10,1"]
    (tmp_path / "randomio_2008.csv").write_text(COLUMNS + "\n".join(rows) + "\n")
    found = report(tmp_path)
    assert [row.row for row in found.skipped] == ["row 1", "row 3"]
    assert "zfs" in found.skipped[0].reason
    assert len(found.compared) == 3


def test_the_goals_count_what_they_name() -> None:
    def one(published: float, predicted: float, quantity: Quantity) -> FigureComparison:
        return FigureComparison("t", "row", "figure", "unit", quantity, published, predicted)

    rates = [one(100, 110, Quantity.RATE), one(200, 180, Quantity.RATE), one(300, 300, Quantity.RATE)]
    writes = [one(0.2, 9, Quantity.WRITE_LATENCY), one(10, 14, Quantity.WRITE_LATENCY)]
    mean, rank, within = goals([*rates, *writes])
    assert mean.value == pytest.approx(0.2 / 3)
    assert rank.value == pytest.approx(1)
    assert within.value == 1.0
    assert not goals([one(10, 16, Quantity.WRITE_LATENCY)])[0].is_reached


@pytest.mark.filterwarnings("error")
def test_rates_that_are_all_the_same_have_no_order() -> None:
    def one(published: float, predicted: float) -> FigureComparison:
        return FigureComparison("t", "row", "figure", "unit", Quantity.RATE, published, predicted)

    same = goals([one(100, 110), one(100, 120), one(100, 130)])
    assert [goal.what for goal in same] == ["mean absolute error of rates"]
    _, rank = goals([one(100, 110), one(200, 110), one(300, 110)])
    assert (rank.value, rank.is_reached) == (0.0, False)


def test_a_band_that_goes_to_nothing_is_cut_in_the_chart() -> None:
    compared = FigureComparison("t.csv", "row", "figure", "ms", Quantity.WRITE_LATENCY, 20, 10)
    (chart,) = published_charts([Banded(compared, 1e-12, 40)])
    (value,) = chart.specification["data"]["values"]
    assert (value["least"], value["most"]) == (1, 40)


def test_the_verb_prints_tables_and_goals_and_fails_when_one_is_missed(tmp_path: Path) -> None:
    path = tmp_path / "randomio_2008.csv"
    path.write_text(COLUMNS + "md10fs,1,512,112.3,11.2,0.2\n")
    done = spindle("validate", "published", tmp_path)
    assert done.status == 0, done.err
    assert "md10fs 1 threads 512 B" in done.out
    assert "reached" in done.out
    path.write_text(COLUMNS + "md10fs,1,512,11.2,112,0.2\n")
    done = spindle("validate", "published", tmp_path, "--json")
    assert done.status == 1
    assert "goals are missed" in done.complaint
    assert [goal["is_reached"] for goal in json.loads(done.out)["goals"]] == [False, False]


def test_barriers_make_writes_of_a_controllers_array_wait_as_long_as_they_did(tmp_path: Path) -> None:
    (tmp_path / "randomio_2008.csv").write_text(COLUMNS + "3w10fs,48,512,897.4,58.8,32.0\n")
    found = {of.figure: of for of in report(tmp_path).compared}
    assert abs(found["iops"].error) < 0.15
    assert abs(found["w_avg_ms"].error) < 0.5


def test_the_sensitivity_names_assumed_numbers_and_its_bands_contain_the_prediction(tmp_path: Path) -> None:
    path = tmp_path / "sequential_2008.csv"
    path.write_text("setup,drives,read_mb_s,write_mb_s,note\nraid10_3w,6xHitachi,173,,\n")
    found = sensitivity(tmp_path)
    assert {"9650SE-16ML", "host of 2008", "HDS725050KLA360"} & {of.part for of in found.effects}
    assert all(of.least <= of.compared.predicted <= of.most for of in found.figures)
    assert [of.largest for of in found.effects] == sorted((of.largest for of in found.effects), reverse=True)


@pytest.mark.parametrize("level", ["raid0", "raid1", "raid4", "raid5", "raid6", "raid10", "raid10_f2"])
def test_a_first_sync_that_runs_is_a_machine_of_its_own(level: str) -> None:
    kind, _, layout = level.partition("_")
    row = {
        "setup": f"{kind}_md_{layout}".rstrip("_"),
        "drives": "6xHitachi",
        "read_mb_s": "84",
        "write_mb_s": "",
        "note": "",
    }
    [prediction] = sequential.predictions(row)
    [run] = prediction.runs
    syncs = [of for of in run.assumed if of.key == "first sync"]
    assert len(syncs) == (level != "raid0")
    for sync in syncs:
        running = sync.at(run.machine, sync.most)
        assert sync.at(running, sync.value) == running != run.machine
        _core.Machine.parse(running, "machine")


def test_each_assumed_number_is_in_its_machine_or_load() -> None:
    """One that is not would have no effect at either end of its range."""
    stream = {"setup": "raid5_md", "drives": "6xHitachi", "read_mb_s": "84", "write_mb_s": "129", "note": ""}
    bonnie = {"layout": "n2", "fs": "xfs", "mkfs": "", "write_kib_s": "1", "rewrite_kib_s": "1", "read_kib_s": "1"}
    predictions = [*sequential.predictions(stream), *large_file.of_bonnie(bonnie | {"seeks_s": "1"})]
    for run in (run for prediction in predictions for run in prediction.runs):
        texts = (run.machine, run.workload)
        assert [of.key for of in run.assumed if all(of.at(text, "another") == text for text in texts)] == []


def test_the_sensitivity_changes_what_is_assumed_of_a_load() -> None:
    """bonnie++ of 2011 without fsyncs before the end (`-b`)."""
    row = {"layout": "n2", "fs": "xfs", "mkfs": "", "write_kib_s": "1", "rewrite_kib_s": "1", "read_kib_s": "1"}
    *streams, seeks = (of.runs[0] for of in large_file.of_bonnie(row | {"seeks_s": "1"}))
    number = ("bonnie++ of 2011", "fsync", "the end", "each update", "each update")
    assert not any(number in variants(of) for of in streams)
    usual, changed = piece_of(seeks), variants(seeks)[number]["the end"]
    assert usual.machine == changed.machine
    [stream], [other] = (json.loads(of.workload)["streams"] for of in (usual, changed))
    assert (stream["sync"]["fsync_fraction"], other["sync"]["fsync_fraction"]) == (1.0, 0.0)


def test_a_raid5_whose_last_member_is_still_rebuilt_is_read_more_slowly(tmp_path: Path) -> None:
    (tmp_path / "sequential_2008.csv").write_text("setup,drives,read_mb_s,write_mb_s,note\nraid5_md,6xWD10EACS,84,,\n")
    [error] = [of for of in sensitivity(tmp_path).effects if of.key == "first sync" and "error" in of.what]
    assert (error.least, error.most) == ("over", "running")
    assert error.at_least == error.as_assumed > 1
    assert error.at_most < 0.5


def test_a_raid5_of_drives_without_a_read_cache_loses_turns(tmp_path: Path) -> None:
    """Each member is read with a gap where its parity is; the media alone would give 312 MB/s."""
    (tmp_path / "sequential_2008.csv").write_text("setup,drives,read_mb_s,write_mb_s,note\nraid5_md,6xHitachi,84,,\n")
    [read] = report(tmp_path).compared
    assert 60 < read.predicted < 160


def test_a_chart_is_drawn_of_published_against_predicted(tmp_path: Path) -> None:
    (tmp_path / "sequential_2008.csv").write_text("setup,drives,read_mb_s,write_mb_s,note\nraid10_3w,6xHitachi,173,,\n")
    picture = tmp_path / "chart.svg"
    done = spindle("validate", "published", tmp_path, "--chart", picture)
    assert done.status == 0, done.err
    assert "published" in picture.read_text()


def test_a_folder_without_tables_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(TablesError, match="none of"):
        report(tmp_path)
    assert spindle("validate", "published", tmp_path).status == 2
