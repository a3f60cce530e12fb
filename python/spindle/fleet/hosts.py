"""The file of hosts (TOML): where each is, and what is measured there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spindle import _core
from spindle.base.words import listed
from spindle.run.document import Table, parse
from spindle.run.errors import Usage
from spindle.run.resolve import read_text
from spindle.run.targets import null

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""A host's name: a word in tables, in a selection, and before the colon of a consent."""
MOST = 10_000
_OPTIONS = re.compile(
    r"-[46AaCfGgKkMNnqsTtVvXxYy]*(?:(?P<takes>[BbcDEeFIiJLlmOoPpQRSWw])(?P<value>.*))?(?<!^-)", re.DOTALL
)
"""One word of options (ssh(1)): flags, and perhaps one that takes a value, in this word or in the next one."""


@dataclass(frozen=True, kw_only=True)
class Host:
    """One host, and what is measured there."""

    name: str
    ssh: str
    """Destination of ssh."""
    options: tuple[str, ...] = ()
    """Options of ssh."""
    target: str
    create: str | None = None
    """Size of the test file that is made in the folder `target`."""
    agent: str | None = None
    """spindle-agent on the host; None: this machine's is copied there."""


@dataclass(frozen=True, kw_only=True)
class Consent:
    """Data of one host that may be lost."""

    erase: str | None = None
    content: bool = False
    stacked: bool = False


def read(path: Path) -> list[Host]:
    """The hosts of a file, in its order. Raises Usage: one line with place."""
    text = read_text(path, "hosts", "a file of hosts (see `spindle help fleet`)")
    return parsed(text, str(path))


def parsed(text: str, source: str) -> list[Host]:
    """The hosts of a text. Raises Usage with the line."""
    document = Table(parse(text, source), (), text, source)
    defaults = document.table("defaults")
    common = _keys(defaults)
    if "name" in common or "ssh" in common:
        defaults.fail("name" if "name" in common else "ssh", "belongs to one host, not to all")
    defaults.finish()
    tables = document.tables("host")
    document.finish()
    if not tables:
        raise Usage(f"{source}: no hosts; write [[host]], then name, ssh and target of each")
    if len(tables) > MOST:
        raise Usage(f"{source}: {len(tables)} hosts; {MOST} at most")
    found: dict[str, Host] = {}
    for table in tables:
        one = _host(table, common)
        if one.name in found:
            table.fail("name", f"{one.name} is there twice; each host has its own name")
        if twin := next((other for other in found.values() if _is_same_storage(one, other)), None):
            table.fail("target", f"{one.target} is measured as {twin.name} already: both would load it at once")
        found[one.name] = one
    return list(found.values())


def _is_same_storage(one: Host, other: Host) -> bool:
    """True if both have the same target. Several test files may be in one folder."""
    if one.create is not None or null.is_named(one.target):
        return False
    return (one.ssh, one.options, one.target) == (other.ssh, other.options, other.target)


def _keys(table: Table) -> dict[str, str | tuple[str, ...]]:
    words = {key: table.word(key) for key in ("name", "ssh", "target", "create", "agent")}
    for key, value in words.items():
        if value is not None and not value.strip():
            table.fail(key, "is empty; leave it out, or say which")
    found: dict[str, str | tuple[str, ...]] = {key: value for key, value in words.items() if value is not None}
    if options := table.words("options"):
        found["options"] = tuple(options)
    if isinstance(size := found.get("create"), str):
        try:
            if not _core.parse_size(size):
                table.fail("create", "must be above 0")
        except _core.ConfigError as error:
            table.fail("create", str(error))
    return found


def _host(table: Table, common: Mapping[str, str | tuple[str, ...]]) -> Host:
    keys = dict(common) | _keys(table)
    table.finish()
    name = str(keys.get("name") or keys.get("ssh") or "")
    if not name:
        table.fail(None, 'a host without a name; write name = "db1"')
    if not NAME.fullmatch(name):
        beside = "" if keys.get("name") else "; give the host a `name` beside its address"
        key = "name" if keys.get("name") else "ssh"
        table.fail(key, f"`{name}` is not a name: letters, digits, `.`, `_` and `-`, at most 64{beside}")
    destination = re.sub(r"\[([0-9A-Fa-f:.]+(?:%\w+)?)\]$", r"\1", str(keys.get("ssh") or name))  # [::1] is of URLs
    if destination.startswith("-") or any(char.isspace() for char in destination):
        table.fail("ssh", f"`{destination}` is not a destination of ssh; write user@host")
    if "target" not in keys:
        table.fail(None, f'{name} has no target; write target = "/dev/sdb", or a folder with create = "4GiB"')
    options = keys.get("options", ())
    _check_options(table, options if isinstance(options, tuple) else (options,))
    return Host(
        name=name,
        ssh=destination,
        options=options if isinstance(options, tuple) else (options,),
        target=str(keys["target"]),
        create=str(keys["create"]) if "create" in keys else None,
        agent=str(keys["agent"]) if "agent" in keys else None,
    )


def _check_options(table: Table, options: Sequence[str]) -> None:
    """Refuse what ssh would take as a destination, or as a command."""
    words = iter(options)
    for word in words:
        found = _OPTIONS.fullmatch(word)
        if found is None:
            table.fail("options", f"`{word}` is no option of ssh; the destination is `ssh`, a value follows its option")
        if found["takes"] and not found["value"] and next(words, None) is None:
            table.fail("options", f"{word}: its value is missing")


def check_consent(host: Host, consent: Consent | None, writes: bool) -> None:
    """Raise Usage unless the consent is for the host's target, and is given if a load that writes needs it. Called
    before any host is asked."""
    if consent is not None and consent.erase != host.target:
        raise Usage(f"`erase=` {host.name}:{consent.erase}: its target is {host.target}; name that")
    if consent is not None and host.create is not None:
        raise Usage(f"`erase=` {host.name}:{consent.erase}: it makes a test file of its own; leave the consent out")
    if consent is None and writes and host.create is None and not null.is_named(host.target):
        raise Usage(
            f"{host.name}: the workload writes to {host.target}; agree with `erase=` {host.name}:{host.target}, "
            "or let the host make a test file (create)"
        )


def consents(
    hosts: Sequence[Host], erase: Sequence[str], content: Sequence[str], stacked: Sequence[str]
) -> dict[str, Consent]:
    """Who agreed to what. `erase`: HOST:DEVICE; `content`, `stacked`: HOST. Raises Usage.

    A consent is given on the command line, never in the file: a file stays, and the next run would find it.
    """
    known = {host.name: host for host in hosts}

    def host_of(name: str, key: str) -> str:
        if name not in known:
            raise Usage(f"`{key}=` {name}: no such host; there are {listed(list(known)[:8])}")
        return name

    found: dict[str, Consent] = {}
    for word in erase:
        name, colon, device = word.partition(":")
        if not colon or not device:
            raise Usage(f"`erase=` {word}: write HOST:DEVICE, for example {hosts[0].name}:/dev/sdb")
        host_of(name, "erase")
        if name in found:
            raise Usage(f"`erase=` {word}: {name} has a consent already; a host has one target")
        found[name] = Consent(erase=device, content=name in set(content), stacked=name in set(stacked))
    for key, names in (("erase_content", content), ("erase_stacked", stacked)):
        for name in names:
            if host_of(name, key) not in found:
                raise Usage(f"`{key}=` {name}: goes with `erase=` {name}:DEVICE")
    return found
