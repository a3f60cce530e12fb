//! Keys of a whole run: each is read and written here.

use spindle_config::{ConfigError, Value, units};

use crate::key_texts::KeyTexts;
use crate::keys::{self, Key, Level};
use crate::settings::{Layer, Settings};
use crate::spec::{End, SteadyRule, Workload};
use crate::trees;

/// Time limit of a run until steady, if none is given, ns.
const STEADY_LIMIT_NS: u64 = 600_000_000_000;
/// The same in windows, where they are longer than a minute.
const STEADY_LIMIT_WINDOWS: u64 = 10;
/// Sixty samples in a window: shorter ones would be counted by chance.
const SHORTEST_STEADY_NS: u64 = 3_000_000_000;
const LONGEST_STEADY_NS: u64 = 86_400_000_000_000;

/// `passes`: every stream ends by itself when it has gone over its part, or its names.
pub(crate) fn read_end(workload: &Settings, passes: bool) -> Result<End, ConfigError> {
    workload.check_needs(Level::Workload)?;
    let steady = workload.value(&keys::UNTIL_STEADY).flag()?;
    let mut end = End {
        time_ns: workload.positive(&keys::SECONDS, Value::seconds)?,
        bytes: workload.positive(&keys::BYTES, Value::size)?,
        requests: workload.optional_integer(&keys::REQUESTS)?,
        steady,
        steady_rule: steady.then(|| read_rule(workload)).transpose()?,
    };
    if workload.layer(&keys::SECONDS) == Layer::Default {
        end.time_ns = usual_time_ns(&end, passes);
    }
    if end.time_ns.is_none()
        && end.bytes.is_none()
        && end.requests.is_none()
        && !end.steady
        && !passes
    {
        let what =
            "nothing ends the run; set seconds, bytes, requests, until_steady or stop_passes";
        return Err(workload.value(&keys::SECONDS).error(what));
    }
    Ok(end)
}

/// The time limit if none is given: only for runs that nothing else ends.
fn usual_time_ns(end: &End, passes: bool) -> Option<u64> {
    match end.steady_rule {
        _ if end.bytes.is_some() || end.requests.is_some() || passes => None,
        Some(rule) => {
            Some(STEADY_LIMIT_NS.max(rule.window_ns.saturating_mul(STEADY_LIMIT_WINDOWS)))
        }
        None => units::parse_seconds(keys::SECONDS.default).ok(),
    }
}

/// The rule of a run that ends when it has settled.
fn read_rule(workload: &Settings) -> Result<SteadyRule, ConfigError> {
    let window = workload.value(&keys::STEADY_WINDOW);
    let window_ns = window.duration()?;
    if !(SHORTEST_STEADY_NS..=LONGEST_STEADY_NS).contains(&window_ns) {
        return Err(window.error("must be 3s to 24h"));
    }
    let share = |key: &Key| -> Result<f64, ConfigError> {
        let value = workload.value(key);
        match value.fraction()? {
            fraction if fraction > 0.0 => Ok(fraction),
            _ => Err(value.error("must be above 0%")),
        }
    };
    let metric = workload.value(&keys::STEADY_METRIC);
    let drift = workload.optional(&keys::STEADY_DRIFT);
    Ok(SteadyRule {
        metric: metric.choice(keys::STEADY_METRICS)?,
        window_ns,
        range: share(&keys::STEADY_RANGE)?,
        slope: share(&keys::STEADY_SLOPE)?,
        drift_per_minute: drift.map(|_| share(&keys::STEADY_DRIFT)).transpose()?,
    })
}

fn write_end(end: &End, passes: bool, said: &mut KeyTexts) {
    let time = end.time_ns.map(units::format_duration);
    let usual = end.time_ns == usual_time_ns(end, passes);
    said.put_or(&keys::SECONDS, time.as_deref().unwrap_or(keys::NONE), usual);
    said.optional_size(&keys::BYTES, end.bytes);
    said.optional(&keys::REQUESTS, end.requests);
    said.put(&keys::UNTIL_STEADY, end.steady);
    if let Some(rule) = end.steady_rule {
        said.choice(&keys::STEADY_METRIC, keys::STEADY_METRICS, &rule.metric);
        let usual = rule.window_ns == SteadyRule::default().window_ns;
        let window = units::format_duration(rule.window_ns);
        said.put_or(&keys::STEADY_WINDOW, window, usual);
        said.fraction(&keys::STEADY_RANGE, rule.range);
        said.fraction(&keys::STEADY_SLOPE, rule.slope);
        let drift = rule.drift_per_minute.map(units::exact_fraction);
        said.optional(&keys::STEADY_DRIFT, drift);
    }
}

/// The keys of a load.
pub(crate) fn write(load: &Workload) -> KeyTexts {
    let mut said = KeyTexts::default();
    said.put(&keys::ABOUT, &load.about);
    said.put(&keys::TABLE, &load.table);
    if load.phases.is_empty() {
        write_end(
            &load.end,
            trees::end_by_themselves(&load.streams),
            &mut said,
        );
    }
    said.duration(&keys::RAMP, load.ramp_ns);
    said.put(&keys::SEED, load.seed);
    said
}
