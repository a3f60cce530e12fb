"""Campaigns on modelled machines and files: carried out, shown, stopped, refused, repeated."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from spindle.campaign import execution
from spindle.campaign.execution import RunOptions, begin, carry_out
from spindle.campaign.outcome import outcome_of
from spindle.campaign.source import preset_names
from spindle.run.watch import SilentWatch
from spindle.store import Store, open_store
from tests.campaigns.small import SIXTY, ready
from tests.program import Ended, ended, spindle, started

Invoke = Callable[..., Ended]
DEADLINE_S = 60.0
TOLERATE = [
    "achieved-depth", "before-cpu", "before-dirty-pages", "before-other-io", "before-swap", "cache-share", "during-cpu",
    "generator-bound", "late", "littles-law", "other-io", "saturated", "settings", "steady", "too-short",
    "working-set",
]  # fmt: skip
"""Verdicts that a busy machine and a small device may cause; they are not tested here."""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SIXTY)
    return path


def test_a_campaign_runs_shows_what_it_found_and_keeps_every_run(invoke: Invoke, plan: Path, store: Store) -> None:
    done = invoke("run", str(plan), "--json")
    assert done.status == 0, done.err
    found = json.loads(done.out)
    assert (found["state"], found["done"], found["planned"], found["given_up"]) == ("done", 60, 0, 0)
    assert len(found["cells"]) == 12
    assert all(cell["low"] <= cell["mean"] <= cell["high"] for cell in found["cells"])
    assert len(store.select("campaign:small")) == 60
    assert len(store.select("campaign:small/scheduler=bfq,workers=16")) == 5
    assert json.loads(invoke("show", "--json").out) == found
    assert invoke("ls").out.split() == ["name", "begun", "state", "trials", "small", *invoke("ls").out.split()[5:7],
                                        "done", "60", "of", "60"]  # fmt: skip


def test_alternatives_of_a_block_are_compared_on_the_same_requests(store: Store) -> None:
    found = ready(SIXTY, "trials=2")
    carry_out(begin(found, store), found, store, SilentWatch())
    seeds: dict[int | None, set[int]] = {}
    for one in store.select("campaign:small"):
        seeds.setdefault(one.block, set()).add(one.record.seed)  # type: ignore[union-attr]
    assert seeds == {1: {1}, 2: {2}}


def test_a_dry_run_prints_the_steps_and_does_nothing(invoke: Invoke, plan: Path, place: Path) -> None:
    found = json.loads(invoke("run", str(plan), "--dry-run", "--json").out)
    assert len(found["cells"]) == 12
    assert found["trials"] == {"least": 60, "most": 60}
    assert len(found["order"]) == 60
    assert found["machine_seconds"] == pytest.approx(6.0)
    text = invoke("run", str(plan), "--dry-run").out
    assert "12 cells, 60 trials; order: blocks" in text
    assert not place.exists()


def test_trials_computed_at_the_same_time_give_the_same(store: Store) -> None:
    found = ready(SIXTY)
    carry_out(begin(found, store, "one"), found, store, SilentWatch())
    carry_out(begin(found, store, "four"), found, store, SilentWatch(), RunOptions(jobs=4))
    assert store.campaigns.fingerprint("one") == store.campaigns.fingerprint("four")


def test_a_second_campaign_of_a_plan_gets_a_number_and_an_unfinished_one_is_to_be_resumed(
    invoke: Invoke, plan: Path, store: Store
) -> None:
    assert invoke("run", str(plan), "--set", "trials=1").status == 0
    assert json.loads(invoke("run", str(plan), "--set", "trials=1", "--json").out)["campaign"] == "small-2"
    begin(ready(SIXTY), store, "half")
    begin(ready(SIXTY, name="other"), store)
    other = plan.with_name("other.toml")
    other.write_text(SIXTY)
    refused = invoke("run", str(other))
    assert refused.status == 2
    assert "`spindle campaign resume other`" in refused.complaint
    assert invoke("run", str(plan), "--name", "half").status == 2


def test_two_processes_cannot_carry_out_the_same_campaign(invoke: Invoke, store: Store) -> None:
    begin(ready(SIXTY), store)
    with store.campaigns.hold("small"):
        refused = invoke("resume", "small")
    assert refused.status == 3
    assert "another process runs it" in refused.complaint
    assert invoke("resume", "small").status == 0


def test_resume_without_a_name_takes_the_last_that_is_not_done(invoke: Invoke, store: Store) -> None:
    assert "no campaign is unfinished" in invoke("resume").complaint
    begin(ready(SIXTY), store, "this")
    assert json.loads(invoke("resume", "--json").out)["campaign"] == "this"
    again = invoke("resume", "this")
    assert again.status == 0
    assert "is done" in again.err


def test_what_the_plan_named_is_kept_as_it_was_when_the_campaign_began(
    tmp_path: Path, store: Store, invoke: Invoke
) -> None:
    (tmp_path / "mine.toml").write_text("[[drive]]\nmodel = 'HDS725050KLA360'\n")
    (tmp_path / "load.toml").write_text("size = '4KiB'\nseconds = 0.1\n")
    plan = tmp_path / "plan.toml"
    plan.write_text("target = 'mine.toml'\nworkload = './load.toml'\n".replace("./", "") + "[trials]\ncount = 3")
    from spindle.campaign.source import open_plan

    found = execution.made_ready(open_plan(str(plan)))
    begin(found, store)
    (tmp_path / "mine.toml").write_text("gone")
    (tmp_path / "load.toml").unlink()
    assert invoke("resume", "plan").status == 0


def test_ctrl_c_keeps_what_is_done_and_resume_goes_on(tmp_path: Path, plan: Path, place: Path) -> None:
    plan.write_text(SIXTY.replace("seconds = 0.1", "seconds = 20"))
    process = started("campaign", "run", str(plan), cwd=tmp_path)
    with open_store(place) as store:
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            campaign = store.campaigns.find("small")
            if campaign is not None and any(one.state == "done" for one in store.campaigns.trials("small")):
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        stopped = ended(process, DEADLINE_S)
        assert stopped.status == 1
        assert "`spindle campaign resume small` goes on" in stopped.complaint
        trials = store.campaigns.trials("small")
        count = sum(one.state == "done" for one in trials)
        assert 0 < count < 60
        assert f"after {count} of 60 trials" in stopped.complaint
        assert store.campaigns.get("small").state == "stopped"
        assert {one.state for one in trials} <= {"done", "planned", "running"}
        assert len(store.ls()) == count


COMMANDS = """
target = "null:1GiB"
workload = "randomio"
setup = [["{python}", "-c", "import os, sys; sys.exit('no luck' if os.path.exists('bad') else 0)"]]
teardown = [["{python}", "-c", "open('torn', 'ab').write(b'.')"]]
[options]
seconds = 0.05
[trials]
count = 3
repeats = 2
tolerate = ["generator-bound"]
""".replace("{python}", sys.executable)


def test_a_trial_that_fails_is_made_again_then_given_up_and_kept_with_its_reason(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plan.toml").write_text(COMMANDS)
    Path("bad").touch()
    done = invoke("run", "plan.toml")
    assert done.status == 1
    trials = store.campaigns.trials("plan")
    assert [(one.state, one.attempts) for one in trials] == [("failed", 3)] * 3
    assert all("exit status 1: no luck" in one.reason for one in store.campaigns.attempts("plan"))
    assert "attempts that do not count:" in done.out
    assert "no luck; given up" in done.err
    assert Path("torn").stat().st_size == 9  # teardown follows a setup that failed too


def test_a_command_as_the_load_needs_a_device_to_count_on(invoke: Invoke) -> None:
    refused = invoke("run", "sched-shootout", "--target", "null:1GiB", "--load", "true")
    assert refused.status == 2
    assert "nothing can be counted on null:1GiB" in refused.complaint
    missing = invoke("run", "sched-shootout", "--target", "/etc", "--load", "no-such-command-here")
    assert "no-such-command-here: no such command" in missing.complaint


def test_commands_run_around_each_trial(invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plan.toml").write_text(COMMANDS)
    assert invoke("run", "plan.toml").status == 0
    assert Path("torn").stat().st_size == 3


def test_teardown_that_a_kill_left_undone_is_done_at_resume(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plan.toml").write_text(COMMANDS.replace("seconds = 0.05", "seconds = 0.3"))
    process = started("campaign", "run", "plan.toml", cwd=tmp_path)
    notes = tmp_path / "state/spindle/campaigns"
    deadline = time.monotonic() + DEADLINE_S
    while not list(notes.glob("*.teardown.json")) and time.monotonic() < deadline:
        time.sleep(0.005)
    process.kill()
    process.communicate()
    assert list(notes.glob("*.teardown.json"))
    before = Path("torn").stat().st_size if Path("torn").exists() else 0
    resumed = invoke("resume", "plan")
    assert resumed.status == 0
    assert "teardown that a killed campaign left undone" in resumed.err
    with open_store(place) as store:
        done_before = 3 - sum(one.attempts for one in store.campaigns.trials("plan")) + 3
        assert [one.state for one in store.campaigns.trials("plan")] == ["done"] * 3
        assert done_before == 3
    assert 4 >= Path("torn").stat().st_size > before
    assert not list(notes.iterdir())


def test_an_invalid_trial_is_made_again_and_kept_with_its_verdict(invoke: Invoke, plan: Path, store: Store) -> None:
    brief = ["--set", "seconds=10us", "--set", "trials=1", "--set", "workers=1", "--set", "scheduler=none"]
    done = invoke("run", str(plan), *brief)
    assert done.status == 1
    attempts = store.campaigns.attempts("small")
    assert [one.state for one in attempts] == ["invalid"] * 3
    assert all(one.reason.startswith("too-short: no request was completed") for one in attempts)
    assert len({one.run_id for one in attempts}) == 3
    assert "too-short: no request was completed" in invoke("show").out
    tolerated = invoke("run", str(plan), *brief, "--set", "trials.tolerate=too-short", "--name", "tolerated")
    assert store.campaigns.trials("tolerated")[0].state == "done", tolerated.err


def test_a_load_that_the_machine_cannot_take_ends_the_campaign(invoke: Invoke, plan: Path, store: Store) -> None:
    done = invoke("run", str(plan), "--set", "trials=1", "--set", "options.trim_fraction=10%", "--set", "workers=1")
    assert done.status == 2
    assert "discards need flash drives" in done.complaint
    assert [one.attempts for one in store.campaigns.trials("small") if one.attempts] == [1]


def test_trials_go_on_until_the_interval_is_narrow_enough(store: Store) -> None:
    found = ready(SIXTY, "trials.within=10%", "trials.count=3", "trials.at_most=6", "trials.metric=iops")
    carry_out(begin(found, store), found, store, SilentWatch())
    outcome = outcome_of(store.campaigns.get("small"), store)
    counts = {one.done for one in outcome.cells}
    assert counts & {3, 4, 5}
    for cell in outcome.cells:
        assert cell.mean is not None
        assert cell.high is not None
        assert cell.done == 6 or (cell.high - cell.mean) / cell.mean <= 0.1


def test_a_missing_metric_is_an_error_that_lists_the_existing_ones(invoke: Invoke, plan: Path) -> None:
    said = invoke(
        "run", str(plan), "--set", "trials=1", "--set", "trials.metric=write.iops", "--set", "write_fraction=0"
    ).complaint
    assert "metric write.iops: the results do not have it; they have" in said
    assert "read.p99_ns" in said


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_can_be_shown_and_previewed(invoke: Invoke, name: str, tmp_path: Path) -> None:
    assert invoke("presets", name).out.strip()
    assert name in invoke("presets").out
    file = tmp_path / "some"
    file.write_bytes(bytes(1 << 20))
    knobs_of_real_queues = name in ("readahead-sweep", "untuned-vs-tuned")
    target = ["--target", "null:1GiB", "--set", "knobs={}"] if knobs_of_real_queues else ["--target", "one-sata"]
    if name == "md-matrix":
        target = []
    done = invoke("run", name, *target, "--dry-run", "--json")
    if knobs_of_real_queues:
        assert done.status == 2  # of which device?
        assert "which device" in done.complaint
    else:
        assert done.status == 0, done.err


@pytest.mark.parametrize("name", ["outer-vs-inner", "threads-by-size", "ioprio-mix", "sched-shootout"])
def test_presets_give_sensible_results_on_a_modelled_drive(name: str, invoke: Invoke) -> None:
    less = {
        "outer-vs-inner": ["seconds=1"],
        "threads-by-size": ["workers=1,16", "size=4KiB,1MiB", "seconds=1"],
        "ioprio-mix": ["seconds=2", "sequential=idle,best-effort:4", "random=best-effort:4,idle"],
        "sched-shootout": ["seconds=1"],
    }[name]
    assignments = [word for one in [*less, "trials=1"] for word in ("--set", one)]
    done = invoke("run", name, "--target", "one-sata", *assignments, "--json")
    assert done.status == 0, done.err
    found = json.loads(done.out)
    mean = {tuple(cell["cell"].values()): cell["mean"] for cell in found["cells"]}
    if name == "outer-vs-inner":
        rates = [mean[(zone,)] for zone in found["factors"]["zone"]]
        assert rates == sorted(rates, reverse=True)
        assert 0.4 < rates[-1] / rates[0] < 0.7
    if name == "threads-by-size":
        assert mean[("16", "4KiB")] > 1.2 * mean[("1", "4KiB")]
        assert mean[("1", "1MiB")] < mean[("1", "4KiB")]
    if name == "ioprio-mix":
        assert mean[("idle", "best-effort:4")] > mean[("best-effort:4", "idle")]
    assert all(value > 0 for value in mean.values())


def test_the_matrix_of_levels_layouts_and_chunks_is_in_multiples_of_one_drive(invoke: Invoke) -> None:
    done = invoke("run", "md-matrix", "--set", "chunk=64KiB,2MiB", "--set", "seconds=2", "--json")
    assert done.status == 0, done.err
    found = {tuple(cell["cell"].values()): cell["multiple"] for cell in json.loads(done.out)["cells"]}
    assert found[("one-drive", "-", "read")] == found[("one-drive", "-", "write")] == 1
    assert 3.4 < found[("raid10-f2", "64KiB", "read")] < 4  # measured in 2008: 3.0 to 3.9
    assert 1.8 < found[("raid10-n2", "64KiB", "read")] < 2.2  # 1.89
    assert found[("raid10-n2", "2MiB", "read")] > 1.3 * found[("raid10-n2", "64KiB", "read")]  # 2.70 against 1.89
    assert 2.5 < found[("raid5", "64KiB", "read")] < 3  # 2.71
    assert 1.6 < found[("raid10-n2", "64KiB", "write")] < 2.1  # 1.78


def test_a_plan_of_another_program_cannot_be_resumed_but_says_so(store: Store, invoke: Invoke) -> None:
    store.campaigns.create("strange", plan="", seed=1, trials=[])
    assert "was not made by `spindle campaign run`" in invoke("resume", "strange").complaint
    assert "was not made by `spindle campaign run`" in invoke("show", "strange").complaint


def test_the_verb_and_its_parts_list_their_options(tmp_path: Path) -> None:
    for part in ([], ["run"], ["resume"], ["show"], ["ls"], ["presets"]):
        found = spindle("campaign", *part, "--help", cwd=tmp_path)
        assert found.status == 0
        assert "Usage" in found.out


def test_a_file_is_made_for_a_campaign_and_removed_at_its_end(invoke: Invoke, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        "workload = 'randomio'\ncreate = '16MiB'\noptions = { seconds = 0.1, workers = 2 }\n[trials]\ncount = 2\n"
        f"tolerate = {TOLERATE}\n"
        "repeats = 0"
    )
    target = tmp_path / "file.bin"
    done = invoke("run", str(plan), "--target", str(target), "--json")
    assert json.loads(done.out)["done"] + json.loads(done.out)["given_up"] == 2, done.err
    assert not target.exists()
