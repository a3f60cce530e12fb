"""Hosts of a fleet: network namespaces of this machine, each with an sshd of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.agent.conftest import binary  # noqa: F401
from tests.workbench import PATH

SSHD = "/usr/sbin/sshd"


@dataclass
class Namespace:
    """One namespace and its sshd."""

    name: str
    address: str
    options: list[str]
    folder: Path
    sshd: subprocess.Popen[bytes]

    def entry(self, target: str, **keys: str) -> str:
        """Its table in the file of hosts."""
        lines = [f'name = "{self.name}"', f'ssh = "root@{self.address}"', f"options = {self.options}"]
        lines += [f'target = "{target}"', *(f'{key} = "{value}"' for key, value in keys.items())]
        return "\n".join(["[[host]]", *lines, ""])

    def processes(self) -> list[str]:
        """Command lines in its namespace, without sshd's own."""
        found = subprocess.run(["ip", "netns", "pids", self.namespace], capture_output=True, text=True, check=True)
        lines = []
        for number in found.stdout.split():
            try:
                lines.append(Path(f"/proc/{number}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip())
            except OSError:
                continue
        return [line for line in lines if line and "sshd" not in line]

    def kill(self, what: str) -> None:
        """kill -9 of every process in it whose command line has this."""
        found = subprocess.run(["ip", "netns", "pids", self.namespace], capture_output=True, text=True, check=True)
        for number in found.stdout.split():
            try:
                if what.encode() in Path(f"/proc/{number}/cmdline").read_bytes().replace(b"\0", b" "):
                    os.kill(int(number), 9)
            except OSError:
                continue

    @property
    def namespace(self) -> str:
        return f"spindle-{os.getpid()}-{self.name}"


@dataclass
class Hosts:
    """Makes hosts, and removes them."""

    folder: Path
    made: list[Namespace] = field(default_factory=list)

    def make(self, name: str) -> Namespace:
        number = len(self.made) + 1
        folder = self.folder / name
        (folder / "cache").mkdir(parents=True)
        key, host_key = self.folder / "key", folder / "host_key"
        if not key.exists():
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", host_key)
        address, ours = addresses(number)
        namespace, link = f"spindle-{os.getpid()}-{name}", f"spin{os.getpid()}.{number}"
        run("ip", "netns", "add", namespace)
        run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", namespace)
        run("ip", "addr", "add", f"{ours}/30", "dev", link)
        run("ip", "link", "set", link, "up")
        run("ip", "-n", namespace, "addr", "add", f"{address}/30", "dev", "eth0")
        run("ip", "-n", namespace, "link", "set", "eth0", "up")
        Path("/run/sshd").mkdir(exist_ok=True)
        config = folder / "sshd_config"
        config.write_text(
            f"ListenAddress {address}\nHostKey {host_key}\nAuthorizedKeysFile {key}.pub\nStrictModes no\n"
            f"PermitRootLogin yes\nUsePAM no\nPidFile none\n"
            f"SetEnv XDG_CACHE_HOME={folder / 'cache'} XDG_STATE_HOME={folder / 'state'}\n"
        )
        sshd = subprocess.Popen(
            ["ip", "netns", "exec", namespace, SSHD, "-D", "-f", str(config)], env={**os.environ, "PATH": PATH}
        )
        options = ["-F", "none", "-i", str(key), "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"]
        host = Namespace(name, address, [*options, "-o", "StrictHostKeyChecking=no"], folder, sshd)
        self.made.append(host)
        self._wait_for(host)
        return host

    def _wait_for(self, host: Namespace) -> None:
        for _ in range(100):
            done = subprocess.run(
                ["ssh", *host.options, "-o", "BatchMode=yes", f"root@{host.address}", "true"],
                capture_output=True, check=False,
            )  # fmt: skip
            if done.returncode == 0:
                return
            time.sleep(0.1)
        raise RuntimeError(f"{host.name}: sshd does not answer: {done.stderr.decode()}")

    def remove(self) -> None:
        for host in self.made:
            pids = subprocess.run(["ip", "netns", "pids", host.namespace], capture_output=True, text=True, check=False)
            for number in pids.stdout.split():
                subprocess.run(["kill", "-9", number], capture_output=True, check=False)
            host.sshd.wait()
            subprocess.run(["ip", "netns", "del", host.namespace], check=False)


def addresses(number: int) -> tuple[str, str]:
    """The host's and ours, in a network of four addresses among those for benchmarks (RFC 2544): another process that
    makes hosts at the same time has others."""
    place = (os.getpid() * 8 + number) % (1 << 15) * 4
    first = (198 << 24) + (18 << 16) + place
    return tuple(".".join(str((first + one) >> shift & 255) for shift in (24, 16, 8, 0)) for one in (2, 1))  # type: ignore[return-value]


def run(*command: str | Path) -> None:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr.strip()}")


def nothing_runs(*hosts: Namespace) -> bool:
    """True if no agent has a session there, and no keeper of its settings waits."""
    words = ("session", "spindle-agent keep")
    return not any(word in line for host in hosts for line in host.processes() for word in words)


@pytest.fixture(scope="session")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    if os.geteuid() != 0:
        pytest.skip("needs root: network namespaces")
    for tool in (SSHD, "ssh", "ip"):
        if shutil.which(tool, path=PATH) is None:
            pytest.skip(f"{tool} is not installed")
    found = Hosts(tmp_path_factory.mktemp("fleet"))
    try:
        yield found
    finally:
        found.remove()


@pytest.fixture(scope="session")
def two(hosts: Hosts) -> tuple[Namespace, Namespace]:
    """Two hosts; tests share them."""
    return hosts.make("alpha"), hosts.make("beta")
