//! Several runs at once, one on each core.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, atomic::AtomicBool};
use std::thread;

use spindle_workload::Workload;

use crate::engine::SimOptions;
use crate::error::SimError;
use crate::figures::SimFigures;
use crate::machine::{Machine, simulate};

/// Runs each workload on its machine, on `threads` threads (`None`: one a core). Each run is on one thread, and its
/// figures do not depend on how many there are. They come in the order of the runs.
pub fn simulate_many(
    runs: &[(&Machine, &Workload)],
    interval_ns: u64,
    threads: Option<usize>,
    stop: Option<Arc<AtomicBool>>,
) -> Vec<Result<SimFigures, SimError>> {
    let cores = || thread::available_parallelism().map_or(1, NonZero::get);
    let threads = threads.unwrap_or_else(cores).clamp(1, runs.len().max(1));
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(runs.len()));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((index, (machine, workload))) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    runs.get(index).map(|run| (index, run))
                } {
                    let options = SimOptions {
                        interval_ns,
                        stop: stop.clone(),
                        ..SimOptions::default()
                    };
                    let figures = simulate(machine, workload, options);
                    done.lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push((index, figures));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, figures)| figures).collect()
}
