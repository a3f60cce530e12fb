//! Figures of a load that is still on: each worker stores a copy of its record when it is asked for one.
#![allow(unsafe_code)]

use std::sync::atomic::Ordering::Relaxed;
use std::thread::sleep;
use std::time::{Duration, Instant};

use spindle_measure::{MergeError, RunFigures, StreamRecorder};

use crate::figures::{self, Part};
use crate::load::{Load, ThreadPlace, recorder};
use crate::shared::{Status, lock};
use crate::thread::Usage;

/// Interval at which the answers of the workers are checked: they answer once a millisecond.
const LOOK: Duration = Duration::from_millis(1);

/// The record of a worker at one moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// Number of the request for snapshots that it answers.
    pub(crate) number: u64,
    /// Time at which it was made, ns since the start of the run.
    pub(crate) at: u64,
    pub(crate) recorder: StreamRecorder,
    /// CPU use since the start of the counted time.
    pub(crate) usage: Usage,
    pub(crate) features: Vec<String>,
}

impl Load {
    /// Figures of the completions so far; `None`: it has not begun, or its figures have been taken. A worker that
    /// does not answer in time, because it waits for the kernel, counts with the last copy that it has left.
    pub(crate) fn so_far(&self, patience: Duration) -> Result<Option<RunFigures>, MergeError> {
        let Some(clock) = self.clock.get() else {
            return Ok(None);
        };
        let number = self.shared.asked.fetch_add(1, Relaxed) + 1;
        self.await_answers(number, patience);
        let parts: Vec<Part> = {
            let taken = lock(&self.taken);
            if *taken {
                return Ok(None);
            }
            self.seats.iter().map(|seat| self.part_of(seat)).collect()
        };
        let is_on = self.seats.iter().any(is_running);
        let elapsed_ns = if is_on { clock.now() } else { 0 };
        figures::add_up(self, parts, elapsed_ns, 0, None, None).map(Some)
    }

    fn await_answers(&self, number: u64, patience: Duration) {
        let begin = Instant::now();
        let is_missing = |seat: &ThreadPlace| {
            is_running(seat)
                && seat
                    .cell
                    .snapshot()
                    .is_none_or(|snapshot| snapshot.number < number)
        };
        while self.seats.iter().any(is_missing) && begin.elapsed() < patience {
            sleep(LOOK);
        }
    }

    /// The record of a worker; to be called under the lock of `taken`.
    fn part_of(&self, seat: &ThreadPlace) -> Part {
        if seat.cell.status() == Status::Done {
            // SAFETY: the worker has set its final status, and the coordinator does not touch the core of one that is
            // `Done` before it has set `taken`, whose lock the caller holds. Only this call uses the reference.
            let core = unsafe { seat.cell.final_core() };
            return Part {
                recorder: core.recorder.clone(),
                ended_at: core.ended_at,
                usage: core.usage,
                features: core.features.clone(),
                unissued_lag: core.unissued_lag,
            };
        }
        match seat.cell.snapshot().as_deref() {
            Some(snapshot) => Part {
                recorder: snapshot.recorder.clone(),
                ended_at: snapshot.at,
                usage: snapshot.usage,
                features: snapshot.features.clone(),
                unissued_lag: 0,
            },
            None => Part {
                recorder: recorder(&self.plan, seat.stream),
                ended_at: 0,
                usage: Usage::default(),
                features: Vec::new(),
                unissued_lag: 0,
            },
        }
    }
}

fn is_running(seat: &ThreadPlace) -> bool {
    seat.cell.status() == Status::Running
}
