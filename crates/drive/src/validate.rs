//! Compares the model with traces measured on real drives.
//!
//! A trace is replayed as it was taken, with one command outstanding: the first is issued at 0, each further one a measured
//! pause after the completion of the one before. The response times are compared one by one (mean absolute error,
//! correlation) and as distributions: the *demerit* (Ruemmler & Wilkes 1994) is the root mean square of the horizontal
//! distance between the two distributions. It is taken at the 9999 quantiles 0.0001, 0.0002 ... 0.9999, with straight
//! lines between order statistics, for any number of requests; so are the published figures of DiskSim 4.0 next
//! to it (on this grid, not on one point per request, the same model reproduces them).

use std::path::Path;

use serde::Serialize;

use crate::command::{Command, Completion};
use crate::device::Device;
use crate::disksim::{DriveDescription, read_drives};
use crate::error::DriveError;
use crate::mechanical::Mechanical;

/// One request of a trace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TraceRequest {
    /// It reads.
    pub read: bool,
    /// First block.
    pub lbn: u64,
    /// Blocks.
    pub blocks: u32,
    /// Measured response time, nanoseconds.
    pub service_ns: u64,
    /// Pause between its completion and the next issue, nanoseconds.
    pub think_ns: u64,
}

/// The agreement of model and measurement over some requests. Times are milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Score {
    /// Requests.
    pub requests: usize,
    /// Mean measured response time.
    pub measured_mean_ms: f64,
    /// Mean modelled response time.
    pub modelled_mean_ms: f64,
    /// Root mean square over quantiles.
    pub demerit_ms: f64,
    /// The demerit as a percentage of the measured mean.
    pub demerit_percent: f64,
    /// Mean absolute error per request.
    pub mae_ms: f64,
    /// Correlation of measured and modelled response times; `None` if one of them does not vary.
    pub correlation: Option<f64>,
}

/// The comparison of one drive, or of all together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DriveReport {
    /// Key of the drive in the file; `all` for all together.
    pub drive: String,
    /// Its name.
    pub name: String,
    /// All requests.
    pub total: Score,
    /// Reads only; `None` if there are none.
    pub reads: Option<Score>,
    /// Writes only; `None` if there are none.
    pub writes: Option<Score>,
    /// The score of another simulator on the same trace, if it is known.
    pub reference: Option<Reference>,
    /// Figures that are worse than the reference, in words.
    pub worse: Vec<String>,
    /// Parameters that the model has another value for, in words.
    pub notes: Vec<String>,
}

/// A drive of the file that could not be compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// Key of the drive in the file.
    pub drive: String,
    /// The problem, in one line.
    pub problem: String,
}

/// Scores of DiskSim 4.0 with the same parameters and traces, milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Reference {
    /// Demerit of all requests.
    pub demerit_ms: f64,
    /// Mean absolute error.
    pub mae_ms: f64,
    /// Correlation.
    pub correlation: f64,
    /// Demerit of reads.
    pub reads_demerit_ms: f64,
    /// Demerit of writes.
    pub writes_demerit_ms: f64,
}

/// The comparison of all drives of a folder.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Each drive.
    pub drives: Vec<DriveReport>,
    /// All together, their requests pooled; `None` if no drive could be compared.
    pub all: Option<DriveReport>,
    /// Drives that could not be compared.
    pub failures: Vec<Failure>,
    /// Drives of the file that name no trace.
    pub without_trace: Vec<String>,
}

/// Published scores of DiskSim 4.0 on its own validation traces (as given with the data).
const REFERENCES: [(&str, Reference); 4] = [
    ("cheetah9LP", reference(0.108, 1.09, 0.897, 0.123, 0.099)),
    ("barracuda", reference(0.348, 1.44, 0.930, 0.497, 0.227)),
    ("ibm18es", reference(0.133, 1.34, 0.912, 0.162, 0.061)),
    ("hp_c2247a", reference(0.093, 0.57, 0.962, 0.147, 0.121)),
];

const fn reference(total: f64, mae: f64, correlation: f64, reads: f64, writes: f64) -> Reference {
    Reference {
        demerit_ms: total,
        mae_ms: mae,
        correlation,
        reads_demerit_ms: reads,
        writes_demerit_ms: writes,
    }
}

/// Validates every drive of `folder`: its `drives.json` and the traces named there. A drive that cannot be read or
/// replayed does not stop the others.
pub fn validate_drives(folder: &Path) -> Result<Report, DriveError> {
    let file = folder.join("drives.json");
    let mut report = Report {
        drives: Vec::new(),
        all: None,
        failures: Vec::new(),
        without_trace: Vec::new(),
    };
    let mut pooled = Pairs::default();
    for described in read_drives(&read(&file)?, &file.display().to_string())? {
        let drive = match described {
            Ok(drive) => drive,
            Err((drive, error)) => {
                let problem = error.to_string();
                report.failures.push(Failure { drive, problem });
                continue;
            }
        };
        let Some(trace) = &drive.trace else {
            report.without_trace.push(drive.key);
            continue;
        };
        match compare_with_trace(&drive, &folder.join(trace)) {
            Ok(pairs) => {
                let known = REFERENCES
                    .iter()
                    .find(|(key, _)| *key == drive.key)
                    .map(|(_, reference)| *reference);
                let mut one = pairs.report(drive.key, drive.params.name, known);
                one.notes = drive.notes;
                report.drives.push(one);
                pooled.extend(pairs);
            }
            Err(error) => report.failures.push(Failure {
                drive: drive.key,
                problem: error.to_string(),
            }),
        }
    }
    if report.drives.is_empty() && report.failures.is_empty() {
        return Err(DriveError::parameter(
            file.display().to_string(),
            "no drive in it names a trace",
        ));
    }
    if !report.drives.is_empty() {
        report.all = Some(pooled.report("all".to_owned(), "all drives".to_owned(), None));
    }
    Ok(report)
}

fn compare_with_trace(drive: &DriveDescription, trace: &Path) -> Result<Pairs, DriveError> {
    let source = trace.display().to_string();
    let requests = parse_trace(&read(trace)?, &source)?;
    let modelled = replay(drive, &requests, &source)?;
    Ok(Pairs::new(&requests, &modelled))
}

fn read(path: &Path) -> Result<String, DriveError> {
    std::fs::read_to_string(path).map_err(|error| DriveError::File {
        path: path.display().to_string(),
        reason: error.to_string(),
    })
}

/// Reads a trace: lines of `R|W tag LBN blocks service_us think_us`. `source` names the file in messages.
pub fn parse_trace(text: &str, source: &str) -> Result<Vec<TraceRequest>, DriveError> {
    let mut requests = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let request = parse_line(line).ok_or_else(|| {
            DriveError::parameter(
                format!("{source}:{}", index + 1),
                "expected `R|W tag LBN blocks service_us think_us` with at least one block",
            )
        })?;
        requests.push(request);
    }
    if requests.is_empty() {
        return Err(DriveError::parameter(source, "the trace is empty"));
    }
    Ok(requests)
}

fn parse_line(line: &str) -> Option<TraceRequest> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [kind, _, lbn, blocks, service, think] = fields[..] else {
        return None;
    };
    let read = match kind {
        "R" | "r" => true,
        "W" | "w" => false,
        _ => return None,
    };
    let ns = |text: &str| {
        text.parse()
            .ok()
            .filter(|us| (0.0..=1e12).contains(us))
            .map(|us: f64| (us * 1e3).round() as u64)
    };
    let blocks: u32 = blocks.parse().ok().filter(|blocks| *blocks > 0)?;
    Some(TraceRequest {
        read,
        lbn: lbn.parse().ok()?,
        blocks,
        service_ns: ns(service)?,
        think_ns: ns(think)?,
    })
}

/// Modelled response times of a trace, nanoseconds.
pub fn replay(
    drive: &DriveDescription,
    requests: &[TraceRequest],
    source: &str,
) -> Result<Vec<u64>, DriveError> {
    let mut model = Mechanical::new(&drive.params)?;
    let mut modelled = Vec::with_capacity(requests.len());
    let mut now_ns = 0;
    for (index, request) in requests.iter().enumerate() {
        let id = index as u64;
        let command = if request.read {
            Command::read(id, request.lbn, request.blocks)
        } else {
            Command::write(id, request.lbn, request.blocks)
        };
        model.advance(now_ns, &mut |_| {});
        model.submit(now_ns, command).map_err(|error| {
            DriveError::parameter(
                format!("{source}: request {}", index + 1),
                error.to_string(),
            )
        })?;
        let completion = complete(&mut model);
        modelled.push(completion.finish_ns - completion.submit_ns);
        now_ns = completion.finish_ns + request.think_ns;
    }
    Ok(modelled)
}

/// Runs the drive until the one command outstanding has completed.
pub(crate) fn complete(model: &mut impl Device) -> Completion {
    let mut completed = None;
    while let Some(event_ns) = model.next_event_ns() {
        model.advance(event_ns, &mut |completion| completed = Some(completion));
        if let Some(completion) = completed {
            return completion;
        }
    }
    unreachable!("a drive with a command outstanding has an event")
}

/// Measured and modelled response times in milliseconds, request by request.
#[derive(Debug, Default)]
struct Pairs {
    read: Vec<bool>,
    measured: Vec<f64>,
    modelled: Vec<f64>,
}

impl Pairs {
    fn new(requests: &[TraceRequest], modelled: &[u64]) -> Self {
        Self {
            read: requests.iter().map(|request| request.read).collect(),
            measured: requests
                .iter()
                .map(|request| request.service_ns as f64 / 1e6)
                .collect(),
            modelled: modelled.iter().map(|ns| *ns as f64 / 1e6).collect(),
        }
    }

    fn extend(&mut self, other: Pairs) {
        self.read.extend(other.read);
        self.measured.extend(other.measured);
        self.modelled.extend(other.modelled);
    }

    fn score(&self, wanted: Option<bool>) -> Option<Score> {
        let pick = |times: &[f64]| -> Vec<f64> {
            let of = times.iter().zip(&self.read);
            of.filter(|(_, read)| wanted.is_none_or(|wanted| wanted == **read))
                .map(|(ms, _)| *ms)
                .collect()
        };
        score(pick(&self.measured), pick(&self.modelled))
    }

    fn report(&self, drive: String, name: String, reference: Option<Reference>) -> DriveReport {
        // A trace has at least one request.
        let total = self.score(None).unwrap_or(Score {
            requests: 0,
            measured_mean_ms: 0.0,
            modelled_mean_ms: 0.0,
            demerit_ms: 0.0,
            demerit_percent: 0.0,
            mae_ms: 0.0,
            correlation: None,
        });
        let reads = self.score(Some(true));
        let writes = self.score(Some(false));
        let worse = reference.map_or_else(Vec::new, |reference| {
            compare(&total, reads, writes, &reference)
        });
        DriveReport {
            drive,
            name,
            total,
            reads,
            writes,
            reference,
            worse,
            notes: Vec::new(),
        }
    }
}

/// The demerit is taken at all quantiles that are multiples of one in this many.
const QUANTILES: u32 = 10_000;

/// A quantile of values in rising order, with straight lines between them.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let below = place as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

/// Compares two lists of response times, pair by pair and as distributions.
fn score(mut measured: Vec<f64>, mut modelled: Vec<f64>) -> Option<Score> {
    if measured.is_empty() {
        return None;
    }
    let n = measured.len() as f64;
    let mean = |times: &[f64]| times.iter().sum::<f64>() / n;
    let (measured_mean_ms, modelled_mean_ms) = (mean(&measured), mean(&modelled));
    let mae_ms = measured
        .iter()
        .zip(&modelled)
        .map(|(a, b)| (a - b).abs())
        .sum::<f64>()
        / n;
    let (mut both, mut of_measured, mut of_modelled) = (0.0, 0.0, 0.0);
    for (a, b) in measured.iter().zip(&modelled) {
        let (a, b) = (a - measured_mean_ms, b - modelled_mean_ms);
        both += a * b;
        of_measured += a * a;
        of_modelled += b * b;
    }
    let spread = (of_measured * of_modelled).sqrt();
    measured.sort_unstable_by(f64::total_cmp);
    modelled.sort_unstable_by(f64::total_cmp);
    let squares: f64 = (1..QUANTILES)
        .map(|step| {
            let share = f64::from(step) / f64::from(QUANTILES);
            let apart = quantile(&measured, share) - quantile(&modelled, share);
            apart * apart
        })
        .sum();
    let demerit_ms = (squares / f64::from(QUANTILES - 1)).sqrt();
    Some(Score {
        requests: measured.len(),
        measured_mean_ms,
        modelled_mean_ms,
        demerit_ms,
        demerit_percent: 100.0 * demerit_ms / measured_mean_ms,
        mae_ms,
        correlation: (spread > 0.0).then(|| both / spread),
    })
}

/// Figures that are worse than the reference, at the precision the reference is given with.
fn compare(
    total: &Score,
    reads: Option<Score>,
    writes: Option<Score>,
    reference: &Reference,
) -> Vec<String> {
    let round =
        |value: f64, digits: i32| (value * 10_f64.powi(digits)).round() / 10_f64.powi(digits);
    let mut worse = Vec::new();
    let mut above = |what: &str, value: Option<f64>, limit: f64, digits: i32| {
        if let Some(value) = value
            && round(value, digits) > limit
        {
            worse.push(format!("{what} {value:.0$} > {limit:.0$}", digits as usize));
        }
    };
    above("demerit", Some(total.demerit_ms), reference.demerit_ms, 3);
    above(
        "reads demerit",
        reads.map(|score| score.demerit_ms),
        reference.reads_demerit_ms,
        3,
    );
    above(
        "writes demerit",
        writes.map(|score| score.demerit_ms),
        reference.writes_demerit_ms,
        3,
    );
    above("MAE", Some(total.mae_ms), reference.mae_ms, 2);
    let correlation = total.correlation.unwrap_or(0.0);
    if round(correlation, 3) < reference.correlation {
        worse.push(format!("r {correlation:.3} < {:.3}", reference.correlation));
    }
    worse
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lists_score_perfectly_and_a_shift_is_its_own_demerit() {
        let times: Vec<f64> = (0..1000).map(|step| f64::from(step) / 10.0).collect();
        let same = score(times.clone(), times.clone()).unwrap();
        assert_eq!((same.demerit_ms, same.mae_ms), (0.0, 0.0));
        let shifted = score(times.clone(), times.iter().map(|ms| ms + 0.25).collect()).unwrap();
        assert!((shifted.demerit_ms - 0.25).abs() < 1e-9 && (shifted.mae_ms - 0.25).abs() < 1e-9);
        assert!((shifted.correlation.unwrap() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_order_of_requests_counts_per_request_but_not_in_the_demerit() {
        let times: Vec<f64> = (0..100).map(f64::from).collect();
        let reversed = times.iter().rev().copied().collect();
        let swapped = score(times, reversed).unwrap();
        assert!(swapped.demerit_ms < 1e-9 && swapped.mae_ms > 10.0);
        assert!((swapped.correlation.unwrap() + 1.0).abs() < 1e-9);
    }

    #[test]
    fn lists_without_variation_have_no_correlation() {
        assert_eq!(score(vec![1.0; 5], vec![2.0; 5]).unwrap().correlation, None);
        assert!(score(Vec::new(), Vec::new()).is_none());
    }

    #[test]
    fn a_bad_line_of_a_trace_is_reported_with_its_number() {
        for line in [
            "R Hit 1 0 5 5",
            "X Hit 1 4 5 5",
            "R Hit 1 4 5",
            "R Hit -1 4 5 5",
            "R Hit 1 4 nan 5",
        ] {
            let error = parse_trace(&format!("R Hit 1 4 5 5\n{line}\n"), "t")
                .unwrap_err()
                .to_string();
            assert!(error.starts_with("t:2:"), "{error}");
        }
        assert!(parse_trace("\n", "t").is_err());
    }
}
