"""Every option of fio and what becomes of it: the one source for the conversion and for docs/fio-jobs.md."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from enum import StrEnum


class Fate(StrEnum):
    """What becomes of an option."""

    TAKEN = "taken"
    """Its meaning is carried over; limits and differences are in its text, and told where they matter."""
    NOTE = "note"
    ERROR = "error"


@dataclass(frozen=True)
class Option:
    """An option of fio 3.33."""

    name: str
    fate: Fate
    text: str
    """What happens with it, or instead of it."""
    aliases: tuple[str, ...] = ()
    neutral: tuple[str, ...] = ()
    """Values that ask for nothing special: not worth a line."""
    bare: bool = False
    """May stand without a value."""


def _taken(names: str, text: str, bare: bool = False) -> Option:
    name, *aliases = names.split("/")
    return Option(name, Fate.TAKEN, text, tuple(aliases), (), bare)


def _rest(fate: Fate, *rows: tuple[str, str, str]) -> list[Option]:
    """Rows of names, values that ask for nothing, text; `*` before a name: the option may stand bare."""
    found = []
    for names, neutral, text in rows:
        for group in names.split():
            name, *aliases = group.removeprefix("*").split("/")
            found.append(Option(name, fate, text, tuple(aliases), tuple(neutral.split()), group.startswith("*")))
    return found


_TAKEN = [
    _taken("name", "name of the stream"),
    _taken("description", "a comment in the file that is written"),
    _taken("filename", "the target, unless one is given on the command line; one file for all jobs of a phase"),
    _taken("directory", "in front of `filename`; without one, the jobs' own files lie side by side on the target"),
    _taken(
        "rw/readwrite",
        "read, write, trim, randread, randwrite, randtrim, rw, randrw; `read:4k` is a strided pattern. "
        "Sequential rw has one position for reads and writes together (fio: one each). "
        "Refused: trimwrite, randtrimwrite, randread:N",
    ),
    _taken("bs/blocksize", "request size; refused if reads and writes of one job differ"),
    _taken("bsrange/blocksize_range", "sizes with the chances fio gives them: multiples of the smallest"),
    _taken("bssplit", "a list of sizes with weights; refused if reads and writes of one job differ"),
    _taken("ba/blockalign", "alignment of random offsets"),
    _taken("size", "region, and amount per clone; without it the whole target, which needs runtime and time_based"),
    _taken("io_size/io_limit", "amount per clone, rounded up to whole requests (that of size: down), as in fio"),
    _taken("filesize", "end of the region; a range is refused"),
    _taken("offset/fileoffset", "start of the region"),
    _taken("offset_increment", "each clone is a stream of its own"),
    _taken("number_ios", "the stream ends after so many requests of each clone"),
    _taken("loops", "the amount times this; the page cache is not dropped between the rounds"),
    _taken(
        "numjobs",
        "workers of one stream; clones that go through the same file in order, or have regions or popular places "
        "of their own, are a stream each. A stream's amount is shared: a faster worker does more of it",
    ),
    _taken("runtime/timeout", "measured time"),
    _taken("time_based", "the amount does not end the job", bare=True),
    _taken(
        "ramp_time",
        "time that is run but not counted; one for all jobs of a phase; what is moved in it does not "
        "count towards the amount",
    ),
    _taken("startdelay", "delay of the stream; a range is refused"),
    _taken("iodepth", "outstanding requests of each worker; 1 where fio's engine can do no more"),
    _taken(
        "ioengine",
        "io_uring, libaio: `--engine io_uring`. sync, psync, pvsync, pvsync2: `--engine pread`, one request at a time. "
        "posixaio: io_uring. libaio without direct=1 does one request at a time, as in fio. Others are refused",
    ),
    _taken("direct", "O_DIRECT"),
    _taken("buffered", "the opposite of direct"),
    _taken("invalidate", "pages are dropped before with --drop-caches; for buffered reads, 1 is told"),
    _taken("overwrite", "the blocks of the target are always there; a file that fio would have to make first is told"),
    _taken("sync", "dsync is O_DSYNC. sync (O_SYNC) is the same on a block device, refused on files"),
    _taken("fsync", "an fsync after each N-th write of a worker"),
    _taken("fdatasync", "an fsync, which is the same on a block device; refused on files"),
    _taken("end_fsync", "fdatasync at the end, inside the measured time; on a file the time stamp is left out"),
    _taken("rwmixread", "share of reads"),
    _taken("rwmixwrite", "share of writes; it wins over rwmixread if both are given and do not add up"),
    _taken(
        "random_distribution",
        "random, zipf:theta (drawn exactly, fio approximates). Refused: pareto, normal, zoned, zoned_abs, a centre",
    ),
    _taken(
        "norandommap",
        "places are drawn independently; without it fio visits each place once per pass, which is told",
        bare=True,
    ),
    _taken("rate", "bound in bytes per second for each clone; refused for jobs that mix reads and writes"),
    _taken("rate_iops", "bound in requests per second for each clone; refused for jobs that mix reads and writes"),
    _taken(
        "rate_process", "linear: closed loop with an upper bound. poisson: open loop, latency from the intended start"
    ),
    _taken("thinktime", "pause before each next request; refused with iodepth above 1"),
    _taken("thinktime_blocks", "1; anything else is refused"),
    _taken("prio", "level of the I/O priority; without prioclass the class is best-effort"),
    _taken("prioclass", "1 realtime, 2 best-effort, 3 idle"),
    _taken("randseed", "seed of the workload; of several jobs the first one's"),
    _taken("zero_buffers", "content is zeroes", bare=True),
    _taken("buffer_compress_percentage", "compressible content"),
    _taken("stonewall/wait_for_previous", "begins a new phase: a workload file of its own", bare=True),
    _taken("exitall", "has no effect if the phase has one job; refused otherwise", bare=True),
    _taken("kb_base", "1000 or 1024: what k and Ki mean"),
    _taken("nrfiles/nr_files", "1; more files are refused, unless filename is given, as fio ignores it then"),
]

_NOTES = _rest(
    Fate.NOTE,
    (
        "percentile_list lat_percentiles slat_percentiles",
        "0",
        "the record keeps whole histograms; every percentile can be had from them",
    ),
    ("significant_figures", "4", "figures are shown with three digits, and whole in --json"),
    ("disk_util", "1", "the device's own counters are always in the record"),
    ("per_job_logs", "1", "no log is written; the record has a series with a row each second"),
    ("allrandrepeat", "0", "the same seed gives the same requests; give another with --seed"),
    ("offset_align", "0", "a share of the target begins at a multiple of the request size"),
    ("buffer_compress_chunk", "512", "compressible content is laid out anew in each 4 KiB"),
    (
        """
            iodepth_batch/iodepth_batch_submit iodepth_batch_complete_min/iodepth_batch_complete
            iodepth_batch_complete_max iodepth_low
        """,
        "1",
        "requests are handed over as soon as a slot is free",
    ),
    (
        "*group_reporting *new_group unified_rw_reporting",
        "0 none",
        "the record has every stream, and all together",
    ),
    (
        "*thread",
        "",
        "a worker is always a thread",
    ),
    (
        "clat_percentiles stats",
        "1",
        "the record keeps whole histograms; every percentile can be had from them",
    ),
    (
        """
            write_bw_log write_lat_log write_iops_log write_hist_log log_avg_msec log_hist_msec
            log_hist_coarseness log_entries log_max_value log_offset log_prio log_compression
            log_compression_cpus log_store_compressed log_unix_epoch log_alternate_epoch
            log_alternate_epoch_clock_id bwavgtime iopsavgtime
        """,
        "0",
        "no log is written; the record has a series with a row each second",
    ),
    (
        """
            disable_lat disable_clat disable_slat disable_bw_measurement/disable_bw gtod_reduce gtod_cpu
            clocksource unit_base error_dump block_error_percentiles
        """,
        "0",
        "every request is timed and the record is complete; it cannot be switched off",
    ),
    (
        "*refill_buffers",
        "0",
        "no two blocks that are written are equal",
    ),
    (
        "scramble_buffers",
        "1",
        "no two blocks that are written are equal",
    ),
    (
        "randrepeat ",
        "1",
        "the same seed gives the same requests; give another with --seed",
    ),
    (
        "random_generator softrandommap",
        "tausworthe tausworthe64 0",
        "the generator is Spindle's own; places are drawn independently",
    ),
    (
        """
            fallocate create_on_open unlink unlink_each_loop openfiles filename_format
        """,
        "0 none native",
        "the target exists before the run, or --create makes it, written in full, and removes it",
    ),
    (
        "create_serialize create_fsync allow_file_create unique_filename",
        "1",
        "the target exists before the run, or --create makes it, written in full, and removes it",
    ),
    (
        "allow_mounted_write",
        "0",
        "writing needs --erase for a device and --create for a file",
    ),
    (
        "mem/iomem mem_align/iomem_align hugepage-size",
        "malloc",
        "buffers are the engine's own: aligned, resident, huge pages from 512 KiB",
    ),
    (
        "lockmem nice uid gid",
        "0",
        "not done; use systemd-run, nice or su around spindle",
    ),
    (
        "fadvise_hint",
        "1",
        "no advice is given to the kernel",
    ),
    (
        "io_submit_mode",
        "inline",
        "the open loop (rate_process=poisson) keeps its times without it",
    ),
    (
        "fixedbufs registerfiles nonvectored userspace_reap",
        "0",
        "the engine registers files and buffers where the kernel can",
    ),
    (
        "*exitall_on_error continue_on_error ignore_error",
        "none 0",
        "an I/O error ends the run; --tolerate-errors counts them instead",
    ),
    (
        """
            do_verify verify_interval verify_offset verify_fatal verify_dump verify_async
            verify_backlog verify_backlog_batch verify_state_load verify_state_save experimental_verify
            trim_verify_zero trim_backlog trim_backlog_batch
        """,
        "",
        "of no effect without verify, which is told by itself",
    ),
    (
        "thinktime_blocks_type rate_cycle/ratecycle ",
        "complete",
        "of no effect here: a pause follows each request and a rate is kept evenly",
    ),
    (
        """
            latency_window latency_percentile latency_run steadystate_duration/ss_dur
            steadystate_ramp_time/ss_ramp dedupe_mode dedupe_working_set_percentage dedupe_global
            zonerange zonecapacity zoneskip read_beyond_wp max_open_zones job_max_open_zones ignore_zone_limits
            zone_reset_threshold zone_reset_frequency flow_id flow_sleep replay_no_stall replay_redirect
            replay_scale replay_align replay_time_scale replay_skip read_iolog_chunked merge_blktrace_file
            merge_blktrace_scalars merge_blktrace_iters cgroup_weight cgroup_nodelete exit_what
        """,
        "",
        "of no effect without the option it belongs to, which is told by itself",
    ),
)

_ERRORS = _rest(
    Fate.ERROR,
    ("verify_pattern", "", "data is not read back and compared; remove it to measure without the check"),
    ("zonesize", "0", "zones are not modelled"),
    ("serialize_overlap", "0", "requests that overlap are not held back"),
    ("numa_mem_policy", "", "remove it and start spindle with numactl"),
    ("rate_ignore_thinktime", "0", "a bound on the rate and a pause are kept independently"),
    (
        "verify",
        "0 none",
        "data is not read back and compared; remove it to measure without the check",
    ),
    (
        "*verify_only",
        "0",
        "data is not read back and compared",
    ),
    (
        "trim_percentage",
        "0",
        "only whole jobs trim: rw=trim or randtrim",
    ),
    (
        "opendir",
        "",
        "one file or device is the target; name it with filename",
    ),
    (
        "lockfile",
        "none",
        "files are not locked",
    ),
    (
        "file_append",
        "0",
        "the target keeps its size; use offset",
    ),
    (
        "fill_device/fill_fs",
        "0",
        "nothing writes until the device is full; give size",
    ),
    (
        "percentage_random",
        "100",
        "a mix of sequential and random requests: use two jobs, or the native pattern `runs`",
    ),
    (
        "*bs_unaligned/blocksize_unaligned bs_is_seq_rand",
        "0",
        "sizes are multiples of the smallest one, the same for all requests",
    ),
    (
        "rw_sequencer",
        "sequential",
        "offsets are not repeated",
    ),
    (
        "file_service_type",
        "roundrobin random sequential",
        "one file or device is the target",
    ),
    (
        "wait_for",
        "",
        "jobs run at the same time or, with stonewall, one after another",
    ),
    (
        "fsync_on_close",
        "0",
        "use end_fsync",
    ),
    (
        "atomic",
        "0",
        "O_ATOMIC is not used",
    ),
    (
        "write_barrier sync_file_range",
        "0",
        "use fsync",
    ),
    (
        "pre_read",
        "0",
        "read the target once beforehand",
    ),
    (
        "create_only",
        "0",
        "`spindle run --create SIZE --keep` makes a file",
    ),
    (
        "write_hint",
        "none",
        "no life time is told to the kernel",
    ),
    (
        "dedupe_percentage",
        "0",
        "no two blocks that are written are equal",
    ),
    (
        "buffer_pattern",
        "",
        "content is random, zeroes or compressible",
    ),
    (
        "write_iolog read_iolog",
        "",
        "requests are neither recorded nor replayed",
    ),
    (
        "exec_prerun exec_postrun",
        "",
        "a job file does not run commands; run them around spindle",
    ),
    (
        "ioscheduler",
        "",
        "use `spindle knobs` to set the scheduler before the run",
    ),
    (
        "zonemode",
        "none",
        "zones are not modelled",
    ),
    (
        "thinktime_spin thinktime_iotime",
        "0",
        "a pause does not burn CPU and follows each request",
    ),
    (
        "rate_min/ratemin rate_iops_min max_latency",
        "0",
        "no lower bound ends the run; judge the record afterwards",
    ),
    (
        "latency_target",
        "0",
        "depth is not steered by latency; `spindle run --find-knee` searches the concurrency",
    ),
    (
        "steadystate/ss",
        "",
        "another criterion is used: remove it and give --until-steady",
    ),
    (
        "cpumask cpus_allowed cpus_allowed_policy numa_cpu_nodes",
        "",
        "remove it and give --cpus LIST",
    ),
    (
        "cgroup",
        "",
        "start spindle in the group: systemd-run --scope",
    ),
    (
        "profile",
        "",
        "profiles are not known; see `spindle presets`",
    ),
    (
        "flow",
        "0",
        "jobs are not balanced against each other",
    ),
    (
        "hipri hipri_percentage",
        "0",
        "remove it and give --iopoll",
    ),
    (
        "sqthread_poll sqthread_poll_cpu",
        "0",
        "remove it and give --sqpoll",
    ),
    (
        "cmdprio_percentage cmdprio_class cmdprio cmdprio_bssplit",
        "0",
        "a stream has one priority; use a job of its own with prio",
    ),
    (
        "uncached nowait force_async cmd_type",
        "0",
        "requests carry no such flags",
    ),
    (
        "cpuload cpuchunks cpumode exit_on_io_done",
        "",
        "no engine burns CPU",
    ),
    (
        """
            hostname port protocol listen nodelay interface ttl pingpong window_size mss bindname clustername
            rbdname pool clientname busy_poll touch_objects namenode chunk_size hdfsdirectory hdfs_use_direct
            volume brick skip_bad readfua writefua sg_write_mode stat_type donorname inplace program arguments
            grace_time std_redirect http_host http_user http_pass https http_mode http_s3_region http_s3_key
            http_s3_keyid http_swift_auth_token http_verbose uri verb
        """,
        "",
        "belongs to an ioengine that is not there; only files and block devices are driven",
    ),
)

OPTIONS: dict[str, Option] = {option.name: option for option in (*_TAKEN, *_NOTES, *_ERRORS)}
_BY_NAME = {name: option for option in OPTIONS.values() for name in (option.name, *option.aliases)}


def option_of(name: str) -> Option | None:
    """An option by its name or an alias."""
    return _BY_NAME.get(name)


def nearest(name: str) -> str:
    """What may have been meant, as the end of a sentence; empty: nothing is near."""
    near = difflib.get_close_matches(name[:40], _BY_NAME, n=1, cutoff=0.7)
    return f"; did you mean `{near[0]}`?" if near else ""
