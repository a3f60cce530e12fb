"""Random job files over the options that the converter takes, which its own table lists.

Options with a grammar of their own have a function in `VALUES`; any other option of the table is drawn by what
`fio --cmdhelp` says of its values, so that one that is newly carried over is tried without a change here. What is left
out is in `LEFT_OUT` with its reason.
"""

from __future__ import annotations

import functools
import random
import re
import subprocess
from collections.abc import Callable

from spindle.formats.fio_job.options import OPTIONS, Treatment

from .jobs import JobFile, Options

KIB = 1024
_NOT_REQUESTS = "no request depends on it"

LEFT_OUT: dict[str, str] = {
    "name": "the section's name is used",
    "filename": "set by the fuzzer: the device, or files of the job",
    "directory": "set by the fuzzer: the current directory",
    "description": _NOT_REQUESTS,
    "buffered": "requests through the page cache are not those of the program",
    "direct": "always 1: requests through the page cache are not those of the program",
    "invalidate": "concerns the page cache",
    "fill_device": "ends at the end of the device; `size` left out does the same",
    "kb_base": "units are tried by tests/fio_job/corpus",
    "stat_type": "operations on names are no requests",
    "percentile_list": _NOT_REQUESTS,
    "write_bw_log": "the logs' own tests",
    "write_lat_log": "the logs' own tests",
    "write_iops_log": "the logs' own tests",
    "log_avg_msec": "the logs' own tests",
    "log_max_value": "the logs' own tests",
    "log_offset": "the logs' own tests",
    "log_unix_epoch": "the logs' own tests",
    "per_job_logs": "the logs' own tests",
    "verify_fatal": "nothing is wrong to end it",
    "latency_target": "is a search of many runs, as each conversion says",
    "latency_window": "of latency_target",
    "latency_percentile": "of latency_target",
    "steadystate": "takes longer than a job may here",
    "steadystate_duration": "of steadystate",
    "steadystate_ramp_time": "of steadystate",
    "hipri": "needs a device that polls",
    "sqthread_poll": "requests are the kernel thread's",
    "nice": "not of the job's requests",
    "uid": "not of the job's requests",
    "gid": "not of the job's requests",
    "lockmem": "not of the job's requests",
    "log_entries": _NOT_REQUESTS,
    "write_hist_log": "the logs' own tests",
    "log_hist_msec": "the logs' own tests",
    "log_hist_coarseness": "the logs' own tests",
    "log_alternate_epoch_clock_id": "the logs' own tests",
    "mem": "some need huge pages or a device",
    "hugepage-size": "needs huge pages",
    "unlink": "the fuzzer removes the files",
    "unlink_each_loop": "removes files between rounds",
    "filename_format": "names are the fuzzer's",
    "unique_filename": "names are the fuzzer's",
    "replay_redirect": "of read_iolog",
    "read_iolog_chunked": "of read_iolog",
    "merge_blktrace_file": "of read_iolog",
    "merge_blktrace_scalars": "of read_iolog",
    "merge_blktrace_iters": "of read_iolog",
    "gtod_cpu": "takes a CPU away from both tools",
    "verify_dump": "writes files",
    "verify_state_save": "writes files",
    "max_latency": "ends jobs by chance on a busy machine",
    "rate_min": "ends jobs by chance on a busy machine",
    "rate_iops_min": "ends jobs by chance on a busy machine",
    "exit_what": "of exitall",
    "cgroup_weight": "of cgroup",
    "cgroup_nodelete": "of cgroup",
    "create_on_open": "fio makes the files while it runs",
    "allow_file_create": "fio is not to go without its files",
    "ignore_error": "no error occurs",
    "continue_on_error": "no error occurs",
    "write_hint": "the kernel may refuse it",
    "hipri_percentage": "of hipri",
    "sqthread_poll_cpu": "of sqthread_poll",
}
"""Options of the table that are not drawn, each with the reason."""

ENGINES = ("psync", "sync", "pvsync", "pvsync2", "vsync", "io_uring", "libaio", "posixaio")
KINDS = ("read", "write", "randread", "randwrite", "rw", "randrw", "trim", "randtrim", "trimwrite", "randtrimwrite")
MOST_SECTIONS = 3


class Draw:
    """One section in the making: what was drawn so far decides what comes."""

    def __init__(self, rng: random.Random, engine: str, folder: bool) -> None:
        self.rng, self.engine, self.folder = rng, engine, folder
        kinds = [kind for kind in KINDS if not folder or "trim" not in kind]
        self.kind = rng.choice(kinds)
        self.block = rng.choice((512, 2 * KIB, 4 * KIB, 4 * KIB, 8 * KIB, 12 * KIB, 16 * KIB, 32 * KIB))
        if "trim" in self.kind:  # the kernel splits discards that are not aligned to its granularity
            self.block += -self.block % (4 * KIB)
        self.paced = False

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    @property
    def random(self) -> bool:
        return self.kind.startswith("rand")

    @property
    def mixed(self) -> bool:
        return self.kind in ("rw", "randrw")

    @property
    def writes(self) -> bool:
        return self.mixed or self.kind.endswith("write")

    def size(self, low: int = 64, high: int = 512) -> str:
        """Bytes, mostly whole requests."""
        size = self.rng.randint(low, high) * KIB
        if self.chance(0.8):
            size -= size % self.block
        return number(max(size, self.block))


def number(size: int) -> str:
    """As people write it."""
    return f"{size // KIB}k" if size % KIB == 0 else str(size)


def _rw(draw: Draw) -> str:
    if draw.random and draw.chance(0.15):
        return f"{draw.kind}:{draw.rng.choice((2, 3, 8))}"
    if not draw.random and "trimwrite" not in draw.kind and draw.chance(0.2):
        skip = draw.rng.choice((draw.block, 2 * draw.block, 3 * draw.block, -2 * draw.block, -draw.block))
        return f"{draw.kind}:{number(skip) if skip > 0 else '-' + number(-skip)}"
    return draw.kind


def _three(draw: Draw, one: Callable[[], str]) -> str:
    """One value, or one each for reads, writes and trims."""
    if draw.chance(0.75):
        return one()
    return ",".join(one() for _ in range(draw.rng.choice((2, 3))))


def _block(draw: Draw) -> str:
    return number(draw.block * draw.rng.choice((1, 1, 1, 2, 3)))


def _bs(draw: Draw) -> str:
    return _three(draw, lambda: number(draw.block)) if draw.chance(0.8) else _three(draw, lambda: _block(draw))


def _bsrange(draw: Draw) -> str:
    return _three(draw, lambda: f"{number(draw.block)}-{number(draw.block * draw.rng.choice((1, 2, 3, 4)))}")


def _bssplit(draw: Draw) -> str:
    def one() -> str:
        first = draw.rng.choice((10, 30, 50, 60))
        return draw.rng.choice(
            (
                f"{number(draw.block)}/{first}:{number(2 * draw.block)}/{100 - first}",
                f"{number(draw.block)}/{first}:{number(2 * draw.block)}/:{number(4 * draw.block)}/",
                f"{number(draw.block)}/100",
            )
        )

    return _three(draw, one)


def _distribution(draw: Draw) -> str | None:
    if not draw.random:
        return None
    return draw.rng.choice(
        ("random", "zipf:1.2", "zipf", "pareto:0.3", "normal:20", "zoned:60/10:30/40:10/50", "zoned:50/5:50/95")
    )


def _percent_or(draw: Draw, value: str, share: float = 0.15) -> str:
    return f"{draw.rng.choice((5, 10, 25, 40))}%" if draw.chance(share) else value


def _offset(draw: Draw) -> str:
    return _percent_or(draw, number(draw.block * draw.rng.randint(0, 24)))


def _rate(draw: Draw) -> str | None:
    draw.paced = True
    return _three(draw, lambda: number(draw.block * draw.rng.choice((400, 800, 2000))))


def _rate_iops(draw: Draw) -> str | None:
    draw.paced = True
    return _three(draw, lambda: str(draw.rng.choice((300, 500, 1500))))


def _thinktime(draw: Draw) -> str | None:
    draw.paced = True
    return draw.rng.choice(("500", "1ms", "2500"))


def _cpus(draw: Draw) -> str:
    return draw.rng.choice(("0", "1", "0-1", "0,1"))


def _choice(*values: str) -> Callable[[Draw], str]:
    return lambda draw: draw.rng.choice(values)


def _only(when: Callable[[Draw], bool], value: Callable[[Draw], str | None]) -> Callable[[Draw], str | None]:
    return lambda draw: value(draw) if when(draw) else None


def _writes(draw: Draw) -> bool:
    return draw.writes


VALUES: dict[str, tuple[float, Callable[[Draw], str | None]]] = {
    "bs": (0.75, _bs),
    "bsrange": (0.12, _bsrange),
    "bssplit": (0.12, _bssplit),
    "ba": (0.08, _only(lambda draw: draw.random, lambda draw: number(draw.block * draw.rng.choice((1, 2, 4))))),
    "rw_sequencer": (0.1, _choice("sequential", "identical")),
    "percentage_random": (0.12, _only(lambda draw: draw.random, _choice("0", "30", "70", "100"))),
    "size": (0.85, lambda draw: _percent_or(draw, draw.size(), 0.08)),
    "io_size": (0.2, lambda draw: draw.size(16, 900)),
    "filesize": (0.15, lambda draw: draw.size(128, 700)),
    "offset": (0.25, _offset),
    "offset_increment": (0.1, lambda draw: number(draw.block * draw.rng.randint(1, 32))),
    "number_ios": (0.3, lambda draw: str(draw.rng.randint(1, 60))),
    "loops": (0.2, _choice("1", "2", "3")),
    "numjobs": (0.2, _choice("1", "2", "3")),
    "runtime": (0.12, _choice("200ms", "150ms")),
    "time_based": (0.1, _choice("1", "", "0")),
    "ramp_time": (0.02, _choice("100ms")),
    "startdelay": (0.06, _choice("50ms", "20ms-80ms")),
    "iodepth": (0.35, _choice("1", "2", "4", "16")),
    "overwrite": (0.1, _choice("0", "1")),
    "sync": (0.1, _only(_writes, _choice("0", "1", "sync", "dsync", "none"))),
    "fsync": (0.25, _only(_writes, _choice("1", "3", "4", "8", "0"))),
    "fdatasync": (0.12, _only(_writes, _choice("1", "2", "5"))),
    "end_fsync": (0.12, _only(_writes, _choice("1", "0"))),
    "fsync_on_close": (0.08, _only(_writes, _choice("1", "0"))),
    "rwmixread": (0.25, _only(lambda draw: draw.mixed, _choice("0", "20", "50", "70", "100"))),
    "rwmixwrite": (0.15, _only(lambda draw: draw.mixed, _choice("10", "50", "90"))),
    "random_distribution": (0.2, _distribution),
    "norandommap": (0.25, _only(lambda draw: draw.random, _choice("", "1", "0"))),
    "rate": (0.07, _rate),
    "rate_iops": (0.09, _rate_iops),
    "rate_process": (0.08, _choice("linear", "poisson")),
    "thinktime": (0.1, _thinktime),
    "thinktime_spin": (0.05, _choice("300", "1ms")),
    "thinktime_blocks": (0.08, _choice("1", "4", "10")),
    "thinktime_blocks_type": (0.05, _choice("complete", "issue")),
    "thinktime_iotime": (0.02, _choice("5ms")),
    "prio": (0.08, _choice("0", "3", "7")),
    "prioclass": (0.08, _choice("1", "2", "3")),
    "randseed": (0.1, _choice("1", "77")),
    "zero_buffers": (0.05, _choice("", "1", "0")),
    "buffer_compress_percentage": (0.05, _choice("0", "50", "100")),
    "wait_for": (0.0, lambda draw: None),
    "exitall": (0.04, _choice("")),
    "nrfiles": (0.4, _only(lambda draw: draw.folder, _choice("1", "2", "3", "5"))),
    "file_service_type": (
        0.3,
        _only(lambda draw: draw.folder, _choice("roundrobin", "sequential", "random", "roundrobin:4", "random:3")),
    ),
    "openfiles": (0.1, _only(lambda draw: draw.folder, _choice("1", "2"))),
    "fallocate": (0.3, _only(lambda draw: draw.folder, _choice("none", "native", "posix"))),
    "verify": (0.05, _only(_writes, _choice("crc32c", "md5", "null", "0"))),
    "cpus_allowed": (0.06, _cpus),
    "cpumask": (0.04, _choice("1", "2", "3")),
    "io_submit_mode": (0.08, _choice("inline", "offload")),
    "iodepth_batch": (0.06, _choice("1", "2", "4")),
    "iodepth_low": (0.04, _choice("1", "2")),
    "buffer_pattern": (0.03, _choice("0xdeadbeef")),
    "verify_pattern": (0.02, _choice("0xff")),
    "unified_rw_reporting": (0.03, _choice("0", "1", "both")),
    "clocksource": (0.03, _choice("clock_gettime", "cpu")),
    "offset_align": (0.04, lambda draw: number(draw.block)),
    "mem_align": (0.03, _choice("4096")),
}
"""How likely an option is, and its value: None where it makes no sense."""
ANY = 0.02
"""How likely one is that is drawn by fio's own description."""


def drawn() -> dict[str, tuple[float, Callable[[Draw], str | None]]]:
    """Every option that is tried: those of the converter's table that are taken, differ or are noted."""
    found = {}
    for option in OPTIONS.values():
        if option.treatment is Treatment.ERROR or option.name in LEFT_OUT or option.name in SET:
            continue
        if option.name in VALUES:
            found[option.name] = VALUES[option.name]
        elif values := described(option.name):
            found[option.name] = (ANY, _choice(*values, *([""] if option.bare else [])))
    return found


SET = ("rw", "ioengine", "stonewall", "group_reporting", "new_group", "thread", "direct")
"""Drawn by `job_file` itself."""


def not_drawn() -> dict[str, str]:
    """Options of the table that are not tried -> why."""
    tried = set(drawn()) | set(SET)
    rest = [o.name for o in OPTIONS.values() if o.treatment is not Treatment.ERROR and o.name not in tried]
    return {name: LEFT_OUT.get(name, "fio does not describe its values") for name in rest}


@functools.cache
def described(option: str) -> tuple[str, ...]:
    """Values that `fio --cmdhelp` lists for an option; none: it does not."""
    text = subprocess.run(["fio", f"--cmdhelp={option}"], capture_output=True, text=True, check=False).stdout
    if "valid values:" in text:
        behind = text.split("valid values:", 1)[1]
        return tuple(re.findall(r"^\s*:?\s*([a-z0-9_]+)\s", behind, flags=re.M))
    if "type: boolean value" in text or "no argument" in text:
        return ("0", "1")
    default = re.search(r"default: (\d+)\s", text)
    if "type: integer value" in text:
        return tuple(dict.fromkeys((default[1] if default else "1", "1", "2")))
    return ()


def job_file(rng: random.Random) -> JobFile:
    """One to three jobs; seldom on files, mostly on the device."""
    folder = rng.random() < 0.3
    engine = rng.choice(ENGINES)
    names = rng.random()
    common: Options = {"direct": "1"}
    if rng.random() < 0.15:
        common["group_reporting"] = ""
    if folder and names < 0.4:
        common["filename"] = rng.choice(("data", "data", "one:two"))
    if engine != "psync":
        common["ioengine"] = engine
    count = rng.choice((1, 1, 1, 2, 2, MOST_SECTIONS))
    if count == 1 and engine != "posixaio" and rng.random() < 0.3:
        common["thread"] = ""  # threads of several jobs share what glibc and fio open
    sections: list[tuple[str, Options]] = []
    for at in range(count):
        options = _section(Draw(rng, engine, folder), at)
        if at and "stonewall" not in options and rng.random() < 0.15:
            options["wait_for"] = sections[-1][0]
        sections.append((f"j{at}", options))
    return JobFile(tuple(sections), folder, common)


def _section(draw: Draw, at: int) -> Options:
    options: Options = {"rw": _rw(draw)}
    if at and draw.chance(0.6):
        options["stonewall"] = ""
    if draw.chance(0.05):
        options["new_group"] = ""
    chosen = [(name, value) for name, (likely, value) in drawn().items() if draw.chance(likely)]
    draw.rng.shuffle(chosen)
    for name, value in chosen:
        text = value(draw)
        if text is not None:
            options[name] = text
    if not draw.folder and "size" not in options and "number_ios" not in options and "io_size" not in options:
        options["size"] = draw.size()
    if draw.folder and "size" not in options and "filesize" not in options:
        options["size"] = draw.size()
    if draw.paced and "number_ios" not in options and "runtime" not in options:
        options["number_ios"] = str(draw.rng.randint(10, 60))
    return options
