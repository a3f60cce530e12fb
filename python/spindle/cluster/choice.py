"""Where simulations run, as the caller chose it. Workers carry out what they are sent, so an address must be of this
computer, or both sides must know each other by TLS."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path

from spindle.base.errors import SpindleError
from spindle.run.errors import Usage

MOST_WORKERS = 1024


class ClusterRefused(SpindleError):
    """Connecting would let others on the network run programs here, or read along."""

    exit_code = 3


@dataclass(frozen=True)
class Choice:
    """In this process, in workers of this computer, or on a cluster."""

    workers: int | None = None
    """Worker processes that are started here."""
    cluster: str | None = None
    """Address of a scheduler of Dask."""
    tls_ca_file: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None

    @property
    def is_here(self) -> bool:
        """True if this process computes."""
        return self.workers is None and self.cluster is None

    @property
    def is_encrypted(self) -> bool:
        """True for a cluster whose address asks for TLS."""
        return self.cluster is not None and self.cluster.startswith("tls://")


HERE = Choice()


def choice_of(
    workers: int | None = None,
    cluster: str | None = None,
    tls_ca_file: str | None = None,
    tls_cert: str | None = None,
    tls_key: str | None = None,
) -> Choice:
    """The choice, checked. Raises Usage or ClusterRefused: one line."""
    if workers is not None and cluster is not None:
        raise Usage("`workers=` starts workers here, `cluster=` uses those of a cluster: give one of them")
    if workers is not None and not 1 <= workers <= MOST_WORKERS:
        raise Usage(f"`workers=` {workers}: must be from 1 to {MOST_WORKERS}")
    found = Choice(workers, cluster, tls_ca_file, tls_cert, tls_key)
    if cluster is not None:
        _check_address(cluster)
    files = {"tls_ca_file": tls_ca_file, "tls_cert": tls_cert, "tls_key": tls_key}
    for name, path in files.items():
        if path is None:
            continue
        if not found.is_encrypted:
            raise Usage(f"`{name}=`: is for a cluster with TLS; give `cluster=tls://HOST:PORT`, or leave it out")
        if not Path(path).is_file():
            raise Usage(f"`{name}=` {path}: no such file; give a PEM file")
    return found


_ADDRESS = re.compile(r"(?P<scheme>[a-z]+)://(?P<host>\[[0-9a-fA-F:.]+\]|[^\[\]:/]+):(?P<port>[0-9]{1,5})")


def _check_address(address: str) -> None:
    found = _ADDRESS.fullmatch(address)
    if found is None or found["scheme"] not in ("tcp", "tls") or not 0 < int(found["port"]) < 65536:
        raise Usage(f"`cluster=` {address}: is not the address of a scheduler; write for example tls://HOST:8786")
    if found["scheme"] == "tcp" and not _is_loopback(found["host"].strip("[]")):
        raise ClusterRefused(
            f"`cluster=` {address}: without TLS anybody on the network could send programs to it; start scheduler and "
            f"workers with TLS and give tls://{found['host']}:{found['port']}, or a tunnel's end at 127.0.0.1"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
