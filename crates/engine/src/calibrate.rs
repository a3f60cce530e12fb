//! Chooses the back end of a stream, and measures the highest rate of the generator.
//!
//! Both back ends run the stream's own concurrency and request sizes for a moment, as uniform reads. That never
//! writes, never touches the cache of a buffered target (a file in memory replaces it), and none of it is in the
//! figures of the run.
#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use spindle_measure::EndedBy;
use spindle_workload::{Arrival, End, Mix, Pattern, Place, Region, Stream, Sync, Workload};

use crate::load::{BackendKind, Load, Plan};
use crate::ring;
use crate::target::{OpenFile, OpenFiles, Target};
use crate::{EngineChoice, Options, StreamFile};

/// Time at the start of each trial that is not counted, ns.
const RAMP_NS: u64 = 10_000_000;
/// Counted time of each trial, ns.
const TRIAL_NS: u64 = 80_000_000;
/// Fewest requests that allow a choice.
const ENOUGH: u64 = 200;
/// Rates nearer than this are equal.
const TIE: f64 = 0.97;
/// More threads than this are not started for a trial.
const MOST_THREADS: u64 = 256;
/// Length of the file in memory, bytes.
const MEMORY: u64 = 16 << 20;

/// The choice for a stream.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Choice {
    pub(crate) backend: BackendKind,
    pub(crate) reason: String,
    /// Rates of the trial, IOPS.
    pub(crate) rates: Vec<(BackendKind, f64)>,
}

impl Choice {
    fn rule(backend: BackendKind, reason: impl Into<String>) -> Choice {
        Choice {
            backend,
            reason: reason.into(),
            rates: Vec::new(),
        }
    }

    /// Highest rate of the chosen back end, IOPS.
    pub(crate) fn ceiling(&self) -> Option<f64> {
        let rates = self.rates.iter();
        rates
            .filter(|(backend, _)| *backend == self.backend)
            .map(|(_, rate)| *rate)
            .reduce(f64::max)
    }
}

/// Chooses for stream `index`; `hold` receives each trial before it runs, so that it can be stopped.
pub(crate) fn choose(
    workload: &Workload,
    index: usize,
    open: &OpenFiles,
    options: &Options,
    hold: &dyn Fn(&Arc<Load>),
) -> Choice {
    let stream = &workload.streams[index];
    let first = open.first();
    let direct = first.is_direct;
    let writes = stream.mix.writes();
    let discards = first.is_device && stream.mix.trim > 0.0;
    match options.engine {
        EngineChoice::Pread => return Choice::rule(BackendKind::Blocking, "asked for"),
        EngineChoice::IoUring => return Choice::rule(BackendKind::Ring, "asked for"),
        EngineChoice::Auto => {}
    }
    if let Some(why) = ring::refusal() {
        let reason = format!("io_uring cannot be used: {why}");
        return Choice::rule(BackendKind::Blocking, reason);
    }
    if options.sqpoll || options.iopoll {
        let reason = "polling was asked for, which only io_uring has";
        return Choice::rule(BackendKind::Ring, reason);
    }
    if discards && !ring::discards(first.file.fd) {
        let reason =
            "io_uring cannot discard on this device (kernel older than 6.12, or the device cannot)";
        return Choice::rule(BackendKind::Blocking, reason);
    }
    if u64::from(stream.workers) * u64::from(stream.depth) > MOST_THREADS {
        let reason = format!(
            "{} requests outstanding: pread would need as many threads",
            u64::from(stream.workers) * u64::from(stream.depth)
        );
        return Choice::rule(BackendKind::Ring, reason);
    }
    let deep = stream.depth > 1;
    if direct && first.can_read && open.are_whole() {
        let rates = trials(workload, index, &Target::Files(open.clone()), options, hold);
        decide(deep, rates, "direct reads of this target")
    } else {
        // The target's cache must stay as it is, or it cannot be read.
        let mut choice = in_memory(workload, index, options, hold);
        if !direct && deep {
            // Reads of memory favour the back end that uses more CPUs; the way of waiting for the file decides here.
            let (backend, why) = if writes {
                // io_uring/rw.c: a write that may wait goes to a worker thread, one at a time for a file
                // (io-wq hashing); ext4 and block devices make no buffered write without.
                (
                    BackendKind::Blocking,
                    "io_uring passes buffered writes to worker threads one by one",
                )
            } else {
                (
                    BackendKind::Ring,
                    "io_uring waits for many buffered reads at once with one thread",
                )
            };
            choice.backend = backend;
            choice.reason = format!("{why}; {}", choice.reason);
        }
        choice
    }
}

/// Trials on a file in memory.
fn in_memory(
    workload: &Workload,
    index: usize,
    options: &Options,
    hold: &dyn Fn(&Arc<Load>),
) -> Choice {
    let deep = workload.streams[index].depth > 1;
    let rates = match memory_file() {
        Some(memory) => {
            let file = StreamFile {
                fd: memory.as_raw_fd(),
                size_bytes: MEMORY,
                block_bytes: 1,
                memory_align: 1,
            };
            let open = OpenFile::inspect(file).ok();
            open.map_or_else(Vec::new, |open| {
                let target = Target::Files(OpenFiles::new(vec![open]));
                trials(workload, index, &target, options, hold)
            })
        }
        None => Vec::new(),
    };
    decide(
        deep,
        rates,
        "reads of memory (the target's cache stays untouched)",
    )
}

fn decide(deep: bool, rates: Vec<(BackendKind, f64)>, what: &str) -> Choice {
    let rate = |wanted: BackendKind| {
        let mut of = rates.iter().filter(|(backend, _)| *backend == wanted);
        of.next().map(|(_, rate)| *rate)
    };
    let (Some(ring), Some(pread)) = (rate(BackendKind::Ring), rate(BackendKind::Blocking)) else {
        let backend = if deep {
            BackendKind::Ring
        } else {
            BackendKind::Blocking
        };
        let reason = if deep {
            "several requests outstanding; the trial reads were too few to compare"
        } else {
            "one request outstanding; the trial reads were too few to compare"
        };
        return Choice {
            rates,
            ..Choice::rule(backend, reason)
        };
    };
    // On a tie: at depth 1 the plain call, which has the shorter way; deeper the ring, which needs one thread.
    let backend = if deep && ring >= TIE * pread || !deep && ring > pread / TIE {
        BackendKind::Ring
    } else {
        BackendKind::Blocking
    };
    let reason = format!("{what}: io_uring {ring:.0}/s, pread {pread:.0}/s");
    Choice {
        rates,
        ..Choice::rule(backend, reason)
    }
}

fn trials(
    workload: &Workload,
    index: usize,
    target: &Target,
    options: &Options,
    hold: &dyn Fn(&Arc<Load>),
) -> Vec<(BackendKind, f64)> {
    let trial = trial_workload(workload, index, target);
    [BackendKind::Blocking, BackendKind::Ring]
        .into_iter()
        .filter_map(|backend| {
            let plan = Plan {
                workload: trial.clone(),
                targets: vec![target.clone()],
                backends: vec![backend],
                verify: None,
                options: Options {
                    tolerate_errors: false,
                    sqpoll: false,
                    iopoll: false,
                    grace_ns: 2_000_000_000,
                    log: None,
                    appointment: None,
                    ..options.clone()
                },
            };
            let (load, sources) = Load::new(plan).ok()?;
            hold(&load);
            let figures = load.execute(sources).ok()?;
            let read = figures.streams.first()?.read.as_ref()?;
            let whole = figures.ended_by == EndedBy::Time && read.requests >= ENOUGH;
            whole.then_some((backend, read.iops))
        })
        .collect()
}

/// The stream's concurrency and sizes as plain reads, from a seed of their own: the run's own places stay
/// unread.
fn trial_workload(workload: &Workload, index: usize, target: &Target) -> Workload {
    let stream = &workload.streams[index];
    let whole = Region {
        offset: Place::Bytes { bytes: 0 },
        end: Place::Fraction { fraction: 1.0 },
    };
    let in_memory = matches!(target, Target::Files(open) if open.first().file.size_bytes == MEMORY && open.len() == 1);
    Workload {
        name: "calibration".to_owned(),
        seed: workload.seed ^ 0x5eed_ca11_b7a7_e000,
        ramp_ns: RAMP_NS,
        end: End {
            time_ns: Some(TRIAL_NS),
            ..End::default()
        },
        streams: vec![Stream {
            mix: Mix::READS,
            pattern: Pattern::Uniform,
            separate_writes: None,
            trim_first: false,
            window: None,
            repeats: None,
            ends: Vec::new(),
            mapped: false,
            arrival: Arrival::Closed,
            rate_limit: None,
            think: None,
            sync: Sync::default(),
            priority: None,
            region: if in_memory { whole } else { stream.region },
            files: if in_memory {
                None
            } else {
                stream.files.clone()
            },
            start_delay_ns: 0,
            end: End::default(),
            passes: None,
            per_worker: false,
            ..stream.clone()
        }],
        ..workload.clone()
    }
}

/// A file in memory, all pages there.
fn memory_file() -> Option<OwnedFd> {
    // SAFETY: the name is a C string; the descriptor is new and belongs to no one else.
    let file = unsafe {
        let fd = libc::memfd_create(c"spindle-calibration".as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 {
            return None;
        }
        OwnedFd::from_raw_fd(fd)
    };
    // SAFETY: no pointer is passed.
    let filled = unsafe { libc::fallocate64(file.as_raw_fd(), 0, 0, MEMORY as libc::off64_t) };
    (filled == 0).then_some(file)
}
