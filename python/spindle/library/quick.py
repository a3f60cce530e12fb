"""`spindle.quick`: a device in about a minute."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

from spindle.library.arguments import public
from spindle.library.options import engine_of, preflight_of
from spindle.library.result import Result
from spindle.library.session import Progress, watched
from spindle.library.stores import Store, keeping
from spindle.run import quick as looking


@public
def quick(
    target: str | os.PathLike[str] | None = None,
    *,
    engine: Literal["auto", "io_uring", "pread"] = "auto",
    sqpoll: bool = False,
    iopoll: bool = False,
    timestamps: Literal["request", "batch"] = "request",
    tolerate_errors: bool = False,
    cpus: Sequence[int] | None = None,
    cpus_shared: bool = False,
    strict: bool = False,
    wait_idle: float = 0.0,
    quiet_machine: bool = False,
    sync: Literal["target", "machine"] = "target",
    drop_caches: bool = False,
    store: Store | str | os.PathLike[str] | bool | None = None,
    tags: Sequence[str] = (),
    progress: Progress = False,
) -> Result:
    """Measure a device in about a minute: sequential and random reads, the load it carries, and its zones.

    `target`: a block device or a file, which are only read, or a folder, in which a test file is made and removed;
    None: the current folder. `runs` of the result has each step. `wait_idle`: seconds. The rest is as of `spindle.run`.

    Raises `spindle.Error`, among others for a modelled machine.
    """
    with keeping(store, tags) as keep:
        with watched(progress) as watch:
            record = looking.quick(
                None if target is None else os.fspath(target),
                watch,
                engine_of(
                    engine=engine,
                    sqpoll=sqpoll,
                    iopoll=iopoll,
                    timestamps=timestamps,
                    tolerate_errors=tolerate_errors,
                    cpus=cpus,
                    cpus_shared=cpus_shared,
                ),
                preflight_options=preflight_of(
                    strict=strict, sync=sync, drop_caches=drop_caches, wait_idle=wait_idle, quiet_machine=quiet_machine
                ),
            )
        keep(record)
    return Result(record)
