//! Ends a run, or a stream of it, when its rate is steady: the rule of `measure::steady` on windows of one second.

use std::sync::atomic::Ordering::Acquire;

use spindle_measure::EndedBy;
use spindle_measure::steady::{Detector, Rule};
use spindle_workload::Workload;

use crate::load::Load;
use crate::progress::StreamProgress;

const WINDOW_NS: u64 = 1_000_000_000;

/// Looks once a second.
#[derive(Debug)]
pub(crate) struct Watch {
    run: Option<Detector>,
    streams: Vec<Option<Detector>>,
    /// Counts at the start of the window, if it has begun.
    before: Option<(u64, Vec<u64>)>,
    next: u64,
}

impl Watch {
    pub(crate) fn new(workload: &Workload) -> Watch {
        let detector = |wanted: bool| wanted.then(|| Detector::new(Rule::SNIA_PTS));
        let streams: Vec<_> = workload
            .streams
            .iter()
            .map(|stream| detector(stream.end.steady))
            .collect();
        let run = detector(workload.end.steady);
        let wanted = run.is_some() || streams.iter().any(Option::is_some);
        Watch {
            run,
            streams,
            before: None,
            next: if wanted { workload.ramp_ns } else { u64::MAX },
        }
    }

    /// When it wants to look next, ns since the start of the run.
    pub(crate) fn next_look(&self) -> u64 {
        self.next
    }

    pub(crate) fn look(&mut self, load: &Load, now: u64) {
        if now < self.next {
            return;
        }
        self.next = now.max(self.next + WINDOW_NS);
        let counts: Vec<u64> = load.counts().iter().map(requests).collect();
        if let Some((since, before)) = &self.before {
            // Rates of the time that passed indeed: a late look is not a slow second.
            let seconds = now.saturating_sub(*since) as f64 / 1e9;
            let rates: Vec<f64> = counts
                .iter()
                .zip(before)
                .map(|(now, before)| now.saturating_sub(*before) as f64 / seconds)
                .collect();
            self.judge(load, &rates);
        }
        self.before = Some((now, counts));
    }

    fn judge(&mut self, load: &Load, rates: &[f64]) {
        for (index, detector) in self.streams.iter_mut().enumerate() {
            let stream = &load.shared.streams[index];
            if stream.halt.load(Acquire) {
                continue;
            }
            if detector
                .as_mut()
                .is_some_and(|detector| detector.push(rates[index]).is_some())
            {
                stream.end(EndedBy::Steady);
            }
        }
        if let Some(detector) = &mut self.run
            && detector.push(rates.iter().sum()).is_some()
        {
            load.shared.end(EndedBy::Steady);
        }
    }
}

fn requests(stream: &StreamProgress) -> u64 {
    stream.reads + stream.writes
}
