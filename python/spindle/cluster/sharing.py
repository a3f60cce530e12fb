"""Begins a place of the caller's choice, and ends it with everything that was started."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from spindle.cluster.choice import Choice
from spindle.cluster.kept import ResultFile, place
from spindle.cluster.place import HERE, Place
from spindle.cluster.simulation import simulate
from spindle.cluster.workers import Dispatcher, Workers
from spindle.host.signals import held_back
from spindle.run.errors import RunFailed, Usage
from spindle.run.watch import Watch

_LOGGERS = ("distributed", "tornado", "asyncio")
CONNECT_S = 10
"""Longest wait for a scheduler."""


@contextmanager
def opened(choice: Choice, watch: Watch) -> Iterator[Place]:
    """The place; workers that were started end with it. Raises Usage, RunFailed."""
    if choice.is_here:
        yield HERE
        return
    with connected(choice, watch) as client:
        dispatcher = Dispatcher(
            client, simulate, lambda one: one.key, lambda one: one.kind, lambda: ResultFile(place())
        )  # fmt: skip
        is_complete = False
        try:
            yield Workers(dispatcher)
            is_complete = True
        finally:
            with held_back():
                dispatcher.end(is_complete)


@contextmanager
def connected(choice: Choice, watch: Watch) -> Iterator[Any]:
    """A client of Dask, with workers of its own if they were asked for. Raises Usage, RunFailed."""
    distributed = _distributed()
    with ExitStack() as stack:
        stack.enter_context(_quiet())
        if choice.workers is not None:
            _check_script()
            watch.step(f"starting {choice.workers} worker processes")
            cluster = _local(distributed, choice.workers)
            stack.callback(_close, cluster)
            address, security = cluster, cluster.security
        else:
            watch.step(f"connecting to {choice.cluster}")
            address, security = choice.cluster, _security(distributed, choice)
        try:
            client = distributed.Client(address, security=security, set_as_default=False, timeout=CONNECT_S)
        except (OSError, TimeoutError) as error:
            raise RunFailed(
                f"`cluster=` {choice.cluster}: no scheduler answers ({_first_line(error)}); is it running?"
            ) from None
        stack.callback(_close, client)
        distributed.gc.disable_gc_diagnosis(force=True)  # Python drops the exception of a Ctrl-C amid a callback of gc
        if choice.cluster is not None or _has_pages():
            watch.say(f"spindle: progress of the workers: {client.dashboard_link}")
        yield client


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise Usage("workers need dask; pip install 'spindle[cluster]'") from None
    return distributed


def _has_pages() -> bool:
    """True if the scheduler can show pages: they need bokeh."""
    try:
        import bokeh
    except ImportError:
        return False
    return bokeh is not None


def _check_script() -> None:
    """Worker processes import the running script first (multiprocessing's `spawn`): one that never asks for its
    `__name__` would begin again in each of them. Raises Usage."""
    main = sys.modules["__main__"]
    script = getattr(main, "__file__", None)
    if script is None or (main.__spec__ is not None and main.__spec__.name.endswith("__main__")):
        return  # typed, in a notebook, or the main module of a package, which is not imported again
    try:
        text = Path(script).read_text()
    except (OSError, UnicodeDecodeError):
        return  # not a file of source
    if "__name__" not in text:
        raise Usage(
            f'`workers=`: each worker imports {Path(script).name}; write `if __name__ == "__main__":` above its calls '
            "of spindle"
        )


def _local(distributed: Any, workers: int) -> Any:
    """Worker processes of this computer, which end when this process ends, however it does. They talk by TLS with keys
    of this run: other users of this computer could send them programs otherwise."""
    return distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        protocol="tls://",
        security=distributed.Security.temporary(),
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
        preload=["spindle.cluster.preload"],
    )


def _security(distributed: Any, choice: Choice) -> Any:
    """The keys of TLS: as given, else as Dask's own configuration has them. Raises Usage."""
    if not choice.is_encrypted:
        return None
    given = {"tls_ca_file": choice.tls_ca_file, "tls_client_cert": choice.tls_cert, "tls_client_key": choice.tls_key}
    found = distributed.Security(
        require_encryption=True, **{name: path for name, path in given.items() if path is not None}
    )
    for key, name in (
        ("tls_ca_file", "tls_ca_file="),
        ("tls_client_cert", "tls_cert="),
        ("tls_client_key", "tls_key="),
    ):
        if getattr(found, key) is None:
            raise Usage(f"`cluster=` {choice.cluster}: which key? give `{name}` a PEM file, or configure dask's TLS")
    return found


def _close(what: Any) -> None:
    with held_back(), suppress(Exception):  # the other side may be gone
        what.close(timeout=CONNECT_S)


@contextmanager
def _quiet() -> Iterator[None]:
    """Dask's own remarks are not for the reader: what matters comes as one line. Each of its loggers has a level."""
    known = list(logging.root.manager.loggerDict)
    names = [name for name in known if name.partition(".")[0] in _LOGGERS]
    before = {name: logging.getLogger(name).level for name in {*names, *_LOGGERS}}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="distributed")
        for name in before:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        try:
            yield
        finally:
            for name, level in before.items():
                logging.getLogger(name).setLevel(level)


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).strip().splitlines()[0]
