//! The kernel's own threads that work for the load: io_uring's workers and submission pollers. They belong to
//! this process, under names that identify their owner (io_uring/io-wq.c: `iou-wrk-<tid>`, io_uring/sqpoll.c:
//! `iou-sqp-<pid>`), and their CPU time is not in the usage of the thread they work for.

use std::collections::HashMap;
use std::fs;

/// CPU time of the helper threads of one run.
#[derive(Debug, Default)]
pub(crate) struct Helpers {
    /// CPU time of each at the start of the measurement and when last seen, ns.
    seen: HashMap<i32, (u64, u64)>,
    begun: bool,
}

impl Helpers {
    /// Starts counting: earlier CPU time does not count.
    pub(crate) fn begin(&mut self, workers: &[i32]) {
        self.seen = running(workers)
            .into_iter()
            .map(|(thread, used)| (thread, (used, used)))
            .collect();
        self.begun = true;
    }

    /// Reads again; done every second, as an idle helper exits after five.
    pub(crate) fn look(&mut self, workers: &[i32]) {
        if !self.begun {
            return;
        }
        for (thread, used) in running(workers) {
            self.seen.entry(thread).or_insert((0, used)).1 = used;
        }
    }

    /// CPU time since the start of the measurement, ns.
    pub(crate) fn used_ns(&self) -> u64 {
        self.seen
            .values()
            .map(|(first, last)| last.saturating_sub(*first))
            .sum()
    }
}

/// Helper threads of the given workers, with the CPU time used, ns.
fn running(workers: &[i32]) -> Vec<(i32, u64)> {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    tasks
        .filter_map(|task| {
            let thread: i32 = task.ok()?.file_name().to_str()?.parse().ok()?;
            let comm = fs::read_to_string(format!("/proc/self/task/{thread}/comm")).ok()?;
            let comm = comm.trim();
            let ours = comm.starts_with("iou-sqp-")
                || comm
                    .strip_prefix("iou-wrk-")
                    .is_some_and(|of| of.parse().is_ok_and(|of: i32| workers.contains(&of)));
            let used = ours.then(|| cpu_ns(thread))??;
            Some((thread, used))
        })
        .collect()
}

/// CPU time of a thread, ns (first field of schedstat).
fn cpu_ns(thread: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}
