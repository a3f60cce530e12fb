"""Every option of fio and its conversion: the only source for the conversion and for docs/reference/fio-jobs.md."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from enum import StrEnum

NETWORK = "only files and block devices of this machine are driven"
LOCAL = "use io_uring or psync"
FIO = "3.33"
"""The version whose options these are."""


class Treatment(StrEnum):
    """Treatment of an option."""

    TAKEN = "taken"
    """Converted; limits and differences are in its text, and reported if they apply."""
    DIFFERS = "differs"
    NOTE = "note"
    ERROR = "error"


@dataclass(frozen=True)
class Option:
    """An option of fio 3.33."""

    name: str
    treatment: Treatment
    text: str
    """Its effect, or the alternative."""
    aliases: tuple[str, ...] = ()
    neutral: tuple[str, ...] = ()
    """Values that need no finding."""
    bare: bool = False
    """May be given without a value."""
    engines: tuple[str, ...] = ()
    """Only jobs of these engines have it; empty: all."""


def _taken(names: str, text: str, bare: bool = False) -> Option:
    name, *aliases = names.split("/")
    return Option(name, Treatment.TAKEN, text, tuple(aliases), (), bare)


def _rest(treatment: Treatment, *rows: tuple[str, str, str]) -> list[Option]:
    """Make options from rows of names, neutral values, text; `*` before a name: the value is optional."""
    found = []
    for names, neutral, text in rows:
        for group in names.split():
            name, *aliases = group.removeprefix("*").split("/")
            found.append(Option(name, treatment, text, tuple(aliases), tuple(neutral.split()), group.startswith("*")))
    return found


_TAKEN = [
    _taken("name", "name of the stream"),
    _taken("description", "a comment in the file that is written"),
    _taken(
        "filename",
        "the target, unless one is given on the command line. Several devices, or files that are there, in one or "
        "several jobs, are used as they are. Several files that are not there: a set of files for each list, made in "
        "the directory that is the target; there a list that shares only some files with another is refused",
    ),
    _taken(
        "directory",
        "the target, in which files are made; in front of `filename` if that is the same one file for all jobs. Of "
        "several the first is used, as in fio; refused for clones with files of their own, which fio deals out to them",
    ),
    _taken(
        "rw/readwrite",
        "read, write, trim, randread, randwrite, randtrim, rw, randrw, trimwrite, randtrimwrite. `read:4k` leaves "
        "gaps, `read:-8k` with requests of 4 KiB goes backwards, `randread:8` goes to a new place with every eighth "
        "request. Sequential reads and writes have a position each, as in fio. Refused: backwards with gaps or "
        "overlaps",
    ),
    _taken("rw_sequencer", "sequential or identical: where the other requests of `randread:8` go"),
    _taken(
        "percentage_random",
        "share of the requests that go to a new place; the others go on behind the one before. Refused if "
        "reads and writes differ, or, above 0, beside a `ba` other than the size",
    ),
    _taken("bs/blocksize", "request size, of reads, writes and trims"),
    _taken("bsrange/blocksize_range", "sizes with the chances fio gives them: multiples of the smallest"),
    _taken("bssplit", "a list of sizes with weights, of reads, writes and trims"),
    _taken("ba/blockalign", "alignment of random offsets; of no effect with percentage_random=0, as in fio"),
    _taken(
        "size",
        "region, and amount per clone; without it (or as a share) one pass through the target; shared by all files",
    ),
    _taken("io_size/io_limit", "amount per clone, rounded up to whole requests (that of size: down), as in fio"),
    _taken("filesize", "size of each file that is made, or drawn from a range; of one target, the end of the region"),
    _taken(
        "fill_device/fill_fs",
        "one pass through a device; a file grows until the last 6 % of its file system are left, which is reported",
    ),
    _taken(
        "file_append",
        "begins behind what earlier phases of the job file have written; of no effect on new files and devices",
    ),
    _taken(
        "zonemode",
        "strided: requests stay in a zone for zonesize bytes, then in the next, up to the end of the file, as in fio. "
        "Refused: zbd; reads and writes in order beside each other; several files",
    ),
    _taken("zonesize", "bytes moved in a zone"),
    _taken("zonerange", "length of a zone; zonesize without it"),
    _taken("zoneskip", "left out between two zones: bytes, or `2z` for so many times zonesize"),
    _taken(
        "offset/fileoffset",
        "start of the region. Random places are multiples of the request size of the target, which is reported "
        "where fio's, counted from the offset, are others; so is what fio 3.33 does to the writes of "
        "randtrimwrite",
    ),
    _taken("offset_increment", "each clone is a stream of its own"),
    _taken(
        "number_ios",
        "the stream ends after so many requests of each clone. Refused for trims before writes that may come to "
        "several rounds (`loops`, `io_size`): fio doubles it with each",
    ),
    _taken(
        "loops",
        "rounds as fio counts them: an engine that queues requests ends one after `size`, a synchronous one "
        "(and trims) at the end of the region, io_submit_mode=offload has one. The page cache is not "
        "dropped between them. fio draws the same places in each and syncs at the end of each (`end_fsync`), "
        "which is reported",
    ),
    _taken(
        "numjobs",
        "workers of one stream; clones that go through the same file in order, or have regions or popular places "
        "of their own, are a stream each. A stream's amount is shared: a faster worker does more of it",
    ),
    _taken("runtime/timeout", "measured time"),
    _taken("time_based", "the amount does not end the job", bare=True),
    _taken(
        "ramp_time",
        "time that is run but not counted; one for all jobs of a phase; what is moved in it does not count "
        "towards the amount",
    ),
    _taken("startdelay", "delay of the stream; from a range it is drawn by the seed, once for each clone"),
    _taken("iodepth", "outstanding requests of each worker; 1 where fio's engine can do no more"),
    _taken(
        "ioengine",
        'io_uring, libaio, posixaio: `engine="io_uring"`. sync, psync, vsync, pvsync, pvsync2: '
        '`engine="pread"`, one request at a time. mmap: a shared mapping (`mapped`), copies and msync. null: the '
        "target null:SIZE. libaio without direct=1 does one request at a time, as in fio. filecreate, filestat, "
        'filedelete: operations on names. Jobs with several engines: `engine="auto"`. Others are refused. vsync '
        "discards here; fio's writes, which is reported",
    ),
    _taken("direct", "O_DIRECT"),
    _taken("buffered", "the opposite of direct"),
    _taken("invalidate", "pages are dropped before with `drop_caches=True`; for buffered reads, 1 is reported"),
    _taken(
        "overwrite", "the blocks of the target are always there; a file that fio would have to make first is reported"
    ),
    _taken("sync", "sync is O_SYNC, dsync O_DSYNC"),
    _taken("fsync", "an fsync after each N-th write of a worker"),
    _taken("fdatasync", "an fdatasync after each N-th write of a worker; beside fsync it is refused"),
    _taken("end_fsync", "fdatasync at the end, inside the measured time; on a file the time stamp is left out"),
    _taken("rwmixread", "share of reads"),
    _taken("rwmixwrite", "share of writes; of this and rwmixread the later one applies"),
    _taken(
        "random_distribution",
        "random, zipf, pareto, zoned, zoned_abs as fio defines them (lengths left blank share the rest), "
        "drawn exactly, with the place of the most popular block; normal with the standard deviation that "
        "fio's sums have. zipf, pareto, normal: never a place that the region's end cuts off, which is reported; "
        "refused where fio counts places of another size than its requests have (`ba`, different sizes)",
    ),
    _taken(
        "norandommap",
        "places are drawn independently. Without it each is visited once before any twice; not so, which is reported, "
        "where requests may overlap (bsrange, bssplit, blockalign) or run on",
        bare=True,
    ),
    _taken(
        "rate",
        "bound in bytes per second for each clone; of a job that mixes, reads and writes are a stream each. "
        "Of trims before writes it bounds the writes, as in fio",
    ),
    _taken(
        "rate_iops",
        "bound in requests per second for each clone; of a job that mixes, reads and writes are a stream each",
    ),
    _taken(
        "rate_process", "linear: closed loop with an upper bound. poisson: open loop, latency from the intended start"
    ),
    _taken(
        "io_submit_mode",
        "offload with a rate: an open loop, latency from the intended start; without one, iodepth requests at a time "
        "with every engine, as in fio",
    ),
    _taken("thinktime", "the job lets its requests finish and pauses"),
    _taken("thinktime_spin", "so much of the pause keeps a CPU busy"),
    _taken("thinktime_blocks", "requests between two pauses"),
    _taken("thinktime_blocks_type", "they count when issued; `complete` with iodepth above 1 is reported"),
    _taken("thinktime_iotime", "time between two pauses"),
    _taken("prio", "level of the I/O priority; without prioclass the class is best-effort"),
    _taken("prioclass", "1 realtime, 2 best-effort, 3 idle"),
    _taken("randseed", "seed of the workload; of several jobs the first one's"),
    _taken("zero_buffers", "content is zeroes", bare=True),
    _taken("buffer_compress_percentage", "compressible content"),
    _taken(
        "dedupe_percentage",
        "share of the writes, whole requests, whose content was written before; refused with verify",
    ),
    _taken(
        "dedupe_mode",
        "repeat: that of the last write that was new, of each outstanding request; working_set: one of a worker's set",
    ),
    _taken("dedupe_working_set_percentage", "size of the set, as a share of size"),
    _taken("dedupe_global", "refused: each worker has a set of its own", bare=True),
    _taken(
        "stonewall/wait_for_previous",
        "begins a new phase; right at the start, if all jobs before it are still delayed (`startdelay`), as in fio",
        bare=True,
    ),
    _taken("wait_for", "a new phase, where no job would run beside the one that waits; refused otherwise"),
    _taken(
        "exitall",
        "the first clone that is done ends the others, whichever job says so, as in fio. Refused beside a job "
        "that waits (`wait_for`) in the same group: fio ends it before it begins",
        bare=True,
    ),
    _taken(
        "exit_what",
        "group, stonewall: the jobs that run at the same time (of the group); all: later phases, too, are not run",
    ),
    _taken(
        "trim_percentage",
        "of no effect without verify and trim_backlog, as in fio; refused with both, where fio 3.33 itself ends in an "
        "assertion",
    ),
    _taken("trim_backlog", "belongs to trim_percentage"),
    _taken("kb_base", "1000 or 1024: what k and Ki mean"),
    _taken(
        "nrfiles/nr_files",
        "files of each clone, made in the directory that is the target; refused on one file or device",
    ),
    _taken("file_service_type", "roundrobin, random, sequential, with `:N`; others are refused"),
    _taken(
        "openfiles",
        "all files stay open, which is reported where fio's would not; of no meaning on names, which are opened "
        "one at a time",
    ),
    _taken("stat_type", "of filestat: stat, lstat; for statx stat is called, which is reported"),
    _taken(
        "fallocate", "space is not reserved for files that are written first, which is reported; none asks for no more"
    ),
    _taken("create_serialize", "files are made before the run; 0 with clones that share files differs in fio"),
    _taken("fsync_on_close", "as end_fsync, which is reported"),
    _taken(
        "group_reporting",
        "clones are workers of one stream where they can be; fio's JSON has one job for each group",
        bare=True,
    ),
    _taken("new_group", "begins a group of fio's JSON", bare=True),
    _taken(
        "unified_rw_reporting",
        "fio's JSON reports reads, writes and trims as one (mixed), or that as well (both); the record has each",
    ),
    _taken("percentile_list", "percentiles of fio's JSON; the record keeps whole histograms"),
    _taken("write_bw_log", "written by `spindle run` of the job file, in fio's format", bare=True),
    _taken("write_lat_log", "the same; slat is empty and clat the whole latency", bare=True),
    _taken("write_iops_log", "the same", bare=True),
    _taken(
        "write_hist_log",
        "the same: a histogram for each window of log_hist_msec; the rest behind the last whole one, which fio leaves "
        "out, is written as well",
        bare=True,
    ),
    _taken("log_hist_msec", "length of the windows of write_hist_log, whose log is empty without it"),
    _taken("log_hist_coarseness", "so often are two neighbouring buckets made one"),
    _taken("log_avg_msec", "length of a log's windows"),
    _taken("log_max_value", "the largest latency of a window instead of the mean", bare=True),
    _taken("log_offset", "a column of a log", bare=True),
    _taken("log_unix_epoch", "times in logs count from 1970", bare=True),
    _taken("per_job_logs", "a log for each clone, with its number in the name"),
    _taken(
        "verify",
        "blocks that are written are checked where they are read and read back at the end (no part of the figures), "
        "whatever the check is called; null checks nothing. Refused where a job reads what this file has not written",
    ),
    _taken("verify_fatal", "ends the run at the first wrong block"),
    _taken("do_verify", "0: read back all the same, which is reported"),
    _taken("latency_target", "a search for the highest depth up to iodepth, each a run of its own; for one job alone"),
    _taken("latency_window", "length of each of its runs; 5 s without it"),
    _taken("latency_percentile", "share of the requests that have to keep it"),
    _taken("steadystate/ss", "iops:P%, bw:P%, iops_slope:P%, bw_slope:P%: until_steady; refused: absolute bounds"),
    _taken("steadystate_duration/ss_dur", "how long it must hold"),
    _taken("steadystate_ramp_time/ss_ramp", "ramp of the run: not counted at all, which is reported"),
    _taken(
        "cpus_allowed", "`cpus=` with `cpus_shared=True`: each worker may run on all of them; refused if jobs differ"
    ),
    _taken("cpumask", "the same; refused if jobs differ"),
    _taken("cpus_allowed_policy", "split: each clone is pinned to one of the CPUs in turn"),
    _taken("hipri", "`iopoll=True`; refused if jobs differ", bare=True),
    _taken("sqthread_poll", "`sqpoll=True`; refused if jobs differ", bare=True),
]

_DIFFER = _rest(
    Treatment.DIFFERS,
    (
        """
            iodepth_batch/iodepth_batch_submit iodepth_batch_complete_min/iodepth_batch_complete
            iodepth_batch_complete_max
        """,
        "1",
        "requests are handed over as soon as a slot is free",
    ),
    ("iodepth_low", "", "requests are handed over as soon as a slot is free"),
    (
        "rate_min/ratemin rate_iops_min max_latency",
        "0",
        "what falls short of it does not end the job; judge the record afterwards",
    ),
    ("buffer_pattern", "", "content is random, zeroes or compressible instead of this pattern"),
    (
        "verify_pattern",
        "",
        "fio checks what it has written by this pattern, with or without verify; verify=crc32c checks it here",
    ),
    (
        "verify_backlog verify_backlog_batch",
        "0",
        "without verify of no effect; with it all is read back at the end, nothing in between",
    ),
    ("experimental_verify", "0", "without verify of no effect; with it a table of what was written is kept in memory"),
    ("write_hint", "none", "the kernel gets no life time"),
    ("serialize_overlap", "0", "requests that overlap are not held back"),
    (
        "random_generator",
        "tausworthe tausworthe64",
        "the generator is Spindle's own; fio's lfsr visits each place once, and beside ba ends early",
    ),
    ("nice uid gid", "0", "not done; use nice or su around spindle"),
    ("lockmem", "0", "not done; use systemd-run around spindle"),
    (
        "*exitall_on_error continue_on_error ignore_error",
        "none 0",
        "an I/O error ends the run; `tolerate_errors=True` counts them instead",
    ),
    ("log_prio", "0", "the last column of a log is 0"),
    ("log_alternate_epoch", "0", "times in logs count from the start of the run; log_unix_epoch=1 counts from 1970"),
    ("hipri_percentage", "", "`iopoll=True` polls for all requests"),
    ("sqthread_poll_cpu", "", "the kernel's thread runs where it likes"),
)

_MADE = "files that are not there before the run are made for it, by filecreate in it, and removed after it"

_NOTES = _rest(
    Treatment.NOTE,
    (
        "lat_percentiles slat_percentiles",
        "0",
        "the record keeps whole histograms; every percentile can be had from them",
    ),
    ("rate_cycle/ratecycle", "", "a rate is kept evenly"),
    ("significant_figures", "4", "figures are shown with three digits, and whole with `json=True`"),
    ("disk_util", "1", "the device's own counters are always in the record"),
    ("allrandrepeat", "0", "the same seed gives the same requests; give another with `seed=`"),
    ("offset_align", "0", "a share of the target begins at a multiple of the request size"),
    ("buffer_compress_chunk", "512", "compressible content is laid out anew in each 4 KiB"),
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
            log_entries log_compression log_compression_cpus log_store_compressed
            log_alternate_epoch_clock_id bwavgtime iopsavgtime
        """,
        "0",
        "logs are written plain, from the completions, when the run is over",
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
        "the same seed gives the same requests; give another with `seed=`",
    ),
    (
        "softrandommap",
        "0",
        "the map is always there",
    ),
    (
        """
            create_on_open unlink unlink_each_loop filename_format
        """,
        "0 none native",
        _MADE,
    ),
    (
        "create_fsync allow_file_create unique_filename",
        "1",
        _MADE,
    ),
    (
        "allow_mounted_write",
        "0",
        "writing needs `erase=` for a device and `create=` for a file",
    ),
    (
        "mem/iomem mem_align/iomem_align hugepage-size thp",
        "malloc",
        "buffers are the engine's own: aligned, resident, huge pages from 512 KiB",
    ),
    (
        "fadvise_hint",
        "1",
        "no advice is given to the kernel",
    ),
    (
        "fixedbufs registerfiles nonvectored userspace_reap",
        "0",
        "the engine registers files and buffers where the kernel can",
    ),
    (
        "verify_interval verify_offset",
        "0",
        "without verify of no effect; with it every sector carries its stamp at its end",
    ),
    (
        "verify_async verify_dump",
        "0",
        "without verify of no effect; with it wrong blocks are counted and named in the record",
    ),
    ("verify_state_save", "1", "`verify_state=` keeps what was written, to be read back later"),
    (
        "trim_verify_zero trim_backlog_batch",
        "0",
        "of no effect without trim_percentage, which is reported by itself",
    ),
    (
        """
            latency_run zonecapacity read_beyond_wp max_open_zones job_max_open_zones ignore_zone_limits
            zone_reset_threshold zone_reset_frequency flow_id flow_sleep replay_no_stall replay_redirect
            replay_scale replay_align replay_time_scale replay_skip read_iolog_chunked merge_blktrace_file
            merge_blktrace_scalars merge_blktrace_iters cgroup_weight cgroup_nodelete
        """,
        "",
        "of no effect without the option it belongs to, which is reported by itself",
    ),
)

_ERRORS = _rest(
    Treatment.ERROR,
    ("numa_mem_policy numa_cpu_nodes", "", "remove it and start spindle with numactl"),
    ("rate_ignore_thinktime", "0", "a bound on the rate and a pause are kept independently"),
    (
        "*verify_only",
        "0",
        "what fio wrote has another form; `spindle verify` with `state=FILE` checks what a run has written",
    ),
    ("verify_state_load", "0", "the state that fio has saved is not read; use `spindle verify` with `state=FILE`"),
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
        "*bs_unaligned/blocksize_unaligned bs_is_seq_rand",
        "0",
        "sizes are multiples of the smallest one, the same for all requests",
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
        "`spindle run` with `create=SIZE` and `keep=True` makes a file",
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
        "cgroup",
        "",
        "start spindle in the group: systemd-run --scope",
    ),
    (
        "profile",
        "",
        "fio's profiles are programs of their own; see `spindle presets` for what comes near",
    ),
    (
        "flow",
        "0",
        "jobs are not balanced against each other",
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
    *(
        (names, "", f"belongs to ioengine={engine}, which is not there: {why}")
        for engine, why, names in (
            ("cpuio", "no engine burns CPU", "cpuload cpuchunks cpumode exit_on_io_done"),
            ("net", NETWORK, "hostname port protocol listen nodelay interface ttl pingpong window_size mss"),
            ("rdma", NETWORK, "bindname verb"),
            ("rbd", NETWORK, "rbdname clustername pool clientname busy_poll"),
            ("rados", NETWORK, "touch_objects conf"),
            ("libhdfs", NETWORK, "namenode chunk_size hdfsdirectory hdfs_use_direct"),
            ("gfapi", NETWORK, "volume brick single-instance"),
            (
                "http",
                NETWORK,
                """
                    http_host http_user http_pass https http_mode http_s3_region http_s3_key http_s3_keyid
                    http_swift_auth_token http_verbose
                """,
            ),
            ("nbd", NETWORK, "uri"),
            ("mtd", LOCAL, "skip_bad"),
            ("sg", "SCSI commands are not built; use io_uring", "readfua writefua sg_write_mode stream_id"),
            ("e4defrag", LOCAL, "donorname inplace"),
            ("exec", "no programs are started", "program arguments grace_time std_redirect"),
        )
    ),
)

_OF_ENGINES = {
    "stat_type": ("filestat",),
    "hipri": ("io_uring", "io_uring_cmd", "pvsync2", "sg"),
    "hipri_percentage": ("pvsync2",),
    "uncached": ("io_uring", "io_uring_cmd", "pvsync2"),
    "nowait": ("io_uring", "io_uring_cmd", "libaio", "pvsync2"),
    "thp": ("mmap",),
    "userspace_reap": ("libaio",),
    **dict.fromkeys(
        ("cmdprio_percentage", "cmdprio_class", "cmdprio", "cmdprio_bssplit"), ("io_uring", "io_uring_cmd", "libaio")
    ),
    **dict.fromkeys(
        (
            *("fixedbufs", "registerfiles", "sqthread_poll", "sqthread_poll_cpu"),
            *("nonvectored", "force_async", "cmd_type"),
        ),
        ("io_uring", "io_uring_cmd"),
    ),
}
"""Options of an engine that is there -> the engines that have it (`fio --enghelp=ENGINE`)."""

OPTIONS: dict[str, Option] = {
    option.name: replace(option, engines=_OF_ENGINES.get(option.name, ()))
    for option in (*_TAKEN, *_DIFFER, *_NOTES, *_ERRORS)
}
_BY_NAME = {name: option for option in OPTIONS.values() for name in (option.name, *option.aliases)}


def option_of(name: str) -> Option | None:
    """Return an option by its name or an alias."""
    return _BY_NAME.get(name)


def known_names() -> list[str]:
    """Return names and aliases of all options."""
    return list(_BY_NAME)


_PROFILES = {
    "act": "device-names load test-duration threads-per-queue read-req-num-512-blocks large-block-op-kbytes prep",
    "tiobench": "block numruns dir threads",
}
"""fio knows these beside their profile only."""


def unknown(name: str) -> str:
    """Return the message about an option that is not in the table."""
    for profile, names in _PROFILES.items():
        if name in names.split():
            return f"belongs to fio's profile={profile}, which is not there; remove both"
    return f"not known to this version of Spindle, which knows the options of fio {FIO}{nearest(name)}"


def nearest(name: str) -> str:
    """Return the nearest name as the end of a sentence; empty: nothing is near."""
    near = difflib.get_close_matches(name[:40], _BY_NAME, n=1, cutoff=0.7)
    return f"; did you mean `{near[0]}`?" if near else ""
