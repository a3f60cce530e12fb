//! The best fit of each shape to a whitened series.

use std::cmp::Ordering;

use super::numbers::{better, dot, sums, unit};
use super::waves::Waves;
use super::whitened::WhitenedSeries;

/// Most changes of level that are followed.
const MOST_CHANGES: usize = 24;

/// The best fit of a shape.
#[derive(Debug, Clone, Default)]
pub(super) struct Fit {
    /// Likelihood at its best rho, logarithm.
    pub(super) likelihood: Option<f64>,
    pub(super) rho: f64,
    pub(super) places: Vec<usize>,
    /// Values per period.
    pub(super) period: Option<f64>,
    /// Free parameters, places included.
    pub(super) parameters: usize,
    /// True if fitted beside a straight line.
    pub(super) drifting: bool,
}

impl Fit {
    /// Keeps another fit if it is more likely; true if so.
    pub(super) fn offer(
        &mut self,
        likelihood: f64,
        rho: f64,
        parameters: usize,
        places: impl FnOnce() -> Vec<usize>,
    ) -> bool {
        let better = self.likelihood.is_none_or(|best| likelihood > best);
        if better {
            *self = Fit {
                likelihood: Some(likelihood),
                rho,
                places: places(),
                period: None,
                parameters,
                drifting: false,
            };
        }
        better
    }
}

impl WhitenedSeries {
    pub(super) fn fit_drift(&self, best: &mut Fit) {
        let line = self.line();
        let with_constant = self.first * line[0] + self.rest * line[1..].iter().sum::<f64>();
        let gain = self.gain(dot(&self.values, &line), dot(&line, &line), with_constant);
        best.offer(self.likelihood(self.squares - gain), self.rho, 1, Vec::new);
    }

    pub(super) fn fit_step(&self, best: &mut Fit) {
        let n = self.len();
        let (gain, at) = (1..n)
            .map(|at| {
                let after = (n - at - 1) as f64;
                let product = self.values[at] + self.rest * (self.sums[n] - self.sums[at + 1]);
                let along = self.rest * self.rest * after;
                (self.gain(product, 1.0 + along, self.rest + along), at)
            })
            .fold((0.0, 1), better);
        best.offer(self.likelihood(self.squares - gain), self.rho, 2, || {
            vec![at]
        });
    }

    pub(super) fn fit_pulse(&self, best: &mut Fit) {
        let n = self.len();
        let mut most = (0.0, (1, 2));
        for begin in 1..n - 1 {
            let so_far = self.values[begin] - self.rest * self.sums[begin + 1];
            for end in begin + 1..n {
                let product = so_far + self.rest * self.sums[end] - self.rho * self.values[end];
                let along = self.rest * self.rest * (end - begin - 1) as f64;
                let square = 1.0 + along + self.rho * self.rho;
                let with_constant = self.rest + along - self.rho * self.rest;
                let gain = self.gain(product, square, with_constant);
                if gain > most.0 {
                    most = (gain, (begin, end));
                }
            }
        }
        let (gain, (begin, end)) = most;
        best.offer(self.likelihood(self.squares - gain), self.rho, 3, || {
            vec![begin, end]
        });
    }

    pub(super) fn fit_wave(&self, best: &mut Fit, waves: &Waves) {
        let (gain, period) = waves
            .each
            .iter()
            .map(|wave| (wave.gain(self), wave.period))
            .fold(
                (0.0, 0.0),
                |best, one| if one.0 > best.0 { one } else { best },
            );
        if best.offer(self.likelihood(self.squares - gain), self.rho, 3, Vec::new) {
            best.period = Some(period);
        }
    }

    /// Steps one after the other, each the one that explains most of what is left (orthogonal matching pursuit); with
    /// `drifting`, beside a straight line: a sawtooth is a line that jumps back.
    pub(super) fn fit_levels(&self, best: &mut Fit, drifting: bool) {
        let n = self.len();
        let mut pursuit = Pursuit::of(self, drifting);
        for count in 1..=MOST_CHANGES.min(n / 3) {
            let Some(at) = pursuit.next() else { return };
            pursuit.add(at);
            if count >= 2 || drifting {
                let cost = each_change(n) * (count - 1 + usize::from(drifting)) as f64;
                let parameters = 2 * count + usize::from(drifting);
                let places = || {
                    let mut sorted = pursuit.places.clone();
                    sorted.sort_unstable();
                    sorted
                };
                if best.offer(
                    self.likelihood(pursuit.squares) - cost,
                    self.rho,
                    parameters,
                    places,
                ) {
                    best.drifting = drifting;
                }
            }
        }
    }

    /// The places without those that later ones have made superfluous: a greedy search begins with places in the middle
    /// between two changes. A named place must be certain, so it must add twice as much.
    pub(super) fn pruned(&self, fit: &Fit) -> Vec<usize> {
        let likelihood = |places: &[usize]| {
            let mut pursuit = Pursuit::of(self, fit.drifting);
            places.iter().for_each(|&at| pursuit.add(at));
            self.likelihood(pursuit.squares)
        };
        let mut places = fit.places.clone();
        while places.len() > 1 {
            let whole = likelihood(&places);
            let without = |at: usize| {
                let mut rest = places.clone();
                rest.remove(at);
                rest
            };
            let (least, at) = (0..places.len())
                .map(|at| (whole - likelihood(&without(at)), at))
                .fold(
                    (f64::INFINITY, 0),
                    |best, one| if one.0 < best.0 { one } else { best },
                );
            if least > 2.0 * each_change(self.len()) {
                break;
            }
            places.remove(at);
        }
        places
    }
}

/// Gain in the logarithm of the likelihood that one more change of level, or a line, must bring: the best of so many places brings
/// a part of it by chance.
fn each_change(length: usize) -> f64 {
    (length as f64).ln() + 1.0
}

/// Steps taken out of a whitened series one by one.
struct Pursuit<'a> {
    white: &'a WhitenedSeries,
    /// Orthonormal; the parts taken out are in their span.
    basis: Vec<Vec<f64>>,
    /// Their sums.
    sums: Vec<Vec<f64>>,
    left: Vec<f64>,
    /// Sum of squares of what is left.
    squares: f64,
    places: Vec<usize>,
}

impl<'a> Pursuit<'a> {
    fn of(white: &'a WhitenedSeries, drifting: bool) -> Self {
        let mut constant = vec![white.rest; white.len()];
        constant[0] = white.first;
        let basis = vec![unit(constant)];
        let mut found = Pursuit {
            white,
            sums: basis.iter().map(|one| sums(one)).collect(),
            basis,
            left: white.values.clone(),
            squares: white.squares,
            places: Vec::new(),
        };
        if drifting {
            found.take_out(white.line());
        }
        found
    }

    /// The step that explains most of what is left.
    fn next(&self) -> Option<usize> {
        let (n, rest) = (self.white.len(), self.white.rest);
        let left_sums = sums(&self.left);
        let along =
            |values: &[f64], sums: &[f64], at: usize| values[at] + rest * (sums[n] - sums[at + 1]);
        let gain = |at: usize| {
            let square = 1.0 + rest * rest * (n - at - 1) as f64;
            let known = self.basis.iter().zip(&self.sums);
            let inside: f64 = known.map(|(one, sums)| along(one, sums, at).powi(2)).sum();
            let free = square - inside;
            let product = along(&self.left, &left_sums, at);
            if free > 1e-6 * square {
                product * product / free
            } else {
                0.0
            }
        };
        let (gain, at) = (1..n)
            .filter(|at| !self.places.contains(at))
            .map(|at| (gain(at), at))
            .fold((0.0, 1), better);
        (gain > 0.0).then_some(at)
    }

    fn add(&mut self, at: usize) {
        let rest = self.white.rest;
        let step = (0..self.white.len()).map(|place| match place.cmp(&at) {
            Ordering::Less => 0.0,
            Ordering::Equal => 1.0,
            Ordering::Greater => rest,
        });
        self.take_out(step.collect());
        self.places.push(at);
    }

    fn take_out(&mut self, mut regressor: Vec<f64>) {
        for one in &self.basis {
            let along = dot(one, &regressor);
            regressor
                .iter_mut()
                .zip(one)
                .for_each(|(value, part)| *value -= along * part);
        }
        let regressor = unit(regressor);
        let along = dot(&regressor, &self.left);
        self.left
            .iter_mut()
            .zip(&regressor)
            .for_each(|(value, part)| *value -= along * part);
        self.squares -= along * along;
        self.sums.push(sums(&regressor));
        self.basis.push(regressor);
    }
}
