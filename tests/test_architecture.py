"""docs/architecture.md and docs/dependencies.md agree with the code."""

from __future__ import annotations

import ast
import graphlib
import importlib
import importlib.util
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from spindle.cli.main import spindle

ROOT = Path(__file__).resolve().parent.parent
ARCHITECTURE = (ROOT / "docs/architecture.md").read_text()
DEPENDENCIES = (ROOT / "docs/dependencies.md").read_text()


def section(text: str, heading: str) -> str:
    return re.split(r"^## ", text.split(f"## {heading}\n", 1)[1], maxsplit=1, flags=re.M)[0]


def table(text: str) -> list[list[str]]:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return [row for row in rows if not set(row[0]) <= set("- ")]


def uses(heading: str) -> dict[str, set[str]]:
    """Room -> rooms that the page lets it use."""
    rows = table(section(ARCHITECTURE, heading))[1:]
    names = {row[0].strip("`") for row in rows}
    allowed = {}
    for row in rows:
        name = row[0].strip("`")
        allowed[name] = names - {name} if row[2] == "all" else set(re.findall(r"`([a-z]+)`", row[2]))
    return allowed


def manifest(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text())


def crate_manifests() -> dict[str, dict[str, Any]]:
    return {path.parent.name: manifest(path) for path in sorted(ROOT.glob("crates/*/Cargo.toml"))}


def test_every_crate_is_on_the_page_and_uses_only_what_the_page_says() -> None:
    allowed = uses("Crates")
    crates = crate_manifests()
    assert set(allowed) == set(crates)
    for name, data in crates.items():
        used = {dep.removeprefix("spindle-") for dep in data.get("dependencies", {}) if dep.startswith("spindle-")}
        assert used <= allowed[name], f"{name} uses {used - allowed[name]}, which docs/architecture.md does not allow"


def test_crate_dependencies_point_downwards_only() -> None:
    order = list(uses("Crates"))
    for name, used in uses("Crates").items():
        for other in used:
            assert order.index(other) < order.index(name), f"{name} uses {other}, which is below it on the page"


def spindle_imports(path: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [node.module] if node.module != "spindle" else [f"spindle.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        rooms |= {name.split(".")[1] for name in names if name.startswith("spindle.")}
    return rooms


def test_every_python_room_is_on_the_page_and_imports_only_what_the_page_says() -> None:
    allowed = uses("Python rooms")
    package = ROOT / "python/spindle"
    rooms = {path.name for path in package.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    assert rooms == set(allowed)
    for room in rooms:
        for path in (package / room).rglob("*.py"):
            used = {name for name in spindle_imports(path) if (package / name).is_dir()} - {room}
            assert used <= allowed[room], f"{path.relative_to(ROOT)} imports {used - allowed[room]}"


def test_relative_imports_stay_inside_their_room() -> None:
    for path in (ROOT / "python/spindle").rglob("*.py"):
        depth = len(path.relative_to(ROOT / "python/spindle").parts) - 1
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert node.level <= max(depth, 1), f"{path.relative_to(ROOT)}:{node.lineno} reaches out of its room"


def external(kind: str) -> set[str]:
    found: set[str] = set()
    for data in crate_manifests().values():
        found |= {dep for dep in data.get(kind, {}) if not dep.startswith("spindle-")}
    return found


def listed(language: str) -> tuple[set[str], set[str]]:
    run_time, development = section(DEPENDENCIES, language).split("Development only:")
    return {row[0] for row in table(run_time)[1:]}, {row[0] for row in table(development)[1:]}


def test_every_crate_dependency_has_its_reason_and_every_reason_its_dependency() -> None:
    run_time, development = listed("Rust")
    assert external("dependencies") == run_time
    assert external("dev-dependencies") - run_time == development
    for row in table(section(DEPENDENCIES, "Rust")):
        assert len(row) == 2
        assert row[1], f"{row[0]} has no reason"


def test_every_python_dependency_has_its_reason_and_every_reason_its_dependency() -> None:
    project = manifest(ROOT / "pyproject.toml")["project"]

    def names(requirements: list[str]) -> set[str]:
        return {re.split(r"[<>=\[ ]", requirement)[0] for requirement in requirements}

    run_time, development = listed("Python")
    assert names(project["dependencies"]) == run_time
    optional = set().union(*(names(extra) for extra in project["optional-dependencies"].values()))
    assert optional | {"maturin"} == development


def test_unsafe_code_is_allowed_in_the_engine_and_for_the_crc_instructions_only() -> None:
    instructions = {Path("crates/verify/src/hardware.rs"), Path("crates/verify/src/wide.rs")}
    for path in ROOT.glob("crates/*/src/**/*.rs"):
        place = path.relative_to(ROOT)
        if place.parts[1] != "engine" and place not in instructions:
            assert not re.search(r"\bunsafe\s*(\{|fn|impl)", path.read_text()), path.relative_to(ROOT)


def test_only_the_guard_the_makers_of_test_files_outputs_and_the_knobs_open_anything_for_writing() -> None:
    writers = {"host/outputs.py", "host/guard.py", "host/testfile.py", "host/testfiles.py", KERNEL_FILES}
    writers.add("lab/files.py")  # below its own folders of the cache and of temporary files
    writers.add("serve/contents.py")  # the contents of a served drive
    writers.add("host/trusted.py")  # Spindle's own state files
    for path in (ROOT / "python/spindle").rglob("*.py"):
        name = str(path.relative_to(ROOT / "python/spindle"))
        if re.search(r"O_(WRONLY|RDWR)", path.read_text()):
            assert name in writers, f"{name} opens something for writing"
    for crate in ROOT.glob("crates/*/src/*.rs"):  # clippy.toml lists the forbidden calls
        if crate.name in ("lib.rs", "main.rs"):
            assert "#![cfg_attr(not(test), deny(clippy::disallowed_methods))]" in crate.read_text(), crate
    of_the_agent = ("target", "output", "journal", "knobs")  # guard, result, settings
    allowed = {f"crates/agent/src/{name}.rs" for name in of_the_agent}
    for path in ROOT.glob("crates/*/src/**/*.rs"):
        if re.search(r"\ballow\(clippy::disallowed", path.read_text()):
            assert str(path.relative_to(ROOT)) in allowed, f"{path.relative_to(ROOT)} opens something for writing"


KERNEL_FILES = "knobs/files.py"


def calls(path: Path) -> list[tuple[str, str]]:
    """(name of the function, its arguments) of every call in a file."""
    found = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    return [(ast.unparse(node.func), ", ".join(map(ast.unparse, node.args))) for node in found]


def test_only_one_function_writes_to_sysfs_or_procfs() -> None:
    """Files of the kernel exist already, so they are opened for writing without mode 'x', which makes a file."""
    package = ROOT / "python/spindle"
    replaced = {"cli/main.py", "report/terminal/chart.py"}  # /dev/null; pictures
    held = {"host/register.py", "knobs/journal.py", "knobs/locks.py", "store/lock.py"}  # kept open
    for path in package.rglob("*.py"):
        name = str(path.relative_to(package))
        for function, arguments in calls(path):
            last = function.rpartition(".")[2]
            if last in ("write_text", "write_bytes") or (last == "open" and re.search(r"'[rwa]?b?\+?[wa+]", arguments)):
                assert name in replaced | held, f"{name} opens a file that may be the kernel's: {function}({arguments})"
            if last == "write_kernel_file":
                assert name == KERNEL_FILES, f"{name} writes to the kernel past the journal"
    text = (package / KERNEL_FILES).read_text()
    assert len(re.findall(r"O_(WRONLY|RDWR)", text)) == 1
    assert [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)] == ["write_kernel_file"]
    allowed = {
        r"(.*\.)?_?[Ff]iles(\(\))?\.(write|switch_swap)": {
            "knobs/places.py",
            "conditions/caches.py",  # drop_caches, which is no setting
        },
        r"(.*\.)?_?place\.write": {"knobs/session.py", "knobs/undo.py"},
    }
    for pattern, names in allowed.items():
        using = {
            str(path.relative_to(package))
            for path in package.rglob("*.py")
            if any(re.fullmatch(pattern, function) for function, _ in calls(path))
        }
        assert using == names, f"{pattern}: changes a knob past the journal, or the list is out of date"


def modules() -> dict[str, Path]:
    package = ROOT / "python/spindle"
    names = {path: ".".join(path.relative_to(package.parent).with_suffix("").parts) for path in package.rglob("*.py")}
    return {name.removesuffix(".__init__"): path for path, name in names.items()}


def loaded_with(name: str, path: Path, known: dict[str, Path]) -> set[str]:
    """The modules that a module imports when it is imported."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            above = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            found |= {each if (each := f"{base}.{alias.name}") in known else base for alias in node.names}
    return found & set(known) - {name}


def test_modules_do_not_import_each_other_in_circles() -> None:
    known = modules()
    graph = {name: loaded_with(name, path, known) for name, path in known.items()}
    assert graph["spindle.run.targets"] >= {"spindle.run.targets.null", "spindle.host.paths"}
    graphlib.TopologicalSorter(graph).prepare()


def used_when_run(path: Path) -> set[str]:
    """Rooms that a module imports when its functions are called; those only for annotations are left out."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    names = [f"{node.module}.{alias.name}" for node in found for alias in node.names]
    return {name.split(".")[1] for name in names if name.startswith("spindle.")}


def test_verbs_use_the_library_and_nothing_below_it() -> None:
    """`report` shows the library's results; `_core` parses sizes on the command line."""
    above = {"base", "cli", "library", "report", "_core"}
    verbs = sorted((ROOT / "python/spindle/cli/verbs").glob("*.py"))
    below = {path.stem: found for path in verbs if (found := used_when_run(path) - above)}
    assert below == {}


OF_TARGETS = {"result/target.py", "host/guard.py"}
"""The modules that own the kinds of targets: of records, and of what is open."""


def test_kinds_of_targets_are_compared_in_their_own_module_only() -> None:
    """Other code reads the properties of a kind: `target.traits.is_modelled`."""
    for path in (ROOT / "python/spindle").rglob("*.py"):
        name = str(path.relative_to(ROOT / "python/spindle"))
        compared = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Compare)]
        for node in compared:
            of = [ast.unparse(each) for each in (node.left, *node.comparators)]
            kinds = [each for each in of if re.search(r"\b(target(\(\))?|opened|place|on)\.kind$", each)]
            assert not kinds or len(kinds) == len(of) or name in OF_TARGETS, (
                f"{name}:{node.lineno}: {ast.unparse(node)}"
            )


def test_only_the_parser_of_targets_parses_names() -> None:
    """Other code parses a name with `run.targets.parse`; job files, a layer below, may use the null target."""
    allowed = {"result/target.py", "run/targets/null.py", "formats/fio_job/filesets.py"}
    for path in (ROOT / "python/spindle").rglob("*.py"):
        found = re.search(r"""f?["']null:["'{]|startswith\(\w*NULL""", path.read_text())
        assert not found or str(path.relative_to(ROOT / "python/spindle")) in allowed, f"{path}: {found[0]}"


def test_benches_examples_and_tools_import_only_names_that_exist() -> None:
    """Type checks do not read them, and most are run only by hand."""
    paths = [path for folder in ("benches", "examples", "tools") for path in (ROOT / folder).rglob("*.py")]
    imports = [node for path in paths for node in ast.walk(_tree(path)) if isinstance(node, ast.ImportFrom)]
    ours = [node for node in imports if node.level == 0 and str(node.module).split(".")[0] == "spindle"]
    assert ours
    assert [f"{node.module}.{name.name}" for node in ours for name in node.names if not _exists(node, name.name)] == []


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _exists(node: ast.ImportFrom, name: str) -> bool:
    module = importlib.import_module(str(node.module))
    return hasattr(module, name) or importlib.util.find_spec(f"{node.module}.{name}") is not None


PROGRAMS_OF_THE_MAKEFILE = re.compile(r"(?<![\w./-])(?:benches|tools|examples|\.ci)/[\w./-]*\w")
MAY_BE_EMPTY = {"py.typed"}
"""Files that say something by being there."""


def test_every_program_that_the_makefile_runs_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text()
    programs = set(PROGRAMS_OF_THE_MAKEFILE.findall(makefile))
    assert programs >= {"benches/drive_serve.py", "tools/build-agent", ".ci/release"}
    # A folder: the rule runs each program in it.
    files = [
        path for name in programs for path in ((ROOT / name).iterdir() if (ROOT / name).is_dir() else [ROOT / name])
    ]
    missing = sorted(str(path) for path in files if not path.is_file() or not path.read_text().strip())
    assert missing == [], "the Makefile runs files that are missing or empty"


def test_no_file_has_lost_its_contents() -> None:
    folders = ("benches", "catalogue", "crates", "docs", "examples", "fuzz", "python", "tests", "tools", ".ci")
    skipped = {"target", "corpus", "__pycache__", "pages"}
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if not skipped & set(path.parts)]
    empty = [str(path.relative_to(ROOT)) for path in files if path.is_file() and not path.stat().st_size]
    assert [name for name in empty if Path(name).name not in MAY_BE_EMPTY] == []


def test_links_between_pages_have_a_target() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for page in pages:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"


def options_of(command: click.Command, context: click.Context) -> set[str]:
    """The long options of a command and of the commands below it."""
    own = {name for parameter in command.get_params(context) for name in (*parameter.opts, *parameter.secondary_opts)}
    names = command.list_commands(context) if isinstance(command, click.Group) else []
    below = [command.get_command(context, name) for name in names if isinstance(command, click.Group)]
    found = set().union(*(options_of(each, context) for each in below if each is not None))
    return {name for name in own | found if name.startswith("--")}


OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
PROGRAMS = {"spindle-agent", "blkid", "busybox", "findmnt", "hdparm", "lsblk", "mdadm", "smartctl", "wipefs"}
"""Programs whose command lines Spindle writes, with options that it has too."""
WRITTEN_BELOW = {
    "base/commands.py": "makes options of keys, for commands that a shell runs: scripts, recipes",
    "formats/fio_job/arguments.py": "reads and writes fio's own command line",
    "fleet/commands.py": "writes the command lines of ssh and spindle-agent",
    "lab/load.py": "writes spindle-agent's command line",
    "validation/kernel/steps.py": "writes mdadm's command line",
    "run/durability/cuts.py": "writes spindle-agent's command line",
}


DASHES = {"inspect/dm.py", "report/charts/theme.py", "report/render/html.py"}
"""Names of device-mapper double their dashes; variables of CSS begin with two."""


def strings(path: Path) -> Iterator[tuple[ast.Constant, list[ast.AST]]]:
    """Each string of a module with the nodes around it, innermost first."""
    above: dict[ast.AST, ast.AST] = {}
    for node in ast.walk(ast.parse(path.read_text())):
        above |= dict.fromkeys(ast.iter_child_nodes(node), node)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            parts: list[ast.AST] = [node]
            while parts[-1] in above:
                parts.append(above[parts[-1]])
            yield node, parts[1:]


def of_another_program(option: str, text: str, parts: list[ast.AST]) -> bool:
    """True if the option is an argument in a command of another program, or follows its name in a sentence."""
    if re.search(rf"\b({'|'.join(PROGRAMS)})\b[^;.()]*{option}", text):
        return True
    documents = isinstance(parts[0], ast.Expr)
    if documents and re.search(rf"\bfio\b[^;]*?{option}", text, re.S):
        return True
    lists = [part for part in parts[:2] if isinstance(part, ast.List | ast.Tuple | ast.Call)]
    items = [item for part in lists for item in (part.args if isinstance(part, ast.Call) else part.elts)]
    return any(isinstance(item, ast.Constant) and item.value in PROGRAMS for item in items)


def test_only_the_command_line_writes_its_options() -> None:
    """Below the command line, a text names a key, `create=`; the command line shows it as --create."""
    own = options_of(spindle, click.Context(spindle))
    assert own >= {"--create", "--erase", "--size", "--no-end-fsync", "--set", "--fix-plan", "--yes"}
    package = ROOT / "python/spindle"
    for path in sorted(package.rglob("*.py")):
        name = str(path.relative_to(package))
        if name.startswith("cli/") or name in WRITTEN_BELOW:
            continue
        for node, parts in strings(path):
            text = str(node.value)
            makes = re.search(r"(?<![\w-])--$", text) and name not in DASHES
            assert not makes, f"{name}:{node.lineno} makes an option of a name"
            for option in own & set(OPTION.findall(text)):
                assert of_another_program(option, text, parts), f"{name}:{node.lineno}: {option}: {text}"


def test_no_crate_writes_options_of_the_command_line() -> None:
    own = options_of(spindle, click.Context(spindle))
    for path in sorted(ROOT.glob("crates/*/src/**/*.rs")):
        if path in (
            ROOT / "crates/array/src/report.rs",
            ROOT / "crates/lab/src/setup.rs",
        ):  # mdadm's, which make an array
            continue
        if path.is_relative_to(ROOT / "crates/agent"):  # a separate program with its own command line
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = own & set(OPTION.findall(line.partition("//")[0]))
            assert not found, f"{path.relative_to(ROOT)}:{number}: {line.strip()}"


def test_json_is_decoded_into_types_where_threads_cannot_meet() -> None:
    """msgspec crashes if two threads build the decoder of one type at once; `base/decoding.py` builds them in turn."""
    direct = re.compile(r"msgspec\.json\.decode\(.*type=")
    found = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "python/spindle").rglob("*.py")
        if "pages" not in path.parts and path.name != "document.py" and direct.search(path.read_text())
    ]
    assert found == []


def test_a_bench_runs_without_arguments() -> None:
    """Before Python 3.12 argparse looks for the whole default of `nargs="*"` among the choices: a list is none."""
    for path in sorted((ROOT / "benches").rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text())):
            if not isinstance(call, ast.Call):
                continue
            given = {keyword.arg: keyword.value for keyword in call.keywords}
            nargs = given.get("nargs")
            if isinstance(nargs, ast.Constant) and nargs.value == "*" and "choices" in given:
                default = given.get("default")
                assert isinstance(default, ast.Constant), f"{path.name}:{call.lineno}"
                assert isinstance(default.value, str), f"{path.name}:{call.lineno}"
