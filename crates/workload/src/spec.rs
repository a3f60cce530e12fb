//! The workload as data: every field resolved, every unit in its name or type.
//!
//! Times are nanoseconds, sizes are bytes, fractions are 0..=1.

use serde::{Deserialize, Serialize};

use crate::request::Op;

/// A workload: streams that run at the same time, or phases that run one after another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Name of the preset or file stem.
    pub name: String,
    /// One line for people.
    pub about: String,
    /// Name of the table in which its figures are shown.
    pub table: String,
    /// Seed of every request stream.
    pub seed: u64,
    /// Time at the start that is run but not counted, ns.
    pub ramp_ns: u64,
    /// End of the whole run; a stream may end earlier by its own `end`.
    pub end: End,
    /// Sets of files in a folder, with distinct names; empty: every stream uses the target itself. Phases share them.
    #[serde(default)]
    pub filesets: Vec<FileSet>,
    /// The streams, at least one, with distinct names; none in a workload of phases.
    pub streams: Vec<Stream>,
    /// The phases, which run one after another; empty in an ordinary workload.
    #[serde(default)]
    pub phases: Vec<Phase>,
}

impl Workload {
    /// The loads that are run, one after another: the phases', or itself.
    pub fn loads(&self) -> impl Iterator<Item = &Workload> {
        let own = self.phases.is_empty().then_some(self);
        own.into_iter()
            .chain(self.phases.iter().map(|phase| &phase.load))
    }
}

/// One of several loads that run one after another on the same target: each begins when the one before is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// The target's pages are dropped from the page cache before it.
    pub drop_caches: bool,
    /// An ordinary workload, named as the phase.
    pub load: Workload,
}

/// Files that are made for the workload in a folder of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileSet {
    /// Name within the workload.
    pub name: String,
    /// Files of the set, or of each worker of a stream that uses it.
    pub nrfiles: u32,
    /// Owner of the files.
    pub each: Each,
    /// Files in all: `nrfiles`, for each worker if each has its own.
    pub files: u32,
    /// Sizes of the files.
    pub filesize: FileSize,
    /// The files are written before the first request; otherwise they are empty and grow as they are written.
    pub fill: bool,
}

/// Owner of the files of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Each {
    /// The workers of a stream share the files.
    Stream,
    /// Each worker has files of its own; workers of the same number in several streams have the same.
    Worker,
}

/// Distribution of the sizes of files, bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum FileSize {
    /// Equal parts of the size that the caches require.
    Auto,
    /// Always the same.
    Fixed {
        /// Bytes.
        bytes: u64,
    },
    /// Uniform over the multiples of step from min to max.
    Range {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
        /// Granularity.
        step: u64,
    },
    /// A list with weights.
    Weighted {
        /// (bytes, weight); weights are normalised to sum 1.
        choices: Vec<(u64, f64)>,
    },
    /// Log-normal with a mean, cut to [min, max], rounded to multiples of step.
    LogNormal {
        /// Mean of the sizes.
        mean: f64,
        /// Standard deviation of ln(size).
        sigma: f64,
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
        /// Granularity.
        step: u64,
    },
}

/// One kind of load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// Name within the workload.
    pub name: String,
    /// Share of each operation.
    pub mix: Mix,
    /// Places of the requests.
    pub pattern: Pattern,
    /// Sizes of the requests.
    pub size: Size,
    /// Offsets are multiples of this, bytes. 0: the request size (fixed sizes) or the target's block, at
    /// least 512.
    pub align_bytes: u64,
    /// Threads, each with its own request stream.
    pub workers: u32,
    /// Outstanding requests of each worker.
    pub depth: u32,
    /// Each worker has figures of its own beside those of the stream.
    #[serde(default)]
    pub per_worker: bool,
    /// Closed loop, or open loop at a given rate.
    pub arrival: Arrival,
    /// Upper bound of a closed loop, for the whole stream.
    pub rate_limit: Option<RateLimit>,
    /// Pause of a slot after each completion (closed loop).
    pub think: Option<Think>,
    /// O_DIRECT.
    pub direct: bool,
    /// When data is forced to the medium.
    pub sync: Sync,
    /// I/O priority, if one is set.
    pub priority: Option<Priority>,
    /// Part of the target, or of each file of a set, that is used.
    pub region: Region,
    /// The walk of the writes, if they have places of their own; `pattern`, `size` and `align_bytes` are
    /// then those of all other requests.
    #[serde(default)]
    pub separate_writes: Option<WriteWalk>,
    /// Each write follows a discard of the same place.
    #[serde(default)]
    pub trim_first: bool,
    /// The pattern stays in a window of the region, which moves on.
    #[serde(default)]
    pub window: Option<Window>,
    /// Some writes repeat content that was written before.
    #[serde(default)]
    pub repeats: Option<Repeats>,
    /// Streams of the load that end when this one does, by name.
    #[serde(default)]
    pub ends: Vec<String>,
    /// Requests go through a shared mapping of the files instead of reads and writes.
    #[serde(default)]
    pub mapped: bool,
    /// The set of files of the stream, and their order; `None`: the workload has no sets.
    #[serde(default)]
    pub files: Option<StreamFiles>,
    /// Content of the writes.
    pub content: Content,
    /// Written blocks identify themselves, and are checked when they are read.
    #[serde(default)]
    pub verify: bool,
    /// A block that is found wrong ends the run.
    #[serde(default)]
    pub verify_fatal: bool,
    /// Time after the start of the run before the stream's first request, ns.
    pub start_delay_ns: u64,
    /// When this stream ends, besides the run's own end.
    pub end: End,
    /// The stream also ends once each worker has gone this many times over its part of the region.
    #[serde(default)]
    pub passes: Option<f64>,
    /// The stream works on the names of a tree of files instead of data: then `mix`, `pattern`, `size`, `align_bytes`,
    /// `direct` and `region` have no effect.
    #[serde(default)]
    pub names: Option<Names>,
}

/// The operation of a stream on the names of a tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Names {
    /// One of the operations on names.
    pub operation: Op,
    /// Order in which the names are taken.
    pub order: Order,
    /// Number of times that each name is taken; `None`: until the run ends. More than once only if the operation is repeatable.
    pub passes: Option<u32>,
    /// The tree.
    pub tree: Tree,
}

/// Order in which names are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// By number, directory by directory.
    Sequential,
    /// A random permutation.
    Random,
}

/// Files in directories. Files and directories are numbered; each directory has the same number of files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tree {
    /// Name of its set of files: streams that name the same one work on the same tree.
    pub name: String,
    /// Files.
    pub files: u64,
    /// Number of directories, at least 1.
    pub directories: u64,
    /// Bytes written to each new file; `None`: none.
    pub size: Option<Size>,
    /// Owner of the tree.
    pub each: Each,
}

/// Places and sizes of the writes alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WriteWalk {
    /// Places of the writes.
    pub pattern: Pattern,
    /// Sizes of the writes.
    pub size: Size,
    /// Offsets of the writes are multiples of this, bytes; 0 as in [`Stream::align_bytes`].
    pub align_bytes: u64,
}

/// A stream's use of a set of files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamFiles {
    /// Name of the set.
    pub set: String,
    /// Order of the files.
    pub service: FileService,
    /// Requests to a file before the next one, at least 1; `sequential` does not count them.
    pub requests: u32,
}

/// Order in which a worker's requests go to its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileService {
    /// One after another, in turn.
    RoundRobin,
    /// Any of them.
    Random,
    /// A file is finished before the next one.
    Sequential,
}

/// Share of each operation; the rest are reads. Each in 0..=1, their sum at most 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Mix {
    /// Share of writes.
    pub write: f64,
    /// Share of discards.
    pub trim: f64,
    /// Share of write-zeroes.
    pub zero: f64,
    /// Share of requests that read a block and write it back in place.
    #[serde(default)]
    pub rewrite: f64,
}

impl Mix {
    /// Nothing but reads.
    pub const READS: Mix = Mix {
        write: 0.0,
        trim: 0.0,
        zero: 0.0,
        rewrite: 0.0,
    };

    /// Share that changes data on the target.
    #[must_use]
    pub fn changes(&self) -> f64 {
        self.write + self.trim + self.zero + self.rewrite
    }

    /// True if any request writes data.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.write > 0.0 || self.rewrite > 0.0
    }

    /// True if any request reads.
    #[must_use]
    pub fn reads(&self) -> bool {
        self.write + self.trim + self.zero < 1.0 - 1e-12
    }
}

/// Places of the requests within the region.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Pattern {
    /// One after another; workers share the region in equal parts; wraps at the end of its part.
    Sequential,
    /// The same from the end: each request ends where the one before began.
    Backward,
    /// Uniform over all aligned places.
    Uniform,
    /// All aligned places in random order, each once before any comes twice; each worker in an order of its own.
    Shuffled,
    /// The n-th most popular place has a chance proportional to n^-theta.
    Zipf {
        /// Exponent, above 0 (1 is allowed).
        theta: f64,
        /// Where the popular places are.
        #[serde(default)]
        peak: Peak,
    },
    /// 1 - `share` of the requests go to the most popular `share` of the places, and so on within these.
    Pareto {
        /// Share, above 0 and below 1.
        share: f64,
        /// Where the popular places are.
        peak: Peak,
    },
    /// Places are normally distributed, cut to the region (nothing piles up at its ends).
    Normal {
        /// Standard deviation as a share of the region, before the cut.
        deviation: f64,
        /// The mean; the middle of the region if there is no centre.
        peak: Peak,
    },
    /// `access` of the requests go to the first `space` of the (scattered) places.
    HotSet {
        /// Share of the space that is hot.
        space: f64,
        /// Share of the requests that go there.
        access: f64,
    },
    /// Zones from the start of the region on, each with its share of the requests, uniform within it.
    Zoned {
        /// In order; the rest of the region after the last zone is not used.
        zones: Vec<Zone>,
    },
    /// Each request `stride_bytes` after the start of the one before.
    Strided {
        /// Distance of starts, bytes.
        stride_bytes: u64,
    },
    /// Sequential runs, then a jump to a uniform place.
    Runs {
        /// Mean number of requests in a run, at least 1.
        mean_requests: f64,
        /// Every run has this length (a whole number); otherwise lengths are geometrically distributed.
        #[serde(default)]
        fixed: bool,
        /// The requests of a run go to the same place instead of one after the other.
        #[serde(default)]
        repeat: bool,
    },
}

/// A part of the region in which the pattern stays until this many bytes were moved; then the next one follows. A window that the
/// end of the region cuts off is used if it has room for a request; after the last window the first one comes again. Each worker
/// has windows of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Length, bytes.
    pub length_bytes: u64,
    /// Bytes moved before it moves on.
    pub moved_bytes: u64,
    /// Length of the gap between two windows, bytes.
    pub skip_bytes: u64,
}

/// Writes whose content was written before, for targets that deduplicate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Repeats {
    /// Their share, 0..=1.
    pub fraction: f64,
    /// Number of contents from which they choose; `None`: each repeats the last write in the same slot that was not a repeat.
    pub set: Option<u32>,
}

/// The popular places of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Peak {
    /// Position of the most popular place in the region, 0..=1; none: anywhere (not scattered: at the start).
    pub center: Option<f64>,
    /// Places of similar popularity are spread over the region; otherwise next to each other.
    pub scattered: bool,
}

impl Default for Peak {
    /// The value in records from before there was a choice.
    fn default() -> Self {
        Peak::ANYWHERE
    }
}

impl Peak {
    /// Scattered, with no place singled out.
    pub const ANYWHERE: Peak = Peak {
        center: None,
        scattered: true,
    };
}

/// A part of the region and its share of the requests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Zone {
    /// Its length; a fraction is one of the region.
    pub length: Place,
    /// Its requests are in this proportion to those of the others.
    pub weight: f64,
}

/// Request size distribution, bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Size {
    /// Always the same.
    Fixed {
        /// Bytes.
        bytes: u32,
    },
    /// Uniform over min, min + step ... max.
    Range {
        /// Smallest.
        min: u32,
        /// Largest.
        max: u32,
        /// Granularity; 0: the target's block, at least 512, to which the bounds are rounded inwards.
        step: u32,
    },
    /// A list with weights.
    Weighted {
        /// (bytes, weight); weights are normalised to sum 1.
        choices: Vec<(u32, f64)>,
    },
    /// Log-normal with a mean, cut to [min, max] (nothing piles up at the ends), rounded to multiples
    /// of step; the mean is that of the result.
    LogNormal {
        /// Mean of the sizes that are issued.
        mean: f64,
        /// Standard deviation of ln(size).
        sigma: f64,
        /// Smallest.
        min: u32,
        /// Largest.
        max: u32,
        /// Granularity; 0: the target's block, at least 512, to which the bounds are rounded inwards.
        step: u32,
    },
}

/// Time at which a request is issued.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Arrival {
    /// As soon as a slot is free.
    Closed,
    /// At fixed or random times, whether or not earlier requests are done. Latency counts from the
    /// intended start. `rate_iops` is for the whole stream.
    Open {
        /// Requests per second of the whole stream.
        rate_iops: f64,
        /// Spacing.
        spacing: Spacing,
    },
}

/// Spacing of open-loop arrivals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spacing {
    /// Equal distances.
    Constant,
    /// Exponential distances.
    Poisson,
}

/// Upper bound of a closed loop, for the whole stream.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum RateLimit {
    /// Requests per second.
    Iops {
        /// Requests per second.
        iops: f64,
    },
    /// Bytes per second.
    Bytes {
        /// Bytes per second.
        bytes_per_s: f64,
    },
}

/// Pause after a completion.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Think {
    /// Mean, ns.
    pub mean_ns: u64,
    /// Exponentially distributed instead of constant.
    pub exponential: bool,
    /// The worker as a whole issues this many requests, waits for them, and pauses; 0: each slot pauses by itself
    /// after each completion.
    #[serde(default)]
    pub every: u32,
    /// The worker as a whole works for this time, waits for its outstanding requests, and pauses, ns; 0: see `every`.
    #[serde(default)]
    pub work_ns: u64,
    /// Part of the pause that keeps a CPU busy, ns (`every` or `work_ns` only).
    #[serde(default)]
    pub spin_ns: u64,
}

/// When data is forced to the medium.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Sync {
    /// fsync after every k-th write of a worker; 0: never.
    pub fsync_every: u32,
    /// The same with fdatasync.
    #[serde(default)]
    pub fdatasync_every: u32,
    /// Share of writes that are followed by an fsync.
    pub fsync_fraction: f64,
    /// No fsync follows the last request of a worker: fsyncs come only between requests.
    #[serde(default)]
    pub fsync_between: bool,
    /// Open with O_DSYNC.
    pub dsync: bool,
    /// Open with O_SYNC.
    #[serde(default)]
    pub osync: bool,
    /// fdatasync at the end, inside the measured time.
    pub end_fsync: bool,
}

/// I/O priority (`ioprio_set(2)`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Priority {
    /// Class.
    pub class: PriorityClass,
    /// 0 (highest) to 7; 0 for idle.
    pub level: u8,
}

/// I/O priority class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PriorityClass {
    /// Before everyone else.
    Realtime,
    /// The default.
    BestEffort,
    /// Only when no one else wants the disk.
    Idle,
}

/// Part of the target, `offset..offset + length`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Region {
    /// First byte.
    pub offset: Place,
    /// End (exclusive).
    pub end: Place,
}

impl Region {
    /// All of it.
    pub const WHOLE: Region = Region {
        offset: Place::Fraction { fraction: 0.0 },
        end: Place::Fraction { fraction: 1.0 },
    };
}

/// A place on the target.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Place {
    /// Bytes from the start.
    Bytes {
        /// Bytes.
        bytes: u64,
    },
    /// Share of the target's size, 0..=1.
    Fraction {
        /// Share.
        fraction: f64,
    },
}

/// Content of the writes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Content {
    /// Incompressible.
    Random,
    /// Zero bytes.
    Zero,
    /// Compresses to about `ratio` of its size.
    Compressible {
        /// Compressed over plain size, 0..1.
        ratio: f64,
    },
}

/// Conditions that end a run or stream: the first one reached counts. All `None`: only with the run.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct End {
    /// Measured time, ns (after the ramp).
    pub time_ns: Option<u64>,
    /// Bytes moved.
    pub bytes: Option<u64>,
    /// Requests completed.
    pub requests: Option<u64>,
    /// The figures have settled.
    pub steady: bool,
    /// The rule for settled figures; `None` unless `steady`.
    #[serde(default)]
    pub steady_rule: Option<SteadyRule>,
}

/// When a run has settled: the rule of `measure::settle`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SteadyRule {
    /// The metric that must be steady.
    pub metric: SteadyMetric,
    /// The shortest window that may be found steady, ns.
    pub window_ns: u64,
    /// Largest (max - min) / mean of the window's fifths.
    pub range: f64,
    /// Largest rise or fall of the fitted line over the fifths / mean.
    pub slope: f64,
    /// Largest drift that must be ruled out, share per minute; `None`: none.
    pub drift_per_minute: Option<f64>,
}

/// The metric that must be steady, over all streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SteadyMetric {
    /// Requests a second.
    Iops,
    /// Bytes a second.
    Bandwidth,
    /// Mean latency.
    Latency,
}

impl Default for SteadyRule {
    /// The defaults of the keys.
    fn default() -> Self {
        SteadyRule {
            metric: SteadyMetric::Iops,
            window_ns: 60_000_000_000,
            range: 0.20,
            slope: 0.10,
            drift_per_minute: Some(0.005),
        }
    }
}
