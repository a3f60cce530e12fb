"""`spindle.serve_drive`: a modelled drive as a disk in real time."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from spindle import _core
from spindle.host.signals import Stopped, held_back, unwinding
from spindle.library.arguments import public
from spindle.library.options import bytes_of, within
from spindle.library.shown import Printable
from spindle.report.terminal.serve import page
from spindle.report.terminal.style import Style
from spindle.run.errors import Usage
from spindle.serve.figures import ServeFigures
from spindle.serve.model import modelled
from spindle.serve.place import Place, nbd_place
from spindle.serve.session import Session

SPIN = "50us"
"""Default of `spin=`."""
MOST_SPIN_NS = 1_000_000_000


class ServeSummary(ServeFigures, Printable, frozen=True):
    """Figures of a server that has ended: requests, and how late their completions were."""

    def page(self, style: Style) -> list[str]:
        """As `Printable`."""
        return page(self, style)


class ServedDrive(Session):
    """A disk that is being served. As a context manager, it ends when the context is left."""

    @property
    def where(self) -> str:
        """The socket, address or file that a client is given."""
        return self.place.where

    def summary(self) -> ServeSummary:
        """End the server, if it has not ended, and return its figures. Raises `spindle.Error`."""
        figures = self.stop()
        return ServeSummary(**{name: getattr(figures, name) for name in figures.__struct_fields__})


@public
def serve_drive(
    model: str,
    *,
    socket: str | os.PathLike[str] | None = None,
    nbd: str | os.PathLike[str] | None = None,
    file: str | os.PathLike[str] | None = None,
    size: str | int | None = None,
    queue_depth: int | None = None,
    keys: Mapping[str, str | int | bool] | None = None,
    contents: str | os.PathLike[str] | None = None,
    spin: str = SPIN,
) -> ServedDrive:
    """Serve a modelled drive as a disk in real time.

    `model`: a name of the catalogue, the path of a sheet, or `service` (with `keys={"service": "1ms"}` and `size`).
    One of `socket`: a new Unix socket for vhost-user-blk; `nbd`: a new Unix socket (a path with a `/`) or HOST:PORT;
    `file`: an empty folder, in which `disk` appears through FUSE. `keys`: those of a `[[drive]]` in a machine file.
    `contents`: a sparse file that keeps them; without it they are in memory. `spin`: how long before a completion the
    server stops sleeping and spins. Raises `spindle.Error`.
    """
    places = [Place("vhost-user", os.fspath(socket))] if socket is not None else []
    places += [nbd_place(os.fspath(nbd))] if nbd is not None else []
    places += [Place("fuse", os.fspath(file))] if file is not None else []
    if len(places) != 1:
        raise Usage("where is the disk served? give one of `socket=`, `nbd=` and `file=`")
    given = dict(keys or {})
    if queue_depth is not None:
        within(queue_depth, "`queue_depth=`", 1, 65_536)
        given["queue_depth"] = queue_depth
    if size is not None:
        bytes_of(size, "`size=`")
    drive = modelled(model, None if size is None else str(size), given)
    try:
        spin_ns = _core.parse_duration(spin)
    except _core.ConfigError as error:
        raise Usage(f"`spin=`: {error}; write for example {SPIN}") from None
    if spin_ns > MOST_SPIN_NS:
        raise Usage(f"`spin=` {spin}: is more than a second; write for example {SPIN}")
    return ServedDrive(drive, places[0], None if contents is None else Path(contents), spin_ns)


def serve_until_stopped(model: str, ready: Callable[[ServedDrive], None], **options: Any) -> ServeSummary:
    """Serve a drive (`serve_drive`) until a signal asks for the end, or its mount is gone; its figures. `ready` is
    called once clients may come. Raises `spindle.Error`.
    """
    with unwinding():
        disk = None
        try:
            with held_back():
                disk = serve_drive(model, **options)
            ready(disk)
            disk.wait()
        except Stopped:
            if disk is None:
                raise
        except BaseException:
            if disk is not None:
                disk.stop()
            raise
        return disk.summary()
