"""A PostgreSQL server of our own: in a folder, on a UNIX socket, as an unprivileged user."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path


def tools() -> Path | None:
    """Where initdb and pg_ctl are: Debian keeps them out of the path."""
    here = shutil.which("initdb")
    places = [Path(here).resolve().parent] if here else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").exists() and (place / "pg_ctl").exists()), None)


def user() -> str | None:
    """Whom it runs as: it refuses root."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid()).pw_name
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    return None


def missing() -> str | None:
    """Why there can be none here."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "psycopg is not installed"
    if tools() is None:
        return "initdb and pg_ctl are not installed (package postgresql)"
    return None if user() is not None else "no unprivileged user to run PostgreSQL as"


class Server:
    """Started with a new cluster; `stop(immediate)` and `start` as often as a test wants."""

    def __init__(self) -> None:
        found, name = tools(), user()
        assert found is not None
        assert name is not None
        self._tools, self._user = found, name
        # A short path: the name of a socket has 107 characters at most.
        self.folder = Path(tempfile.mkdtemp(prefix="spindle-pg-"))
        if os.geteuid() == 0:
            shutil.chown(self.folder, name)
        self._made = 0
        self._run("initdb", "-D", self.data, "-U", "spindle", "-A", "trust", "-N", "--encoding=UTF8", "--locale=C")
        self.start()

    @property
    def data(self) -> str:
        return str(self.folder / "data")

    def start(self) -> None:
        options = f"-c listen_addresses= -c unix_socket_directories={self.folder} -c shared_buffers=16MB"
        log = str(self.folder / "log")
        self._run("pg_ctl", "-D", self.data, "-l", log, "-w", "-t", "300", "-o", options, "start")

    def stop(self, mode: str = "fast") -> None:
        """`immediate`: as if the power had gone; it recovers at the next start."""
        self._run("pg_ctl", "-D", self.data, "-w", "-t", "300", "-m", mode, "stop")

    def new_database(self) -> str:
        """URL of an empty one."""
        import psycopg

        self._made += 1
        name = f"store{self._made}"
        with psycopg.connect(self._url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self._url(name)

    def _url(self, database: str) -> str:
        return f"postgresql://spindle@/{database}?host={self.folder}"

    def remove(self) -> None:
        try:
            self.stop("immediate")
        except RuntimeError:
            pass  # a test left it stopped
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, tool: str, *arguments: str) -> None:
        command: Sequence[str] = [str(self._tools / tool), *arguments]
        if os.geteuid() == 0:
            command = ["setpriv", f"--reuid={self._user}", f"--regid={pwd.getpwnam(self._user).pw_gid}",
                       "--clear-groups", *command]  # fmt: skip
        with tempfile.TemporaryFile() as said:  # the server would keep a pipe open
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=self.folder, check=False
            )
            if done.returncode != 0:
                said.seek(0)
                raise RuntimeError(f"{tool}: {said.read().decode(errors='replace')}")
