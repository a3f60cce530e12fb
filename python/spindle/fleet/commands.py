"""Command lines of other programs: ssh's, the shell's on a host, spindle-agent's."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Sequence

from .hosts import Consent, Host

SSH = (
    "ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=2",
    "-o", "ServerAliveCountMax=3",
)  # fmt: skip
DIGITS = 16
"""Digits of the SHA-256 that names a copied agent."""
WANT = b"want\n"
"""The host has no such agent yet."""
COPY = """\
f=${{XDG_CACHE_HOME:-$HOME/.cache}}/spindle/agent-{digest}
if [ ! -x "$f" ]; then
  echo want; mkdir -p "${{f%/*}}" && head -c {size} >"$f.$$" \\
&& [ "$(sha256sum <"$f.$$" | head -c {length})" = {digest} ] \\
&& chmod 700 "$f.$$" && mv "$f.$$" "$f" || {{ rm -f "$f.$$"; echo "spindle-agent cannot be copied" >&2; exit 1; }}
fi
exec "$f" session"""
"""The shell's commands on a host: this machine's agent, copied once, named after its content."""


def of_ssh(host: Host, agent: bytes) -> list[str]:
    """Start a session on a host. `agent`: the binary, for a host without one."""
    if host.agent is not None:
        command = f"exec {shlex.quote(host.agent)} session"
    else:
        digest = hashlib.sha256(agent).hexdigest()[:DIGITS]
        command = COPY.format(digest=digest, length=DIGITS, size=len(agent))
    return [*SSH, *host.options, "--", host.ssh, f"sh -c {shlex.quote(command)}"]


def of_run(host: Host, consent: Consent, overrides: Sequence[tuple[str, str]]) -> list[str]:
    """Options of `spindle-agent run`, without workload and output."""
    return [
        *("--target", host.target),
        *(["--create", host.create] if host.create is not None else []),
        *(["--erase", consent.erase] if consent.erase is not None else []),
        *(["--erase-content"] if consent.content else []),
        *(["--erase-stacked"] if consent.stacked else []),
        *(word for key, value in overrides for word in ("--set", f"{key}={value}")),
    ]
