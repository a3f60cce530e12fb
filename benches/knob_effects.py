"""Side effects of knobs on this kernel: sweeps queues of its own, and writes the table in docs/reference/knobs.md.
Needs root.

    python benches/knob_effects.py            the table
    python benches/knob_effects.py --write    the same into docs/reference/knobs.md

Exit status 1 if a knob has a side effect that the catalogue does not list, or a session left something changed.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # tests/
PAGE = ROOT / "docs/reference/knobs.md"

from spindle.host.signals import Stopped  # noqa: E402
from tests.knobs.sweep import beside_the_table, swept, table  # noqa: E402


def main() -> int:
    """Sweep, print, and write the page if asked."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--write", action="store_true", help="put the table into docs/reference/knobs.md")
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        effects = swept(Path(folder), thorough=True)
    lines = [f"Linux {os.uname().release.partition('-')[0]}:", "", *table(effects), "", *beside_the_table(effects)]
    print("\n".join(lines))
    troubles = [*effects.undeclared(), *effects.faults]
    for line in troubles:
        print(f"not as in the catalogue: {line}", file=sys.stderr)
    for line in effects.unseen():
        print(f"in the catalogue and not seen here: {line}", file=sys.stderr)
    if asked.write:
        begin, end = "<!-- make knob-effects -->\n", "<!-- end -->"
        page = PAGE.read_text()
        new = begin + "\n".join(lines) + "\n" + end
        PAGE.write_text(re.sub(f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: new, page, flags=re.DOTALL))
    return 1 if troubles else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Stopped as stopped:
        sys.exit(128 + stopped.signum)
