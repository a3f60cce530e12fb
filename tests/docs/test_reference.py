"""The generated pages, man pages and completion scripts match the existing options and keys."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from spindle.cli.options.keys import keys
from tests.pages import ROOT


@pytest.mark.promise(25)
def test_generated_files_are_up_to_date() -> None:
    check = [sys.executable, "tools/generate_reference.py", "--check"]
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_the_page_of_keys_has_each_key() -> None:
    page = (ROOT / "docs/reference/keys.md").read_text()
    assert [key.name for key in keys() if f"\n| `{key.name}` |" not in page] == []


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_man_pages_have_no_errors() -> None:
    pages = sorted((ROOT / "packaging/data/share/man/man1").glob("*.1"))
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", *pages], capture_output=True, text=True, check=True)
    assert done.stderr == ""
