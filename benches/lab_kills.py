"""Kill Spindle at random moments while labs run: no process, socket or file may be left behind.

    python benches/lab_kills.py [--kills N] [--seed N]

The commands take turns: a command in the lab, with and without drives that are kept; a load under the real kernel;
power cuts. Each has a folder of temporary files of its own. The exit status is 1 if anything is left.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

MACHINE = "[array]\nlevel = 'raid5'\n[[drive]]\nservice = '100us'\ncount = 4\ncapacity = '1GiB'\nqueue_depth = 32\n"
COMMANDS = {
    "exec": [
        "lab",
        "exec",
        "m.toml",
        "--",
        "sh",
        "-c",
        "while :; do dd if=/dev/vda of=/dev/null bs=64k count=99; done",
    ],
    "exec --disks": ["lab", "exec", "m.toml", "--disks", "disks", "--", "sh", "-c", "while :; do :; done"],
    "run --kernel": ["run", "randomio", "m.toml", "--kernel", "--seconds", "600"],
    "durability": ["durability", "m.toml", "--kernel", "--cuts", "500"],
}
PATIENCE_S = 30
SHARED = Path("/dev/shm")
"""The lab's memory is a file there."""


def processes(folder: Path, mark: str) -> Iterator[str]:
    """Command lines of processes that work in a folder, name it, or have the mark in their environment."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = process.joinpath("cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            place = os.readlink(process / "cwd")
            marked = mark.encode() in process.joinpath("environ").read_bytes()
        except OSError:
            continue
        if marked or str(folder) in words or place.startswith(str(folder)):
            yield words


def left(folder: Path, mark: str, before: set[str]) -> list[str]:
    """Everything that is left."""
    # Folders may disappear meanwhile: unlike `rglob`, `walk` goes on then.
    files = [
        str(Path(place, name).relative_to(folder))
        for place, folders, names in os.walk(folder / "tmp")
        for name in (*folders, *names)
    ]
    shared = [name for name in os.listdir(SHARED) if name not in before] if SHARED.is_dir() else []
    return [*processes(folder, mark), *files, *shared]


def killed(command: list[str], after_s: float, folder: Path) -> list[str]:
    """Kill Spindle so many seconds after its start: what is left once it had time to disappear."""
    mark = f"SPINDLE_LAB_KILLS={folder}"
    before = set(os.listdir(SHARED)) if SHARED.is_dir() else set()
    (folder / "m.toml").write_text(MACHINE)
    (folder / "tmp").mkdir()
    environment = {**os.environ, "TMPDIR": str(folder / "tmp"), "SPINDLE_LAB_KILLS": str(folder)}
    environment["SPINDLE_STORE"] = str(folder / "store.db")
    process = subprocess.Popen(
        [Path(sys.executable).with_name("spindle"), *command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(after_s)
    process.send_signal(signal.SIGKILL)
    process.wait()
    limit = time.monotonic() + PATIENCE_S
    while (found := left(folder, mark, before)) and time.monotonic() < limit:
        time.sleep(0.1)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=40, help="how often [40]")
    parser.add_argument("--seed", type=int, default=1, help="of the moments [1]")
    parser.add_argument("--seconds", type=float, default=4, help="the latest moment [4]")
    options = parser.parse_args()
    draw = random.Random(options.seed)
    names = list(COMMANDS)
    missed = 0
    for number in range(options.kills):
        name, after_s = names[number % len(names)], draw.uniform(0.2, options.seconds)
        with TemporaryDirectory(prefix="lab-kills-") as folder:
            found = killed(COMMANDS[name], after_s, Path(folder).resolve())
        missed += bool(found)
        print(f"{name:14} killed after {after_s:5.2f} s: {'; '.join(found) or 'nothing is left'}", flush=True)
    print(f"{options.kills} kills, {missed} left something")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
