"""Files named as outputs: what is there and is not Spindle's own is never overwritten without --force."""

from __future__ import annotations

import ast
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from spindle.cli import writing
from spindle.cli.main import VERBS, spindle
from spindle.host.errors import Refusal, TargetError
from spindle.host.outputs import Kind, Output, begins
from spindle.library import kinds
from tests.program import Ended

pytestmark = pytest.mark.promise(5)

PACKAGE = Path(writing.__file__).parent.parent
OWN = Kind("a note of Spindle", begins(b"note "))
JOB = "[job]\nrw=read\nfilename=data\nsize=1m\nnumber_ios=10\nwrite_bw_log=nightly\n"

RUN = ("run", "randomio", "one-sata", "--seconds", "3", "--quiet")
NULL = ("run", "randomio", "null:1GiB", "--requests", "20", "--quiet")
COMMANDS: dict[str, tuple[str, ...]] = {
    "result": (*RUN, "--output", "OUT"),
    "trace": (*RUN, "--trace", "OUT"),
    "log": (*NULL, "--log", "OUT"),
    "html": ("report", "r.json", "--output", "OUT", "--format", "html"),
    "md": ("report", "r.json", "--output", "OUT", "--format", "md"),
    "csv": ("report", "r.json", "--output", "OUT", "--format", "csv"),
    "txt": ("report", "r.json", "--output", "OUT", "--format", "txt"),
    "json": ("report", "r.json", "--output", "OUT", "--format", "json"),
    "svg": ("report", "r.json", "--output", "OUT", "--format", "svg"),
    "png": ("report", "r.json", "--output", "OUT", "--format", "png"),
    "fio": (
        "fio",
        "--name=a",
        "--rw=read",
        "--size=1m",
        "--filename=data",
        "--output=OUT",
        "--output-format=json",
        "-q",
    ),
    "workload": ("convert", "job.fio", "--output", "OUT"),
    "capture": ("inspect", "--capture", "OUT"),
    "packed capture": ("inspect", "--capture", "OUT.tar.gz"),
    "chart": ("drives", "show", "WD3000GLFS", "--chart", "OUT.svg"),
    "export": ("store", "export", "last", "--store", "./s.db", "--output", "OUT", "--format", "json"),
    "export fio": ("store", "export", "last", "--store", "./s.db", "--output", "OUT", "--format", "fio"),
    "export csv": ("store", "export", "last", "--store", "./s.db", "--output", "OUT", "--format", "csv"),
    "export parquet": ("store", "export", "last", "--store", "./s.db", "--output", "OUT", "--format", "parquet"),
    "monitor": ("monitor", "--count", "1", "--interval", "0.05", "--output", "OUT"),
}
ALWAYS_NEW = {"monitor"}
NEEDS = {
    "svg": "vl_convert",
    "png": "vl_convert",
    "html": "vl_convert",
    "chart": "vl_convert",
    "export parquet": "pyarrow",
}
Invoke = Callable[..., Ended]


@pytest.fixture
def place(here: Path, invoke: Invoke) -> Path:
    """A folder with what the commands read."""
    assert invoke(*RUN, "--output", "r.json", "--store", "./s.db").status in (0, 1)
    (here / "job.fio").write_text(JOB)
    return here


def prepared(name: str) -> tuple[tuple[str, ...], Path]:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    command = COMMANDS[name]
    out = next(word for word in command if "OUT" in word)
    return command, Path(out.rpartition("=")[2])


@pytest.mark.parametrize("name", COMMANDS)
def test_an_existing_file_is_kept_without_force_and_own_files_are_replaced(
    name: str, place: Path, invoke: Invoke
) -> None:
    command, out = prepared(name)
    out.write_text("a user's own\n")
    refused = invoke(*command)
    assert refused.status == 3, refused
    assert "--force" in refused.err
    assert str(out) in refused.err
    assert (out.read_text(), refused.out) == ("a user's own\n", "")
    forced = invoke(*command, "--force")
    assert forced.status in (0, 1), forced
    written = out.read_bytes()
    assert written != b"a user's own\n"
    again = invoke(*command)
    assert again.status == (3 if name in ALWAYS_NEW else forced.status), again
    assert not [path for path in place.iterdir() if path.name.startswith(".")], "unfinished files are left"


def test_a_machine_file_is_replaced_only_by_its_own_kind(tmp_path: Path) -> None:
    from spindle.inspect.machine import MADE_BY

    file = tmp_path / "m.toml"
    file.write_text("[host]\n")
    with pytest.raises(Refusal, match="`force=`"):
        Output(file, kinds.KINDS["machine"], "--machine").check()
    file.write_text(f"{MADE_BY}\n[host]\n")
    Output(file, kinds.KINDS["machine"], "--machine").check()


def test_own_files_of_another_kind_are_not_replaced(place: Path, invoke: Invoke) -> None:
    before = (place / "r.json").read_bytes()
    for command in [("report", "s.json", "-o", "r.json"), (*NULL, "--log", "r.json"), (*RUN, "--trace", "r.json")]:
        (place / "s.json").write_bytes(before)
        ended = invoke(*command)
        assert (ended.status, "r.json" in ended.complaint) == (3, True), ended
    assert (place / "r.json").read_bytes() == before


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b'{"kind": "run"}', b'{"kind": "run", "tool": {"name": "fio"}}', b"[" * 100_000, b"\xff\xfe", b"[1]"],
    ids=["empty", "object", "kind alone", "another tool", "deep", "not text", "list"],
)
def test_a_file_that_only_resembles_a_result_is_kept(content: bytes, here: Path, invoke: Invoke) -> None:
    Path("r.json").write_bytes(content)
    assert invoke(*RUN, "-o", "r.json").status == 3
    assert Path("r.json").read_bytes() == content


def test_a_tar_of_other_content_is_not_a_capture(here: Path, invoke: Invoke) -> None:
    Path("spindle-capture").write_text("{}")
    with tarfile.open("home.tar", "w") as tar:
        tar.add("spindle-capture", "home/spindle-capture.json")
    assert invoke("inspect", "--capture", "home.tar").status == 3


@pytest.mark.parametrize(
    "command",
    [
        (*RUN, "--trace", "one", "--output", "one"),
        (*RUN, "--trace", "one", "--output", "./one"),
        (*RUN, "--trace", "link/one", "--output", "one", "--force"),
    ],
)
def test_two_outputs_must_be_two_files(command: tuple[str, ...], here: Path, invoke: Invoke) -> None:
    Path("link").symlink_to(".")
    ended = invoke(*command)
    assert (ended.status, "name one file" in ended.complaint) == (2, True), ended
    assert [path.name for path in here.iterdir() if path.name != "state"] == ["link"]


@pytest.mark.parametrize(
    "command",
    [
        ("report", "r.json", "-o", "r.json", "--format", "json"),
        ("report", "r.json", "-o", "hard.json", "--format", "json"),
        ("report", "soft.json", "-o", "r.json", "--format", "json"),
        ("convert", "job.fio", "-o", "job.fio"),
        ("store", "export", "r.json", "--store", "./s.db", "-o", "r.json"),
        ("store", "export", "last", "--store", "./s.db", "-o", "s.db"),
        ("run", "randomio", "r.json", "-o", "r.json"),
        ("run", "randomio", "new.bin", "--create", "4MiB", "-o", "new.bin"),
        ("run", "job.fio", "new.bin", "-o", "job.fio"),
        ("run", "job.fio", "-o", "data"),
        ("fio", "--name=a", "--rw=read", "--size=1m", "--filename=data", "--output=data"),
        ("fio", "--output=job.fio", "job.fio"),
    ],
)
def test_an_input_or_target_of_the_command_is_never_its_output(
    command: tuple[str, ...], place: Path, invoke: Invoke
) -> None:
    os.link("r.json", "hard.json")
    os.symlink("r.json", "soft.json")
    before = {path: path.read_bytes() for path in place.iterdir() if path.is_file() and "s.db" not in path.name}
    ended = invoke(*command, "--force")
    assert (ended.status, "of the same command" in ended.err) == (3, True), ended
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize("made", ["link", "dangling", "pipe", "folder", "device"])
def test_only_regular_files_are_replaced_even_with_force(made: str, tmp_path: Path) -> None:
    path, other = tmp_path / "out", tmp_path / "other"
    other.write_text("note of a user")
    match made:
        case "link":
            path.symlink_to(other)
        case "dangling":
            path.symlink_to(tmp_path / "nowhere")
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "device":
            path = Path("/dev/null")
    for force in (False, True):
        with pytest.raises(TargetError, match="not a regular file") as refused:
            Output(path, OWN, "-o", force).save(b"note 1")
        assert refused.value.exit_code == 2
    assert other.read_text() == "note of a user"
    assert not (tmp_path / "nowhere").exists()


def test_another_name_of_the_replaced_file_keeps_its_content(tmp_path: Path) -> None:
    (tmp_path / "kept").write_bytes(b"note 1")
    os.link(tmp_path / "kept", tmp_path / "out")
    Output(tmp_path / "out", OWN, "-o").save(b"note 2")
    assert ((tmp_path / "out").read_bytes(), (tmp_path / "kept").read_bytes()) == (b"note 2", b"note 1")


def test_a_file_made_during_the_run_is_kept_and_so_is_the_result(tmp_path: Path) -> None:
    out = Output(tmp_path / "out", OWN, "-o")
    with out.draft() as draft:
        draft.file.write(b"note 1")
        (tmp_path / "out").write_text("of a user")
        with pytest.raises(Refusal, match="what was to be saved is in") as refused:
            draft.commit()
    assert (tmp_path / "out").read_text() == "of a user"
    assert Path(str(refused.value).rpartition(" ")[2]).read_bytes() == b"note 1"


def test_a_link_put_there_during_the_run_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"of a user")
    with Output(tmp_path / "out", OWN, "-o", force=True).draft() as draft:
        draft.file.write(b"note 1")
        (tmp_path / "out").symlink_to(tmp_path / "victim")
        with pytest.raises(Refusal):
            draft.commit()
    assert (tmp_path / "victim").read_bytes() == b"of a user"


def test_a_folder_exchanged_during_the_run_gets_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "other").mkdir()
    with Output(tmp_path / "folder/out", OWN, "-o").draft() as draft:
        draft.file.write(b"note 1")
        (tmp_path / "folder").rename(tmp_path / "moved")
        (tmp_path / "folder").symlink_to("other")
        draft.commit()
    assert (tmp_path / "moved/out").read_bytes() == b"note 1"
    assert not list((tmp_path / "other").iterdir())


def test_a_file_of_another_user_is_kept(tmp_path: Path, need_root: None) -> None:
    out = tmp_path / "out"
    out.write_bytes(b"note 1")
    os.chown(out, 65534, 65534)
    with pytest.raises(Refusal, match="another user"):
        Output(out, OWN, "-o").save(b"note 2")
    Output(out, OWN, "-o", force=True).save(b"note 2")
    assert (out.read_bytes(), out.stat().st_uid) == (b"note 2", 0)


@pytest.mark.parametrize("depth", ["folder", "further up", "behind a link of one's own"])
def test_a_link_to_a_folder_that_another_user_planted_is_not_followed(
    depth: str, tmp_path: Path, need_root: None
) -> None:
    shared, private = tmp_path / "shared", tmp_path / "private"
    shared.mkdir()
    shared.chmod(0o1777)
    (private / "deep").mkdir(parents=True)
    (shared / "planted").symlink_to(private)
    os.chown(shared / "planted", 65534, 65534, follow_symlinks=False)
    (tmp_path / "own").symlink_to(shared / "planted")
    folder = {"folder": shared / "planted", "further up": shared / "planted/deep"}.get(depth, tmp_path / "own")
    with pytest.raises(Refusal, match="planted on the way was made by another user"):
        Output(folder / "out", OWN, "-o", force=True).check()
    (tmp_path / "mine").symlink_to(private)
    Output(tmp_path / "mine/out", OWN, "-o").save(b"note 1")
    assert (private / "out").read_bytes() == b"note 1"


def test_shared_memory_is_an_ordinary_folder_and_other_places_of_the_kernel_are_not() -> None:
    Output(Path(f"/dev/shm/spindle-test-{os.getpid()}"), OWN, "-o").check()
    for name in ("/dev/out", "/proc/out", "/sys/out", "/dev/pts/out"):
        with pytest.raises(TargetError, match="no file can be made"):
            Output(Path(name), OWN, "-o", force=True).check()


def test_a_folder_whose_name_begins_like_dev_is_an_ordinary_one(tmp_path: Path) -> None:
    folder = Path("/devel-of-a-test") if os.access("/", os.W_OK) else tmp_path / "devel"
    folder.mkdir()
    try:
        Output(folder / "out", OWN, "-o").save(b"note 1")
        (folder / "out").unlink()
    finally:
        folder.rmdir()


def test_an_existing_output_is_refused_before_the_run(place: Path, invoke: Invoke) -> None:
    Path("out").write_text("of a user")
    ended = invoke("run", "randomio", "null:1GiB", "--seconds", "100000", "--log", "out")
    assert (ended.status, ended.out) == (3, "")
    Path("job.fio").write_text(JOB.replace("number_ios=10", "time_based\nruntime=100000"))
    Path("nightly_bw.1.log").write_text("of a user")
    ended = invoke("run", "job.fio", "--quiet")
    assert (ended.status, "nightly_bw.1.log" in ended.err) == (3, True), ended
    assert not Path("data").exists()


def test_the_logs_of_all_phases_are_checked_before_the_first_phase(here: Path, invoke: Invoke) -> None:
    Path("w.toml").write_text(
        "".join(f'[[phase]]\nname = "{name}"\nrequests = 20\n[[phase.stream]]\n' for name in ("a", "b"))
    )
    Path("log-b.csv").write_text("of a user")
    ended = invoke("run", "w.toml", "null:1GiB", "--log", "log.csv", "--quiet")
    assert (ended.status, "log-b.csv" in ended.complaint) == (3, True), ended
    assert not Path("log-a.csv").exists()


def test_logs_of_a_job_file_are_replaced_with_force_only(place: Path, invoke: Invoke) -> None:
    Path("nightly_bw.1.log").write_text("of a user")
    assert invoke("run", "job.fio", "--quiet").status == 3
    assert Path("nightly_bw.1.log").read_text() == "of a user"
    assert invoke("run", "job.fio", "--quiet", "--force").status in (0, 1)
    assert len(Path("nightly_bw.1.log").read_text().splitlines()) == 10


def test_a_profile_written_by_hand_is_replaced_with_force_only(
    here: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(here))
    file = here / "spindle/profiles/mine.toml"
    file.parent.mkdir(parents=True)
    file.write_text("[vm]\nswappiness = 1\n")
    save = ("knobs", "profile", "save", "mine", "swappiness=10")
    assert invoke(*save).status == 3
    assert file.read_text() == "[vm]\nswappiness = 1\n"
    assert invoke(*save, "--force").status == 0
    assert invoke(*save).status == 0


def every_command(group: click.Group, context: click.Context) -> list[click.Command]:
    found: list[click.Command] = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        found += [command, *(every_command(command, context) if isinstance(command, click.Group) else [])]
    return found


def test_every_option_that_names_an_output_is_checked() -> None:
    commands = every_command(spindle, click.Context(spindle))
    assert len(commands) > len(VERBS)
    for command in commands:
        options = [option for option in command.params if isinstance(option, writing.OutputOption)]
        assert not options or isinstance(command, writing.WritingCommand), command.name
        assert all(option.kind in kinds.KINDS for option in options)


MAKES_FILES = {
    "host/outputs.py": "outputs",
    "host/durably.py": "names that no user gave: journals' neighbours, rules for udev",
    "host/testfile.py": "test files",
    "host/testfiles.py": "test files",
    "host/testfolder.py": "test files",
    "host/register.py": "the register of test files",
    "host/trusted.py": "folders and locks that only their owner may change",
    "host/guard.py": "targets",
    "knobs/files.py": "settings",
    "knobs/journal.py": "the journal of settings",
    "knobs/locks.py": "locks",
    "knobs/restore.py": "the journal of settings",
    "store/lock.py": "locks",
    "campaign/leftovers.py": "the list of scratch file systems",
    "cli/main.py": "/dev/null",
    "formats/agent.py": "a temporary folder, which nothing leads out of",
    "lab/files.py": "the cache of built kernels, and temporary folders",
    "serve/contents.py": "the contents of a served drive",
    "run/durability/journal.py": "a journal, which is always new (O_EXCL)",
}


def _writes(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in ("write_text", "write_bytes"):
        return True
    of_os = (
        isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and call.func.value.id == "os"
    )
    if of_os and name in ("replace", "rename", "link"):
        return True
    if of_os and name == "open":
        return any(flag in ast.unparse(call) for flag in ("O_WRONLY", "O_RDWR", "O_CREAT"))
    modes = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "mode")]
    return name == "open" and any(
        isinstance(mode, ast.Constant) and isinstance(mode.value, str) and set(mode.value) & set("wax+")
        and set(mode.value) <= set("rwxabt+")
        for mode in modes
    )  # fmt: skip


def test_no_other_option_makes_files() -> None:
    found = set()
    for path in PACKAGE.rglob("*.py"):
        if any(isinstance(node, ast.Call) and _writes(node) for node in ast.walk(ast.parse(path.read_text()))):
            found.add(str(path.relative_to(PACKAGE)))
    assert found <= MAKES_FILES.keys(), "name files for results with OutputOption, and write them with host.outputs"
