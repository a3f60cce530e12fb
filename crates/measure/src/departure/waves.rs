//! Waves of every period, against a series.

use super::whitened::WhitenedSeries;

/// Sine and cosine of each frequency from two periods in the series up to one in two values, against the series.
pub(super) struct Waves {
    pub(super) each: Vec<Wave>,
}

pub(super) struct Wave {
    /// Values per period.
    pub(super) period: f64,
    /// Sums of products of the two regressors with themselves, each other, the constant and the series, as polynomials of
    /// rho (1, rho, rho^2) from the second value on. At the first one the sine is 0 and the cosine 1.
    sine: Products,
    cosine: Products,
    both: [f64; 3],
    first: f64,
}

#[derive(Default)]
struct Products {
    square: [f64; 3],
    constant: [f64; 2],
    series: [f64; 3],
}

impl Waves {
    pub(super) fn of(series: &[f64]) -> Self {
        let n = series.len();
        Waves {
            each: (4..=n)
                .map(|half_periods| Wave::of(series, half_periods))
                .collect(),
        }
    }
}

impl Wave {
    fn of(series: &[f64], half_periods: usize) -> Self {
        let n = series.len();
        let (turn_sine, turn_cosine) =
            (std::f64::consts::PI * half_periods as f64 / n as f64).sin_cos();
        let (mut sine, mut cosine) = (Products::default(), Products::default());
        let mut both = [0.0; 3];
        let (mut before, mut now) = ((0.0, 1.0), (0.0, 1.0));
        for at in 0..n {
            if at > 0 {
                let (y, x) = (series[at], series[at - 1]);
                sine.add(now.0, before.0, y, x);
                cosine.add(now.1, before.1, y, x);
                both[0] += now.0 * now.1;
                both[1] += now.0 * before.1 + before.0 * now.1;
                both[2] += before.0 * before.1;
            }
            before = now;
            now = (
                now.0 * turn_cosine + now.1 * turn_sine,
                now.1 * turn_cosine - now.0 * turn_sine,
            );
        }
        Wave {
            period: 2.0 * n as f64 / half_periods as f64,
            sine,
            cosine,
            both,
            first: series[0],
        }
    }

    /// The amount by which the wave lowers the squares of the series.
    pub(super) fn gain(&self, white: &WhitenedSeries) -> f64 {
        let (rho, rest) = (white.rho, white.rest);
        let weight = white.first * white.first;
        let (sine, cosine) = (0.0, 1.0);
        let squares = |of: &Products, start: f64| {
            of.square[0] - rho * of.square[1] + rho * rho * of.square[2] + weight * start * start
        };
        let constants = |of: &Products, start: f64| {
            rest * (of.constant[0] - rho * of.constant[1]) + weight * start
        };
        let series = |of: &Products, start: f64| {
            of.series[0] - rho * of.series[1]
                + rho * rho * of.series[2]
                + weight * start * self.first
        };
        let both =
            self.both[0] - rho * self.both[1] + rho * rho * self.both[2] + weight * sine * cosine;
        let (cs, cc) = (constants(&self.sine, sine), constants(&self.cosine, cosine));
        // The whitened values are without their level: the series' part of the constant goes with it.
        let level = white.level;
        let ps = series(&self.sine, sine) - level * cs;
        let pc = series(&self.cosine, cosine) - level * cc;
        let aa = squares(&self.sine, sine) - cs * cs / white.constant;
        let bb = squares(&self.cosine, cosine) - cc * cc / white.constant;
        let ab = both - cs * cc / white.constant;
        let determinant = aa * bb - ab * ab;
        if determinant > 1e-6 * aa * bb && aa > 1e-9 {
            (ps * ps * bb - 2.0 * ps * pc * ab + pc * pc * aa) / determinant
        } else if bb > 1e-9 {
            pc * pc / bb
        } else {
            0.0
        }
    }
}

impl Products {
    fn add(&mut self, now: f64, before: f64, y: f64, x: f64) {
        self.square[0] += now * now;
        self.square[1] += 2.0 * now * before;
        self.square[2] += before * before;
        self.constant[0] += now;
        self.constant[1] += before;
        self.series[0] += y * now;
        self.series[1] += y * before + x * now;
        self.series[2] += x * before;
    }
}
