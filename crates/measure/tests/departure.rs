//! Departures from a level: what is found, and how often noise alone is taken for one.

use spindle_measure::departure::{
    KINDS, Kind, LENGTHS, chances, departures, rise, ruled_out, statistics,
};

/// Correlations of neighbours whose series may not exceed the critical values.
const RHOS: [f64; 5] = [0.0, 0.3, 0.5, 0.6, 0.8];

/// SplitMix64 and Box and Muller: the same numbers everywhere.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        ((z >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// A level of 1 under noise of this standard deviation and correlation of neighbours.
    fn series(&mut self, length: usize, rho: f64, deviation: f64) -> Vec<f64> {
        let mut state = self.normal();
        (0..length)
            .map(|_| {
                let value = 1.0 + deviation * state;
                state = rho * state + (1.0 - rho * rho).sqrt() * self.normal();
                value
            })
            .collect()
    }
}

/// Prints the table `CRITICAL`: `cargo test --release -p spindle-measure --test departure -- --ignored --nocapture`.
#[test]
#[ignore = "minutes of simulation that print the table of critical values"]
fn critical_values() {
    let count = |length: usize| if length <= 60 { 20_000 } else { 6_000 };
    let mut table = vec![Vec::new(); KINDS.len()];
    for length in LENGTHS {
        let mut noise = Noise(length as u64);
        let seen: Vec<Vec<_>> = RHOS
            .iter()
            .map(|&rho| {
                (0..count(length))
                    .map(|_| statistics(&noise.series(length, rho, 0.08)).unwrap())
                    .collect()
            })
            .collect();
        for (kind, row) in table.iter_mut().enumerate() {
            let pairs: Vec<Vec<(f64, f64)>> = seen
                .iter()
                .map(|of_rho| of_rho.iter().map(|found| found[kind]).collect())
                .collect();
            row.push(limits(&pairs, KINDS[kind].chance()));
        }
    }
    for row in table {
        let cells: Vec<String> = row
            .iter()
            .map(|(white, other)| format!("({white:.2}, {other:.2})"))
            .collect();
        println!("    [{}],", cells.join(", "));
    }
}

/// Prints how small `chances` must be for a step to be ruled out wrongly in 5 %, by length and correlation, the least of
/// four places: `LIMIT` is below them.
#[test]
#[ignore = "two minutes of simulation that print the limits of steps that are ruled out"]
fn chances_of_a_step_that_is_there() {
    for length in LENGTHS {
        let mut noise = Noise(77 + length as u64);
        let edge = (length / 10).max(1);
        for rho in RHOS {
            let places = [edge, (length / 4).max(1), length / 2, length - edge];
            let least = places
                .iter()
                .flat_map(|&at| [(at, -0.3), (at, 0.3)])
                .map(|(at, change)| {
                    let mut seen: Vec<f64> = (0..4000)
                        .map(|_| {
                            chances(&stepped(&mut noise, length, rho, at, change), change)
                                [at - edge]
                        })
                        .collect();
                    seen.sort_by(f64::total_cmp);
                    seen[seen.len() / 20]
                })
                .fold(1.0, f64::min);
            println!("{length} values, correlation {rho}: {least:.4}");
        }
    }
}

fn stepped(noise: &mut Noise, length: usize, rho: f64, at: usize, change: f64) -> Vec<f64> {
    let mut series = noise.series(length, rho, 0.05);
    series[at..].iter_mut().for_each(|value| *value += change);
    series
}

/// The smallest limits that no correlation exceeds more often than by this chance: first for correlated noise, then, with
/// that, for white noise.
fn limits(seen: &[Vec<(f64, f64)>], chance: f64) -> (f64, f64) {
    let exceeds = |white: f64, correlated: f64| {
        seen.iter()
            .map(|of_rho| {
                let over = of_rho.iter().filter(|(statistic, rho)| {
                    *statistic > white + (correlated - white) * rise(*rho)
                });
                over.count() as f64 / of_rho.len() as f64
            })
            .fold(0.0, f64::max)
    };
    let smallest = |holds: &dyn Fn(f64) -> bool| {
        let (mut low, mut high) = (0.0, 100.0);
        while high - low > 0.01 {
            let middle = f64::midpoint(low, high);
            if holds(middle) {
                high = middle
            } else {
                low = middle
            }
        }
        high
    };
    let correlated = smallest(&|limit| exceeds(limit, limit) <= 0.9 * chance);
    let white = smallest(&|limit| exceeds(limit, correlated) <= chance);
    (white, correlated)
}

fn first(series: &[f64]) -> Option<(Kind, Vec<usize>)> {
    let found = departures(series, 0).into_iter().next()?;
    Some((found.kind, found.places))
}

#[test]
fn each_shape_is_named_for_what_it_is() {
    let mut noise = Noise(7);
    let mut shaped = |shape: &dyn Fn(usize) -> f64| -> Vec<f64> {
        let noise = noise.series(60, 0.3, 0.03);
        noise
            .iter()
            .enumerate()
            .map(|(at, value)| value * shape(at))
            .collect()
    };
    let step = shaped(&|at| if at < 20 { 1.0 } else { 0.4 });
    assert_eq!(first(&step), Some((Kind::Step, vec![20])));
    let pulse = shaped(&|at| if (30..33).contains(&at) { 0.3 } else { 1.0 });
    assert_eq!(first(&pulse), Some((Kind::Pulse, vec![30, 33])));
    let drift = shaped(&|at| 1.0 - 0.008 * at as f64);
    assert_eq!(first(&drift).map(|found| found.0), Some(Kind::Drift));
    let wave = shaped(&|at| 1.0 + 0.2 * (at as f64 / 2.0).sin());
    assert_eq!(first(&wave).map(|found| found.0), Some(Kind::Wave));
    let levels = shaped(&|at| [1.0, 0.5, 0.9, 0.3][at / 15]);
    assert_eq!(first(&levels), Some((Kind::Levels, vec![15, 30, 45])));
    let sawtooth = shaped(&|at| 1.0 - 0.04 * (at % 15) as f64);
    assert_eq!(first(&sawtooth), Some((Kind::Sawtooth, vec![15, 30, 45])));
    let flapping = shaped(&|at| if at * at % 7 % 2 == 0 { 1.0 } else { 0.4 });
    assert!(first(&flapping).is_some());
}

#[test]
fn a_step_is_not_taken_for_correlation_however_large_it_is() {
    for size in [0.3, 0.5, 0.8, 0.93, 1.0] {
        for at in [6, 30, 54] {
            let series: Vec<f64> = Noise(3)
                .series(60, 0.0, 0.02)
                .iter()
                .enumerate()
                .map(|(place, value)| if place < at { *value } else { value - size })
                .collect();
            assert_eq!(
                first(&series),
                Some((Kind::Step, vec![at])),
                "{size} at {at}"
            );
        }
    }
}

#[test]
fn a_level_without_noise_is_a_level() {
    assert_eq!(departures(&[5.0; 60], 0), []);
    assert_eq!(departures(&[0.0; 60], 0), []);
    assert_eq!(departures(&[1.0, 2.0], 0), []);
    assert_eq!(departures(&[f64::NAN; 60], 0), []);
}

#[test]
fn the_unit_does_not_matter() {
    let series: Vec<f64> = Noise(9).series(40, 0.5, 0.05);
    let scaled: Vec<f64> = series.iter().map(|value| value * 1024.0).collect();
    assert_eq!(statistics(&series), statistics(&scaled));
}

#[test]
fn stationary_noise_is_rarely_taken_for_a_departure() {
    for (length, rho) in [(10, 0.0), (10, 0.8), (30, 0.6), (60, 0.0), (60, 0.8)] {
        let mut noise = Noise(1_000 + length as u64);
        let count = 400;
        let found = (0..count)
            .filter(|_| !departures(&noise.series(length, rho, 0.1), 0).is_empty())
            .count();
        // At most 4 % by the critical values; 400 series scatter by 1 %.
        assert!(
            found <= count * 7 / 100,
            "{found} of {count}: {length} values, rho {rho}"
        );
    }
}

#[test]
fn a_step_that_is_there_is_rarely_ruled_out() {
    for (length, rho) in [(5, 0.8), (10, 0.0), (10, 0.8), (30, 0.6), (60, 0.8)] {
        for (place, change) in [(0.1, -0.3), (0.5, 0.3), (0.9, -0.3)] {
            let mut noise = Noise(2_000 + length as u64);
            let at = ((place * length as f64) as usize).max(1);
            let count = 400;
            let wrong = (0..count)
                .filter(|_| {
                    let series = stepped(&mut noise, length, rho, at, change);
                    ruled_out(&series).is_some_and(|least| least <= 0.3)
                })
                .count();
            assert!(
                wrong <= count * 5 / 100,
                "{wrong} of {count}: {change} after {at} of {length} values, rho {rho}"
            );
        }
    }
}

#[test]
fn a_quiet_series_rules_small_steps_out_and_a_noisy_one_none() {
    let quiet = ruled_out(&Noise(4).series(60, 0.0, 0.02)).unwrap();
    assert!(quiet <= 0.05, "{quiet}");
    assert_eq!(ruled_out(&Noise(4).series(10, 0.0, 0.8)), None);
    assert_eq!(ruled_out(&[5.0; 60]), Some(0.01));
    assert_eq!(ruled_out(&[0.0; 60]), None);
    assert_eq!(ruled_out(&[1.0, 2.0]), None);
    assert_eq!(ruled_out(&[f64::NAN; 60]), None);
}
