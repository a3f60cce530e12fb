//! Little's law as a check of the measurement itself.

/// Relative difference of `IOPS x mean time` from the mean number of outstanding requests (J. D. C. Little, "A proof for the
/// queuing formula L = lambda W", Operations Research 9 (1961) 383-387): 0 if both agree, 0.05 if the latencies
/// account for 5 % more requests than were outstanding. `None` if nothing was outstanding.
///
/// `mean_ns` must count from the *issue*: in an open loop that is the service time, not the latency. The outstanding
/// requests must include all whose rate and mean are given (fsyncs too).
#[must_use]
pub fn little(iops: f64, mean_ns: f64, mean_outstanding: f64) -> Option<f64> {
    let expected = iops * mean_ns / 1e9;
    let difference = (expected - mean_outstanding) / mean_outstanding;
    (mean_outstanding > 0.0 && difference.is_finite()).then_some(difference)
}
