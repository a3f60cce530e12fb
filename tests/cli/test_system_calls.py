"""A request costs one system call at depth 1, and none of them returns through libc.

A processor that flushes its return predictor on the way out of the kernel mispredicts the `ret` of libc: 100 to 250 ns
(crates/engine/src/system.rs). A library loaded before libc counts the calls that go through it.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.program import COMMAND

REQUESTS = 20_000
COUNTER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
static long calls;
long syscall(long number, ...) {
    static long (*real)(long, ...);
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
    va_end(list);
    if (!real) real = dlsym(RTLD_NEXT, "syscall");
    if (number == SYS_io_uring_enter || number == SYS_pread64)
        __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
ssize_t pread64(int fd, void *buffer, size_t count, off64_t offset) {
    return syscall(SYS_pread64, fd, buffer, count, offset);
}
__attribute__((destructor)) static void report(void) {
    FILE *file = fopen(getenv("COUNTED"), "w");
    if (file) { fprintf(file, "%ld", calls); fclose(file); }
}
"""


@pytest.fixture
def counter(tmp_path: Path) -> Path:
    if shutil.which("cc") is None:
        pytest.skip("cc is not installed")
    library = tmp_path / "counter.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O1", "-x", "c", "-", "-o", str(library), "-ldl"],
        input=COUNTER,
        text=True,
        check=True,
    )
    return library


def run(folder: Path, engine: str, *prefix: str) -> None:
    file = folder / "cached.bin"
    file.write_bytes(bytes(1 << 20))
    line = [
        "run",
        "seeker",
        str(file),
        "--buffered",
        "--engine",
        engine,
        "--requests",
        str(REQUESTS),
        "--seconds",
        "60",
    ]
    subprocess.run([*prefix, *COMMAND, *line], cwd=folder, stdout=subprocess.DEVNULL, check=False)


@pytest.mark.promise(31)
@pytest.mark.parametrize("engine", ["io_uring", "pread"])
def test_no_request_returns_through_libc(tmp_path: Path, counter: Path, engine: str) -> None:
    counted = tmp_path / "counted"
    run(tmp_path, engine, "env", f"LD_PRELOAD={counter}", f"COUNTED={counted}")
    assert int(counted.read_text()) < REQUESTS / 20  # sampling the settings during the load reads files, too


@pytest.mark.promise(31)
@pytest.mark.parametrize(("engine", "name"), [("io_uring", "io_uring_enter"), ("pread", "pread64")])
def test_a_request_at_depth_1_is_one_system_call(tmp_path: Path, engine: str, name: str) -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    counts = tmp_path / "counts"
    run(tmp_path, engine, "strace", "-f", "-c", "-e", f"trace={name}", "-o", str(counts))
    calls = next(int(line.split()[3]) for line in counts.read_text().splitlines() if line.endswith(name))
    assert REQUESTS <= calls <= REQUESTS * 1.5  # sampling the settings during the load reads files, too
