"""Attributes that the lab's kernel gives new arrays, beside those that Spindle's models have for them.

    python benches/array_defaults.py            the table; exit status 1 if something differs

Needs the lab (`make lab`). Each array is made in a boot of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from spindle import _core

CASES = (
    ("linear", None, None, 3),
    *(("raid0", None, chunk, drives) for chunk, drives in ((4, 2), (64, 3), (512, 4), (1024, 4), (48, 3))),
    *(("raid1", None, None, drives) for drives in (2, 3)),
    *(("raid10", layout, 64, drives) for layout, drives in (("n2", 4), ("n2", 5), ("n3", 6), ("f2", 4), ("o2", 5))),
    ("raid10", "f2", 512, 6),
    ("raid4", None, 64, 3),
    *(("raid5", layout, chunk, 4) for layout, chunk in (("left-symmetric", 64), ("right-asymmetric", 512))),
    *(("raid6", None, chunk, drives) for chunk, drives in ((64, 4), (512, 6))),
    ("raid50", None, 64, 6),
)
"""Level, layout, chunk in KiB, drives."""
DRIVE_BYTES = 256 << 20
MODEL = "HDS725050KLA360"
OF_THE_ARRAY = ("minimum_io_size", "optimal_io_size", "read_ahead_kb", "max_sectors_kb")
OF_A_DRIVE = ("scheduler", "nr_requests", "max_sectors_kb")


def machine(level: str, layout: str | None, chunk: int | None, drives: int) -> str:
    """The machine file."""
    keys = [f'level = "{level}"']
    keys += [f'layout = "{layout}"'] if layout else []
    keys += [f'chunk = "{chunk}KiB"'] if chunk else []
    array = "\n".join(keys)
    return f'[array]\n{array}\n[[drive]]\nmodel = "{MODEL}"\nregion = "0-{DRIVE_BYTES}"\ncount = {drives}\n'


def by_the_kernel(text: str) -> dict[str, str]:
    """Attribute -> value, of a boot."""
    files = [*(f"md0/queue/{name}" for name in OF_THE_ARRAY), "md0/md/stripe_cache_size"]
    files += [f"vda/queue/{name}" for name in OF_A_DRIVE]
    script = "; ".join(f"echo {name} $(cat /sys/block/{name} 2>/dev/null)" for name in files)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "machine.toml"
        path.write_text(text)
        command = [
            sys.executable,
            "-m",
            "spindle.cli",
            "lab",
            "exec",
            "--assembled",
            str(path),
            "--",
            "sh",
            "-c",
            script,
        ]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = {}
    for line in said.splitlines():
        name, _, value = line.partition(" ")
        words = value.split()
        found[name] = next((word.strip("[]") for word in words if word.startswith("[")), value)
    return {name: value for name, value in found.items() if value}


def by_the_models(text: str, level: str, layout: str | None, chunk: int | None, drives: int) -> dict[str, str]:
    """The same, as the address maps and the simulator have them."""
    limits = json.loads(
        _core.array_layout(level, [DRIVE_BYTES] * drives, layout=layout, chunk=chunk * 1024 if chunk else None)
    )["queue"]
    values = (limits["minimum_io"], limits["optimal_io"], limits["read_ahead"] // 1024, limits["max_request"] // 1024)
    found = {f"md0/queue/{name}": str(value) for name, value in zip(OF_THE_ARRAY, values, strict=True)}
    if level in ("raid4", "raid5", "raid6"):
        found["md0/md/stripe_cache_size"] = "256"
    described = json.loads(_core.Machine.parse(text, "machine.toml").to_json())
    found["vda/queue/scheduler"] = described["schedulers"][0]
    return found


def main() -> int:
    """Print a row for each array."""
    differing = 0
    print("level   layout            chunk  drives  min_io  opt_io    ra_kb  max_kb  stripe_cache  drive's queue")
    for level, layout, chunk, drives in CASES:
        text = machine(level, layout, chunk, drives)
        seen, expected = by_the_kernel(text), by_the_models(text, level, layout, chunk, drives)
        values = [seen.get(f"md0/queue/{name}", "-") for name in OF_THE_ARRAY]
        cache = seen.get("md0/md/stripe_cache_size", "-")
        queue = " ".join(seen.get(f"vda/queue/{name}", "-") for name in OF_A_DRIVE)
        print(
            f"{level:7} {layout or '-':17} {chunk or '-':>5}  {drives:6}  {values[0]:>6}  {values[1]:>7}  "
            f"{values[2]:>5}  {values[3]:>6}  {cache:>12}  {queue}"
        )
        for name, value in expected.items():
            if seen.get(name) != value:
                differing += 1
                print(f"    {name}: the kernel has {seen.get(name)}, the models {value}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
