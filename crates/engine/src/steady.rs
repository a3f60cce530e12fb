//! Ends a run when it has settled: the rule of `measure::settle` on samples of its rate or latency.

use std::sync::atomic::Ordering::Relaxed;

use spindle_measure::settle::{Counts, Sampling};
use spindle_measure::{EndedBy, SteadyFigures};
use spindle_workload::Workload;

use crate::load::Load;

/// Looks once a sample.
#[derive(Debug)]
pub(crate) struct Watch {
    sampling: Option<Sampling>,
    ramp_ns: u64,
    next: u64,
    found: Option<SteadyFigures>,
}

impl Watch {
    pub(crate) fn new(workload: &Workload) -> Watch {
        let sampling = workload
            .end
            .steady
            .then(|| Sampling::new(workload.end.steady_rule.unwrap_or_default()));
        let ramp_ns = workload.ramp_ns;
        Watch {
            next: sampling.as_ref().map_or(u64::MAX, |_| ramp_ns),
            sampling,
            ramp_ns,
            found: None,
        }
    }

    /// Time of the next check, ns since the start of the run.
    pub(crate) fn next_look(&self) -> u64 {
        self.next
    }

    /// The window that had settled.
    pub(crate) fn found(&self) -> Option<SteadyFigures> {
        self.found
    }

    pub(crate) fn look(&mut self, load: &Load, now: u64) {
        let Some(sampling) = self.sampling.as_mut().filter(|_| now >= self.next) else {
            return;
        };
        self.next = now.max(self.next + sampling.sample_ns());
        self.found = sampling.look(now.saturating_sub(self.ramp_ns), counts(load));
        if self.found.is_some() {
            self.next = u64::MAX;
            load.shared.end(EndedBy::Steady);
        }
    }
}

fn counts(load: &Load) -> Counts {
    let mut sum = Counts::default();
    for seat in &load.seats {
        let counters = &seat.cell.counters;
        sum.requests += counters.reads.load(Relaxed) + counters.writes.load(Relaxed);
        sum.bytes += counters.read_bytes.load(Relaxed) + counters.write_bytes.load(Relaxed);
        let latency_ns = counters.latency_ns.load(Relaxed);
        sum.latency_ns = sum.latency_ns.wrapping_add(latency_ns);
    }
    sum
}
