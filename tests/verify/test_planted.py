"""500 faults planted in the backing file of a loop device between write and read: each is found and named."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spindle.host.outputs import Output
from spindle.library.kinds import KINDS
from spindle.run.consent import Consent
from spindle.run.engine import LoadPart
from spindle.run.resolve import resolve_text
from spindle.run.targets import Opening, parse
from spindle.run.verification import keep_state
from spindle.run.watch import SilentWatch
from tests.workbench import Workbench

MIB = 1 << 20
BLOCK = 4096
SIZE = 32 * MIB
FAULTS = 500
WORKLOAD = f"""
verify = true
write_fraction = 1
pattern = "sequential"
depth = 4
bytes = {SIZE}
"""


class Planter:
    """Changes blocks of a file, each at most once, and notes what they have become."""

    def __init__(self, path: Path, older: bytes, seed: int) -> None:
        self.path = path
        self.older = older
        self.now = path.read_bytes()
        self.random = random.Random(seed)
        self.free = list(range(SIZE // BLOCK))
        self.random.shuffle(self.free)
        self.planted: dict[int, str] = {}
        """Offset of each wrong block -> its kind."""

    def plant(self) -> None:
        kinds = [self.flip, self.stale, self.torn, self.swap, self.zero, self.zero_part]
        with self.path.open("r+b") as self.file:
            while len(self.planted) < FAULTS:
                self.random.choice(kinds)()

    def take(self) -> int:
        return self.free.pop() * BLOCK

    def write(self, at: int, data: bytes) -> None:
        self.file.seek(at)
        self.file.write(data)

    def flip(self) -> None:
        at, bit = self.take(), self.random.randrange(BLOCK * 8)
        self.write(at + bit // 8, bytes([self.now[at + bit // 8] ^ 1 << bit % 8]))
        self.planted[at] = "corrupt"

    def stale(self) -> None:
        at = self.take()
        self.write(at, self.older[at : at + BLOCK])
        self.planted[at] = "stale"

    def torn(self) -> None:
        at = self.take()
        sectors = self.random.sample(range(8), self.random.randint(1, 7))
        for sector in sectors:
            part = at + 512 * sector
            self.write(part, self.older[part : part + 512])
        self.planted[at] = "torn"

    def swap(self) -> None:
        one, other = self.take(), self.take()
        self.write(one, self.now[other : other + BLOCK])
        self.write(other, self.now[one : one + BLOCK])
        self.planted[one] = self.planted[other] = "misplaced"

    def zero(self) -> None:
        at = self.take()
        self.write(at, bytes(BLOCK))
        self.planted[at] = "zeroed"

    def zero_part(self) -> None:
        at, first = self.take(), self.random.randrange(8)
        self.write(at + 512 * first, bytes(512 * self.random.randint(1, 8 - first)))
        self.planted[at] = "zeroed"


def written_twice(device: str, image: Path) -> bytes:
    """Writes the whole device two times in one run and keeps the state; what the first time left."""
    resolved = resolve_text(WORKLOAD, "test", "twice")
    consent = Consent(erase=device, erase_stacked=True)
    with parse(device).open(resolved, SilentWatch(), Opening(consent=consent)) as opened:
        opened.measure(resolved, part=LoadPart(read_back=False))
        older = image.read_bytes()
        seen = opened.measure(resolved).record.figures.verification
        assert seen is not None
        assert seen.wrong == 0
        assert opened.written is not None
        keep_state(opened.written, device, Output(Path("state"), KINDS["state"], "--verify-state"))
    return older


@pytest.mark.parametrize("seed", [1, 2])
def test_every_planted_fault_is_found_and_named_and_nothing_else_is(
    bench: Workbench, invoke: Callable[..., Any], seed: int
) -> None:
    image = bench.image(SIZE)
    device = bench.loop(image)
    older = written_twice(device, image)
    clean = invoke("verify", "--state", "state", "--json")
    assert (clean.status, clean.json["read_back"]["found"]["faults"]) == (0, [])
    assert clean.json["read_back"]["expected"] == SIZE // BLOCK

    planter = Planter(image, older, seed)
    planter.plant()
    done = invoke("verify", "--state", "state", "--json")
    assert done.status == 1
    faults = done.json["read_back"]["found"]["faults"]
    assert {fault["kind"]: fault["blocks"] for fault in faults} == Counter(planter.planted.values())
    for fault in faults:
        places = sorted(at for at, kind in planter.planted.items() if kind == fault["kind"])
        assert [place["offset"] for place in fault["first"]] == places[:10]
