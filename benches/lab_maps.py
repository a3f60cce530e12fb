"""Address maps of md arrays, read off the lab's kernel.

    python benches/lab_maps.py [--lists DIR] [--random N] [--seed N] [--keep DIR]

Each array is made by mdadm in the lab. Every 4 KiB block is written with its own content, and then found on the
members, outside. The lists that come of it are compared block by block with the models (`spindle validate maps`), those
of `--lists` also with the lists there: each of its arrays is made again. `--random` makes others. Many arrays share a
boot. The exit status is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shlex
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from spindle import _core
from spindle.lab import session

BLOCK = 4096
PAGE = 64 << 10
OFFSET_KIB = 1024
"""Start of the data on a member."""
OF_A_BOOT = 40
"""Arrays that share a boot."""
FIRST = 1
"""Slot of the first member; before it is the drive with the blocks to write."""
NUMBER_BYTES = 64
"""Bytes at the start of a block that its number may take. One of the others is 1, another one for each block of a row:
the coefficient of that block in P and Q."""
MACHINE = """
[[drive]]
count = {drives}
service = '10us'
queue_depth = 64
capacity = '8GiB'
[array]
level = 'raid0'
"""


@dataclass(frozen=True)
class Case:
    """An array."""

    name: str
    members_kib: Sequence[int]
    """Room for data on each member."""
    options: str
    """Options of mdadm, or `KEY=VALUE` for files of md (`sysfs`)."""
    by_sysfs: bool = False
    given: Path | None = None
    """The list to compare with."""


Row = tuple[str, int, int, int, int]
"""Role, block of the array (-1: none), slot of the member, block on it, power in Q (-1: none)."""


def pattern(number: int) -> bytes:
    """Content of a block of an array."""
    data = bytearray(BLOCK)
    data[:8] = (number + 1).to_bytes(8, "little")
    data[_place(number)] = 1
    return bytes(data)


def _place(number: int) -> int:
    return NUMBER_BYTES + number % (BLOCK - NUMBER_BYTES)


def _powers() -> list[int]:
    """Powers of 2 in the field of RAID6."""
    found, value = [], 1
    for _ in range(255):
        found.append(value)
        value = value << 1 ^ (0x11D if value & 0x80 else 0)
    return found


POWERS = _powers()
LOGARITHMS = {value: power for power, value in enumerate(POWERS)}
PRODUCTS = [bytes([0] + [POWERS[(LOGARITHMS[byte] + power) % 255] for byte in range(1, 256)]) for power in range(255)]


# --- cases -----------------------------------------------------------------------------------------------------------


def of_lists(folder: Path) -> Iterator[Case]:
    """The arrays that lists were made of."""
    for path in sorted(folder.glob("*.csv")):
        head = [line[2:] for line in path.read_text().splitlines() if line.startswith("# ")]
        values = dict(line.split("=", 1) for line in head if "=" in line.split(" ")[0])
        members = [int(size) for size in values["member_data_kib"].split(",")]
        command = values["cmd"]
        if command.startswith("sysfs "):
            yield Case(path.stem, members, command.removeprefix("sysfs "), True, path)
            continue
        options = [word for word in shlex.split(command) if word.startswith("--")]
        kept = [word for word in options if re.match(r"--(level|layout|chunk)=", word)]
        yield Case(path.stem, members, " ".join(kept), given=path)


RAID5 = ("left-asymmetric", "left-symmetric", "right-asymmetric", "right-symmetric", "parity-first", "parity-last")
RAID6 = (
    *(name for name in RAID5 if name != "parity-last"),
    *(f"{name}-6" for name in RAID5 if name != "parity-last"),
    "ddf-zero-restart",
    "ddf-N-restart",
    "ddf-N-continue",
)
CHUNKS_KIB = (4, 8, 16, 32, 64, 128, 256, 512)


def at_random(count: int, seed: int) -> Iterator[Case]:
    """Other arrays: level, layout, chunk, drives and sizes are drawn."""
    draw = random.Random(seed)
    for number in range(count):
        level = draw.choice(("linear", "raid0", "raid1", "raid4", "raid5", "raid6", "raid10", "raid10"))
        least = {"raid4": 3, "raid5": 3, "raid6": 4}.get(level, 2)
        drives = draw.randint(least, 4 if level == "raid1" else 9)
        chunk = draw.choice((*CHUNKS_KIB, 12, 48, 80) if level == "raid0" else CHUNKS_KIB)
        smallest = chunk * (4 if level == "raid10" else 1)  # far copies need a chunk for each
        sizes = [draw.randrange(smallest, 3072 + smallest, 4) for _ in range(drives)]
        if draw.random() < 0.6:
            sizes = sizes[:1] * drives
        options = [f"--level={level}"]
        options += [] if level in ("linear", "raid1") else [f"--chunk={chunk}"]
        layout = None
        if level == "raid0" and len(set(sizes)) > 1:
            layout = draw.choice(("original", "alternate"))
        elif level == "raid5":
            layout = draw.choice(RAID5)
        elif level == "raid6":
            layout = draw.choice(RAID6)
        elif level == "raid10":
            layout = f"{draw.choice('nfo')}{draw.randint(2, min(4, drives))}"
        options += [f"--layout={layout}"] if layout else []
        yield Case(f"{seed}-{number:03}", sizes, " ".join(options))


# --- in the lab ------------------------------------------------------------------------------------------------------

SHOW = """
cd /sys/block/md0/md
echo array {number}
for file in level layout chunk_size component_size raid_disks; do echo $file $(cat $file); done
echo sectors $(cat ../size)
cd /
dd if=/dev/vda of=/dev/md0 bs=256k iflag=direct oflag=direct 2>/dev/null
"""


def script(cases: Sequence[Case]) -> str:
    """Commands of the shell that make and write the arrays, one after the other."""
    lines = []
    for number, case in enumerate(cases):
        drives = [f"vd{chr(ord('a') + FIRST + slot)}" for slot in range(len(case.members_kib))]
        members = [f"/dev/{drive}{number + 1}" for drive in drives]
        for drive, (start, kib) in zip(drives, places(cases, number), strict=True):
            lines.append(f"addpart /dev/{drive} {number + 1} {start // 512} {kib * 2}")
        lines += by_files(case, members) if case.by_sysfs else by_mdadm(case, members)
        lines.append(SHOW.replace("{number}", str(number)))
        lines.append("echo clear >/sys/block/md0/md/array_state" if case.by_sysfs else "mdadm -q --stop /dev/md0")
    return "\n".join(lines)


def by_mdadm(case: Case, members: Sequence[str]) -> list[str]:
    """Commands that make an array."""
    plain = re.search(r"--level=(linear|raid0)\b", case.options)
    options = case.options if plain else f"{case.options} --assume-clean --bitmap=none"
    create = f"mdadm --create /dev/md0 --run --metadata=1.2 {options} --data-offset={OFFSET_KIB}"
    return [f"{create} --raid-devices={len(members)} {' '.join(members)} >/run/said 2>&1 || cat /run/said"]


def by_files(case: Case, members: Sequence[str]) -> list[str]:
    """The same through md's files, for layouts that mdadm does not offer."""
    asked = dict(word.split("=") for word in case.options.split())
    sizes = [kib - kib % int(asked["chunk"].removesuffix("K")) for kib in case.members_kib]
    lines = ["echo md0 >/sys/module/md_mod/parameters/new_array", "cd /sys/block/md0/md", "echo none >metadata_version"]
    lines += [f"echo {len(members)} >raid_disks", f"echo {asked['level']} >level", f"echo {asked['layout']} >layout"]
    lines += [f"echo {int(asked['chunk'].removesuffix('K')) * 1024} >chunk_size", f"echo {min(sizes)} >component_size"]
    for slot, member in enumerate(members):
        name = member.removeprefix("/dev/")
        lines += [f"cat /sys/class/block/{name}/dev >new_dev", f"echo {2 * OFFSET_KIB} >dev-{name}/offset"]
        lines += [f"echo {sizes[slot]} >dev-{name}/size", f"echo {slot} >dev-{name}/slot"]
    return [*lines, "echo none >resync_start", "echo active >array_state", "cd /"]


def places(cases: Sequence[Case], number: int) -> list[tuple[int, int]]:
    """Start in bytes and KiB of each member of a case: partition after partition on the drive of its slot."""
    rooms = [max(case.members_kib) + OFFSET_KIB for case in cases]
    start = sum((kib * 1024 + PAGE - 1) // PAGE * PAGE + (1 << 20) for kib in rooms[:number]) + (1 << 20)
    return [(start, kib + OFFSET_KIB) for kib in cases[number].members_kib]


def read_off(cases: Sequence[Case]) -> Iterator[tuple[Case, dict[str, str], list[Row]]]:
    """Boot, make the arrays of the cases, and find their blocks: (case, md's files, rows)."""
    drives = FIRST + max(len(case.members_kib) for case in cases)
    machine = _core.Machine.parse(MACHINE.format(drives=drives), "maps")
    blocks = max(sum(case.members_kib) for case in cases) * 1024 // BLOCK + 1
    patterns = [pattern(number) for number in range(blocks)]
    out, errors = bytearray(), bytearray()
    with tempfile.TemporaryDirectory() as name:
        disks = Path(name)
        with (disks / "vda").open("wb") as file:
            file.writelines(patterns)
        outcome = session.execute(
            machine,
            ["sh", "-c", script(cases)],
            lambda is_error, data: (errors if is_error else out).extend(data),
            programs=["addpart"],
            disks=disks,
        )
        if errors or outcome.status:
            print(errors.decode(errors="replace"), file=sys.stderr)
        files = parse(out.decode())
        for number, case in enumerate(cases):
            yield case, files.get(number, {}), rows(disks, places(cases, number), patterns)


def parse(said: str) -> dict[int, dict[str, str]]:
    """md's files of each array."""
    found: dict[int, dict[str, str]] = {}
    for line in said.splitlines():
        name, _, value = line.partition(" ")
        if name == "array":
            files = found[int(value)] = {}
        elif found:
            files[name] = value
        else:
            print(line, file=sys.stderr)
    return found


# --- blocks ----------------------------------------------------------------------------------------------------------


def rows(disks: Path, members: Sequence[tuple[int, int]], patterns: Sequence[bytes]) -> list[Row]:
    """The content of each block of each member. Raises ValueError at a block that is nothing of the array."""
    contents = []
    for slot, (start, kib) in enumerate(members):
        with (disks / f"vd{chr(ord('a') + FIRST + slot)}").open("rb") as file:
            file.seek(start + OFFSET_KIB * 1024)
            contents.append(file.read((kib - OFFSET_KIB) * 1024))
    found: list[Row] = []
    for block in range(max(len(data) for data in contents) // BLOCK):
        at = slice(block * BLOCK, (block + 1) * BLOCK)
        row = {slot: data[at] for slot, data in enumerate(contents) if len(data) >= at.stop and any(data[at])}
        found += of_row(block, row, patterns)
    return found


def of_row(block: int, row: dict[int, bytes], patterns: Sequence[bytes]) -> list[Row]:
    """The content of the blocks of a row: data by their number, P and Q by the data that are in them."""
    data = {}
    for slot, content in row.items():
        number = int.from_bytes(content[:8], "little") - 1
        if 0 <= number < len(patterns) and content == patterns[number]:
            data[slot] = number
    powers = dict.fromkeys(data, -1)
    found = []
    for slot in row.keys() - data.keys():
        content = row[slot]
        factors = {of: content[_place(number)] for of, number in data.items()}
        if content != combined(factors, row):
            raise ValueError(f"block {block} of member {slot} is neither data nor made of the data of its row")
        is_p = all(factor == 1 for factor in factors.values())
        found.append(("P" if is_p else "Q", -1, slot, block, -1))
        if not is_p:
            powers = {of: LOGARITHMS[factor] for of, factor in factors.items()}
    return [*found, *(("D", number, slot, block, powers[slot]) for slot, number in data.items())]


def combined(factors: dict[int, int], row: dict[int, bytes]) -> bytes:
    """Sum of blocks times factors."""
    total = 0
    for slot, factor in factors.items():
        if factor:
            total ^= int.from_bytes(row[slot].translate(PRODUCTS[LOGARITHMS[factor]]), "little")
    return total.to_bytes(BLOCK, "little")


# --- lists -----------------------------------------------------------------------------------------------------------


def listed(case: Case, files: dict[str, str], found: Sequence[Row]) -> str:
    """A list as `spindle validate maps` reads it."""
    members = ",".join(str(kib) for kib in case.members_kib)
    md = " ".join(f"{name}={value}" for name, value in files.items() if name != "sectors")
    command = f"sysfs {case.options}" if case.by_sysfs else f"mdadm {case.options}"
    lines = [
        f"# cmd={command}",
        f"# member_data_kib={members}",
        f"# array_bytes={int(files['sectors']) * 512}",
        f"# md: {md}",
    ]
    lines.append("# raid0.default_layout=0")
    lines.append("role,idx,lblk,len,dev,dblk,qexp")
    copies: Counter[int] = Counter()
    for role, number, slot, block, power in sorted(found, key=lambda row: row[2:4]):
        copy = copies[number] if role == "D" else 0
        copies[number] += 1
        lines.append(f"{role},{copy},{number},1,{slot},{block},{power if power >= 0 else ''}")
    return "\n".join(lines) + "\n"


def rows_of(path: Path) -> set[Row]:
    """The rows of a list, block by block."""
    found = set()
    for line in path.read_text().splitlines():
        fields = line.split(",")
        if fields[0] in ("D", "P", "Q"):
            role, _, first, count, slot, start, *power = fields
            for at in range(int(count)):
                number = int(first) + at if role == "D" else -1
                exponent = int(power[0]) if power and power[0] else -1
                found.add((role, number, int(slot), int(start) + at, exponent if role == "D" else -1))
    return found


def bytes_of(path: Path) -> int:
    """Size of the array of a list."""
    return int(re.search(r"^# array_bytes=(\d+)", path.read_text(), re.M)[1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lists", type=Path, help="make the arrays of these lists again")
    parser.add_argument("--random", type=int, default=200, help="other arrays [200]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="keep the lists in this folder")
    asked = parser.parse_args()
    cases = [*(of_lists(asked.lists) if asked.lists else ()), *at_random(asked.random, asked.seed)]
    with tempfile.TemporaryDirectory() as name:
        folder = asked.keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        wrong = 0
        for start in range(0, len(cases), OF_A_BOOT):
            for case, files, found in read_off(cases[start : start + OF_A_BOOT]):
                (folder / f"{case.name}.csv").write_text(listed(case, files, found))
                same = (set(found), int(files["sectors"]) * 512)
                if case.given and same != (rows_of(case.given), bytes_of(case.given)):
                    wrong += 1
                    print(f"{case.name}: the lab's blocks are not those of {case.given}")
        report = json.loads(_core.validate_maps(str(folder)))
    for file in report["files"]:
        if file["mismatch"]:
            print(f"{file['file']} ({file['array']}): {file['mismatch']}")
    given = sum(case.given is not None for case in cases)
    print(f"{given} arrays of lists, {wrong} differ from their list")
    print(f"{report['arrays']} arrays, {report['blocks']} blocks, {report['mismatches']} differ from the models")
    return 1 if wrong or report["mismatches"] else 0


if __name__ == "__main__":
    sys.exit(main())
