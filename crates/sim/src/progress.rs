//! The progress of a run that others may read.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use spindle_measure::Totals;

/// Counters that the simulation updates now and then; they may be a little behind, and behind each other.
#[derive(Debug, Default)]
pub struct Progress {
    now_ns: AtomicU64,
    streams: Vec<Counts>,
}

/// Counts of one stream since the start, ramp included.
#[derive(Debug, Default)]
struct Counts {
    reads: AtomicU64,
    writes: AtomicU64,
    read_bytes: AtomicU64,
    write_bytes: AtomicU64,
}

/// The same at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamCounts {
    /// Reads completed.
    pub reads: u64,
    /// Writes and zeroings completed.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written or zeroed.
    pub write_bytes: u64,
}

impl Progress {
    /// For a workload with this many streams.
    #[must_use]
    pub fn new(streams: usize) -> Progress {
        Progress {
            now_ns: AtomicU64::new(0),
            streams: std::iter::repeat_with(Counts::default)
                .take(streams)
                .collect(),
        }
    }

    /// Time of the simulation, ns.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.now_ns.load(Relaxed)
    }

    /// Counts of each stream.
    pub fn streams(&self) -> impl Iterator<Item = StreamCounts> + '_ {
        self.streams.iter().map(|counts| StreamCounts {
            reads: counts.reads.load(Relaxed),
            writes: counts.writes.load(Relaxed),
            read_bytes: counts.read_bytes.load(Relaxed),
            write_bytes: counts.write_bytes.load(Relaxed),
        })
    }

    pub(crate) fn reach(&self, now_ns: u64) {
        self.now_ns.store(now_ns, Relaxed);
    }

    pub(crate) fn set(&self, stream: usize, totals: &Totals) {
        let Some(counts) = self.streams.get(stream) else {
            return;
        };
        let ((reads, read_bytes), (writes, write_bytes)) = (totals.reads(), totals.writes());
        counts.reads.store(reads, Relaxed);
        counts.read_bytes.store(read_bytes, Relaxed);
        counts.writes.store(writes, Relaxed);
        counts.write_bytes.store(write_bytes, Relaxed);
    }
}
