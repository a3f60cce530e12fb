"""`spindle tune` from the command line: the space, a search on a modelled machine, resuming, bad input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from spindle.knobs.catalogue import KNOBS, knob
from spindle.knobs.tuned import RANGES, elevators_of
from spindle.store import open_store
from spindle.tune.levels import parsed, spaced
from tests.program import Ended, ended, spindle, started
from tests.queue import Queue
from tests.tune.killed import LOAD, TOLERATED, TUNER, killed, on_loop, points, search, twice
from tests.workbench import Workbench

FEW = ("--trials", "8", "--confirm", "4", "-q")
DEADLINE_S = 120.0


@pytest.fixture
def tune(tmp_path: Path) -> Callable[..., Ended]:
    """Run `spindle tune` with a store of its own."""

    def run(*arguments: str) -> Ended:
        return ended(started(*arguments_of(tmp_path, *arguments), cwd=tmp_path), DEADLINE_S)

    return run


def arguments_of(place: Path, *arguments: str) -> list[str]:
    return ["tune", *arguments, "--store", str(place / "store.db")]


def test_the_page_has_decision_changes_trials_and_the_way_back(tune: Callable[..., Ended]) -> None:
    knobs = ("--only", "--knob", "array.layout=n2,f2", "--set", "options.seconds=1", *FEW)
    done = tune("six-sata-raid10", "randomio", *knobs)
    assert done.status == 0, done.err
    assert "tune: better by " in done.out
    assert "array.layout  n2     f2" in done.out
    assert "A modelled machine has nothing to set" in done.out
    again = tune("--resume", "tune")
    assert again.out == done.out, "a search that is done shows its decision again"
    found = json.loads(tune("--resume", "tune", "--json").out)
    assert found["changes"] == {"array.layout": ["n2", "f2"]}
    assert 0 < found["low"] <= found["change"] <= found["high"]
    assert sum(one["stage"] == "confirm" for one in found["trials"]) == 8


def test_the_report_of_a_search_tells_its_story(tune: Callable[..., Ended], tmp_path: Path) -> None:
    knobs = ("--only", "--knob", "array.layout=n2,f2", "--knob", "nr_requests=64,128", "--set", "options.seconds=1")
    decided = tune("six-sata-raid10", "randomio", *knobs, *FEW, "--json").json

    def report(form: str) -> Ended:
        return spindle("report", "campaign:tune", "--format", form, "--store", str(tmp_path / "store.db"), cwd=tmp_path)

    found = {section["key"]: section for section in report("json").json["sections"]}
    assert list(found)[:3] == ["decision", "influences", "search"]
    charts = {each["key"]: each for one in found.values() for each in one["blocks"] if "specification" in each}
    assert [len(charts["trials"]["sheet"]["rows"])] == [len(decided["trials"])]
    confirmed = {row[0]: float(row[2]) for row in charts["beside"]["sheet"]["rows"]}
    assert confirmed["best"] / confirmed["start"] - 1 == pytest.approx(decided["change"], abs=0.002)
    drawn = [panel["title"]["text"] for panel in charts["curves"]["specification"]["vconcat"]]
    assert drawn == [one["name"] for one in decided["influences"] if not one["flat"]]
    assert "the best is" not in report("txt").out, "the best observed trials are no finding"
    page = report("html")
    assert page.status == 0, page.err
    assert "write these settings into its file" in page.out


def test_settings_that_do_nothing_are_kept(tune: Callable[..., Ended]) -> None:
    done = tune(
        "one-nvme", "randomio", "--only", "--knob", "nr_requests=512,1024", "--set", "options.seconds=0.1", *FEW
    )
    assert done.status == 0, done.err
    assert done.out.startswith("tune: keep what you have\n")


SHORT = ("--only", "--knob", "options.depth=1..8", "--set", "options.seconds=0.1", "--trials", "4", "--confirm", "3")
UNFIT = {
    "larger than the target": ("options.size=2MiB", "1048576 bytes of the target hold no request of 2097152 bytes"),
    "not of whole blocks": ("options.size=100", "a request size of 100 bytes is not a multiple of"),
}


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("file", "larger than the target"),
        ("file", "not of whole blocks"),
        ("null:1MiB", "larger than the target"),
        ("one-sata", "not of whole blocks"),
    ],
)
def test_a_load_that_the_target_cannot_take_ends_the_search_at_once(
    tune: Callable[..., Ended], tmp_path: Path, target: str, why: str
) -> None:
    change, words = UNFIT[why]
    if target == "file":
        (tmp_path / "file").write_bytes(b"\1" * (1 << 20))
    done = tune(target, "seeker", "--set", change, *SHORT)
    assert (done.status, done.out) == (2, ""), done.err
    assert words in done.complaint
    with open_store(tmp_path / "store.db") as store:
        trials = store.campaigns.trials("tune")
    assert [one.attempts for one in trials if one.attempts] == [1], "no trial is made again"


def test_a_search_goes_round_settings_that_do_not_fit(tune: Callable[..., Ended], tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"\1" * (1 << 20))
    short = ("--set", "options.seconds=0.1", "--set", f"trials.tolerate={TOLERATED}")
    done = tune("file", "seeker", "--only", "--knob", "options.size=4KiB,2MiB", *short, *FEW, "--json")
    assert done.status == 0, done.err
    found = json.loads(done.out)
    assert found["decision"] in ("keep", "better")
    unfit = [one for one in found["trials"] if one["levels"]["options.size"] == "2MiB"]
    assert {one["state"] for one in unfit} == {"failed"}
    assert {one["state"] for one in found["trials"] if one not in unfit} == {"done"}


def test_a_search_goes_round_settings_that_leave_no_request_to_measure(tune: Callable[..., Ended]) -> None:
    short = ("--set", "options.seconds=0.1", "--set", "options.ramp=50ms", "--set", f"trials.tolerate={TOLERATED}")
    done = tune("null:1MiB", "seeker", "--only", "--knob", "options.rate=1000,1", *short, *FEW, "--json")
    assert done.status == 0, done.err
    slow = [one for one in json.loads(done.out)["trials"] if one["levels"]["options.rate"] == "1"]
    assert {one["state"] for one in slow} == {"invalid"}
    assert "its result has no `iops`" in done.err


def test_a_search_whose_load_always_fails_ends_after_its_first_trials(
    tune: Callable[..., Ended], tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"\1" * (1 << 20))
    plan = tune("file", "seeker", *SHORT, "--plan").out
    (tmp_path / "plan.toml").write_text('setup = [["false"]]\n' + plan)
    done = spindle("campaign", "run", "plan.toml", "--store", str(tmp_path / "store.db"), cwd=tmp_path)
    assert done.status == 1
    assert "the first 2 trials were given up; trial 1: setup `false`: exit status 1" in done.err


SAME = ("decision", "sentence", "reason", "winner", "trials", "change")
MODELLED = ("six-sata-raid10", "randomio", "--only", "--knob", "array.layout=n2,f2,o2", "--knob", "queue_depth=1..32",
            "--set", "options.seconds=0.2", "--trials", "10", "--confirm", "3", "--set", "search.race=3")  # fmt: skip


def test_a_killed_search_goes_on_to_the_same_decision_while_others_read_its_store(tmp_path: Path) -> None:
    whole = ended(search(tmp_path, *MODELLED, "--name", "whole"), DEADLINE_S)
    assert whole.status == 0, whole.err
    found = killed(tmp_path, "killed", MODELLED, points(3, 28, seed=1))
    assert found.ended.status == 0, found.ended.err
    assert found.kills >= 2
    for name in SAME:
        assert whole.json[name] == found.ended.json[name]
    assert twice(tmp_path, "killed") == []


def test_a_killed_search_puts_settings_back_and_no_trial_runs_twice(bench: Workbench, tmp_path: Path) -> None:
    device = bench.loop()
    queue = Queue(Path(device).name)
    before = queue.values()

    def put_back() -> None:
        assert spindle("restore").status == 0
        assert queue.values() == before

    few = (2.4, 1.5, 2.0)  # trials after each start: every search has as many
    found = killed(tmp_path, "killed", on_loop(tmp_path, device), few, put_back, (TUNER, LOAD, TUNER))
    assert found.ended.status == 0, found.ended.err
    assert found.kills >= 1, found
    assert queue.values() == before
    assert twice(tmp_path, "killed") == []
    assert found.ended.json["decision"] in ("better", "keep")


def test_the_space_shows_ranges_classes_kernels_and_rules(tune: Callable[..., Ended]) -> None:
    text = tune("six-sata-raid10", "randomio", "--space").out
    assert "scheduler" in text
    assert "array.chunk" in text
    assert "iosched.fifo_batch: only with scheduler deadline" in text
    assert "write_cache: trades durability: needs --allow durability" in text
    found = {one["name"]: one for one in json.loads(tune("six-sata-raid10", "randomio", "--space", "--json").out)}
    assert found["scheduler"]["levels"] == ["noop", "deadline", "cfq", "anticipatory"], "those of kernel 2.6.25"
    assert found["scheduler"]["start"] == "cfq"
    assert found["queue_depth"]["start"] == "31"
    assert "iosched.low_latency" not in found, "since 2.6.32"
    assert found["write_cache"]["left_out"]
    allowed = json.loads(tune("six-sata-raid10", "randomio", "--space", "--json", "--allow", "durability").out)
    assert not next(one for one in allowed if one["name"] == "write_cache")["left_out"]


def test_a_range_narrows_and_adds_settings(tune: Callable[..., Ended]) -> None:
    arguments = ("--space", "--json", "--only", "--knob", "nr_requests=8..64", "--knob", "options.depth=1,4",
                 "--knob", "array.chunk=16KiB..256KiB")  # fmt: skip
    found = {one["name"]: one for one in json.loads(tune("six-sata-raid10", "randomio", *arguments).out)}
    assert found["nr_requests"]["levels"] == ["as-found", "8", "16", "32", "64"]
    assert found["options.depth"]["levels"] == ["as-found", "1", "4"]
    assert found["array.chunk"]["levels"][0] == "16KiB"
    assert [name for name, one in found.items() if not one["left_out"]] == ["nr_requests", "array.chunk",
                                                                            "options.depth"]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("one-nvme",), "give a workload, or a command with --load: one of them"),
        ((), "tune what?"),
        (("one-nvme", "randomio", "--knob", "nr_requsts=1..4"), "did you mean `nr_requests`?"),
        (("one-nvme", "randomio", "--knob", "nr_requests"), "not NAME=RANGE"),
        (("one-nvme", "randomio", "--knob", "nr_requests=0..64"), "above 0 on a logarithmic scale"),
        (("one-nvme", "randomio", "--knob", "nr_requests=16"), "at least two different levels"),
        (("one-nvme", "randomio", "--knob", "nr_requests=1..x"), "neither a whole number nor a size"),
        (("one-nvme", "randomio", "--knob", "scheduler=fast,slow"), "fast is not a value of scheduler"),
        (("one-nvme", "randomio", "--maximise", "read.p99"), "lower is better; write --minimise"),
        (("one-nvme", "randomio", "--maximise", "iosp"), "no metric `iosp`; did you mean `iops`?"),
        (("one-nvme", "randomio", "--bound", "read.p99"), "not a bound"),
        (("one-nvme", "randomio", "--bound", "read.p99<soon"), "`soon` is not a limit of read.p99_ns"),
        (("one-nvme", "randomio", "--allow", "data"), "it is durability or memory"),
        (("one-nvme", "randomio", "--only"), "there is no setting to move"),
        (("one-nvme", "randomio", "--resume", "tune"), "leave them out"),
    ],
)
def test_bad_input_is_one_line(tune: Callable[..., Ended], arguments: tuple[str, ...], line: str) -> None:
    done = tune(*arguments)
    assert done.status == 2
    assert line in done.err
    assert done.err.count("\n") == 1, done.err
    assert not done.out


def test_every_range_is_of_a_knob_and_among_its_values() -> None:
    names = {one.id for one in KNOBS}
    assert set(RANGES) <= names
    for name, found in RANGES.items():
        levels = found.values or [str(number) for number in spaced(found.low, found.high, found.scale)]
        for level in levels:
            assert knob(name).values.parse(level) is not None, f"{name}={level}"


def test_levels_are_few_even_and_round() -> None:
    assert parsed("16..1024", "")[0] == ["16", "32", "64", "128", "256", "512", "1024"]
    assert parsed("4KiB..4MiB:log", "")[0][-1] == "4MiB"
    assert parsed("5..80:linear", "")[0] == ["5", "14", "24", "33", "43", "52", "61", "71", "80"]
    assert parsed("100..5000", "")[0] == ["100", "160", "270", "430", "710", "1200", "1900", "3100", "5000"]


def test_elevators_are_those_of_the_kernel() -> None:
    assert elevators_of("2.6.25") == ["noop", "deadline", "cfq", "anticipatory"]
    assert elevators_of("4.9") == ["noop", "deadline", "cfq"]
    assert elevators_of("6.1") == ["none", "mq-deadline", "kyber", "bfq"]


def test_the_plan_is_a_campaigns(tune: Callable[..., Ended], tmp_path: Path) -> None:
    text = tune("one-nvme", "randomio", "--plan", "--only", "--knob", "nr_requests=64,128").out
    path = tmp_path / "mine.toml"
    path.write_text(text)
    done = spindle("campaign", "run", str(path), "--dry-run")
    assert done.status == 0, done.err
    assert "nr_requests: as-found, 64, 128" in done.out
