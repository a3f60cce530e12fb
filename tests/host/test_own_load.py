"""A load of processes of its own is not what disturbs itself."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from spindle.conditions import OwnLoad, idle_check
from spindle.conditions.processors import cpu
from spindle.host.cputimes import CpuTimes, of_cpus


@pytest.mark.promise(13)
def test_cpu_time_of_the_load_is_not_that_of_others() -> None:
    before, after = CpuTimes(0, 0, 0, 0, 0), CpuTimes(user=60, system=30, idle=0, iowait=10, steal=0)
    assert [one.level for one in cpu(before, after)] == ["warn"]
    assert [one.level for one in cpu(before, after, own_user_ticks=55)] == ["ok"]
    loud = cpu(before, after, own_user_ticks=10)
    assert [one.level for one in loud] == ["warn"]
    assert "CPU busy 50 % with other programs" in loud[0].text


@pytest.mark.promise(13)
def test_the_time_of_a_load_is_that_of_its_processes() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            own = OwnLoad(lambda: [busy.pid])
            deadline = time.monotonic() + 60
            while own.user_ticks() < 5 and time.monotonic() < deadline:
                time.sleep(0.02)
            assert own.user_ticks() >= 5
        finally:
            busy.kill()


@pytest.mark.promise(13)
def test_beside_a_load_the_devices_own_counters_accuse_nobody(fake_sys: Any) -> None:
    found = idle_check([], 0, fake_sys.machine, OwnLoad(list))
    checks = {one.check for one in found.findings}
    assert "jobs" in checks
    assert not checks & {"other_io", "dirty_pages"}


@pytest.mark.promise(14)
def test_times_are_those_of_the_cpus_that_may_be_used() -> None:
    stat = "cpu  9 9 9 9\ncpu0 1 0 2 3 4 0 0 0\ncpu1 10 0 20 30 40 0 0 0\ncpu11 5 5 5 5\n"
    assert of_cpus(stat, {0, 1}) == CpuTimes(11, 22, 33, 44, 0)
    assert of_cpus(stat, {1}) == CpuTimes(10, 20, 30, 40, 0)
    assert of_cpus(stat, {7}) is None
    assert of_cpus(Path("/proc/stat").read_text(), os.sched_getaffinity(0)) is not None
