"""Verbs that only look something up start without what only measuring, comparing and exporting need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.program import spindle

HEAVY = ("numpy", "scipy", "alembic", "matplotlib", "pyarrow", "psycopg", "rich")
NO_STORE = (*HEAVY, "sqlalchemy", "sqlite3")
NO_RECORD = (*NO_STORE, "spindle.result.record")
LIGHT = [
    (["--help"], (*NO_RECORD, "msgspec", "spindle._core", "traceback")),
    (["--version"], (*NO_RECORD, "msgspec")),
    (["run", "--help"], (*NO_RECORD, "msgspec")),
    (["presets"], NO_RECORD),
    (["presets", "backup"], NO_RECORD),
    (["drives"], NO_RECORD),
    (["restore"], NO_RECORD),
    (["knobs", "list"], NO_RECORD),
    (["show", "result.json"], NO_STORE),
    (["store", "ls", "--store", "results.db"], (*HEAVY, "spindle.formats")),
    (["store", "ls", "--store", "results.db", "--json"], (*HEAVY, "spindle.formats")),
    (["store", "ls", "--store", "results.db", "--campaigns"], (*HEAVY, "spindle.formats")),
]
LOADED = """
import sys
from spindle.cli.main import invoke
status = invoke(sys.argv[2:])
loaded = [name for name in sys.argv[1].split(",") if name in sys.modules]
sys.exit(f"loaded: {' '.join(loaded)}" if loaded else status)
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a result, in a file and in a store."""
    folder = tmp_path_factory.mktemp("results")
    ran = spindle(
        "run", "randomio", "one-sata", "--seconds=2", "-o", "result.json", "--store", "results.db", cwd=folder
    )
    assert ran.status == 0, ran.err
    return folder


@pytest.mark.promise(29)
@pytest.mark.parametrize(
    ("arguments", "heavy"), LIGHT, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_a_light_verb_loads_nothing_heavy(arguments: list[str], heavy: tuple[str, ...], results: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, ",".join(heavy), *arguments],
        cwd=results, capture_output=True, text=True, timeout=60,
    )  # fmt: skip

    assert (done.stderr, done.returncode) == ("", 0)
