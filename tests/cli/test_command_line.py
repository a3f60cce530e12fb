"""The command line: usage, errors in one line, exit statuses, a quick start."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from spindle.cli.options.keys import keys
from spindle.host.errors import Refusal, TargetError
from tests.program import COMMAND, Ended, Invoke, spindle


def test_start_up_imports_nothing_that_a_verb_needs(tmp_path: Path) -> None:
    code = "import sys; from spindle.cli.main import invoke\ninvoke(['--help'])\n"
    code += "print(sorted(set(sys.modules) & {'msgspec','rich','hashlib','subprocess','tempfile','spindle._core'}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_live_line_is_imported_only_on_a_terminal(tmp_path: Path) -> None:
    code = "import sys; from spindle.cli.main import invoke\ninvoke(['run', 'randomio', 'null:nonsense'])\n"
    code += "print('rich' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


def test_every_key_of_a_workload_file_is_an_option_of_run(invoke: Invoke) -> None:
    shown = invoke("run", "--help-all").out
    for key in keys():
        if key.level == "phase":  # --drop-caches is an option of its own
            assert not key.option
            continue
        option = "--" + key.name.replace("_", "-")
        assert (re.search(rf"{option}\b", shown) is not None) == key.option, key.name
    assert "--direct / --buffered" in shown


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "missing argument 'WORKLOAD'"),
        (["randomio"], "which target?"),
        (["randomoi", "x"], "did you mean `randomio`?"),
        (["randomio", "x", "--sise", "4KiB"], "--size"),
        (["randomio", "x", "--size", "4KQ"], "4KQ"),
        (["randomio", "x", "--set", "size"], "KEY=VALUE"),
        (["mixed", "x", "--set", "radnom.size=4KiB"], "did you mean `random`?"),
        (["randomio", "null:0"], "null:"),
        (["randomio", "null:"], "null:"),
        (["randomio", "null:1GiB", "--create", "1GiB"], "--create"),
        (["randomio", "x", "--keep"], "--keep"),
        (["randomio", "x", "--create", "much"], "--create"),
        (["randomio", "x", "--engine", "libaio"], "libaio"),
        (["randomio", "x", "--cpus", "3-1"], "3-1"),
        (["randomio", "x", "--cpus", "two"], "two"),
        (["randomio", "null:1GiB", "--output", "/dev/null"], "not a regular file"),
        (["randomio", "null:1GiB", "--output", "no/such/folder/r.json"], "no such folder"),
        (["sdd-read", "x", "--iopoll", "--buffered"], "--iopoll"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(arguments: list[str], says: str, invoke: Invoke, here: Path) -> None:
    ended = invoke("run", *arguments)
    assert ended.status == 2, ended
    assert says in ended.complaint
    assert ended.out == ""
    assert not list(here.glob("*.bin"))


def test_a_mistyped_verb_names_the_nearest(invoke: Invoke) -> None:
    ended = invoke("qiuck")
    assert ended.status == 2
    assert ended.complaint == "spindle: no verb `qiuck`; did you mean `quick`?"


def test_an_unknown_preset_names_the_nearest(invoke: Invoke) -> None:
    ended = invoke("presets", "seekr")
    assert ended.status == 2
    assert "did you mean `seeker`?" in ended.complaint


def test_a_missing_target_is_not_made(invoke: Invoke, here: Path) -> None:
    ended = invoke("run", "seeker", "t.bin")
    assert ended.status == 2
    assert "--create" in ended.complaint
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("name", ["/dev/nosuchdisk", "/dev/../dev/nosuchdisk"])
def test_a_mistyped_device_is_refused_and_never_made(name: str, invoke: Invoke) -> None:
    assert invoke("run", "randomio", name, "--erase", name, "--yes").status == 3
    assert invoke("run", "randomio", name, "--create", "1MiB").status == 3
    assert not os.path.exists(name)


def test_an_existing_file_is_read_but_never_written(invoke: Invoke, here: Path) -> None:
    (here / "mail.mbox").write_bytes(b"dear" * 1000)
    for arguments in (["randomio", "mail.mbox"], ["randomio", "mail.mbox", "--create", "1MiB"]):
        ended = invoke("run", *arguments)
        assert ended.status == 3
        assert "mail.mbox" in ended.complaint
    assert (here / "mail.mbox").read_bytes() == b"dear" * 1000


def test_the_errors_of_the_machine_have_the_exit_status_of_the_program() -> None:
    from spindle.cli.exits import Exit
    from spindle.cli.failure import explain

    assert explain(Refusal("x"))[1] is Exit.REFUSED
    assert explain(TargetError("x"))[1] is Exit.FAILED
    assert explain(KeyboardInterrupt())[1] is Exit.FAILED


def test_an_unexpected_error_is_one_line_that_says_how_to_see_more(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spindle.run import resolve

    def broken(*_: object) -> None:
        raise KeyError("some\nkey")

    monkeypatch.setattr(resolve, "resolve_text", broken)
    ended = invoke("presets")
    assert ended.status == 1
    assert "unexpected KeyError" in ended.complaint
    assert "SPINDLE_TRACEBACK=1" in ended.complaint
    monkeypatch.setenv("SPINDLE_TRACEBACK", "1")
    with pytest.raises(KeyError):
        invoke("presets")


def test_control_characters_of_a_name_do_not_reach_the_terminal(invoke: Invoke) -> None:
    ended = invoke("run", "randomio", "x\x1b[2J\ny")
    assert ended.status in (2, 3)
    assert "\x1b" not in ended.complaint


def test_a_closed_pipe_is_not_an_error(tmp_path: Path) -> None:
    done = subprocess.run(
        f"{sys.executable} -m spindle.cli schema result | head -1",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("{")
    assert done.stderr == ""


def test_an_output_that_cannot_take_the_result_is_one_line(tmp_path: Path) -> None:
    for arguments in (["run", "seeker", "null:1GiB", "--seconds", "0.01"], ["presets"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([*COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert Ended(done.returncode, "", done.stderr).complaint.count("No space left on device") == 1
        assert done.returncode == 1


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_standard_stream_is_not_an_error_and_no_other_file_replaces_it(closed: str, tmp_path: Path) -> None:
    done = subprocess.run(
        f"{shlex.join(COMMAND)} run seeker t.bin --create 1MiB --seconds 0.05 --output r.json {closed}",
        shell=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads((tmp_path / "r.json").read_bytes())["figures"]["ended_by"]["kind"] == "time"
    assert not (tmp_path / "t.bin").exists()


def test_a_folder_that_is_gone_is_one_line(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        f"rmdir {gone}; {shlex.join(COMMAND)} run seeker t.bin --create 1MiB",
        shell=True,
        cwd=gone,
        capture_output=True,
        text=True,
        check=False,
    )
    ended = Ended(done.returncode, done.stdout, done.stderr)
    assert "the current directory is gone" in ended.complaint
    assert ended.status == 2


def test_a_name_that_is_not_utf8_is_measured_and_recorded(tmp_path: Path) -> None:
    for extra in ([], ["--json"]):
        done = subprocess.run(
            [*COMMAND, "run", "seeker", b"t\xff.bin", "--create", "1MiB", "--seconds", "0.05", *extra],
            cwd=tmp_path,
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        if extra:
            assert json.loads(done.stdout)["target"]["asked"] == "t\\xff.bin"
        else:
            assert done.stdout.startswith(b"seeker on t\\udcff.bin (file of 1 MiB")


def test_presets_are_listed_printed_and_resolved(invoke: Invoke) -> None:
    assert "randomio" in invoke("presets").out
    assert "write_fraction = 0.2" in invoke("presets", "randomio").out
    assert '"fsync_fraction": 0.1' in invoke("presets", "randomio", "--json").out


def test_the_version_is_the_cores(tmp_path: Path) -> None:
    from spindle import _core

    assert spindle("--version", cwd=tmp_path).out == f"spindle {_core.__version__}\n"


def test_without_a_terminal_to_confirm_the_refusal_names_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    from spindle.cli.options.consent import ask

    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with pytest.raises(Refusal, match="All data on /dev/sdz will be lost: there is no terminal to confirm it; --yes"):
        ask("All data on /dev/sdz will be lost.")


@pytest.mark.parametrize(("verb", "key"), [("metrics", "iops"), ("verdicts", "steady")])
def test_metrics_and_checks_are_listed(invoke: Callable[..., Ended], verb: str, key: str) -> None:
    listed = invoke(verb, "--json").json
    assert key in [entry["name"] for entry in listed]
    lines = invoke(verb).out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [entry["name"] for entry in listed]


def test_a_metric_that_does_not_exist_is_an_error_with_the_nearest_name(
    invoke: Callable[..., Ended], here: Path
) -> None:
    plan = 'workload = "randomio"\ntarget = "one-sata"\n[factors.size]\nsets = "options.size"\nvalues = ["4KiB"]\n'
    for line, meant in (('metric = "raed.p99_ns"', "read.p99_ns"), ('tolerate = ["staedy"]', "steady")):
        (here / "p.toml").write_text(f"{plan}[trials]\n{line}\n")
        refused = invoke("campaign", "run", "p.toml", "--dry-run")
        assert refused.status == 2
        assert f"did you mean `{meant}`?" in refused.complaint
    assert invoke("run", "randomio", "one-sata", "--seconds", "1", "-o", "a.json").status == 0
    refused = invoke("compare", "a.json", "a.json", "--metric", "raed.p99_ns")
    assert (refused.status, "read.p99_ns" in refused.complaint) == (2, True)
