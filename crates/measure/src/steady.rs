//! Steady state by the rule of the SNIA Solid State Storage Performance Test Specification (PTS).
//!
//! Within a window of five rounds, largest minus smallest value is at most 20 % of their mean, and the least squares
//! line rises or falls by at most 10 % of the mean from the first round to the last. A round may be anything equally
//! long: a trial, or a window of one second. The rule accepts a slow drift by design; [`crate::trend`] does not.

use std::collections::VecDeque;

use serde::Serialize;

use crate::trend::{self, Trend};

/// The rule for a steady window of rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rule {
    /// Rounds in the window, at least 2.
    pub rounds: usize,
    /// Largest allowed (max - min) / mean.
    pub max_range: f64,
    /// Largest allowed rise or fall of the fitted line over the window / mean.
    pub max_slope: f64,
}

impl Rule {
    /// The rule of the PTS.
    pub const SNIA_PTS: Rule = Rule {
        rounds: 5,
        max_range: 0.20,
        max_slope: 0.10,
    };

    /// True if a window meets the rule.
    #[must_use]
    pub fn accepts(&self, window: &Window) -> bool {
        window.rounds >= self.rounds
            && window.range <= self.max_range
            && window.slope.abs() <= self.max_slope
    }
}

impl Default for Rule {
    fn default() -> Self {
        Rule::SNIA_PTS
    }
}

/// A window of rounds, with the values that the rule compares.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Window {
    /// Index of its first round in the series.
    pub first: usize,
    /// Number of rounds.
    pub rounds: usize,
    /// Mean of the rounds, in their unit.
    pub mean: f64,
    /// (max - min) / mean.
    pub range: f64,
    /// Rise of the least squares line from the first round to the last / mean; negative when it falls.
    pub slope: f64,
}

impl Window {
    /// Window of rounds that begin at `first` in their series; `None` for fewer than two, for values that are not finite,
    /// and for a mean that is not positive: shares of it would be meaningless.
    #[must_use]
    pub fn of(first: usize, rounds: &[f64]) -> Option<Window> {
        Self::of_rounds(first, rounds.iter().copied(), rounds.len())
    }

    fn of_rounds(
        first: usize,
        rounds: impl Iterator<Item = f64> + Clone,
        count: usize,
    ) -> Option<Window> {
        if count < 2 {
            return None;
        }
        let n = count as f64;
        let mean = rounds.clone().sum::<f64>() / n;
        if !(mean.is_finite() && mean > 0.0) {
            return None;
        }
        let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
        // Abscissae -(n-1)/2 .. (n-1)/2: their mean is 0 and their squares sum up to n (n^2 - 1) / 12.
        let middle = (n - 1.0) / 2.0;
        let mut moment = 0.0;
        for (index, value) in rounds.enumerate() {
            min = min.min(value);
            max = max.max(value);
            moment += (index as f64 - middle) * (value - mean);
        }
        let per_round = moment / (n * (n * n - 1.0) / 12.0);
        Some(Window {
            first,
            rounds: count,
            mean,
            range: (max - min) / mean,
            slope: per_round * (n - 1.0) / mean,
        })
    }
}

/// First window of the series that meets the rule.
#[must_use]
pub fn first_steady(series: &[f64], rule: Rule) -> Option<Window> {
    let mut detector = Detector::new(rule);
    series.iter().find_map(|&value| detector.push(value))
}

/// The rule on a series as it grows.
#[derive(Debug, Clone)]
pub struct Detector {
    rule: Rule,
    window: VecDeque<f64>,
    pushed: usize,
}

impl Detector {
    /// A detector without rounds.
    #[must_use]
    pub fn new(rule: Rule) -> Self {
        let rule = Rule {
            rounds: rule.rounds.max(2),
            ..rule
        };
        Detector {
            rule,
            window: VecDeque::with_capacity(rule.rounds),
            pushed: 0,
        }
    }

    /// Takes the next round; returns the window that ends with it if that is steady.
    pub fn push(&mut self, value: f64) -> Option<Window> {
        if self.window.len() == self.rule.rounds {
            self.window.pop_front();
        }
        self.window.push_back(value);
        self.pushed += 1;
        let rounds = self.window.len();
        Window::of_rounds(self.pushed - rounds, self.window.iter().copied(), rounds)
            .filter(|window| self.rule.accepts(window))
    }
}

/// The steadiness of a whole series.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The rule.
    pub rule: Rule,
    /// First window that met the rule.
    pub first: Option<Window>,
    /// The last window, whether or not it meets the rule; `None` if the series is shorter or has no positive mean.
    pub last: Option<Window>,
    /// True if the last window meets the rule.
    pub steady: bool,
    /// Trend over the whole series; `None` if it is too short.
    pub trend: Option<Trend>,
}

/// The SNIA rule on the series and the trend test beside it.
#[must_use]
pub fn report(series: &[f64]) -> Report {
    let rule = Rule::SNIA_PTS;
    let last = series
        .len()
        .checked_sub(rule.rounds)
        .and_then(|first| Window::of(first, &series[first..]));
    Report {
        rule,
        first: first_steady(series, rule),
        last,
        steady: last.is_some_and(|window| rule.accepts(&window)),
        trend: trend::mann_kendall(series),
    }
}
