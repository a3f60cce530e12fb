"""The write guard: decides whether a target may be opened, and opens it. Nothing else opens a device for writing.

A path is looked up once (O_PATH). All further steps - checks, exclusive claim, the descriptors of the streams - use
that descriptor, so renaming or replacing a link in between changes nothing. A device to be written is claimed
exclusively (O_EXCL) before the checks, and the claim is kept until the target is closed: the results of the checks stay
valid during the run.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, NoReturn

from spindle.base.units import si_size
from spindle.base.words import listed

from . import kernel
from .devices import HERE, Device, DevNumber, Machine, backing, by_number, partitions, whole
from .errors import DeviceHeld, Refusal, TargetError, WrongTarget, not_found, reason
from .folder import SET_PREFIX, file_name
from .held import HeldDevice
from .identity import Identity
from .openers import SearchSet, UseKind, openers
from .paths import is_under_dev
from .several import PathSets, erase_of_each
from .signatures import Signature, UnknownContent, signatures_of
from .stack import below, devices_under
from .testfile import TestFile
from .testfiles import FileSet, TestFiles, allow_open, cannot_open
from .usage import Usage

LOCK_PATIENCE_S = 2.0  # udev locks a device for the moment in which it probes it
_END_BYTES = 1 << 20
_FALLBACK_MEMORY_ALIGN = 4096  # a page: enough for every driver (block/blk-settings.c: dma_alignment is below it)
_BUFFERED_MEMORY_ALIGN = 512


@dataclass(frozen=True)
class StreamAccess:
    """Access that one stream of a workload needs."""

    write: bool = False
    """It writes, trims or zeroes."""
    direct: bool = True
    """O_DIRECT."""
    dsync: bool = False
    """O_DSYNC."""
    osync: bool = False
    """O_SYNC."""
    files: str | None = None
    """Name of the set of files it uses; None: the target itself."""
    names: bool = False
    """It creates and removes names in the target's folder."""

    @classmethod
    def of(cls, stream: Mapping[str, Any]) -> StreamAccess:
        """Access of a stream of a resolved workload (`Workload.to_json`)."""
        mix = stream["mix"]
        changes = any(mix[share] > 0 for share in ("write", "trim", "zero"))
        sync = stream["sync"]
        return cls(write=changes, direct=stream["direct"], dsync=sync["dsync"], osync=sync.get("osync", False))

    @property
    def flags(self) -> int:
        """Flags for open(2)."""
        flags = os.O_RDWR if self.write else os.O_RDONLY
        synced = os.O_SYNC if self.osync else os.O_DSYNC if self.dsync else 0
        return flags | (os.O_DIRECT if self.direct else 0) | synced | os.O_CLOEXEC


@dataclass(frozen=True)
class StreamFile:
    """An open file for one stream of the engine."""

    fd: int
    size_bytes: int
    block_bytes: int
    """Offsets and lengths are multiples of this."""
    memory_align: int
    """Buffers begin at multiples of this."""

    def as_tuple(self) -> tuple[int, int, int, int]:
        """The fields in the order of `spindle._core.Run`."""
        return self.fd, self.size_bytes, self.block_bytes, self.memory_align


class OpenTarget:
    """An open target with the requested access."""

    def __init__(
        self,
        path: str,
        kind: str,
        size_bytes: int,
        files: tuple[StreamFile, ...],
        devices: list[Device],
        writes: bool,
        machine: Machine,
        sets: _OpenSets | _OpenPathSets | None = None,
        identity: Identity | None = None,
    ) -> None:
        self.path = path
        self.kind = kind
        self.size_bytes = size_bytes
        self.files = files
        """The file of each stream, or the first of its set."""
        self._sets = sets
        self.identity = identity
        """Identity of a device that is written to."""
        self.devices = devices
        self.writes = writes
        self._machine = machine
        self._opened = ExitStack()

    def take_over(self, opened: ExitStack) -> None:
        """Take over the descriptors; nothing can fail after this."""
        self._opened = opened.pop_all()

    @property
    def is_one_file(self) -> bool:
        """True unless it is a device or a folder of files."""
        return self.kind == "file"

    @property
    def device(self) -> Device | None:
        """The block device, or the one under the file's file system; None if there is none (tmpfs, NFS ...)."""
        return self.devices[0] if self.devices else None

    def engine_files(self) -> list[list[tuple[int, int, int, int]]]:
        """The files of each stream, for `spindle._core.Run`."""
        if self._sets is not None:
            return [[file.as_tuple() for file in files] for files in self._sets.of_streams]
        return [[file.as_tuple()] for file in self.files]

    def set_sizes(self, name: str) -> Sequence[int]:
        """Bytes of each file of a set."""
        return self._sets.sizes(name) if self._sets is not None else ()

    def counted_devices(self) -> list[Device]:
        """The device (all of them, for a file system with several) and all devices below, for diskstats."""
        found = {device.name: device for device in self.devices}
        for device in self.devices:
            for under in below(device, self._machine):
                found.setdefault(under.name, under)
        return list(found.values())

    def drop_cache(self) -> None:
        """Write out this target's dirty pages and drop its page cache."""
        for file in self._sets.all_files() if self._sets is not None else self.files[:1]:
            with suppress(OSError):  # a cache that cannot be dropped shows in the cache verdict
                os.fdatasync(file.fd)
                os.posix_fadvise(file.fd, 0, 0, os.POSIX_FADV_DONTNEED)

    def trouble(self) -> str | None:
        """One line if the target has changed since it was opened: gone, or of another size."""
        for device in self.devices:
            now = by_number(device.dev, self._machine)
            if now is None or now.name != device.name or now.size_bytes == 0:
                return f"{device.path} has disappeared"
            if self.kind == "device" and now.size_bytes != device.size_bytes:
                return f"{device.path} changed its size from {si_size(device.size_bytes)} to {si_size(now.size_bytes)}"
        if self._sets is not None:
            return self._sets.trouble()
        if self.is_one_file and self.files:
            length = os.fstat(self.files[0].fd).st_size
            if length != self.size_bytes:
                return f"{self.path} changed its size from {si_size(self.size_bytes)} to {si_size(length)}"
        return None

    def to_dict(self) -> dict[str, object]:
        """The JSON of the result record."""
        sets = {} if self._sets is None else {"sets": self._sets.to_dicts()}
        return {
            "path": self.path,
            "kind": self.kind,
            "size_bytes": self.size_bytes,
            "writes": self.writes,
            "devices": [device.to_dict() for device in self.devices],
            **sets,
        }

    def close(self) -> None:
        """Close the descriptors and release the claim."""
        self._opened.close()

    def __enter__(self) -> OpenTarget:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_target(
    path: str | os.PathLike[str] | TestFile | TestFiles | PathSets,
    streams: Sequence[StreamAccess],
    *,
    erase: str | None = None,
    erase_signature: str | None = None,
    erase_stacked: bool = False,
    erase_shared: bool = False,
    erased_before: bool = False,
    agreed: Identity | None = None,
    confirm: Callable[[str], bool] | None = None,
    machine: Machine = HERE,
) -> OpenTarget:
    """Open a target for the streams of a workload. Raises Refusal or TargetError, one line each.

    Writing (and trimming, and zeroing) needs files that Spindle made (`TestFile`, `TestFiles`), or an unused block
    device that `erase` names. `erase_signature` repeats the signatures on it (`ext4`, or several: `gpt,ext4`).
    `erase_stacked`: it may be built of other devices. `erase_shared`: it may be a partition while another partition of
    the same disk is in use. `erased_before`: it was written to with this consent already, so the named signatures may
    be missing; others are still refused. `agreed`: the device that this consent was given for, as names may lead to
    another one now. `confirm` gets one line that names the device, while the device is already claimed; if it returns
    False, the target is refused. If `erase` names another device, that is refused even without any write: it is a sign
    of a mix-up.
    """
    consent = _Consent(erase, erase_signature, erase_stacked, erase_shared, erased_before, agreed, confirm)
    with ExitStack() as opened:
        if isinstance(path, TestFiles):
            _check_no_device_named(path.path, erase)
            target = _open_test_files(path, streams, opened, machine)
        elif isinstance(path, TestFile):
            _check_no_device_named(str(path.path), erase)
            target = _open_test_file(path, streams, opened, machine)
        elif isinstance(path, PathSets):
            target = _open_several(path, streams, consent, opened, machine)
        else:
            target = _open_path(os.fspath(path), streams, consent, opened, machine)
        target.take_over(opened)
        return target


@contextmanager
def hold_device(
    path: str,
    *,
    erase: str | None = None,
    erase_signature: str | None = None,
    erase_stacked: bool = False,
    erase_shared: bool = False,
    erased_before: bool = False,
    agreed: Identity | None = None,
    confirm: Callable[[str], bool] | None = None,
) -> Iterator[HeldDevice]:
    """Open a block device for tools that write to it: checked as in `open_target`, then kept open without the claim, as
    the tools need to claim it. Raises Refusal or TargetError."""
    consent = _Consent(erase, erase_signature, erase_stacked, erase_shared, erased_before, agreed, confirm)
    with ExitStack() as checked:
        found = _look_up(path, True, checked)
        if not stat.S_ISBLK(os.fstat(found).st_mode):
            raise Refusal(f"{path}: is {_kind_of(os.fstat(found).st_mode)}; a file system is made on a block device")
        device, called = _device_at(path, found, True, HERE)
        claim = _claim(called, path, found, device, consent, checked, HERE)
        with HeldDevice.opened(called, f"/proc/self/fd/{claim}") as held:
            checked.close()
            yield held


@dataclass(frozen=True)
class _Consent:
    """The data that the user agreed to lose."""

    erase: str | None
    signature: str | None
    stacked: bool
    shared: bool
    erased_before: bool
    agreed: Identity | None
    confirm: Callable[[str], bool] | None


def _open_path(
    path: str, streams: Sequence[StreamAccess], consent: _Consent, opened: ExitStack, machine: Machine
) -> OpenTarget:
    writes = any(stream.write for stream in streams)
    found = _look_up(path, writes, opened)
    mode = os.fstat(found).st_mode
    if stat.S_ISBLK(mode):
        return _open_device(path, found, streams, consent, opened, machine)
    if not stat.S_ISREG(mode):
        _fail(writes, f"{path}: is {_kind_of(mode)}; a target is a block device or a file")
    if writes:
        _refuse_file(path, found, machine)
    _check_no_device_named(path, consent.erase)
    return _open_regular(path, found, streams, opened, machine)


def _kind_of(mode: int) -> str:
    kinds = {
        stat.S_IFDIR: "a folder",
        stat.S_IFREG: "a file",
        stat.S_IFCHR: "a character device",
        stat.S_IFIFO: "a pipe",
    }
    return kinds.get(stat.S_IFMT(mode), "neither a file nor a block device")


def _fail(writes: bool, text: str) -> NoReturn:
    raise Refusal(text) if writes else WrongTarget(text)


def _look_up(path: str, writes: bool, opened: ExitStack) -> int:
    """Look up the path, once. O_PATH neither waits for a pipe's other end nor activates a device's driver."""
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        if is_under_dev(path):
            _fail(writes, f"{path}: no such device; no file is ever made under /dev (lsblk lists the devices)")
        raise WrongTarget(
            f"{path}: does not exist; check the name, or let `spindle run` with `create=SIZE` make a test file with it"
        ) from None
    except (OSError, ValueError) as error:
        raise not_found(path, error) from None
    opened.callback(os.close, fd)
    return fd


# --- regular files ---------------------------------------------------------------------------------------------------


def _refuse_file(path: str, found: int, machine: Machine) -> NoReturn:
    status = os.fstat(found)
    use = next(Usage.now(machine).of_file((DevNumber.of(status.st_dev), status.st_ino)), None)
    if use:
        raise Refusal(f"{path}: {use}; nothing is written to it")
    raise Refusal(
        f"{path}: is not a file that Spindle made, and is not written; give a new name and `create=` SIZE, or only read"
    )


def _open_test_file(file: TestFile, streams: Sequence[StreamAccess], opened: ExitStack, machine: Machine) -> OpenTarget:
    return _open_regular(str(file.path), file.fileno(), streams, opened, machine)


@dataclass(frozen=True)
class _OpenSets:
    """The open files of sets."""

    made: dict[str, FileSet]
    of_streams: list[tuple[StreamFile, ...]]
    """The files of each stream's set."""
    first_of_set: dict[str, int]
    """One stream that uses the set."""

    def all_files(self) -> Iterator[StreamFile]:
        """All files, each once."""
        for stream in self.first_of_set.values():
            yield from self.of_streams[stream]

    def sizes(self, name: str) -> Sequence[int]:
        """Bytes of each file of a set."""
        return self.made[name].wanted.sizes

    def to_dicts(self) -> list[dict[str, Any]]:
        """The JSON of the result record."""
        return [made.to_dict() for made in self.made.values()]

    def trouble(self) -> str | None:
        """One line if a file has changed since it was opened."""
        for name, stream in self.first_of_set.items():
            made = self.made[name]
            for index, file in enumerate(self.of_streams[stream]):
                status = os.fstat(file.fd)
                called = f"{name}/{file_name(index)}"
                if status.st_nlink == 0:
                    return f"{called} has been removed by someone else"
                if status.st_size > file.size_bytes or (made.wanted.fill and status.st_size < file.size_bytes):
                    return f"{called} changed its size from {si_size(file.size_bytes)} to {si_size(status.st_size)}"
        return None


@dataclass(frozen=True)
class _OpenPathSets:
    """Existing devices and files, open."""

    of_streams: list[tuple[StreamFile, ...]]
    of_sets: dict[str, tuple[StreamFile, ...]]
    paths: Mapping[str, tuple[str, ...]]

    def all_files(self) -> Iterator[StreamFile]:
        """All files; a file in several sets may come more than once."""
        for files in self.of_sets.values():
            yield from files

    def sizes(self, name: str) -> Sequence[int]:
        """Bytes of each file of a set."""
        return [file.size_bytes for file in self.of_sets[name]]

    def to_dicts(self) -> list[dict[str, Any]]:
        """The JSON of the result record."""
        return [
            {"name": name, "paths": list(self.paths[name]), "sizes": list(self.sizes(name))} for name in self.of_sets
        ]

    def trouble(self) -> str | None:
        """One line if a file has changed its size; devices are checked by the target."""
        for name, files in self.of_sets.items():
            for path, file in zip(self.paths[name], files, strict=True):
                status = os.fstat(file.fd)
                if stat.S_ISREG(status.st_mode) and status.st_size != file.size_bytes:
                    return f"{path} changed its size from {si_size(file.size_bytes)} to {si_size(status.st_size)}"
        return None


def _open_several(
    several: PathSets, streams: Sequence[StreamAccess], consent: _Consent, opened: ExitStack, machine: Machine
) -> OpenTarget:
    """Open each as if it were the only one, for the streams that use it."""
    erase = erase_of_each(several.paths, consent.erase)
    found: dict[tuple[str, int], StreamFile] = {}
    targets: list[OpenTarget] = []
    for path in several.paths:
        users = [at for at, stream in enumerate(streams) if path in several.sets.get(stream.files or "", ())]
        own = replace(consent, erase=erase[path])
        target = _open_path(path, [streams[at] for at in users], own, opened, machine)
        found |= {(path, at): file for at, file in zip(users, target.files, strict=True)}
        targets.append(target)
    of_streams: list[tuple[StreamFile, ...]] = []
    of_sets: dict[str, tuple[StreamFile, ...]] = {}
    for at, stream in enumerate(streams):
        if stream.files is None or stream.files not in several.sets:
            raise WrongTarget(f"{several.path}: these are several; a stream without a set of files cannot use them")
        of_streams.append(tuple(found[path, at] for path in several.sets[stream.files]))
        of_sets.setdefault(stream.files, of_streams[-1])
    devices = {device.name: device for target in targets for device in target.devices}
    kind = "device" if all(target.kind == "device" for target in targets) else "file"
    whole_size = sum(target.size_bytes for target in targets)
    firsts = tuple(each[0] for each in of_streams)
    writes = any(stream.write for stream in streams)
    sets = _OpenPathSets(of_streams, of_sets, several.sets)
    return OpenTarget(several.path, kind, whole_size, firsts, list(devices.values()), writes, machine, sets)


def _open_test_files(
    files: TestFiles, streams: Sequence[StreamAccess], opened: ExitStack, machine: Machine
) -> OpenTarget:
    """Open the sets; streams with the same access to a set share its descriptors."""
    known: dict[tuple[str, int], tuple[StreamFile, ...]] = {}
    wanted = {(stream.files, stream.flags) for stream in streams if stream.files is not None}
    allow_open(sum(len(files.sets[name].wanted.sizes) for name, _ in wanted), files.path)
    of_streams: list[tuple[StreamFile, ...]] = []
    first_of_set: dict[str, int] = {}
    for index, stream in enumerate(streams):
        if stream.names:
            of_streams.append((StreamFile(_again(files.fileno(), opened), 0, 1, 1),))
            continue
        if stream.files is None:
            raise WrongTarget(f"{files.path}: is a folder; a stream without a set of files cannot use it")
        key = stream.files, stream.flags
        if key not in known:
            known[key] = tuple(_open_set(files.path, files.sets[stream.files], stream, opened))
        of_streams.append(known[key])
        first_of_set.setdefault(stream.files, index)
    writes = any(stream.write for stream in streams)
    devices = devices_under(files.fileno(), machine)
    firsts = tuple(each[0] for each in of_streams)
    sets = _OpenSets(files.sets, of_streams, first_of_set)
    return OpenTarget(files.path, "directory", files.size_bytes, firsts, devices, writes, machine, sets)


def _again(fd: int, opened: ExitStack) -> int:
    copy = os.dup(fd)
    opened.callback(os.close, copy)
    return copy


def _open_set(path: str, made: FileSet, stream: StreamAccess, opened: ExitStack) -> Iterator[StreamFile]:
    alignment = None
    for index, length in enumerate(made.wanted.sizes):
        try:
            fd = made.open(index, stream.flags)
        except OSError as error:
            if error.errno == errno.EINVAL and stream.direct:
                raise TargetError(f"{path}: its file system has no direct I/O; use `direct=False`") from None
            raise cannot_open(f"{path}/{SET_PREFIX}{made.wanted.name}", error) from None
        opened.callback(os.close, fd)
        # All are on one file system.
        alignment = alignment or _alignment(path, fd, stream.direct, 1)
        yield StreamFile(fd, length, *alignment)


def _open_regular(
    path: str, found: int, streams: Sequence[StreamAccess], opened: ExitStack, machine: Machine
) -> OpenTarget:
    length = os.fstat(found).st_size
    if length == 0:
        raise TargetError(f"{path}: is empty; there is nothing to read")
    files = tuple(_stream_file(path, found, stream, length, 1, opened) for stream in streams)
    writes = any(stream.write for stream in streams)
    devices = devices_under(found, machine)
    return OpenTarget(path, "file", length, files, devices, writes, machine)


def _stream_file(path: str, found: int, stream: StreamAccess, length: int, block: int, opened: ExitStack) -> StreamFile:
    """Open a descriptor for one stream, of the very file that was looked up."""
    try:
        fd = os.open(f"/proc/self/fd/{found}", stream.flags)
    except OSError as error:
        if error.errno == errno.EINVAL and stream.direct:
            raise TargetError(f"{path}: its file system has no direct I/O; use `direct=False`") from None
        raise TargetError(f"{path}: {_open_error(error, stream.write)}") from None
    opened.callback(os.close, fd)
    return StreamFile(fd, length, *_alignment(path, fd, stream.direct, block))


def _alignment(path: str, fd: int, direct: bool, block: int) -> tuple[int, int]:
    """Alignment of offsets and lengths, and of memory."""
    if not direct:
        return block, _BUFFERED_MEMORY_ALIGN
    alignment = kernel.direct_alignment(fd)
    if alignment is None:
        alignment = kernel.Alignment(offset=_block_below(fd), memory=_FALLBACK_MEMORY_ALIGN)
    if alignment.offset == 0:
        raise TargetError(f"{path}: direct I/O is not possible on this file; use `direct=False`")
    return max(alignment.offset, block), max(alignment.memory, 1)


def _block_below(fd: int) -> int:
    """The logical block of the device, or the file system's block: the largest alignment that direct I/O can need."""
    if stat.S_ISBLK(os.fstat(fd).st_mode):
        return kernel.logical_block_bytes(fd)
    return os.fstatvfs(fd).f_bsize


def _open_error(error: OSError, writes: bool) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        verb = "write" if writes else "read"
        if os.geteuid() == 0:
            return f"the system does not let even root {verb} it (a container's device rules, or a security module)"
        return f"no permission to {verb} it; run as its owner or as root"
    if error.errno == errno.EROFS:
        return "is read-only"
    if error.errno == errno.ENOMEDIUM:
        return "has no medium in it"
    if error.errno in (errno.ENXIO, errno.ENODEV):
        return "the device does not exist (any more)"
    return reason(error)


# --- block devices ---------------------------------------------------------------------------------------------------


def _open_device(
    path: str,
    found: int,
    streams: Sequence[StreamAccess],
    consent: _Consent,
    opened: ExitStack,
    machine: Machine,
) -> OpenTarget:
    writes = any(stream.write for stream in streams)
    device, called = _device_at(path, found, writes, machine)
    if not writes and consent.erase is not None:
        _check_names_target(called, device, consent.erase)
    source = _claim(called, path, found, device, consent, opened, machine) if writes else found
    files = tuple(
        _stream_file(called, source, stream, device.size_bytes, device.logical_block_bytes, opened)
        for stream in streams
    )
    length = _device_bytes(called, files, device)
    files = tuple(StreamFile(file.fd, length, file.block_bytes, file.memory_align) for file in files)
    identity = Identity.of(source, machine) if writes else None
    return OpenTarget(path, "device", length, files, [device], writes, machine, identity=identity)


def _device_at(path: str, found: int, writes: bool, machine: Machine) -> tuple[Device, str]:
    """The device, and its name for messages: the user's name and the kernel's."""
    device = by_number(DevNumber.of(os.fstat(found).st_rdev), machine)
    if device is None:
        _fail(writes, f"{path}: the kernel knows no such device (any more)")
    return device, path if os.path.abspath(path) == device.path else f"{path} ({device.path})"


def _device_bytes(called: str, files: tuple[StreamFile, ...], device: Device) -> int:
    length = kernel.device_bytes(files[0].fd) if files else device.size_bytes
    if length == 0:
        raise TargetError(f"{called}: {_NO_SIZE}")
    return length


_NO_SIZE = "has no size: it has no medium or no storage behind it"


def _claim(
    called: str,
    path: str,
    found: int,
    device: Device,
    consent: _Consent,
    opened: ExitStack,
    machine: Machine,
) -> int:
    """Claim a device that may be erased; Refusal if it may not. The descriptor keeps the claim."""
    _check_named(called, path, device, consent.erase)
    if device.size_bytes == 0:
        raise TargetError(f"{called}: {_NO_SIZE}")
    if device.read_only:
        raise TargetError(f"{called}: is read-only")
    disk_busy = device.partition is not None and _is_claimed(whole(device), machine)

    claim = _open_exclusively(called, found, device, None, machine, opened)
    if consent.agreed not in (None, Identity.of(claim, machine)):
        raise Refusal(f"{called}: is another device than the one that was agreed; nothing is written to it")
    under = _claim_below_loop(called, device, machine, opened)
    usage = Usage.now(machine)
    lower_uses = (_uses_of_lower(usage, lower, above) for above, lower in itertools.pairwise([whole(device), *under]))
    for use in itertools.chain(_uses(usage, device), *lower_uses):
        raise Refusal(f"{called}: {use}; nothing is written to it")
    _check_writers(called, usage, device)
    _lock(called, claim)

    if not consent.stacked and (whole(device).stacked or under):
        parts = listed([part.name for part in below(device, machine)][:4])
        raise Refusal(f"{called}: is built of {parts}; `erase_stacked=` agrees to overwrite their data")
    if device.partition is not None and not consent.shared:
        sibling = next(usage.of_siblings(device), "another partition of the same disk is in use" if disk_busy else None)
        if sibling:
            raise Refusal(f"{called}: {sibling}; `erase_shared=` agrees to write to this partition alone")
    blank = _is_blank(called, claim, device)
    shown = _check_signatures(called, claim, device, consent, machine)
    if consent.confirm and not consent.confirm(describe_for_confirmation(device, shown, blank, machine)):
        raise Refusal(f"{called}: not confirmed; nothing was written")
    return claim


def _check_named(called: str, path: str, device: Device, erase: str | None) -> None:
    if erase is None:
        raise Refusal(f"{called}: writing destroys its data; `erase=` {path} agrees to that")
    _check_names_target(called, device, erase)


def _check_names_target(called: str, device: Device, erase: str) -> None:
    try:
        named = os.stat(erase)
    except (OSError, ValueError) as error:
        why = reason(error) if isinstance(error, OSError) else error
        raise Refusal(f"{called}: `erase=` names {erase}, which cannot be looked up: {why}") from None
    if not stat.S_ISBLK(named.st_mode) or DevNumber.of(named.st_rdev) != device.dev:
        raise Refusal(f"{called}: `erase=` names {erase}, which is another device; name the target itself")


def same_device(name: str, other: str) -> bool:
    """True if two names lead to one block device."""
    try:
        found = os.stat(name), os.stat(other)
    except (OSError, ValueError):
        return False
    return all(stat.S_ISBLK(one.st_mode) for one in found) and found[0].st_rdev == found[1].st_rdev


def consent_needed(path: str, machine: Machine = HERE) -> list[str]:
    """The keywords that agree to lose the data of a device, as far as they are known without a claim; none if it is not
    a block device."""
    if not same_device(path, path):
        return []
    options = [f'`erase="{path}"`']
    with suppress(OSError, UnknownContent), ExitStack() as opened:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        opened.callback(os.close, fd)
        device = by_number(DevNumber.of(os.fstat(fd).st_rdev), machine)
        if device is None:
            return options
        behind = backing(whole(device), machine)
        if whole(device).stacked or (behind is not None and behind.block is not None):
            options.append("`erase_stacked=True`")
        if types := dict.fromkeys(one.type for one in _signatures(fd, device, machine)):
            options.append(f'`erase_signature="{",".join(types)}"`')
    return options


def _check_no_device_named(called: str, erase: str | None) -> None:
    if erase is not None:
        raise Refusal(
            f"{called}: is not a device, but `erase=` names {erase}; is it the right target? leave `erase=` out"
        )


def _is_claimed(device: Device, machine: Machine) -> bool:
    """True if someone holds the device or a partition of it: the kernel refuses a second claim."""
    try:
        os.close(os.open(device.node(machine), os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC | os.O_NONBLOCK))
    except OSError as error:
        return error.errno == errno.EBUSY
    return False


def _open_exclusively(
    called: str, found: int, device: Device, above: Device | None, machine: Machine, opened: ExitStack
) -> int:
    """Claim the device read-only; write access is opened after all checks. `above`: our loop device that uses this
    one."""
    try:
        claim = os.open(f"/proc/self/fd/{found}", os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        use = _who_holds(device, above, error.errno == errno.EBUSY, machine)
        if use:
            kind = DeviceHeld if _HELD in use else Refusal
            raise kind(f"{called}: {use}; nothing is written to it") from None
        raise TargetError(f"{called}: {_open_error(error, writes=True)}") from None
    opened.callback(os.close, claim)
    if DevNumber.of(os.fstat(claim).st_rdev) != device.dev:
        raise Refusal(f"{called}: became another device while it was opened")
    return claim


def _who_holds(device: Device, above: Device | None, claimed: bool, machine: Machine) -> str | None:
    """The reason why a device cannot be claimed."""
    usage = Usage.now(machine)
    use = next(_uses(usage, device) if above is None else _uses_of_lower(usage, device, above), None)
    if use or not claimed:
        return use
    wanted = SearchSet({part.dev: part.path for part in (device, *partitions(device))})
    others = openers(wanted, machine, usage.mounts)
    subject = "" if above is None else f"{device.path}, which is behind it, "
    return f"{subject}{_HELD}" + (f", maybe {others[0]}" if others else "")


_HELD = "is held exclusively by another program"


def _claim_below_loop(called: str, device: Device, machine: Machine, opened: ExitStack) -> list[Device]:
    """Claim block devices under loop devices, as a loop device takes no claim on them."""
    under: list[Device] = []
    above = whole(device)
    behind = backing(above, machine)
    while behind is not None and behind.block is not None:
        lower = by_number(behind.block, machine)
        if lower is None:
            raise Refusal(f"{called}: the storage behind it ({behind.path}) cannot be found")
        try:
            lower_path = os.open(lower.node(machine), os.O_PATH | os.O_CLOEXEC)
        except OSError as error:
            raise Refusal(f"{called}: {lower.path}, which is behind it, cannot be checked: {reason(error)}") from None
        opened.callback(os.close, lower_path)
        _open_exclusively(called, lower_path, lower, above, machine, opened)
        under.append(lower)
        above = lower
        behind = backing(lower, machine)
    if behind is not None and behind.file is None:
        raise Refusal(
            f"{called}: the file behind {above.path} ({behind.path}) cannot be found; nothing is written to it"
        )
    return under


def _uses(usage: Usage, device: Device) -> Iterator[str]:
    """All uses that forbid writing to a device, in words."""
    yield from usage.of(device)
    if device.partition is not None:
        yield from usage.of_disk(device)
    yield from usage.of_layers_below(device)
    yield from usage.of_other_paths(device)


def _uses_of_lower(usage: Usage, device: Device, above: Device) -> Iterator[str]:
    """The same for a device behind a loop device, except for that use."""
    for use in _uses(usage, device):
        if use.partition(",")[0] != f"is behind {above.path}":
            yield f"{device.path}, which is behind it, {use}"


def _check_writers(called: str, usage: Usage, device: Device) -> None:
    """Check for programs that write without a claim: a virtual machine, dd, an iSCSI target in user space. A lock means
    that somebody relies on the content. udev and partitioners hold one for a moment, and losetup opens a device that
    another one has just taken."""
    wanted = usage.written_through(device)
    until = time.monotonic() + LOCK_PATIENCE_S
    while found := [one for one in openers(wanted, usage.machine, usage.mounts) if one.how is not UseKind.READS]:
        if time.monotonic() > until:
            raise Refusal(f"{called}: {found[0].use}; nothing is written to it")
        time.sleep(0.05)


def _lock(called: str, claim: int) -> None:
    """Take the lock that udev and partitioning tools respect (systemd: Locking Block Device Access)."""
    until = time.monotonic() + LOCK_PATIENCE_S
    while True:
        try:
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                raise DeviceHeld(f"{called}: another program has locked it (flock); nothing is written to it") from None
            time.sleep(0.05)


# --- content of the device -------------------------------------------------------------------------------------------


def _check_signatures(called: str, claim: int, device: Device, consent: _Consent, machine: Machine) -> list[Signature]:
    shown = _all_signatures(called, claim, device, machine)
    types = list(dict.fromkeys(signature.type for signature in shown))
    repeated = consent.signature
    given = {part for part in re.split(r"[,\s]+", repeated or "") if part}
    if given == set(types) or (consent.erased_before and given > set(types)):
        return shown
    if not types:
        raise Refusal(f"{called}: has no signature, but `erase_signature=` says {repeated}; is it the right device?")
    what = listed([str(signature) for signature in shown])
    raise Refusal(f"{called}: has a signature: {what}; `erase_signature=` {','.join(types)} agrees to lose it")


def _all_signatures(called: str, claim: int, device: Device, machine: Machine) -> list[Signature]:
    """Signatures of the device and of all its partitions. Raises Refusal."""
    try:
        return _signatures(claim, device, machine)
    except UnknownContent as error:
        raise Refusal(f"{called}: its content cannot be determined ({error}); nothing is written to it") from None
    except OSError as error:
        raise Refusal(f"{called}: the content of its partitions cannot be determined: {reason(error)}") from None


def _signatures(fd: int, device: Device, machine: Machine) -> list[Signature]:
    """Read the signatures. Raises UnknownContent, OSError."""
    found = signatures_of(fd)
    for part in partitions(device):
        inside = os.open(part.node(machine), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            if DevNumber.of(os.fstat(inside).st_rdev) != part.dev:
                raise UnknownContent(f"{part.path} is not the device the kernel calls {part.name}")
            found += [entry for entry in signatures_of(inside) if entry not in found]
        finally:
            os.close(inside)
    return found


def _is_blank(called: str, claim: int, device: Device) -> bool:
    """True if both ends, where signatures are, contain only zeros. libblkid treats unreadable places as empty, so a
    device with unreadable ends is refused here."""
    try:
        ends = [os.pread(claim, _END_BYTES, place) for place in (0, max(0, device.size_bytes - _END_BYTES))]
    except OSError as error:
        raise Refusal(f"{called}: its content cannot be read: {reason(error)}; nothing is written to it") from None
    return not any(map(any, ends))


def describe_for_confirmation(
    device: Device, signatures: Sequence[Signature] = (), blank: bool = False, machine: Machine = HERE
) -> str:
    """One line that shows a person which device will lose its data: size, model, serial, content."""
    facts = [si_size(device.size_bytes)]
    named = whole(device)
    if device.partition is not None:
        facts.append(f"partition {device.partition} of {named.path}")
    if device.label:
        facts.append(device.label)
    facts.append(named.model or {"disk": "unknown model"}.get(named.kind, named.kind))
    if named.serial:
        facts.append(f"serial {named.serial}")
    behind = backing(named, machine)
    if behind is not None:
        facts.append(f"on {behind.path}")
    if signatures:
        facts.append("carries " + listed([str(signature) for signature in signatures]))
    else:
        facts.append("empty at both ends" if blank else "no known signature, but not empty")
    return f"All data on {device.path} will be lost ({', '.join(facts)})."
