//! The drift-aware rule on series with planted drift, steps, waves and noise: how often each is called steady, and when.

use spindle_measure::settle::{Counts, Sampling, Settling, SteadyFigures};
use spindle_workload::{SteadyMetric, SteadyRule};

const SECOND: u64 = 1_000_000_000;
/// Samples of ten minutes, in a window of a minute.
const TEN_MINUTES: usize = 600;

/// Seeded noise: first order autoregressive with unit variance.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// `shape`: the level under the noise, by second.
    fn around(&mut self, noise: f64, correlation: f64, shape: impl Fn(f64) -> f64) -> Vec<f64> {
        let mut state = self.normal();
        (0..TEN_MINUTES)
            .map(|n| {
                let value = shape(n as f64) * (1.0 + noise * state);
                let fresh = (1.0 - correlation * correlation).sqrt();
                state = correlation * state + fresh * self.normal();
                value
            })
            .collect()
    }
}

fn settled(rule: SteadyRule, series: &[f64]) -> Option<SteadyFigures> {
    let mut settling = Settling::new(rule);
    (1..)
        .zip(series)
        .find_map(|(n, &value)| settling.push(n * SECOND, value))
}

/// Share of series called steady within ten minutes, and the median time at which, s.
fn called(
    rule: SteadyRule,
    noise: f64,
    correlation: f64,
    shape: impl Fn(f64) -> f64 + Copy,
) -> (f64, f64) {
    let mut source = Noise(2011);
    let trials = 400;
    let mut times: Vec<f64> = (0..trials)
        .filter_map(|_| settled(rule, &source.around(noise, correlation, shape)))
        .map(|found| found.at_ns as f64 / 1e9)
        .collect();
    times.sort_by(f64::total_cmp);
    let middle = times.get(times.len() / 2).copied().unwrap_or(f64::NAN);
    (times.len() as f64 / f64::from(trials), middle)
}

fn drift(percent_per_minute: f64) -> impl Fn(f64) -> f64 + Copy {
    move |second| 100.0 * (1.0 + percent_per_minute / 100.0 * second / 60.0)
}

fn wave(amplitude: f64, period_s: f64) -> impl Fn(f64) -> f64 + Copy {
    move |second| 100.0 * (1.0 + amplitude * (std::f64::consts::TAU * second / period_s).sin())
}

/// Share of series called steady within ten minutes, at most.
fn assert_seldom(
    name: &str,
    noise: f64,
    correlation: f64,
    shape: impl Fn(f64) -> f64 + Copy,
    at_most: f64,
) {
    let (share, at) = called(SteadyRule::default(), noise, correlation, shape);
    println!("{name}, noise {noise}, correlation {correlation}: {share} at {at} s");
    assert!(share <= at_most, "{name}, {noise}, {correlation}: {share}");
}

/// Share of series called steady within ten minutes, at least.
fn assert_often(
    name: &str,
    noise: f64,
    correlation: f64,
    shape: impl Fn(f64) -> f64 + Copy,
    at_least: f64,
) -> f64 {
    let (share, at) = called(SteadyRule::default(), noise, correlation, shape);
    println!("{name}, noise {noise}, correlation {correlation}: {share} at {at} s");
    assert!(share >= at_least, "{name}, {noise}, {correlation}: {share}");
    at
}

#[test]
fn a_level_load_is_called_steady_and_a_noisy_one_is_watched_longer() {
    let level = |_: f64| 100.0;
    let quiet = assert_often("level", 0.01, 0.0, level, 0.99);
    let noisy = assert_often("level", 0.03, 0.0, level, 0.99);
    let correlated = assert_often("level", 0.03, 0.6, level, 0.95);
    assert!(
        quiet < noisy && noisy < correlated,
        "{quiet} {noisy} {correlated}"
    );
    assert!(quiet < 180.0, "{quiet}");
}

#[test]
fn a_drift_of_one_percent_a_minute_is_hardly_ever_called_steady() {
    for (noise, correlation) in [
        (0.01, 0.0),
        (0.03, 0.0),
        (0.03, 0.6),
        (0.10, 0.0),
        (0.10, 0.6),
        (0.03, 0.9),
    ] {
        for percent in [1.0, -1.0, 2.0] {
            assert_seldom(
                &format!("drift {percent} %/min"),
                noise,
                correlation,
                drift(percent),
                0.01,
            );
        }
    }
}

#[test]
fn the_rule_of_the_pts_alone_calls_such_a_drift_steady() {
    let pts = SteadyRule {
        drift_per_minute: None,
        ..SteadyRule::default()
    };
    let (share, at) = called(pts, 0.03, 0.0, drift(1.0));
    println!("without the bound on drift: {share} at {at} s");
    assert!(share > 0.99, "{share}");
}

#[test]
fn stairs_and_slow_waves_are_not_steady() {
    for (noise, correlation) in [(0.01, 0.0), (0.03, 0.6)] {
        let stairs = |second: f64| 100.0 * (1.0 + 0.05 * (second / 60.0).floor());
        assert_seldom("5 % up each minute", noise, correlation, stairs, 0.0);
        for period_s in [60.0, 120.0, 240.0] {
            let name = format!("wave of 5 %, {period_s} s");
            assert_seldom(&name, noise, correlation, wave(0.05, period_s), 0.005);
        }
    }
}

#[test]
fn a_step_is_left_behind_and_the_window_begins_after_it() {
    let mut source = Noise(7);
    let step = |second: f64| if second < 90.0 { 100.0 } else { 110.0 };
    let found: Vec<SteadyFigures> = (0..100)
        .filter_map(|_| settled(SteadyRule::default(), &source.around(0.02, 0.0, step)))
        .collect();
    assert!(found.len() >= 99, "{}", found.len());
    // A long window may keep a few seconds from before the step, too few to matter.
    assert!(found.iter().all(|window| window.mean > 109.0));
    let after = found.iter().filter(|window| window.from_ns >= 85 * SECOND);
    assert!(after.count() >= 80);
}

#[test]
fn fast_waves_average_out() {
    assert_often("wave of 5 %, 5 s", 0.01, 0.0, wave(0.05, 5.0), 0.99);
}

#[test]
fn warming_up_is_waited_for() {
    // 50 % more at the start, with a time constant of half a minute: what is left after four minutes is 0.02 %.
    let cooling = |second: f64| 100.0 * (1.0 + 0.5 * (-second / 30.0).exp());
    let at = assert_often("warm-up", 0.01, 0.0, cooling, 0.99);
    assert!(at > 180.0, "{at}");
}

#[test]
fn nothing_is_called_steady_before_its_window_is_over_and_silence_never() {
    let found = settled(SteadyRule::default(), &[100.0; 600]).unwrap();
    assert!(
        found.from_ns == 12 * SECOND && found.at_ns == 72 * SECOND,
        "{found:?}"
    );
    assert_eq!(
        (found.mean, found.range, found.drift_per_minute),
        (100.0, 0.0, 0.0)
    );
    assert_eq!(settled(SteadyRule::default(), &[0.0; 600]), None);
    assert_eq!(settled(SteadyRule::default(), &[f64::NAN; 600]), None);
}

#[test]
fn days_of_samples_need_bounded_memory() {
    // A drift too steep to be steady, so that it never ends: the longest window is 64 times the shortest.
    let mut settling = Settling::new(SteadyRule::default());
    for n in 1..20_000_u64 {
        assert_eq!(settling.push(n * SECOND, (0.001 * n as f64).exp()), None);
    }
    assert!(settling.samples() <= 64 * 60 + 1, "{}", settling.samples());
}

#[test]
fn rates_and_latencies_are_those_of_the_time_between_two_looks() {
    for (metric, mean) in [
        (SteadyMetric::Iops, 500.0),
        (SteadyMetric::Bandwidth, 500.0 * 4096.0),
        (SteadyMetric::Latency, 2e6),
    ] {
        let mut sampling = Sampling::new(SteadyRule {
            metric,
            ..SteadyRule::default()
        });
        assert_eq!(sampling.sample_ns(), SECOND);
        let mut found = None;
        for n in 0..200_u64 {
            // Looks come late now and then: the counts have gone on.
            let at = n * SECOND + if n % 7 == 3 { SECOND / 3 } else { 0 };
            let requests = at / 2_000_000;
            let counts = Counts {
                requests,
                bytes: requests * 4096,
                latency_ns: requests * 2_000_000,
            };
            found = found.or(sampling.look(at, counts));
        }
        let found: SteadyFigures = found.unwrap();
        assert!(
            (found.mean / mean - 1.0).abs() < 0.01,
            "{metric:?} {found:?}"
        );
    }
}
