//! Detects that a run has settled, slow drift included.
//!
//! The rule of the SNIA PTS ([`crate::steady`]) on fifths of a window sees ranges and steep slopes, and accepts a slow
//! drift: that it finds no drift is not evidence that there is none. Here drift is bounded by evidence: the 95 % confidence
//! interval of Sen's slope ([`crate::trend`]) must be within the allowed drift, so that a noisy run is watched
//! longer, over windows twice, four times ... as long, until the noise can no longer hide a drift that matters.

use std::collections::VecDeque;

use serde::Serialize;
use spindle_workload::{SteadyMetric, SteadyRule};

use crate::steady::{Rule, Window};
use crate::trend;

/// Running totals of a load, all streams, fsyncs apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Requests completed.
    pub requests: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Sum of the latencies, ns; wraps.
    pub latency_ns: u64,
}

/// A window that has settled.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SteadyFigures {
    /// Time at which it was found, and so the end of the window, ns after the end of the ramp.
    pub at_ns: u64,
    /// Start of the window: earlier samples are left out.
    pub from_ns: u64,
    /// Mean over the window: requests/s, bytes/s, or ns.
    pub mean: f64,
    /// (max - min) / mean of the window's fifths.
    pub range: f64,
    /// Rise of the fitted line over the fifths / mean; negative when it falls.
    pub slope: f64,
    /// Sen's slope: share of the window's median per minute.
    pub drift_per_minute: f64,
    /// Ends of its 95 % confidence interval.
    pub drift_range: (f64, f64),
    /// Number of times that the rule was evaluated until then.
    pub evaluations: u64,
}

/// Samples in the shortest window.
const SAMPLES: usize = 60;
/// Samples between two evaluations of the rule.
const STRIDE: usize = 6;
/// The longest window, in lengths of the shortest; older samples are forgotten, so that memory is bounded.
const LONGEST: usize = 64;
/// Number of values for the trend, each a mean of equally many samples: correlation between neighbouring samples
/// mostly averages out, and an evaluation costs microseconds.
const GROUPS: usize = 30;
/// Evaluations in a row that must find it settled: one may be chance, or the crest of a slow wave.
const HOLD: u32 = 3;
/// The PTS looks at five rounds.
const ROUNDS: usize = 5;

/// The rule on samples as they come in.
#[derive(Debug, Clone)]
pub struct Settling {
    rule: SteadyRule,
    /// (end, value) of each sample; the first is the time before the second.
    samples: VecDeque<(u64, f64)>,
    since_look: usize,
    held: u32,
    evaluations: u64,
}

impl Settling {
    /// A rule without samples; the first sample begins at 0.
    #[must_use]
    pub fn new(rule: SteadyRule) -> Self {
        Settling {
            rule,
            samples: VecDeque::from([(0, 0.0)]),
            since_look: 0,
            held: 0,
            evaluations: 0,
        }
    }

    /// Sets where the first sample begins.
    fn begin(&mut self, from_ns: u64) {
        self.samples = VecDeque::from([(from_ns, 0.0)]);
    }

    /// Takes the next sample, which ends at `at_ns`; returns the window that ends with it, if the run has settled.
    pub fn push(&mut self, at_ns: u64, value: f64) -> Option<SteadyFigures> {
        if self.samples.len() > SAMPLES * LONGEST {
            self.samples.pop_front();
        }
        self.samples.push_back((at_ns, value));
        self.since_look += 1;
        let known = self.samples.len() - 1;
        if known < SAMPLES || self.since_look < STRIDE {
            return None;
        }
        self.since_look = 0;
        self.evaluations += 1;
        let values: Vec<f64> = self
            .samples
            .iter()
            .skip(1)
            .map(|&(_, value)| value)
            .collect();
        let found = lengths(known).find_map(|length| self.judge(&values[known - length..]));
        self.held = if found.is_some() { self.held + 1 } else { 0 };
        found.filter(|_| self.held >= HOLD)
    }

    /// Number of kept samples: the more, the longer the windows that can be checked.
    #[must_use]
    pub fn samples(&self) -> usize {
        self.samples.len()
    }

    fn judge(&self, window: &[f64]) -> Option<SteadyFigures> {
        let fifths = means(window, ROUNDS);
        let rule = Rule {
            rounds: ROUNDS,
            max_range: self.rule.range,
            max_slope: self.rule.slope,
        };
        let seen = Window::of(0, &fifths).filter(|seen| rule.accepts(seen))?;
        let (at_ns, _) = *self.samples.back()?;
        let (from_ns, _) = self.samples[self.samples.len() - 1 - window.len()];
        let minutes = at_ns.saturating_sub(from_ns) as f64 / 6e10 / GROUPS as f64;
        let groups = means(window, GROUPS);
        let trend = trend::mann_kendall(&groups)?;
        let middle = median(groups);
        let share = |slope: f64| slope / middle / minutes;
        let (low, high) = (share(trend.slope_range.0), share(trend.slope_range.1));
        let ruled_out = |limit: f64| -limit <= low && high <= limit;
        self.rule
            .drift_per_minute
            .is_none_or(ruled_out)
            .then_some(SteadyFigures {
                at_ns,
                from_ns,
                mean: seen.mean,
                range: seen.range,
                slope: seen.slope,
                drift_per_minute: share(trend.slope),
                drift_range: (low, high),
                evaluations: self.evaluations,
            })
    }
}

/// The rule on the totals of a load, taken now and then.
#[derive(Debug, Clone)]
pub struct Sampling {
    sample_ns: u64,
    settling: Settling,
    /// Totals at the start of the sample, and when that was.
    before: Option<(u64, Counts)>,
}

impl Sampling {
    /// A rule without samples.
    #[must_use]
    pub fn new(rule: SteadyRule) -> Self {
        Sampling {
            sample_ns: (rule.window_ns / SAMPLES as u64).max(1),
            settling: Settling::new(rule),
            before: None,
        }
    }

    /// Time between two samples, ns.
    #[must_use]
    pub fn sample_ns(&self) -> u64 {
        self.sample_ns
    }

    /// Takes the totals at `at_ns` after the end of the ramp; returns the window that ends there, if it has settled.
    pub fn look(&mut self, at_ns: u64, counts: Counts) -> Option<SteadyFigures> {
        let Some((since, before)) = self.before else {
            self.settling.begin(at_ns);
            self.before = Some((at_ns, counts));
            return None;
        };
        // Rates over the time that really passed: a late sample is not a slow moment.
        let seconds = at_ns.saturating_sub(since) as f64 / 1e9;
        let requests = counts.requests.saturating_sub(before.requests);
        if seconds <= 0.0 {
            return None;
        }
        let value = match self.settling.rule.metric {
            SteadyMetric::Iops => requests as f64 / seconds,
            SteadyMetric::Bandwidth => counts.bytes.saturating_sub(before.bytes) as f64 / seconds,
            // Nothing completed: there is no latency yet, the sample grows.
            SteadyMetric::Latency if requests == 0 => return None,
            SteadyMetric::Latency => {
                counts.latency_ns.wrapping_sub(before.latency_ns) as f64 / requests as f64
            }
        };
        self.before = Some((at_ns, counts));
        self.settling.push(at_ns, value)
    }
}

/// The shortest window and those twice, four times ... as long, as far as samples reach.
fn lengths(known: usize) -> impl Iterator<Item = usize> {
    (0..)
        .map(|doubling| SAMPLES << doubling)
        .take_while(move |&length| length <= known)
}

/// Means of equally long parts.
fn means(values: &[f64], parts: usize) -> Vec<f64> {
    let length = values.len() / parts;
    values
        .chunks_exact(length)
        .map(|part| part.iter().sum::<f64>() / length as f64)
        .collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 {
        values[half]
    } else {
        f64::midpoint(values[half - 1], values[half])
    }
}
