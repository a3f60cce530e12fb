//! The seeded stream of operations on the names of a tree of files: each name once per pass.
//!
//! The files of a tree are numbered, and so are its directories; file i is in directory i / k where k files
//! are in each. A worker has an equal part of consecutive numbers, so that workers meet in
//! few directories. No state is kept per name: the random order is a bijection of the worker's numbers.

use std::ops::Range;

use crate::request::{Op, Request};
use crate::rng::{Purpose, Rng, mix, sub_seed};
use crate::scatter::Scatter;
use crate::sizer::Sizer;
use crate::spec::{Each, Names, Order, Size, Stream, Tree};
use crate::stream::{StreamError, Syncer};

/// The operations of one worker of a stream that works on names; they end when every name was taken.
#[derive(Debug, Clone)]
pub struct NameStream {
    op: Op,
    part: Range<u64>,
    /// Names of the part taken in this pass.
    taken: u64,
    /// Passes to begin after this one.
    passes: u64,
    scatter: Option<Scatter>,
    seed: u64,
    sizer: Option<Sizer>,
    size_rng: Rng,
    syncer: Syncer,
}

impl NameStream {
    /// Operations of worker `worker` (from 0) of the stream with index `stream_index` in its workload.
    pub fn new(
        stream: &Stream,
        names: &Names,
        stream_index: usize,
        worker: u32,
        seed: u64,
    ) -> Result<NameStream, StreamError> {
        if worker >= stream.workers {
            return Err(StreamError::OutOfRange { what: "worker" });
        }
        let rng = |purpose| Rng::new(sub_seed(seed, stream_index, worker, purpose));
        let part = names.part(stream.workers, worker);
        let seed = sub_seed(seed, stream_index, worker, Purpose::Scatter);
        let sizer = match (&names.tree.size, names.operation) {
            (Some(size), Op::Create) => Some(Sizer::new(size, 1)?),
            _ => None,
        };
        let mut stream = NameStream {
            op: names.operation,
            taken: 0,
            passes: names
                .passes
                .map_or(u64::MAX, |passes| u64::from(passes.max(1)) - 1),
            scatter: (names.order == Order::Random && !part.is_empty())
                .then(|| Scatter::new(part.end - part.start, seed)),
            part,
            seed,
            sizer,
            size_rng: rng(Purpose::Size),
            syncer: Syncer::new(stream, rng(Purpose::Fsync)),
        };
        if stream.part.is_empty() {
            stream.passes = 0;
        }
        Ok(stream)
    }

    /// The next operation; `None`: every name was taken as often as requested.
    #[inline]
    pub fn next_request(&mut self) -> Option<Request> {
        if self.taken == self.part.end - self.part.start {
            self.begin_pass()?;
        }
        let rank = match &self.scatter {
            None => self.taken,
            Some(scatter) => scatter.place(self.taken),
        };
        self.taken += 1;
        Some(Request {
            file: 0,
            offset: self.part.start + rank,
            len: match &self.sizer {
                None => 0,
                Some(sizer) => sizer.draw(&mut self.size_rng),
            },
            op: self.op,
            fsync_after: self.op.changes_data() && self.syncer.is_due(),
        })
    }

    #[cold]
    fn begin_pass(&mut self) -> Option<()> {
        self.passes = self.passes.checked_sub(1)?;
        if self.part.is_empty() {
            return None;
        }
        self.taken = 0;
        self.seed = mix(self.seed);
        if let Some(scatter) = &mut self.scatter {
            *scatter = Scatter::new(self.part.end - self.part.start, self.seed);
        }
        Some(())
    }

    /// Largest length of a write, bytes: the size that a buffer needs.
    #[must_use]
    pub fn max_len(&self) -> u32 {
        self.sizer.as_ref().map_or(0, Sizer::max)
    }
}

impl Names {
    /// Number of names that all `workers` together work on, each counted once.
    #[must_use]
    pub fn count(&self, workers: u32) -> u64 {
        if self.operation.is_on_directories() {
            self.tree.all_directories(workers)
        } else {
            self.tree.all_files(workers)
        }
    }

    /// The numbers of one worker.
    #[must_use]
    pub fn part(&self, workers: u32, worker: u32) -> Range<u64> {
        let count = u128::from(self.count(workers));
        let bound = |worker: u32| (count * u128::from(worker) / u128::from(workers.max(1))) as u64;
        bound(worker)..bound(worker + 1)
    }
}

impl Tree {
    /// Files of all `workers` together.
    #[must_use]
    pub fn all_files(&self, workers: u32) -> u64 {
        self.files.saturating_mul(self.owners(workers))
    }

    /// Directories of all `workers` together.
    #[must_use]
    pub fn all_directories(&self, workers: u32) -> u64 {
        self.directories.max(1).saturating_mul(self.owners(workers))
    }

    /// Files in each directory; the last one may have fewer.
    #[must_use]
    pub fn files_in_each(&self, workers: u32) -> u64 {
        self.all_files(workers)
            .div_ceil(self.all_directories(workers))
            .max(1)
    }

    /// Bytes of a file, in the mean or at most.
    #[must_use]
    pub fn largest_file(&self) -> u64 {
        match &self.size {
            None => 0,
            Some(Size::Fixed { bytes }) => u64::from(*bytes),
            Some(Size::Range { max, .. } | Size::LogNormal { max, .. }) => u64::from(*max),
            Some(Size::Weighted { choices }) => choices
                .iter()
                .map(|choice| u64::from(choice.0))
                .max()
                .unwrap_or(0),
        }
    }

    fn owners(&self, workers: u32) -> u64 {
        match self.each {
            Each::Stream => 1,
            Each::Worker => u64::from(workers),
        }
    }
}
