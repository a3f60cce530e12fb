"""Workers of `--workers` and `--cluster`.

Four measurements:
- `speed`: the same simulations on one worker and on two, in pairs.
- `overhead`: time that one worker thread is not computing, as a share of its chunks.
- `sleep`: 64 worker threads that sleep: the share of the time for which they are busy, from the first chunk to the
  last.
- `kills`: `spindle design` whose worker, scheduler or client is killed (SIGKILL) at random points: the same bytes.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import distributed

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # tests/

from spindle import _core
from spindle.cluster.choice import choice_of
from spindle.cluster.place import Place
from spindle.cluster.sharing import connected, opened
from spindle.cluster.simulation import ONE_INTERVAL_NS, Simulation
from spindle.cluster.workers import Dispatcher, DoneChunk
from spindle.run.resolve import resolve
from spindle.run.watch import SilentWatch
from tests.design.test_design import NEED, PRICES
from tests.program import of_session

THREADS = 64
VICTIMS = ("worker", "scheduler", "client")
DEADLINE_S = 300.0


def sweep(count: int) -> list[Simulation]:
    """Short simulations: some thousand requests of an array each."""
    machines = [_core.machine_text(name) for name in ("one-sata", "six-sata-raid10")]
    return [
        Simulation(
            machines[seed % 2],
            resolve("randomio", [("seconds", "20"), ("seed", str(seed))]).core.to_json(),
            ONE_INTERVAL_NS,
            kind="sweep",
        )
        for seed in range(count)
    ]


def speed(pairs: int, count: int) -> float:
    """The median of the ratios of pairs."""
    pieces, watch = sweep(count), SilentWatch()

    def timed(place: Place) -> tuple[float, list[str]]:
        begin = time.perf_counter()
        figures = place.figures(pieces, watch, "")
        return time.perf_counter() - begin, figures

    ratios = []
    with connected(choice_of(workers=1), watch) as one, connected(choice_of(workers=2), watch) as two:
        for number in range(pairs):
            took: dict[int, float] = {}
            figures: dict[int, list[str]] = {}
            for workers in ((1, 2), (2, 1))[number % 2]:
                with tempfile.TemporaryDirectory() as cache, _with(one if workers == 1 else two, cache) as place:
                    took[workers], figures[workers] = timed(place)
            if figures[1] != figures[2]:
                sys.exit("one worker and two give different figures")
            ratios.append(took[1] / took[2])
            print(
                f"{count} simulations: 1 worker {took[1]:.1f} s, 2 workers {took[2]:.1f} s, {ratios[-1]:.2f} times; "
                f"load {os.getloadavg()[0]:.0f}",
                flush=True,
            )
    return statistics.median(ratios)


@contextmanager
def _with(client: Any, cache: str) -> Iterator[Place]:
    """A place that uses a client which is there."""
    from spindle.cluster import sharing

    @contextmanager
    def there(*_: object) -> Iterator[Any]:
        yield client

    before, os.environ["XDG_CACHE_HOME"] = sharing.connected, cache
    sharing.connected = there
    try:
        with opened(choice_of(workers=1), SilentWatch()) as place:
            yield place
    finally:
        sharing.connected = before


def nap(piece: str) -> str:
    """A piece that sleeps: `number seconds`."""
    time.sleep(float(piece.split()[1]))
    return piece


class Nothing:
    """Keeps nothing."""

    def find(self, keys: Sequence[str]) -> dict[str, str]:
        return {}

    def add(self, results: dict[str, str]) -> None:
        pass

    def forget(self, keys: set[str]) -> None:
        pass

    def close(self) -> None:
        pass


def slept(processes: int, threads: int, pieces: Sequence[str]) -> tuple[float, list[DoneChunk]]:
    """Seconds that the pieces take on so many processes of so many threads, and the chunks."""
    security = distributed.Security.temporary()
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with (
        distributed.LocalCluster(
            n_workers=processes, threads_per_worker=threads, host="127.0.0.1", protocol="tls://", security=security,
            dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster, security=security, set_as_default=False) as client,
    ):  # fmt: skip
        client.wait_for_workers(processes)
        dispatcher: Dispatcher[str, str] = Dispatcher(client, nap, str, lambda piece: "", Nothing)
        for future in dispatcher.begin([f"{-number} 0.01" for number in range(1, 3 * processes * threads)]):
            future.result()  # the time of a piece is known
        before = len(dispatcher.chunks)
        begin = time.perf_counter()
        for future in dispatcher.begin(pieces):
            future.result()
        took = time.perf_counter() - begin
        chunks = dispatcher.chunks[before:]
        dispatcher.end(is_complete=True)
    return took, chunks


def overhead() -> float:
    """One thread: time between chunks, as a share of the chunks."""
    took, chunks = slept(1, 1, [f"{number} 0.01" for number in range(4000)])
    busy = sum(one.seconds for one in chunks)
    share = (took - busy) / busy
    between_ms = 1e3 * (took - busy) / len(chunks)
    print(f"one thread: {len(chunks)} chunks of {busy / len(chunks):.2f} s, {between_ms:.1f} ms between them")
    return share


def sleep(seconds: float) -> float:
    """Share of the time for which sleeping threads are busy."""
    took, chunks = slept(4, THREADS // 4, [f"{number} 0.01" for number in range(round(seconds * THREADS / 0.01))])
    busy = sum(one.seconds for one in chunks)
    first, last = min(one.at_s - one.seconds for one in chunks), max(one.at_s for one in chunks)
    print(
        f"{THREADS} threads: {len(chunks)} chunks in {last - first:.1f} s, {took - last + first:.1f} s before the first"
    )
    return busy / (THREADS * (last - first))


# --- kills ---


def begun(folder: Path, *options: str) -> subprocess.Popen[str]:
    """`spindle design` as the leader of a session."""
    command = [
        sys.executable,
        "-m",
        "spindle",
        "design",
        "need.toml",
        "--prices",
        "prices.csv",
        "--json",
        "-q",
        *options,
    ]
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env=os.environ | {"XDG_CACHE_HOME": str(folder / "cache")},
    )  # fmt: skip


def workers_of(leader: int) -> list[int]:
    """Worker processes of a client."""
    found = []
    for number in of_session(leader):
        with suppress(OSError):
            if b"spawn_main" in Path(f"/proc/{number}/cmdline").read_bytes():
                found.append(number)
    return found


def _is_whole(about: Path) -> bool:
    return about.exists() and about.read_text().rstrip().endswith("}")


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A scheduler and two workers as an administrator starts them."""
    about = folder / f"scheduler-{time.monotonic_ns()}.json"
    dask, said = [sys.executable, "-m", "dask"], {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    own = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(about)]
    made = [subprocess.Popen([*dask, "scheduler", *own], **said)]
    try:
        until = time.monotonic() + 60
        while not _is_whole(about) and time.monotonic() < until:
            time.sleep(0.1)
        options = ["--no-nanny", "--no-dashboard", "--nthreads", "1", "--scheduler-file", str(about)]
        made += [subprocess.Popen([*dask, "worker", *options], **said) for _ in range(2)]
        yield json.loads(about.read_text())["address"], made[0]
    finally:
        for one in made:
            one.kill()
            one.wait()


def finished(client: subprocess.Popen[str]) -> tuple[int, str]:
    """Status and output of a client; none of its processes is left."""
    out, _ = client.communicate(timeout=DEADLINE_S)
    until = time.monotonic() + 10
    while (left := of_session(client.pid)) and time.monotonic() < until:
        time.sleep(0.05)
    if left:
        sys.exit(f"processes {left} go on after their client")
    return client.returncode, out


def killed(victim: str, folder: Path, after_s: float) -> tuple[bool, str]:
    """Kill once, then go on to the end: True if the kill came in time, and the answer."""
    if victim == "scheduler":
        with cluster(folder) as (address, scheduler):
            client = begun(folder, "--cluster", address)
            time.sleep(after_s)
            hit = client.poll() is None
            scheduler.send_signal(signal.SIGKILL)
            status, out = finished(client)
        if status == 0:
            return hit, out
        with cluster(folder) as (address, _):
            return hit, finished(begun(folder, "--cluster", address))[1]
    client = begun(folder, "--workers", "2")
    time.sleep(after_s)
    targets = [client.pid] if victim == "client" else workers_of(client.pid)
    hit = bool(targets) and client.poll() is None
    if hit:
        with suppress(ProcessLookupError):
            os.kill(random.choice(targets), signal.SIGKILL)
    status, out = finished(client)
    return hit, out if status == 0 else finished(begun(folder, "--workers", "2"))[1]


def kills(count: int, seed: int) -> None:
    """Kills of each victim in turn at random points; the answer must be the same each time."""
    random.seed(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "need.toml").write_text(NEED)
        (folder / "prices.csv").write_text(PRICES)
        whole = finished(begun(folder))[1]
        begin = time.perf_counter()
        if finished(begun(folder, "--workers", "2"))[1] != whole:
            sys.exit("workers give another answer")
        usual_s = time.perf_counter() - begin
        hits = dict.fromkeys(VICTIMS, 0)
        number = 0
        while sum(hits.values()) < count:
            victim = VICTIMS[number % len(VICTIMS)]
            number += 1
            after_s = random.uniform(0.0, usual_s)
            hit, out = killed(victim, folder, after_s)
            if out != whole:
                sys.exit(f"{victim} killed after {after_s:.2f} s: another answer")
            hits[victim] += hit
            print(
                f"{victim} killed after {after_s:.2f} s: the same bytes{'' if hit else ' (it had ended)'}", flush=True
            )
        print(f"{sum(hits.values())} kills ({', '.join(f'{hit} {who}s' for who, hit in hits.items())}): the same bytes")


def main() -> None:
    """Run what was asked for."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ("speed", "overhead", "sleep", "kills")
    arguments.add_argument("which", choices=[*names, "all"], nargs="*", default="all")
    arguments.add_argument("--pairs", type=int, default=5)
    arguments.add_argument("--simulations", type=int, default=2000, help="of `speed`")
    arguments.add_argument("--kills", type=int, default=30)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    which = names if "all" in given.which else given.which
    missed = []

    def judged(name: str, value: float, holds: Callable[[float], bool], goal: str) -> None:
        print(f"{name}: {value:.3g} ({goal})", flush=True)
        if not holds(value):
            missed.append(name)

    if "speed" in which:
        judged(
            "speed-up", speed(given.pairs, given.simulations), lambda value: value >= 1.8, "goal: 1.8 on 2 free cores"
        )
    if "overhead" in which:
        judged("overhead", overhead(), lambda value: value < 0.01, "goal: below 0.01 of a chunk")
    if "sleep" in which:
        judged("busy", sleep(30), lambda value: value >= 0.9, "goal: 0.9")
    if "kills" in which:
        kills(given.kills, given.seed)
    if missed:
        sys.exit(f"missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
