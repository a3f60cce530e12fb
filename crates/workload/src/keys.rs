//! Every key of a workload file: the one table behind parsing, suggestions, the command line's options and
//! the documentation.

use serde::Serialize;

use crate::request::Op;
use crate::spec::{Each, FileService, Order, PriorityClass, Spacing, SteadyMetric};

/// One key.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Key {
    /// Name in a file, with underscores.
    pub name: &'static str,
    /// Tables in which the key is allowed.
    pub level: Level,
    /// Type of its value.
    pub kind: Kind,
    /// One line for people.
    pub help: &'static str,
    /// Value if the key is absent, as it would be written.
    pub default: &'static str,
    /// An example of a value.
    pub example: &'static str,
    /// Names allowed, if `kind` is a choice.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub choices: &'static [&'static str],
    /// Name of the option that says false, for a flag that has a word for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opposite: Option<&'static str>,
    /// True if the key can be given on the command line.
    pub option: bool,
    /// The key has an effect only while one of these is met; empty: always.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub needs: &'static [Need],
    /// The key is about data: it has no effect beside `operation`.
    pub data: bool,
    /// Smallest and largest value, if `kind` is a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<(f64, f64)>,
}

/// A condition under which a key has an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Need {
    /// A key, perhaps of another level: then some table of that level must have it.
    pub key: &'static str,
    /// Its values that meet the condition; empty: any but `none`.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub values: &'static [&'static str],
}

const fn in_force(key: &'static str) -> Need {
    Need { key, values: &[] }
}

const fn pattern(values: &'static [&'static str]) -> Need {
    Need {
        key: "pattern",
        values,
    }
}

/// Largest number of a file's counters.
const MAX_COUNT: f64 = u32::MAX as f64;
/// Most workers, and most outstanding requests, of a workload.
pub(crate) const MAX_OUTSTANDING: u64 = 65_536;

/// The tables in which a key is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Once, before the first `[[stream]]` or `[[phase]]`; keys about the length of a run also in a `[[phase]]`.
    Workload,
    /// In a `[[phase]]`.
    Phase,
    /// In a `[[stream]]`, or before the first one for all streams; with phases, in a `[[phase.stream]]`, in a `[[phase]]` for
    /// all its streams, or before the first phase for all.
    Stream,
    /// In a `[[files]]`.
    Files,
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Text.
    Text,
    /// `true` or `false`.
    Flag,
    /// One of the key's choices.
    Choice,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// `20%` or 0.2.
    Fraction,
    /// `64KiB`.
    Size,
    /// A distribution of sizes.
    Sizes,
    /// `2s`.
    Duration,
    /// A number of seconds, or a duration.
    Seconds,
    /// `500 IOPS`.
    Iops,
    /// `10 MB/s` or `500 IOPS`.
    Rate,
    /// `0%-10%`.
    Region,
    /// `best-effort:4`.
    Priority,
    /// `random`, `zero` or `compressible:50%`.
    Content,
}

/// Name of the tables of sets of files.
pub(crate) const FILES_TABLE: &str = "files";

/// The value that switches an optional key off.
pub(crate) const NONE: &str = "none";

/// Kinds of pattern; their parameters are keys of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatternKind {
    Sequential,
    Backward,
    Uniform,
    Shuffled,
    Zipf,
    Pareto,
    Normal,
    HotSet,
    Zoned,
    Strided,
    Runs,
}

/// Names with their values, and the names alone for the table of keys.
macro_rules! choices {
    ($names:ident, $values:ident: $type:ty = { $($name:literal => $value:expr),+ $(,)? }) => {
        const $names: &[&str] = &[$($name),+];
        pub(crate) const $values: &[(&str, $type)] = &[$(($name, $value)),+];
    };
}

choices!(PATTERN_NAMES, PATTERNS: PatternKind = {
    "sequential" => PatternKind::Sequential,
    "uniform" => PatternKind::Uniform,
    "shuffled" => PatternKind::Shuffled,
    "zipf" => PatternKind::Zipf,
    "pareto" => PatternKind::Pareto,
    "normal" => PatternKind::Normal,
    "hot-set" => PatternKind::HotSet,
    "zoned" => PatternKind::Zoned,
    "strided" => PatternKind::Strided,
    "runs" => PatternKind::Runs,
    "backward" => PatternKind::Backward,
});
choices!(STEADY_NAMES, STEADY_METRICS: SteadyMetric = {
    "iops" => SteadyMetric::Iops,
    "bandwidth" => SteadyMetric::Bandwidth,
    "latency" => SteadyMetric::Latency,
});
choices!(SERVICE_NAMES, SERVICES: FileService = {
    "roundrobin" => FileService::RoundRobin,
    "random" => FileService::Random,
    "sequential" => FileService::Sequential,
});
choices!(EACH_NAMES, EACHES: Each = {
    "stream" => Each::Stream,
    "worker" => Each::Worker,
});
choices!(OPERATION_NAMES, OPERATIONS: Option<Op> = {
    "none" => None,
    "create" => Some(Op::Create),
    "open" => Some(Op::Open),
    "stat" => Some(Op::Stat),
    "rename" => Some(Op::Rename),
    "unlink" => Some(Op::Unlink),
    "mkdir" => Some(Op::Mkdir),
    "rmdir" => Some(Op::Rmdir),
    "readdir" => Some(Op::Readdir),
});
choices!(ORDER_NAMES, ORDERS: Order = {
    "sequential" => Order::Sequential,
    "random" => Order::Random,
});
choices!(SPACING_NAMES, SPACINGS: Spacing = {
    "constant" => Spacing::Constant,
    "poisson" => Spacing::Poisson,
});
choices!(THINK_NAMES, THINKS: bool = {
    "constant" => false,
    "exponential" => true,
});
choices!(PRIORITY_NAMES, PRIORITIES: PriorityClass = {
    "realtime" => PriorityClass::Realtime,
    "best-effort" => PriorityClass::BestEffort,
    "idle" => PriorityClass::Idle,
});

/// Names of priority classes, for messages.
pub(crate) fn priority_names() -> String {
    PRIORITY_NAMES.join(", ")
}

/// Defines one constant per key, so that code asks for keys by name and a misspelt one does not compile, and
/// the list of all.
macro_rules! keys {
    ($($(#[$extra:ident = $value:expr])* $constant:ident $name:literal $level:ident $kind:ident,
        $default:literal, $example:literal, $help:literal;)+) => {
        $(pub(crate) const $constant: Key = Key {
            $($extra: $value,)*
            ..Key::plain($name, Level::$level, Kind::$kind, $help, $default, $example)
        };)+

        /// Every key of a workload file, in the order of the documentation.
        pub const KEYS: &[Key] = &[$($constant),+];
    };
}

impl Key {
    const fn plain(
        name: &'static str,
        level: Level,
        kind: Kind,
        help: &'static str,
        default: &'static str,
        example: &'static str,
    ) -> Key {
        Key {
            name,
            level,
            kind,
            help,
            default,
            example,
            choices: &[],
            opposite: None,
            option: true,
            needs: &[],
            data: false,
            range: None,
        }
    }
}

keys! {
    #[option = false]
    ABOUT "about" Workload Text, "", "nightly backup beside the database",
        "one line that describes the workload";
    #[option = false]
    TABLE "table" Workload Text, "streams", "randomio",
        "the table shown in the terminal, by its name in a preset";
    SECONDS "seconds" Workload Seconds, "60", "2m",
        "measured time after which the run ends; none: no limit";
    BYTES "bytes" Workload Size, "none", "10GiB",
        "bytes moved after which the run ends";
    #[range = Some((1.0, u64::MAX as f64))]
    REQUESTS "requests" Workload Integer, "none", "100000",
        "completed requests after which the run ends";
    UNTIL_STEADY "until_steady" Workload Flag, "false", "true",
        "end the run once its figures are steady";
    #[choices = STEADY_NAMES] #[needs = &[in_force("until_steady")]]
    STEADY_METRIC "steady_metric" Workload Choice, "iops", "latency",
        "metric that must be steady: requests per second, bytes per second, or mean latency";
    #[needs = &[in_force("until_steady")]]
    STEADY_WINDOW "steady_window" Workload Duration, "60s", "5m",
        "shortest time for which it must have been steady";
    #[needs = &[in_force("until_steady")]]
    STEADY_RANGE "steady_range" Workload Fraction, "20%", "5%",
        "largest difference between the means of the fifths of that time, as a share of the mean";
    #[needs = &[in_force("until_steady")]]
    STEADY_SLOPE "steady_slope" Workload Fraction, "10%", "2%",
        "largest rise or fall of a line through the fifths, as a share of the mean";
    #[needs = &[in_force("until_steady")]]
    STEADY_DRIFT "steady_drift" Workload Fraction, "0.5%", "1%",
        "drift per minute that the figures must rule out; none: a slow drift may pass for steady";
    RAMP "ramp" Workload Duration, "0s", "5s",
        "time at the start that is run but not counted";
    #[range = Some((0.0, u64::MAX as f64))]
    SEED "seed" Workload Integer, "1", "7",
        "seed of everything random; the same seed gives the same requests";

    #[option = false]
    DROP_CACHES "drop_caches" Phase Flag, "true", "false",
        "drop the target's pages from the page cache before the phase, so that it reads from the medium";
    #[option = false] #[range = Some((1.0, 1024.0))]
    REPEAT "repeat" Phase Integer, "1", "3",
        "number of times that the phase is carried out; its runs are named NAME-1, NAME-2 ...";

    #[option = false]
    NAME "name" Stream Text, "main", "log",
        "name of the stream or phase; needed if there are several";
    #[choices = OPERATION_NAMES]
    OPERATION "operation" Stream Choice, "none", "create",
        "work on the names of a tree of files instead of data";
    #[choices = ORDER_NAMES] #[needs = &[in_force("operation")]]
    ORDER "order" Stream Choice, "sequential", "random",
        "order in which the names are taken, each once per pass: by number, or shuffled";
    #[choices = PATTERN_NAMES] #[data = true]
    PATTERN "pattern" Stream Choice, "uniform", "sequential",
        "access pattern: where the next request goes";
    #[needs = &[pattern(&["zipf"])]] #[range = Some((0.01, 10.0))]
    ZIPF_THETA "zipf_theta" Stream Number, "0.99", "1.2",
        "exponent of the zipf pattern: the n-th most popular place gets n^-theta as many requests as the first";
    #[needs = &[pattern(&["pareto"])]]
    PARETO_SHARE "pareto_share" Stream Fraction, "20%", "10%",
        "the pareto pattern sends 1 - h of the requests to this share h of the places";
    #[needs = &[pattern(&["normal"])]]
    DEVIATION "deviation" Stream Fraction, "10%", "5%",
        "standard deviation of the normal pattern, as a share of the region";
    #[needs = &[pattern(&["zipf", "pareto", "normal"])]]
    CENTER "center" Stream Fraction, "none", "25%",
        "position of the most popular place of zipf and pareto in the region, and of the middle of normal; none: anywhere, for normal 50%";
    #[needs = &[pattern(&["zipf", "pareto", "normal"])]]
    SCATTERED "scattered" Stream Flag, "true", "false",
        "popular places of zipf, pareto and normal are spread over the region; false: next to each other";
    #[needs = &[pattern(&["hot-set"])]]
    HOT_SPACE "hot_space" Stream Fraction, "20%", "5%",
        "share of the places that are hot in the hot-set pattern";
    #[needs = &[pattern(&["hot-set"])]]
    HOT_ACCESS "hot_access" Stream Fraction, "80%", "95%",
        "share of the requests that go to hot places in the hot-set pattern";
    #[needs = &[pattern(&["zoned"])]]
    ZONES "zones" Stream Text, "100%:1", "10%:60,20%:30,70%:10",
        "zones of the zoned pattern from the region's start on: length (share of the region, or bytes) and weight of each";
    #[needs = &[pattern(&["strided"])]]
    STRIDE "stride" Stream Size, "1MiB", "256KiB",
        "distance between the starts of requests in the strided pattern: bytes, or 17x for 17 requests";
    #[needs = &[pattern(&["runs"])]] #[range = Some((1.0, 1e9))]
    RUN_LENGTH "run_length" Stream Number, "16", "100",
        "mean number of requests between jumps in the runs pattern";
    #[needs = &[pattern(&["runs"])]]
    RUN_FIXED "run_fixed" Stream Flag, "false", "true",
        "all runs have exactly run_length requests";
    #[needs = &[pattern(&["runs"])]]
    RUN_REPEAT "run_repeat" Stream Flag, "false", "true",
        "the requests of a run go to the same place, not one after the other";
    #[data = true]
    WINDOW "window" Stream Size, "none", "256MiB",
        "the pattern stays in a part of the region of this length, which moves on when window_bytes are moved";
    #[needs = &[in_force("window")]]
    WINDOW_BYTES "window_bytes" Stream Size, "none", "64MiB",
        "bytes moved in a window before the next one; none: its length";
    #[needs = &[in_force("window")]]
    WINDOW_SKIP "window_skip" Stream Size, "0B", "1GiB",
        "length of the gap between two windows";
    #[data = true]
    SIZE "size" Stream Sizes, "4KiB", "64KiB",
        "request size: 64KiB, 4KiB-64KiB, 4KiB:70,64KiB:30 or log-normal:mean=26KiB,max=512KiB";
    #[data = true]
    ALIGN "align" Stream Size, "none", "4KiB",
        "offsets are multiples of this; none: the size, or the target's block if sizes vary";
    #[data = true]
    REGION "region" Stream Region, "0%-100%", "0%-10%",
        "part of the target that is used";
    #[data = true]
    WRITES_APART "own_writes" Stream Flag, "false", "true",
        "writes have places of their own in the region, apart from all other requests";
    #[data = true]
    WRITE_SIZE "write_size" Stream Sizes, "none", "64KiB",
        "size of the writes; they then have places of their own";
    #[data = true]
    WRITE_ALIGN "write_align" Stream Size, "none", "64KiB",
        "offsets of writes are multiples of this; they then have places of their own";
    #[needs = &[pattern(&["zoned"])]]
    WRITE_ZONES "write_zones" Stream Text, "none", "10%:90,90%:10",
        "zones of the writes in the zoned pattern; they then have places of their own";
    #[needs = &[in_force("nrfiles")]]
    FILES "files" Stream Text, "none", "small",
        "set of files that the stream uses; none: the first one";
    #[choices = SERVICE_NAMES] #[needs = &[in_force("nrfiles")]] #[data = true]
    FILE_SERVICE_TYPE "file_service_type" Stream Choice, "roundrobin", "sequential",
        "file of the next request: each in turn, any, or one until it is finished";
    #[needs = &[in_force("nrfiles")]] #[range = Some((1.0, MAX_COUNT - 1.0))] #[data = true]
    FILE_REQUESTS "file_requests" Stream Integer, "1", "8",
        "requests to a file before the next one";
    #[data = true]
    WRITE_FRACTION "write_fraction" Stream Fraction, "0%", "20%",
        "share of the requests that write";
    #[data = true]
    TRIM_FRACTION "trim_fraction" Stream Fraction, "0%", "10%",
        "share of the requests that discard";
    #[data = true]
    ZERO_FRACTION "zero_fraction" Stream Fraction, "0%", "10%",
        "share of the requests that write zeroes without sending data";
    #[data = true]
    TRIM_FIRST "trim_first" Stream Flag, "false", "true",
        "before each write its place is discarded; for streams that only write";
    #[data = true]
    REWRITE_FRACTION "rewrite_fraction" Stream Fraction, "0%", "10%",
        "share of the requests that read a block and write it back in place";
    CONTENT "content" Stream Content, "random", "compressible:50%",
        "content of the writes: random, zero or compressible:R with R the compressed share";
    #[data = true]
    DEDUPE "dedupe" Stream Fraction, "0%", "30%",
        "share of the writes whose content was written before, for targets that deduplicate";
    #[needs = &[in_force("dedupe")]] #[range = Some((1.0, MAX_COUNT))]
    DEDUPE_SET "dedupe_set" Stream Integer, "none", "1000",
        "number of contents from which those writes choose; none: they repeat the last write with new content";
    #[data = true]
    VERIFY "verify" Stream Flag, "false", "true",
        "stamp each written block, check the stamps of blocks that are read, and read all of them back at the end";
    #[data = true]
    VERIFY_FATAL "verify_fatal" Stream Flag, "false", "true",
        "end the run at the first block that `verify` finds wrong during the load";
    #[opposite = Some("buffered")] #[data = true]
    DIRECT "direct" Stream Flag, "true", "false",
        "bypass the page cache (O_DIRECT)";
    #[data = true]
    MAPPED "mapped" Stream Flag, "false", "true",
        "go through a shared mapping (mmap) as databases do: page faults read, msync is the fsync; never direct";
    FSYNC_FRACTION "fsync_fraction" Stream Fraction, "0%", "10%",
        "share of the writes that are followed by an fsync";
    #[range = Some((0.0, MAX_COUNT))]
    FSYNC_EVERY "fsync_every" Stream Integer, "0", "32",
        "an fsync follows each n-th write of a worker; 0: none";
    #[range = Some((0.0, MAX_COUNT))]
    FDATASYNC_EVERY "fdatasync_every" Stream Integer, "0", "1",
        "an fdatasync follows each n-th write of a worker; 0: none";
    FSYNC_BETWEEN "fsync_between" Stream Flag, "false", "true",
        "fsyncs of `fsync_every` and `fdatasync_every` come only between requests, not after a worker's last one";
    #[data = true]
    DSYNC "dsync" Stream Flag, "false", "true",
        "each write reaches the medium before it completes (O_DSYNC)";
    #[data = true]
    OSYNC "osync" Stream Flag, "false", "true",
        "the same, with all metadata of the file (O_SYNC)";
    END_FSYNC "end_fsync" Stream Flag, "false", "true",
        "fdatasync at the end, inside the measured time";
    #[range = Some((1.0, MAX_OUTSTANDING as f64))]
    WORKERS "workers" Stream Integer, "1", "16",
        "threads, each with requests of its own";
    #[range = Some((1.0, MAX_OUTSTANDING as f64))]
    DEPTH "depth" Stream Integer, "1", "32",
        "outstanding requests of each worker";
    RATE "rate" Stream Iops, "none", "500 IOPS",
        "open loop: requests start at this rate whether or not earlier ones are done; latency counts from the intended start";
    WORKER_RATE "worker_rate" Stream Rate, "none", "2 MB/s",
        "the same as `rate` for each worker; bytes per second if all requests have one size";
    PER_WORKER "per_worker" Stream Flag, "false", "true",
        "report figures for each worker, and name the workers that fall behind";
    #[choices = SPACING_NAMES] #[needs = &[in_force("rate"), in_force("worker_rate")]]
    SPACING "spacing" Stream Choice, "constant", "poisson",
        "spacing of the open loop's requests";
    RATE_LIMIT "rate_limit" Stream Rate, "none", "10 MB/s",
        "upper bound of the closed loop, for the whole stream";
    THINK "think" Stream Duration, "none", "10ms",
        "pause before each next request in the closed loop";
    #[choices = THINK_NAMES] #[needs = &[in_force("think")]]
    THINK_SPREAD "think_spread" Stream Choice, "constant", "exponential",
        "distribution of the pauses; `think` is their mean";
    #[needs = &[in_force("think")]] #[range = Some((1.0, MAX_COUNT))]
    THINK_EVERY "think_every" Stream Integer, "none", "64",
        "a worker issues this many requests, waits for them, and pauses; none: each slot pauses by itself";
    #[needs = &[in_force("think")]]
    THINK_WORK "think_work" Stream Duration, "none", "100ms",
        "a worker works for this time, waits for its outstanding requests, and pauses";
    #[needs = &[in_force("think_every"), in_force("think_work")]]
    THINK_SPIN "think_spin" Stream Duration, "none", "1ms",
        "part of a worker's pause in which it keeps a CPU busy";
    PRIORITY "priority" Stream Priority, "none", "best-effort:7",
        "I/O priority: realtime:L, best-effort:L (L from 0, highest, to 7) or idle";
    START_DELAY "start_delay" Stream Duration, "0s", "10s",
        "time after the start of the run before the stream's first request";
    STOP_AFTER "stop_after" Stream Seconds, "none", "30",
        "measured time after which this stream ends, before the run does";
    ENDS "ends" Stream Text, "none", "all",
        "streams that end when this one does: all, or names such as log,backup";
    STOP_BYTES "stop_bytes" Stream Size, "none", "1GiB",
        "bytes moved after which this stream ends";
    #[range = Some((0.001, 1e9))]
    STOP_PASSES "stop_passes" Stream Number, "none", "2",
        "end the stream when each worker has gone this many times over its part of the region";
    #[range = Some((1.0, u64::MAX as f64))]
    STOP_REQUESTS "stop_requests" Stream Integer, "none", "10000",
        "completed requests after which this stream ends";

    #[needs = &[in_force("operation")]] #[range = Some((1.0, 1e6))]
    DIRECTORIES "directories" Files Integer, "1", "1000",
        "directories of the tree, among which its files are spread; for streams with `operation`";
    #[range = Some((1.0, 1e9))]
    NRFILES "nrfiles" Files Integer, "1", "16",
        "number of files";
    FILESIZE "filesize" Files Sizes, "auto", "1GiB",
        "size of the files, as sizes of requests are written; auto: equal parts of the size that the caches require";
    #[choices = EACH_NAMES] #[option = false]
    EACH "each" Files Choice, "stream", "worker",
        "owner of the files: a stream, whose workers share them, or each worker";
    #[option = false]
    FILL "fill" Files Flag, "true", "false",
        "write the files before the first request; false: they are empty and grow as they are written";
}

/// The key of a name.
pub(crate) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}
