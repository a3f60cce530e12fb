//! The trend test against SciPy and pyMannKendall, and against noise whose trend is known.

use spindle_measure::steady::{Rule, first_steady};
use spindle_measure::trend::{MIN_WINDOWS, Trend, mann_kendall};

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-9 * expected.abs()
}

fn assert_trend(trend: Trend, tau: f64, p_value: f64, slope: f64, range: (f64, f64)) {
    assert!(
        close(trend.tau, tau)
            && close(trend.p_value, p_value)
            && close(trend.slope, slope)
            && close(trend.slope_range.0, range.0)
            && close(trend.slope_range.1, range.1),
        "{trend:?}"
    );
}

#[test]
fn a_short_series_without_ties_has_the_exact_probability_of_kendalls_tau() {
    // scipy.stats.kendalltau(method='exact') and theilslopes, 1.17.1.
    let series = [103, 98, 107, 101, 110, 104, 113, 109, 108, 115, 112, 118].map(f64::from);
    let trend = mann_kendall(&series).unwrap();
    assert_eq!(trend.inflation, 1.0);
    assert_trend(
        trend,
        0.636_363_636_363_636_3,
        0.003_181_646_992_410_881,
        1.5,
        (2.0 / 3.0, 2.0),
    );
}

#[test]
fn ties_lower_the_variance_as_in_the_reference() {
    // z = 5.883475928341892 from pymannkendall.original_test 1.4.3, its probability from scipy.stats.norm.sf 1.17.1 (the former
    // takes 1 - cdf, which has eight digits here); theilslopes.
    let series = [
        5, 5, 6, 7, 6, 8, 8, 9, 7, 10, 9, 9, 11, 10, 12, 11, 11, 13, 12, 14, 13, 15, 14, 15,
    ]
    .map(f64::from);
    let trend = mann_kendall(&series).unwrap();
    assert_eq!(trend.inflation, 1.0);
    assert_trend(
        trend,
        0.858_695_652_173_913_1,
        4.017_385_479_168_39e-9,
        0.428_571_428_571_428_55,
        (7.0 / 18.0, 0.5),
    );
}

#[test]
fn autocorrelation_is_corrected_as_in_the_reference() {
    // First order autoregressive noise (0.6); pymannkendall.hamed_rao_modification_test(lag=1) 1.4.3. The plain test finds a trend
    // with p = 0.024 where there is none.
    let series = [
        97.6, 94.6, 96.0, 98.9, 102.7, 102.0, 99.5, 97.4, 100.7, 105.3, 104.0, 98.7, 96.3, 102.6,
        102.2, 96.1, 97.4, 95.0, 95.1, 95.6, 95.2, 98.8, 99.1, 97.7, 99.8, 102.4, 96.5, 97.1, 95.3,
        96.7, 94.1, 96.5, 97.8, 97.8, 95.5, 96.1, 94.4, 92.6, 96.2, 94.4, 100.2, 102.2, 95.4, 98.0,
        95.5, 97.4, 98.6, 93.2,
    ];
    let trend = mann_kendall(&series).unwrap();
    assert!(
        close(trend.inflation, 20_570.286_925_341_95 / 12_649.0),
        "{trend:?}"
    );
    assert!(close(trend.p_value, 0.076_564_105_455_806_16), "{trend:?}");
}

#[test]
fn five_rising_windows_are_as_probable_as_two_orders_of_all() {
    let trend = mann_kendall(&[1.0, 2.0, 4.0, 8.0, 16.0]).unwrap();
    assert!(close(trend.p_value, 2.0 / 120.0));
    assert_eq!(trend.tau, 1.0);
}

#[test]
fn a_constant_series_has_no_trend() {
    let trend = mann_kendall(&[7.0; 30]).unwrap();
    assert_eq!((trend.tau, trend.p_value, trend.slope), (0.0, 1.0, 0.0));
    assert_eq!(trend.inflation, 1.0);
}

#[test]
fn too_few_windows_and_nonsense_have_no_answer() {
    assert_eq!(mann_kendall(&[1.0; MIN_WINDOWS - 1]), None);
    assert_eq!(
        mann_kendall(&[1.0, 2.0, f64::NAN, 4.0, 5.0, 6.0, 7.0, 8.0]),
        None
    );
}

#[test]
fn the_slope_of_a_long_series_is_that_of_a_window() {
    // 5000 windows are averaged in groups of five; a tenth of the noise is enough to break the pattern.
    let series: Vec<f64> = (0..5003)
        .map(|n| 1000.0 + 0.25 * f64::from(n) + f64::from(n * 7919 % 101))
        .collect();
    let trend = mann_kendall(&series).unwrap();
    assert_eq!(trend.windows, 5003);
    assert!((trend.slope - 0.25).abs() < 0.005, "{trend:?}");
    assert!(trend.slope_range.0 <= trend.slope && trend.slope <= trend.slope_range.1);
    let median = 1000.0 + 0.25 * 2501.0 + 50.0;
    assert!((trend.percent_per_minute(1.0) - 60.0 * 25.0 / median).abs() < 0.02);
}

#[test]
fn an_outlier_does_not_move_the_slope() {
    let mut series: Vec<f64> = (0..60).map(|n| 500.0 + f64::from(n)).collect();
    series[10] = 1e6;
    let trend = mann_kendall(&series).unwrap();
    assert!((trend.slope - 1.0).abs() < 0.01, "{trend:?}");
    assert!(trend.p_value < 1e-9);
}

/// Seeded noise: first order autoregressive with unit variance, plus a drift a window, around 100.
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

    fn series(&mut self, windows: usize, correlation: f64, drift: f64, noise: f64) -> Vec<f64> {
        let mut state = self.normal();
        (0..windows)
            .map(|n| {
                let value = 100.0 + drift * n as f64 + noise * state;
                let fresh = (1.0 - correlation * correlation).sqrt();
                state = correlation * state + fresh * self.normal();
                value
            })
            .collect()
    }
}

/// Share of series of sixty windows that the test calls drifting at a level.
fn called_drifting(level: f64, correlation: f64, drift: f64, noise: f64) -> f64 {
    let mut source = Noise(42);
    let trials = 2000;
    let called = (0..trials)
        .filter(|_| {
            let series = source.series(60, correlation, drift, noise);
            mann_kendall(&series).unwrap().p_value < level
        })
        .count();
    let share = called as f64 / f64::from(trials);
    println!("level {level}, correlation {correlation}, drift {drift}, noise {noise}: {share}");
    share
}

#[test]
fn white_noise_is_called_drifting_in_at_most_one_case_of_twenty() {
    // 5 % and four standard errors of 2000 trials; less than half of it would be a test that never speaks.
    let share = called_drifting(0.05, 0.0, 0.0, 5.0);
    assert!((0.025..0.07).contains(&share), "{share}");
}

#[test]
fn correlated_noise_is_seldom_called_drifting() {
    // The plain test calls 14, 31 and 50 % of such series drifting at the level of 5 %.
    for (level, correlation, at_most) in [
        (0.05, 0.3, 0.12),
        (0.05, 0.6, 0.16),
        (0.05, 0.8, 0.25),
        (0.01, 0.6, 0.07),
        (0.01, 0.8, 0.12),
    ] {
        let share = called_drifting(level, correlation, 0.0, 5.0);
        assert!(share <= at_most, "{level}, {correlation}: {share}");
    }
}

#[test]
fn a_drift_of_a_fifth_of_a_percent_a_window_is_found_in_five_percent_noise() {
    let share = called_drifting(0.05, 0.0, 0.2, 5.0);
    assert!(share > 0.95, "{share}");
}

#[test]
fn half_a_percent_a_window_is_found_in_correlated_noise() {
    let share = called_drifting(0.05, 0.6, 0.5, 5.0);
    assert!(share > 0.95, "{share}");
}

#[test]
fn the_steady_state_rule_alone_takes_two_percent_a_round_for_steady() {
    // This is the reason for the trend test beside it: of the same series of 30 rounds it finds nearly all.
    let (mut source, trials) = (Noise(7), 2000);
    let (mut steady, mut drifting) = (0, 0);
    for _ in 0..trials {
        let series = source.series(30, 0.0, 2.0, 3.0);
        steady += i32::from(first_steady(&series[..10], Rule::SNIA_PTS).is_some());
        drifting += i32::from(mann_kendall(&series).unwrap().p_value < 0.05);
    }
    println!("steady within ten rounds: {steady} of {trials}, drifting: {drifting}");
    assert!(steady > trials / 2 && drifting > trials * 99 / 100);
}
