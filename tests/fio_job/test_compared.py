"""Results of fio and of Spindle for the same jobs, compared."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from spindle import formats
from spindle.result.document import read
from spindle.stats.metric import values
from tests.program import spindle

pytestmark = [
    pytest.mark.promise(30),
    pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed"),
]

COMMON = "[global]\nioengine=null\nsize=64m\nbs=4k\nrw=randrw\ntime_based\nruntime=1\nrate_iops=300,300\n"
JOBS = {
    "one job": "[only one]\nrw=randread\n",
    "clones": "[a]\nnumjobs=2\nrw=randread\n[b]\nrw=randwrite\n",
    "phases": "[first]\nrw=randread\n[then this]\nstonewall\nrw=randwrite\n",
    "phases of several": "[a]\nrw=randread\n[b]\nrw=randwrite\n[c]\nstonewall\nrw=randread\n[d]\nrw=randwrite\n",
}
EXPECTED = {
    "one job": {"iops", "read.p99_ns"},
    "clones": {"iops"},
    "phases": {"first/iops", "then-this/iops", "first/read.p99_ns", "then-this/write.p99_ns"},
    "phases of several": {"a/iops", "c/iops", "a/read.p99_ns", "c/write.p99_ns"},
}


@pytest.mark.alone
@pytest.mark.parametrize("name", JOBS)
def test_the_same_jobs_have_the_same_metrics(name: str, tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text(COMMON + JOBS[name])
    command = ["fio", "--output-format=json", "--output=fio.json", "job.fio"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=True)
    spindle("run", "job.fio", "--output", "here.json", "-q", cwd=tmp_path)
    [theirs] = formats.read(tmp_path / "fio.json")
    ours, known = values(read(tmp_path / "here.json")), values(theirs)
    rates = {each: known[each] for each in known if each.endswith("iops")}
    assert rates
    assert {each: ours.get(each) for each in rates} == pytest.approx(rates, rel=0.2)
    shown = spindle("compare", "fio.json", "here.json", "--with-invalid", cwd=tmp_path)
    assert shown.status == 0, shown.err
    rows = {line.split()[0] for line in shown.out.splitlines() if line.split()}
    assert EXPECTED[name] <= rows
    assert "Not the same workload" not in shown.out
    mean = next(each for each in sorted(known) if each.endswith("mean_ns"))
    asked = spindle("compare", "fio.json", "here.json", "--with-invalid", "--metric", mean, cwd=tmp_path)
    assert mean in asked.out
