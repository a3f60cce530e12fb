"""Kills agent, ssh or `spindle fleet` at random points of a run on two hosts, and looks at what is left.

Each point must leave: no agent after 10 s, no load that begins twice (the device keeps the bytes that it had after the
kill, also after `fleet resume`), the other host with its result if it was not concerned, and a store that is whole.
Hosts are network namespaces of this machine, so root is needed.
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
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from spindle.store import open_store  # noqa: E402
from tests.conftest import checksum  # noqa: E402
from tests.fleet.conftest import Hosts, Namespace  # noqa: E402
from tests.program import spindle, started  # noqa: E402
from tests.workbench import Workbench  # noqa: E402

VICTIMS = ("agent", "ssh", "fleet")
LONGEST_S = 6.0
"""Points are spread over connecting, preparing, the load of 2 s, and collecting."""


def children(pid: int, name: str) -> list[int]:
    """Processes of this name below one."""
    found = subprocess.run(["pgrep", "--parent", str(pid), name], capture_output=True, text=True, check=False)
    return [int(line) for line in found.stdout.split()]


def agents(*hosts: Namespace) -> bool:
    return any("session" in line for host in hosts for line in host.processes())


def gone(hosts: tuple[Namespace, ...], seconds: float) -> float | None:
    """Time until no agent runs; None: one is there after `seconds`."""
    begun = time.monotonic()
    while time.monotonic() - begun < seconds:
        if not agents(*hosts):
            return time.monotonic() - begun
        time.sleep(0.1)
    return None


def point(number: int, folder: Path, hosts: tuple[Namespace, Namespace], device: str, agent: Path) -> list[str]:
    """Problems of one kill; empty: none."""
    chance = random.Random(number)
    victim, at_s = VICTIMS[number % len(VICTIMS)], chance.uniform(0, LONGEST_S)
    alpha, beta = hosts
    (folder / "hosts.toml").write_text(alpha.entry(device) + beta.entry("null:1GiB"))
    consent = ["--erase", f"alpha:{device}", "--erase-content", "alpha", "--erase-stacked", "alpha"]
    means = ["--hosts", "hosts.toml", "--store", "store.db", "--agent", str(agent), *consent, "--quiet"]
    name = f"run{number}"
    process = started(
        "fleet", "run", "randomio", "--name", name, "--seconds", "2", "--workers", "2", *means, cwd=folder
    )
    time.sleep(at_s)
    if victim == "agent":
        alpha.kill("session")
    elif victim == "ssh":
        for pid in children(process.pid, "ssh")[:1]:
            os.kill(pid, signal.SIGKILL)
    else:
        process.kill()
    problems = []
    process.communicate(timeout=60)
    if (took := gone(hosts, 10.0)) is None:
        problems.append("an agent runs 10 s later")
    before = checksum(device)
    with open_store(folder / "store.db") as store:
        begun = store.campaigns.find(name)
        trials = store.campaigns.trials(name) if begun is not None else []
        claimed = {trial.cell["host"]: trial.attempts for trial in trials}
    if begun is None:
        return problems
    done = spindle("fleet", "resume", name, *means, cwd=folder)
    if "Traceback" in done.err:
        problems.append("a traceback")
    with open_store(folder / "store.db") as store:
        for trial in store.campaigns.trials(name):
            if trial.attempts > max(1, claimed[trial.cell["host"]]):
                problems.append(f"{trial.cell['host']} began {trial.attempts} times")
            if trial.state == "running":
                problems.append(f"{trial.cell['host']} is left running")
        if store.check().problems:
            problems.append("the store is damaged")
    if claimed.get("alpha") and checksum(device) != before:
        problems.append("the device was written to again")
    end = "agents still there" if took is None else f"agents gone after {took:.1f} s"
    print(f"{number:4} {victim:<6} at {at_s:4.2f} s: {end}; {'; '.join(problems) or 'fine'}", flush=True)
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    agent = ROOT / "build" / "spindle-agent"
    if os.geteuid() != 0 or not agent.is_file():
        print("bench-fleet needs root and build/spindle-agent (make agent)", file=sys.stderr)
        return 2
    found: Counter[str] = Counter()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="spindle-fleet-")))
        hosts = Hosts(folder)
        stack.callback(hosts.remove)
        pair = hosts.make("alpha"), hosts.make("beta")
        bench = Workbench(folder)
        stack.enter_context(bench.undo)
        device = bench.loop()
        for number in range(asked.seed, asked.seed + asked.points):
            found.update(set(point(number, folder, pair, device, agent)))
    print(f"{asked.points} kills; problems: {dict(found) or 'none'}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
