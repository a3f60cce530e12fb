"""`spindle doctor` on the command line: captures, this machine, its script, its statuses."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spindle.doctor import RULES, Diagnosis, diagnose, schema, script
from spindle.doctor.finding import Finding, Needs, Phase, Severity, Step, knob
from spindle.inspect import inspect_stack
from tests.doctor.shapes import Shape, add, healthy
from tests.inspect.trees import NAMES, load
from tests.program import Ended
from tests.workbench import Workbench

Invoke = Callable[..., Ended]
DESTROYS = re.compile(r"\b(mkfs|sfdisk|pvcreate|wipefs|dd |umount|e2fsck|--replace|--grow .*--level|--zero-superblock)")


@pytest.fixture
def capture(tmp_path: Path) -> Callable[[str], str]:
    """The path of a fixture laid out as a folder."""
    return lambda name: str(load(name).lay_out(tmp_path / name))


# --- captures ------------------------------------------------------------------------------------------------------


def test_a_healthy_capture_has_status_0_and_names_what_was_checked(
    capture: Callable[[str], str], invoke: Invoke
) -> None:
    status, out, err = invoke("doctor", "--root", capture("md-raid10-n2-xfs"))
    assert (status, err) == (0, "")
    assert out.startswith("the capture: nothing found\n")
    for rule in RULES:
        assert rule.name in out


def test_a_warning_has_status_1_and_a_note_0(tmp_path: Path, invoke: Invoke) -> None:
    shape = Shape(level="raid10", disks=4, near=2)
    layout = add(healthy(shape), f"[{shape.array}]\nmd/mismatch_cnt=128")
    status, out, _ = invoke("doctor", "--root", str(layout.lay_out(tmp_path / "note")))
    assert status == 0
    assert "1 finding (1 note)" in out
    layout = add(healthy(Shape()), f"[{shape.array}]\nmd/mismatch_cnt=128")
    status, out, err = invoke("doctor", "--root", str(layout.lay_out(tmp_path / "warn")))
    assert status == 1
    assert re.fullmatch(r"spindle: \S+: warn: .+\n", err)
    assert "1 finding (1 warn)" in out


def test_the_worst_comes_first_with_evidence_reason_cost_and_remedy(
    capture: Callable[[str], str], invoke: Invoke
) -> None:
    status, out, _ = invoke("doctor", "--root", capture("raid6-degraded-resync"))
    assert status == 1
    assert out.index("critical  md-degraded: md2 is degraded") < out.index("warn      md-sync")
    assert "1 of 8 members missing; faulty: sdf" in out
    assert "It tolerates 1 more failure." in out
    assert "mdadm /dev/md2 --remove /dev/sdf" in out


def test_similar_findings_are_printed_once(capture: Callable[[str], str], invoke: Invoke) -> None:
    _, out, _ = invoke("doctor", "--root", capture("raid5-ext4-sector63"))
    assert out.count("partition-alignment: ") == 1
    assert "so do sdb1, sdc1 and sdd1" in out


def test_a_target_limits_the_check_to_its_parts(capture: Callable[[str], str], invoke: Invoke) -> None:
    tree = capture("raid-3ware")
    status, out, _ = invoke("doctor", "--root", tree, "--rule", "smart", "/data")
    assert status == 1
    assert out.startswith("/data: 1 finding (1 warn)\n")
    status, _, err = invoke("doctor", "--root", tree, "/dev/sdz")
    assert status == 2
    assert "no such device" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", NAMES)
def test_json_has_the_same_findings_and_matches_its_schema(
    capture: Callable[[str], str], invoke: Invoke, name: str
) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    status, out, _ = invoke("doctor", "--json", "--root", capture(name))
    found = json.loads(out)
    jsonschema.validate(found, schema())
    assert found["kind"] == "diagnosis"
    severities = {one["severity"] for one in found["findings"]}
    assert status == (1 if severities & {"warn", "critical"} else 0)
    for one in found["findings"]:
        assert all(one[field] for field in ("rule", "object", "summary", "evidence", "why", "effect"))
    assert found["rules"] == [rule.name for rule in RULES]


def test_the_schema_is_printed(invoke: Invoke) -> None:
    status, out, _ = invoke("schema", "doctor")
    assert status == 0
    assert json.loads(out)["title"] == "spindle doctor"


def test_parts_that_could_not_be_judged_are_printed(capture: Callable[[str], str], invoke: Invoke) -> None:
    _, out, _ = invoke("doctor", "--root", capture("lvm-on-md"))
    assert re.search(r"unknown   smart, .*of sda and sdb: tools/smartctl/sda: not in the capture", out)


# --- usage ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--rule", "scheduller"), "did you mean `scheduler`"),
        (("--rule", "x-y-z"), "`spindle doctor --list` names them"),
        (("--json", "--fix-plan"), "--json has the steps"),
        (("--list", "/"), "--list takes no TARGET"),
        (("--workload", "odd"), "random"),
    ],
)
def test_usage_is_one_line_and_status_2(invoke: Invoke, arguments: tuple[str, ...], words: str) -> None:
    status, out, err = invoke("doctor", *arguments)
    assert (status, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1


def test_rules_are_listed(invoke: Invoke) -> None:
    status, out, _ = invoke("doctor", "--list")
    assert status == 0
    assert [line.split()[0] for line in out.splitlines()[1:]] == [rule.name for rule in RULES]
    _, out, _ = invoke("doctor", "--list", "--json", "--rule", "ure")
    assert [row["rule"] for row in json.loads(out)["rules"]] == ["ure"]


def test_only_the_rules_asked_for_are_applied(capture: Callable[[str], str], invoke: Invoke) -> None:
    _, out, _ = invoke("doctor", "--json", "--root", capture("raid-3ware"), "--rule", "ncq", "--rule", "scheduler")
    found = json.loads(out)
    assert found["rules"] == ["scheduler", "ncq"]
    assert {one["rule"] for one in found["findings"]} == {"scheduler"}


# --- the script ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_the_script_is_one_for_the_shell_and_destroys_nothing(
    capture: Callable[[str], str], invoke: Invoke, name: str
) -> None:
    _, out, _ = invoke("doctor", "--fix-plan", "--root", capture(name))
    assert subprocess.run(["sh", "-n"], input=out, text=True, check=False).returncode == 0
    assert subprocess.run(["dash", "-n"], input=out, text=True, check=False).returncode == 0
    for line in out.splitlines():
        assert line.startswith("#") or not DESTROYS.search(line), line


@pytest.mark.promise(24)
@pytest.mark.parametrize("name", NAMES)
def test_the_head_of_the_script_names_only_what_restore_undoes(name: str) -> None:
    lines = script(diagnose(inspect_stack(None, load(name).held())))
    live = [line for line in lines if not line.startswith("#") and line not in ("", "set -u")]
    steps = "\n".join(lines).split("\n\n")
    head = steps[0]
    assert ("`spindle restore` undoes" in head) == any(line.startswith("spindle knobs set ") for line in live)
    assert ("persist --remove" in head) == any(line.startswith("spindle knobs persist ") for line in live)
    assert ("are marked NOT UNDONE" in head) == any("# NOT UNDONE" in step for step in steps[1:])
    for step in steps[1:]:
        if re.search(r"^(hdparm|cpupower|echo|mount|smartctl .*scterc)\b", step, re.MULTILINE):
            assert "# NOT UNDONE" in step, step
        if "# NOT UNDONE" in step:
            assert not re.search(r"^spindle knobs", step, re.MULTILINE), step


def test_the_plain_commands_of_rules_outside_the_knobs_are_marked_in_the_script() -> None:
    plain = Step(phase=Phase.TUNE, about="keep the heads", commands=["hdparm -B 254 /dev/sda"])
    looks = Step(phase=Phase.LOOK, about="look", commands=["smartctl -x /dev/sda"])
    diagnosis = Diagnosis(origin="capture", findings=[_finding([plain, looks])])
    lines = script(diagnosis)
    assert lines[lines.index("hdparm -B 254 /dev/sda") - 1] == "# NOT UNDONE by `spindle restore`"
    assert lines[lines.index("smartctl -x /dev/sda") - 1] == "# look"
    assert not any("restore` undoes" in line for line in lines)
    diagnosis.findings[0].steps = [looks, *knob("sda", read_ahead_kb=64)]
    assert not any("NOT UNDONE" in line for line in script(diagnosis))
    assert any("restore` undoes" in line for line in script(diagnosis))


def _finding(steps: list[Step]) -> Finding:
    words: dict[str, Any] = dict.fromkeys(("rule", "object", "summary", "evidence", "why", "effect"), "x")
    return Finding(severity=Severity.NOTE, steps=steps, **words)


@pytest.mark.parametrize("verb", ["doctor", "inspect"])
def test_a_file_that_is_not_a_capture_is_bad_input(invoke: Invoke, tmp_path: Path, verb: str) -> None:
    (tmp_path / "no.tar").write_bytes(b"no tar")
    (tmp_path / "empty").mkdir()
    for name in ("missing.tar", "no.tar", "empty"):
        status, out, err = invoke(verb, "--root", str(tmp_path / name))
        assert (status, out, err.count("\n")) == (2, "", 1)


def test_steps_come_in_the_safe_order() -> None:
    diagnosis = Diagnosis(origin="capture")
    for name in NAMES:
        diagnosis.findings += diagnose(inspect_stack(None, load(name).held())).findings
    heads = [line.split()[2].rstrip(":") for line in script(diagnosis) if line.startswith("# --- ")]
    assert heads == ["Look", "Protect", "Tune", "Keep", "Rebuild", "Wait"]
    lines = script(diagnosis)
    for finding in diagnosis.findings:
        for step in finding.steps:
            for command in step.commands:
                by_hand = bool(step.needs) or bool(step.waits) or "NEW" in command
                assert (f"# {command}" if by_hand else command) in lines
            if step.phase is Phase.REBUILD:
                assert step.needs, f"{finding.rule} rebuilds without saying what that needs"
            if any(DESTROYS.search(command) for command in step.commands):
                assert step.needs, f"{finding.rule} destroys without saying so"
    marks = {need for finding in diagnosis.findings for step in finding.steps for need in step.needs}
    assert {Needs.BACKUP, Needs.OFFLINE, Needs.HARDWARE} <= marks


def test_every_named_knob_exists() -> None:
    from spindle.knobs.catalogue import Scope, known

    shape = Shape()
    place = f"[{shape.folder(0)}]\nqueue/rotational=0\nqueue/max_sectors_kb=64\nqueue/write_cache=write through"
    place += "\nqueue/scheduler=[none] mq-deadline\nqueue/nr_requests=4"
    planted = add(healthy(shape), place)
    busy = "md/sync_action=resync\nmd/sync_completed=1 / 9\nmd/sync_speed=200000"
    words = set()
    for layout in (planted, add(healthy(shape), f"[{shape.array}]\n{busy}"), *map(load, NAMES)):
        for line in script(diagnose(inspect_stack(None, layout.held()))):
            if found := re.match(r"spindle knobs (?:set|persist --yes) \S+ (.*)", line):
                words |= {word.partition("=")[0].strip("'") for word in found[1].split(" ") if "=" in word}
    assert words >= {"read_ahead_kb", "scheduler", "nr_requests", "stripe_cache_size", "queue_depth", "rotational"}
    assert words >= {"max_sectors_kb", "write_cache", "sync_speed_max"}
    for word in words:
        assert known(Scope.DEVICE, word) is not None, word


# --- this machine --------------------------------------------------------------------------------------------------


def test_this_machine_is_checked_without_output_on_stderr() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "spindle.cli", "doctor"], capture_output=True, text=True, check=False, env=os.environ
    )
    assert done.returncode in (0, 1)
    assert done.stderr == ""
    assert re.match(r"this machine: (nothing found|\d+ findings? \()", done.stdout)


def test_a_loop_device_with_a_partition_at_sector_63_and_another_at_2048(bench: Workbench, invoke: Invoke) -> None:
    loop = bench.loop()
    crooked, straight = bench.partition(loop, 1, 63, 8192), bench.partition(loop, 2, 10240, 8192)
    status, out, _ = invoke("doctor", "--json", "--rule", "partition-alignment", crooked)
    (found,) = json.loads(out)["findings"]
    assert status == 1
    assert found["object"] == crooked.removeprefix("/dev/")
    assert (found["numbers"]["start_bytes"], found["numbers"]["shift_bytes"]) == (63 * 512, 3584)
    assert invoke("doctor", "--rule", "partition-alignment", straight)[0] == 0


def test_the_new_start_is_aligned_and_keeps_the_end(bench: Workbench, invoke: Invoke) -> None:
    image = bench.image()
    bench.run("sfdisk", "--quiet", image, text="label: dos\n63,20000,83\n")
    loop = bench.loop(image)
    crooked = bench.partition(loop, 1, 63, 20000)
    (found,) = json.loads(invoke("doctor", "--json", "--rule", "partition-alignment", crooked)[1])["findings"]
    (command,) = found["steps"][0]["commands"]
    line, _, tool = command.partition(" | ")
    entry = line.removeprefix("echo '").removesuffix("'")
    bench.run(*tool.replace(loop, str(image)).split(), text=entry + "\n")
    assert re.search(r"start= *2048, size= *18015, type=83", bench.run("sfdisk", "--dump", image))


def test_ext4_with_a_width_that_is_not_a_stripe(bench: Workbench, invoke: Invoke) -> None:
    loop = bench.loop()
    bench.run("mkfs.ext4", "-q", "-b", "4096", "-E", "stride=16,stripe-width=40", loop)
    point = bench.mount(loop)
    status, out, _ = invoke("doctor", "--json", "--rule", "stripe-geometry", str(point))
    (found,) = json.loads(out)["findings"]
    assert status == 1
    assert found["object"] == f"fs:{point}"
    assert (found["numbers"]["unit_bytes"], found["numbers"]["width_bytes"]) == (65536, 163840)
    # The remedy works: after its commands the finding is gone.
    (command,) = found["steps"][0]["commands"]
    bench.run("umount", point)
    bench.run(*command.split())
    bench.run("mount", loop, point)
    assert invoke("doctor", "--rule", "stripe-geometry", str(point))[0] == 0


def test_a_mount_with_strict_access_times_and_its_remedy(bench: Workbench, invoke: Invoke) -> None:
    loop = bench.loop()
    bench.run("mkfs.ext4", "-q", loop)
    point = bench.mount(loop, "-o", "strictatime")
    status, out, _ = invoke("doctor", "--json", "--rule", "atime", str(point))
    assert status == 1
    (command,) = json.loads(out)["findings"][0]["steps"][0]["commands"]
    bench.run(*command.split())
    assert invoke("doctor", "--rule", "atime", str(point))[0] == 0


def test_a_capture_of_a_machine_has_the_findings_of_the_machine(
    bench: Workbench, invoke: Invoke, tmp_path: Path
) -> None:
    loop = bench.loop()
    bench.run("mkfs.ext4", "-q", "-b", "4096", "-E", "stride=16,stripe-width=40", loop)
    point = bench.mount(loop, "-o", "strictatime")
    tar = tmp_path / "here.tar"
    assert invoke("inspect", str(point), "--capture", str(tar))[0] == 0
    live = json.loads(invoke("doctor", "--json", str(point))[1])
    held = json.loads(invoke("doctor", "--json", "--root", str(tar), str(point))[1])
    assert {found["rule"] for found in live["findings"]} >= {"stripe-geometry", "atime"}
    assert held["findings"] == live["findings"]
    assert (live["origin"], held["origin"]) == ("live", "capture")
