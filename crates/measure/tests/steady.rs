//! The steady-state rule on series whose range and slope are known.

use proptest::prelude::*;
use spindle_measure::steady::{Detector, Rule, Window, first_steady, report};

const RULE: Rule = Rule::SNIA_PTS;

#[test]
fn a_constant_series_is_steady_from_its_fifth_round() {
    let mut detector = Detector::new(RULE);
    for _ in 0..4 {
        assert_eq!(detector.push(100.0), None);
    }
    let window = detector.push(100.0).unwrap();
    assert_eq!((window.first, window.rounds, window.mean), (0, 5, 100.0));
    assert_eq!((window.range, window.slope), (0.0, 0.0));
}

#[test]
fn range_and_slope_are_those_of_the_specification() {
    // Least squares line of 1 3 2 5 4 over 0..4: slope 0.8 a round, so it rises by 3.2 over the window; mean 3.
    let window = Window::of(7, &[1.0, 3.0, 2.0, 5.0, 4.0]).unwrap();
    assert_eq!((window.first, window.mean), (7, 3.0));
    assert!((window.range - 4.0 / 3.0).abs() < 1e-12);
    assert!((window.slope - 3.2 / 3.0).abs() < 1e-12);
}

#[test]
fn the_limits_themselves_are_allowed() {
    // Range exactly 20 % of 100, no slope.
    assert!(RULE.accepts(&Window::of(0, &[90.0, 110.0, 100.0, 110.0, 90.0]).unwrap()));
    assert!(!RULE.accepts(&Window::of(0, &[89.9, 110.0, 100.2, 110.0, 89.9]).unwrap()));
    // A straight rise by 10 % of the mean over the window, and by a little more. In binary fractions.
    let rise = |total: f64| [-2.0, -1.0, 0.0, 1.0, 2.0].map(|step| 1024.0 + step * total / 4.0);
    assert!(RULE.accepts(&Window::of(0, &rise(102.0)).unwrap()));
    assert!(!RULE.accepts(&Window::of(0, &rise(103.0)).unwrap()));
}

#[test]
fn a_falling_series_becomes_steady_where_it_flattens() {
    let series = [
        200.0, 170.0, 145.0, 125.0, 112.0, 105.0, 103.0, 101.0, 102.0, 101.0,
    ];
    let window = first_steady(&series, RULE).unwrap();
    assert_eq!(window.first, 4);
    assert!(!RULE.accepts(&Window::of(3, &series[3..8]).unwrap()));
}

#[test]
fn an_outlier_delays_the_verdict_until_it_has_left_the_window() {
    let series = [100.0, 100.0, 150.0, 100.0, 100.0, 100.0, 100.0, 100.0];
    assert_eq!(first_steady(&series, RULE).unwrap().first, 3);
}

#[test]
fn silence_and_nonsense_are_not_steady() {
    for value in [0.0, f64::NAN, f64::INFINITY, -1.0] {
        assert_eq!(first_steady(&[value; 8], RULE), None, "{value}");
    }
    assert_eq!(first_steady(&[100.0; 4], RULE), None);
    assert_eq!(Window::of(0, &[100.0]), None);
}

#[test]
fn a_value_that_is_no_number_is_forgotten_when_it_has_left_the_window() {
    let mut series = vec![f64::NAN];
    series.extend([100.0; 5]);
    assert_eq!(first_steady(&series, RULE).unwrap().first, 1);
}

#[test]
fn a_slow_drift_passes_the_rule_and_is_seen_by_the_trend_test() {
    // One percent a round: each window of five rises by 4 %, the whole by 46 %.
    let series: Vec<f64> = (0..40)
        .map(|n| 100.0 * 1.01f64.powi(n) + [0.0, 2.0, -2.0][n as usize % 3])
        .collect();
    let report = report(&series);
    assert!(report.steady && report.first.unwrap().first == 0);
    let trend = report.trend.unwrap();
    assert!(trend.p_value < 1e-6, "{trend:?}");
    assert!(
        (trend.percent_per_minute(1.0) - 60.0).abs() < 10.0,
        "{trend:?}"
    );
}

#[test]
fn a_short_series_has_no_last_window() {
    let report = report(&[100.0; 3]);
    assert!(!report.steady && report.last.is_none() && report.trend.is_none());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_streaming_form_finds_what_the_windows_say(series in prop::collection::vec(80.0f64..120.0, 0..40), rounds in 2usize..8) {
        let rule = Rule { rounds, ..RULE };
        let mut detector = Detector::new(rule);
        for (index, &value) in series.iter().enumerate() {
            let pushed = detector.push(value);
            let expected = (index + 1).checked_sub(rounds)
                .and_then(|first| Window::of(first, &series[first..=index]))
                .filter(|window| rule.accepts(window));
            prop_assert_eq!(pushed, expected);
        }
    }

    #[test]
    fn the_unit_of_the_series_does_not_matter(series in prop::collection::vec(80.0f64..120.0, 5), exponent in -30i32..30) {
        let scaled: Vec<f64> = series.iter().map(|value| value * 2f64.powi(exponent)).collect();
        let (a, b) = (Window::of(0, &series).unwrap(), Window::of(0, &scaled).unwrap());
        prop_assert_eq!((a.range, a.slope), (b.range, b.slope));
    }
}
