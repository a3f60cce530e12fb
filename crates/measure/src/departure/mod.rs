//! Finds departures of a series from its level: steps, drift, pulses, waves, several levels and two levels, against stationary noise whose
//! neighbours may resemble each other.
//!
//! A step and strong autocorrelation look alike to a test that first estimates the correlation and then corrects for it:
//! it takes the step itself for correlation, the more so the larger the step is. Here both are fitted together. The noise is
//! an AR(1) with correlation rho >= 0; a shape is a regressor; for each rho of a grid the series is whitened exactly and the
//! shapes are fitted by least squares. The statistic of a shape is the logarithm of the ratio of the likelihoods with it
//! and without it, each at its best rho. Chance alone makes it larger in longer series: the critical
//! values ([`LENGTHS`]) are those that stationary series of every correlation from 0 to 0.8 exceed in at most the share of
//! [`Kind::chance`], found by simulation (`tests/departure.rs`, which prints them again).

mod excluded;
mod numbers;
mod shapes;
mod waves;
mod whitened;

use serde::Serialize;

use self::excluded::Place;
use self::numbers::mean;
use self::shapes::Fit;
use self::waves::Waves;
use self::whitened::WhitenedSeries;

/// The shape of a departure from a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Rose or fell all the time.
    Drift,
    /// Changed the level once, for good.
    Step,
    /// Was on another level for a while.
    Pulse,
    /// Swung with a period.
    Wave,
    /// Changed the level several times, or jumped back after a drift.
    Levels,
    /// Drifted and jumped back; the statistic is that of several levels.
    Sawtooth,
    /// Alternated between two levels, too often to name the times.
    Flapping,
}

/// The kinds with a statistic, in its order.
pub const KINDS: [Kind; 6] = [
    Kind::Drift,
    Kind::Step,
    Kind::Pulse,
    Kind::Wave,
    Kind::Levels,
    Kind::Flapping,
];

impl Kind {
    /// Largest share of stationary series in which the statistic exceeds its critical value, at the worst correlation.
    #[must_use]
    pub fn chance(self) -> f64 {
        match self {
            Kind::Drift => 0.007,
            Kind::Step => 0.015,
            Kind::Pulse | Kind::Wave | Kind::Levels | Kind::Sawtooth => 0.005,
            Kind::Flapping => 0.003,
        }
    }
}

/// A departure from a level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Departure {
    /// Its shape.
    pub kind: Kind,
    /// Logarithm of the likelihood ratio over its critical value; above 1.
    pub strength: f64,
    /// First value of each new level, by its place in the series; none for drift, wave and flapping.
    pub places: Vec<usize>,
    /// Mean of each part between the places; for flapping both levels, first the one on which it was longer; for a drift the
    /// fitted line's first and last value; for a wave and a sawtooth the highest and lowest fitted value.
    pub levels: Vec<f64>,
    /// Values per period of a wave.
    pub period: Option<f64>,
    /// Share of the time on the second level, for flapping.
    pub share: Option<f64>,
}

/// Place of the kind that depends on the values alone, not on their order.
const FLAPPING: usize = 5;
/// Number of values of the shortest series that can show a departure.
pub const SHORTEST: usize = 5;
/// Longer series are averaged in groups first: changes are looked for at this resolution.
const LONGEST: usize = 300;
/// Number of changes above which two levels, where there are two, are reported instead of each change.
const MOST_NAMED: usize = 12;
/// Correlations that are tried.
const RHOS: [f64; 10] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
/// Between these correlations the critical value rises from that of white noise to that of correlated noise.
const RISE: (f64, f64) = (0.1, 0.5);

/// Lengths for which the critical values were simulated; between them they are interpolated over the logarithm.
pub const LENGTHS: [usize; 9] = [5, 7, 10, 15, 20, 30, 60, 120, 300];
/// For each kind and length: the critical value where the fitted noise is white, and where its neighbours correlate.
const CRITICAL: [[(f64, f64); LENGTHS.len()]; KINDS.len()] = [
    [
        (8.84, 8.98),
        (7.67, 7.85),
        (7.20, 7.31),
        (7.07, 7.24),
        (6.90, 7.00),
        (6.04, 6.36),
        (4.22, 5.33),
        (3.57, 4.65),
        (3.59, 4.25),
    ],
    [
        (8.89, 9.03),
        (8.26, 8.39),
        (8.18, 8.33),
        (8.29, 8.44),
        (8.31, 8.48),
        (8.20, 8.43),
        (7.05, 8.45),
        (5.99, 8.42),
        (6.36, 8.20),
    ],
    [
        (10.30, 10.50),
        (10.23, 10.39),
        (10.21, 10.32),
        (11.14, 11.23),
        (11.36, 11.46),
        (11.95, 12.26),
        (12.39, 12.81),
        (11.29, 13.76),
        (11.84, 14.22),
    ],
    [
        (12.90, 13.49),
        (11.61, 12.04),
        (10.75, 11.04),
        (9.90, 10.13),
        (9.88, 10.11),
        (9.80, 10.13),
        (9.98, 10.37),
        (10.46, 10.78),
        (11.30, 11.41),
    ],
    [
        (13.95, 14.12),
        (15.23, 15.47),
        (14.42, 14.53),
        (13.88, 14.13),
        (12.29, 12.44),
        (11.18, 11.25),
        (10.07, 10.25),
        (6.99, 9.77),
        (5.22, 8.70),
    ],
    [
        (4.79, 4.86),
        (3.61, 3.64),
        (2.81, 2.83),
        (2.40, 2.42),
        (2.13, 2.15),
        (1.95, 1.97),
        (1.61, 1.62),
        (1.41, 1.42),
        (1.25, 1.25),
    ],
];

/// The departures of the series from a level, the shape that describes it best first (by likelihood, less the logarithm of the
/// length for each free parameter); empty if it keeps its level, is too short, or has no positive mean. `beside`: number of other
/// series of the same run that are checked as well, for which the limits are raised.
#[must_use]
pub fn departures(series: &[f64], beside: usize) -> Vec<Departure> {
    if series.iter().any(|value| !value.is_finite()) {
        return Vec::new();
    }
    let (values, group) = grouped(series);
    let Some((fits, statistics)) = fitted(&values) else {
        return Vec::new();
    };
    // With this chance a logarithm of a likelihood ratio is larger by this; the two levels' statistic is not such a ratio.
    let raise = |kind: usize| {
        if kind == FLAPPING {
            0.0
        } else {
            ((beside + 1) as f64).ln()
        }
    };
    let strength = |kind: usize| {
        statistics[kind] / (critical(kind, values.len(), fits[kind].rho) + raise(kind))
    };
    let cost = (values.len() as f64).ln();
    let named = |kind: usize| statistics[kind] - cost * fits[kind].parameters as f64;
    let mut found: Vec<usize> = (0..FLAPPING).filter(|&kind| strength(kind) > 1.0).collect();
    found.sort_by(|&a, &b| named(b).total_cmp(&named(a)));
    if strength(FLAPPING) > 1.0 {
        // Two levels describe the series better than dozens of changes.
        let many = found
            .first()
            .is_some_and(|&kind| fits[kind].places.len() > MOST_NAMED);
        found.insert(if many { 0 } else { found.len() }, FLAPPING);
    }
    let described =
        |kind: usize| described(KINDS[kind], strength(kind), &fits[kind], &values, group);
    found.into_iter().map(described).collect()
}

/// The statistic of each kind, for a simulation; with the rho of its fit.
#[must_use]
pub fn statistics(series: &[f64]) -> Option<[(f64, f64); 6]> {
    let (fits, statistics) = fitted(series)?;
    Some(std::array::from_fn(|kind| {
        (statistics[kind], fits[kind].rho)
    }))
}

/// The smallest step up or down that the series rules out, as a share of the level before it: 0.12 means that a step of
/// 12 % or more, anywhere between a tenth and nine tenths of the series, is ruled out with a confidence of 95 %. `None`
/// if not even one of 100 % is: the series is too short or too noisy, or has no positive mean.
#[must_use]
pub fn ruled_out(series: &[f64]) -> Option<f64> {
    let (values, _) = grouped(series);
    let mean = mean(&values);
    if values.len() < SHORTEST || !(mean.is_finite() && mean > 0.0) {
        return None;
    }
    let shares: Vec<f64> = values.iter().map(|value| value / mean).collect();
    excluded::smallest(&shares)
}

/// Means of equal groups of at most [`LONGEST`], and the values in a group.
fn grouped(series: &[f64]) -> (Vec<f64>, usize) {
    let group = series.len().div_ceil(LONGEST).max(1);
    let means = series
        .chunks_exact(group)
        .map(|chunk| chunk.iter().sum::<f64>() / chunk.len() as f64);
    (means.collect(), group)
}

/// Probability of a step by this share or more at each place between a tenth and nine tenths of the series, for a
/// simulation.
#[must_use]
pub fn chances(series: &[f64], change: f64) -> Vec<f64> {
    Place::each(series)
        .iter()
        .map(|place| place.chance(change))
        .collect()
}

/// Share of the way from white to correlated noise by which the critical value has risen at this rho.
#[must_use]
pub fn rise(rho: f64) -> f64 {
    ((rho - RISE.0) / (RISE.1 - RISE.0)).clamp(0.0, 1.0)
}

fn critical(kind: usize, length: usize, rho: f64) -> f64 {
    let at = |place: usize| {
        let (white, correlated) = CRITICAL[kind][place];
        white + (correlated - white) * rise(rho)
    };
    let Some(above) = LENGTHS.iter().position(|&one| one >= length) else {
        return at(LENGTHS.len() - 1);
    };
    if above == 0 || LENGTHS[above] == length {
        return at(above);
    }
    let (low, high) = (LENGTHS[above - 1] as f64, LENGTHS[above] as f64);
    let share = (length as f64 / low).ln() / (high / low).ln();
    at(above - 1) + (at(above) - at(above - 1)) * share
}

fn fitted(values: &[f64]) -> Option<([Fit; 6], [f64; 6])> {
    let n = values.len();
    let mean = mean(values);
    if n < SHORTEST || !(mean.is_finite() && mean > 0.0) {
        return None;
    }
    let scaled = scaled(values);
    let waves = Waves::of(&scaled);
    let mut level = f64::NEG_INFINITY;
    let mut fits: [Fit; 6] = Default::default();
    for rho in RHOS {
        let white = WhitenedSeries::of(&scaled, rho);
        level = level.max(white.likelihood(white.squares));
        let [drift, step, pulse, wave, levels, _] = &mut fits;
        white.fit_drift(drift);
        white.fit_step(step);
        white.fit_pulse(pulse);
        white.fit_wave(wave, &waves);
        white.fit_levels(levels, false);
        white.fit_levels(levels, true);
    }
    let mut statistics = std::array::from_fn(|kind| {
        fits[kind]
            .likelihood
            .map_or(0.0, |likelihood| (likelihood - level).max(0.0))
    });
    statistics[FLAPPING] = TwoLevels::of(values).unlike;
    Some((fits, statistics))
}

/// The values as shares of their mean, around it.
fn scaled(values: &[f64]) -> Vec<f64> {
    let mean = mean(values);
    values.iter().map(|value| value / mean - 1.0).collect()
}

fn described(kind: Kind, strength: f64, fit: &Fit, values: &[f64], group: usize) -> Departure {
    let mut found = Departure {
        kind,
        strength,
        places: fit.places.clone(),
        levels: Vec::new(),
        period: fit.period.map(|period| period * group as f64),
        share: None,
    };
    match kind {
        Kind::Drift => found.levels = numbers::line(values).to_vec(),
        Kind::Wave => found.levels = numbers::swing(values, fit.period.unwrap_or(2.0)).to_vec(),
        Kind::Flapping => {
            let two = TwoLevels::of(values);
            found.levels = two.levels.to_vec();
            found.share = Some(two.share);
        }
        Kind::Levels if fit.drifting => {
            found.kind = Kind::Sawtooth;
            found.places = WhitenedSeries::of(&scaled(values), fit.rho).pruned(fit);
            found.levels = numbers::extremes(values, &found.places).to_vec();
        }
        Kind::Levels => {
            found.places = merged(
                values,
                WhitenedSeries::of(&scaled(values), fit.rho).pruned(fit),
            );
            found.levels = numbers::means(values, &found.places);
            if found.places.len() == 1 {
                found.kind = Kind::Step;
            }
        }
        Kind::Step | Kind::Pulse | Kind::Sawtooth => {
            found.levels = numbers::means(values, &found.places)
        }
    }
    found.places.iter_mut().for_each(|place| *place *= group);
    found
}

/// Share of the largest change of level below which another change is not named.
const MINOR: f64 = 0.25;

/// The places without the changes that are small beside the largest.
fn merged(values: &[f64], mut places: Vec<usize>) -> Vec<usize> {
    while places.len() > 1 {
        let levels = numbers::means(values, &places);
        let changes = levels.windows(2).map(|pair| (pair[1] - pair[0]).abs());
        let largest = changes.clone().fold(0.0, f64::max);
        let (least, at) =
            changes.zip(0..).fold(
                (f64::INFINITY, 0),
                |best, one| {
                    if one.0 < best.0 { one } else { best }
                },
            );
        if least >= MINOR * largest {
            break;
        }
        places.remove(at);
    }
    places
}

/// The best division of the values into low and high ones, whatever their order.
struct TwoLevels {
    /// Logarithm of the ratio of the squares around one level and around two: 1.01 for normal noise.
    unlike: f64,
    /// Both levels; first the one on which it was longer.
    levels: [f64; 2],
    /// Share of the values on the other one.
    share: f64,
}

impl TwoLevels {
    fn of(values: &[f64]) -> Self {
        let n = values.len();
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let sums = numbers::sums(&sorted);
        let total = sums[n];
        let middle = total / n as f64;
        let whole: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
        // At least two values make a level; one alone is a pulse.
        let (between, low) = (2..n - 1)
            .map(|low| {
                let (below, above) = (
                    sums[low] / low as f64,
                    (total - sums[low]) / (n - low) as f64,
                );
                let weight = low as f64 * (n - low) as f64 / n as f64;
                (weight * (above - below).powi(2), low)
            })
            .fold((0.0, 2), numbers::better);
        let noise = n as f64 * (whitened::LEAST_NOISE * middle).powi(2);
        let (below, above) = (
            sums[low] / low as f64,
            (total - sums[low]) / (n - low) as f64,
        );
        let mostly_low = 2 * low >= n;
        TwoLevels {
            unlike: ((whole + noise) / ((whole - between).max(0.0) + noise)).ln(),
            levels: if mostly_low {
                [below, above]
            } else {
                [above, below]
            },
            share: if mostly_low { n - low } else { low } as f64 / n as f64,
        }
    }
}
