"""Kills agent, ssh or `spindle` at random points of a run on two hosts, and looks at what is left.

Each point must leave: no agent after 10 s, no load that begins twice (the device keeps the bytes that it had after the
kill, also after `resume`), the other host with its result if it was not concerned, and a store that is whole. With
`--knobs` the run is a campaign that changes the scheduler of both devices: 10 s later each has its own again.
Hosts are network namespaces of this machine, so root is needed. A point is a stage of the run (its start, connecting,
the load) and a random time after that, so that the kills come while something happens however busy this machine is.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from spindle.store import open_store  # noqa: E402
from tests.conftest import checksum  # noqa: E402
from tests.fleet.conftest import Hosts, Namespace  # noqa: E402
from tests.program import spindle, started  # noqa: E402
from tests.queue import Queue  # noqa: E402
from tests.workbench import Workbench  # noqa: E402

VICTIMS = ("agent", "ssh", "fleet")
STAGES = {"start": 1.0, "connecting": 0.5, "session": 1.0, "load": 1.2}
"""Stage -> longest time after its beginning, s."""
LOAD_S = "1"
PLAN = f"""\
workload = "randomio"

[options]
seconds = {LOAD_S}
workers = 2

[knobs]
scheduler = "mq-deadline"
read_ahead_kb = 512

[trials]
count = 1
repeats = 0
metric = "iops"
"""
OF_ONE_HOST = ("agent", "ssh")
"""Victims whose kill concerns the first host only."""


@dataclass
class Pair:
    """Two hosts, the device of the first one, and a folder with the store of their runs."""

    hosts: tuple[Namespace, Namespace]
    device: str
    folder: Path
    agent: Path
    other: str | None = None
    """Device of the second host, if the run is a campaign that changes settings."""

    @property
    def verb(self) -> str:
        return "campaign" if self.other else "fleet"

    @property
    def means(self) -> list[str]:
        name = self.hosts[0].name
        consent = ["--erase", f"{name}:{self.device}", "--erase-content", name]
        consent += [] if self.other else ["--erase-stacked", name]
        return ["--hosts", "hosts.toml", "--store", "store.db", "--agent", str(self.agent), *consent, "--quiet"]

    def begin(self, name: str) -> subprocess.Popen[str]:
        """Start a run that writes to the device of the first host, and to nothing on the second."""
        first, second = self.hosts
        (self.folder / "hosts.toml").write_text(first.entry(self.device) + second.entry(self.other or "null:1GiB"))
        if self.other:
            (self.folder / "plan.toml").write_text(PLAN)
            means = [*self.means, *self.consents]
            return started("campaign", "run", "plan.toml", "--name", name, *means, cwd=self.folder)
        load = ("fleet", "run", "randomio", "--name", name, "--seconds", LOAD_S, "--workers", "2")
        return started(*load, *self.means, cwd=self.folder)

    @property
    def consents(self) -> list[str]:
        """The consents for the second host."""
        name = self.hosts[1].name
        return ["--erase", f"{name}:{self.other}", "--erase-content", name] if self.other else []

    def settings(self) -> list[dict[str, str]]:
        """Settings of the devices that the run changes."""
        return [Queue(Path(device).name).settings() for device in (self.device, self.other) if device and self.other]

    def has_begun(self, stage: str, process: subprocess.Popen[str], written: int) -> bool:
        """True if a run is that far. `written`: requests that had been written to the device before it."""
        match stage:
            case "start":
                return True
            case "connecting":
                return bool(children(process.pid, "ssh"))
            case "session":
                return agents(self.hosts[0])
        return self.written() > written

    def written(self) -> int:
        """Write requests of the device."""
        return int(Path(f"/sys/block/{Path(self.device).name}/stat").read_text().split()[4])


def children(pid: int, name: str) -> list[int]:
    """Processes of this name below one."""
    found = subprocess.run(["pgrep", "--parent", str(pid), name], capture_output=True, text=True, check=False)
    return [int(line) for line in found.stdout.split()]


def agents(*hosts: Namespace) -> bool:
    return any("session" in line or "agent keep" in line for host in hosts for line in host.processes())


def gone(hosts: tuple[Namespace, ...], seconds: float) -> float | None:
    """Time until no agent runs; None: one is there after `seconds`."""
    begun = time.monotonic()
    while time.monotonic() - begun < seconds:
        if not agents(*hosts):
            return time.monotonic() - begun
        time.sleep(0.1)
    return None


def point(number: int, pair: Pair) -> list[str]:
    """Problems of one kill; empty: none."""
    chance = random.Random(number)
    victim = VICTIMS[number % len(VICTIMS)]
    stage = chance.choice(list(STAGES)[0 if victim == "fleet" else 1 if victim == "ssh" else 2 :])
    at_s = chance.uniform(0, STAGES[stage])
    (first, second), device, folder = pair.hosts, pair.device, pair.folder
    name = f"run{number}"
    written, settings = pair.written(), pair.settings()
    process = pair.begin(name)
    while not pair.has_begun(stage, process, written) and process.poll() is None:
        time.sleep(0.02)
    time.sleep(at_s)
    if victim == "agent":
        first.kill("session")
    elif victim == "ssh":
        for pid in children(process.pid, "ssh")[:1]:
            os.kill(pid, signal.SIGKILL)
    else:
        process.kill()
    problems = []
    process.communicate(timeout=60)
    if (took := gone(pair.hosts, 10.0)) is None:
        problems.append("an agent runs 10 s later")
    if not back(pair, settings, 10.0 - (took or 10.0)):
        problems.append("settings are not back 10 s later")
    before = checksum(device)
    with open_store(folder / "store.db") as store:
        begun = store.campaigns.find(name)
        trials = store.campaigns.trials(name) if begun is not None else []
        claimed = {trial.cell["host"]: trial for trial in trials}
    end = "agents still there" if took is None else f"agents gone after {took:.1f} s"
    if begun is not None:
        if victim in OF_ONE_HOST and claimed[second.name].state != "done":
            problems.append(f"the other host has no result: {claimed[second.name].reason}")
        problems += resumed(name, pair, {host: trial.attempts for host, trial in claimed.items()})
        if claimed[first.name].attempts and checksum(device) != before:
            problems.append("the device was written to again")
        states = ", ".join(f"{trial.state} ({trial.attempts})" for trial in claimed.values())
        end += f", trials {states}"
    print(f"{number:4} {victim:<6} {at_s:4.2f} s after {stage}: {end}; {'; '.join(problems) or 'fine'}", flush=True)
    return problems


def back(pair: Pair, settings: list[dict[str, str]], seconds: float) -> bool:
    """True if the settings are those in time."""
    until = time.monotonic() + seconds
    while pair.settings() != settings:
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True


def resumed(name: str, pair: Pair, claimed: dict[str, int]) -> list[str]:
    """Problems after `fleet resume`. `claimed`: host -> attempts before it."""
    problems = []
    done = spindle(pair.verb, "resume", name, *pair.means, *pair.consents, cwd=pair.folder)
    if "Traceback" in done.err:
        problems.append("a traceback")
    with open_store(pair.folder / "store.db") as store:
        for trial in store.campaigns.trials(name):
            if trial.attempts > max(1, claimed[trial.cell["host"]]):
                problems.append(f"{trial.cell['host']} began {trial.attempts} times")
            if trial.state == "running":
                problems.append(f"{trial.cell['host']} is left running")
        if store.check().problems:
            problems.append("the store is damaged")
    return problems


@contextmanager
def pairs(number: int, agent: Path, knobs: bool) -> Iterator[list[Pair]]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="spindle-fleet-")))
        hosts = Hosts(folder)
        stack.callback(hosts.remove)
        bench = Workbench(folder)
        stack.enter_context(bench.undo)
        made = []
        for place in range(number):
            own = folder / f"pair{place}"
            own.mkdir()
            made.append(
                Pair(
                    (hosts.make(f"alpha{place}"), hosts.make(f"beta{place}")),
                    bench.loop(),
                    own,
                    agent,
                    bench.loop() if knobs else None,
                )
            )
        yield made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pairs", type=int, default=3, help="pairs of hosts at the same time")
    parser.add_argument("--knobs", action="store_true", help="a campaign that changes settings of both hosts")
    asked = parser.parse_args()
    agent = ROOT / "build" / "spindle-agent"
    if os.geteuid() != 0 or not agent.is_file():
        print("bench-fleet needs root and build/spindle-agent (make agent)", file=sys.stderr)
        return 2
    found: Counter[str] = Counter()
    free: SimpleQueue[Pair] = SimpleQueue()

    def with_pair(number: int) -> list[str]:
        pair = free.get()
        try:
            return point(number, pair)
        finally:
            free.put(pair)

    with pairs(asked.pairs, agent, asked.knobs) as made, ThreadPoolExecutor(asked.pairs) as pool:
        for pair in made:
            free.put(pair)
        for problems in pool.map(with_pair, range(asked.seed, asked.seed + asked.points)):
            found.update(set(problems))
    print(f"{asked.points} kills; problems: {dict(found) or 'none'}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
