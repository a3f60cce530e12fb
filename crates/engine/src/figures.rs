//! Makes the figures of a run from the records of its workers.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use spindle_measure::{
    CpuFigures, EndedBy, GeneratorFigures, LogFigures, MergeError, OpKind, Plan, RunFacts,
    RunFigures, SteadyFigures, StreamRecord, StreamRecorder,
};

use crate::load::Load;
use crate::options::Timestamps;
use crate::thread::Usage;

/// The record of one worker.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) recorder: StreamRecorder,
    /// End of its measured time, ns since the start of the run.
    pub(crate) ended_at: u64,
    pub(crate) usage: Usage,
    pub(crate) features: Vec<String>,
    /// Lag of the oldest arrival that was due but never issued, ns.
    pub(crate) unissued_lag: u64,
}

/// The figures; every worker has ended.
pub(crate) fn collect(
    load: &Load,
    helpers_ns: u64,
    mut log: Option<LogFigures>,
    steady: Option<SteadyFigures>,
) -> Result<RunFigures, MergeError> {
    let mut parts = Vec::with_capacity(load.seats.len());
    for seat in &load.seats {
        // SAFETY: the run is over: `Load::supervise` has seen every status as other than `Running`, and `Load::so_far`
        // leaves the cores alone once `taken` is set.
        let core = unsafe { seat.cell.final_core() };
        if let (Some(figures), Some(log)) = (&mut log, &core.log) {
            figures.lost += log.lost;
        }
        parts.push(Part {
            recorder: std::mem::replace(&mut core.recorder, StreamRecorder::new(&NOTHING)),
            ended_at: core.ended_at,
            usage: core.usage,
            features: std::mem::take(&mut core.features),
            unissued_lag: core.unissued_lag,
        });
    }
    add_up(load, parts, 0, helpers_ns, log, steady)
}

/// The figures of all workers' records, in the order of the seats. `elapsed_ns`: at least.
pub(crate) fn add_up(
    load: &Load,
    parts: Vec<Part>,
    mut elapsed_ns: u64,
    helpers_ns: u64,
    log: Option<LogFigures>,
    steady: Option<SteadyFigures>,
) -> Result<RunFigures, MergeError> {
    let workload = &load.plan.workload;
    let mut records: Vec<Option<StreamRecord>> = workload.streams.iter().map(|_| None).collect();
    let mut lags = vec![0; workload.streams.len()];
    let mut workers: BTreeMap<(usize, u32), StreamRecord> = BTreeMap::new();
    let mut cpu = CpuFigures::default();
    let mut busiest: f64 = 0.0;
    let mut features = std::collections::BTreeSet::new();
    for (seat, part) in load.seats.iter().zip(parts) {
        let record = part.recorder.finish(part.ended_at);
        let measured_ns = record.measured_ns();
        elapsed_ns = elapsed_ns.max(record.last_ns());
        if workload.streams[seat.stream].per_worker {
            match workers.entry((seat.stream, seat.worker)) {
                // Threads that share a worker's requests.
                Entry::Occupied(mut entry) => entry.get_mut().merge(record.clone())?,
                Entry::Vacant(entry) => drop(entry.insert(record.clone())),
            }
        }
        match &mut records[seat.stream] {
            Some(sum) => sum.merge(record)?,
            empty => *empty = Some(record),
        }
        lags[seat.stream] = part.unissued_lag.max(lags[seat.stream]);
        features.extend(part.features);
        cpu.user_ns += part.usage.user_ns;
        cpu.system_ns += part.usage.system_ns;
        cpu.voluntary_switches += part.usage.voluntary;
        cpu.involuntary_switches += part.usage.involuntary;
        if measured_ns > 0 {
            let share = part.usage.cpu_ns() as f64 / measured_ns as f64;
            busiest = busiest.max(share.min(1.0));
        }
    }
    cpu.system_ns += helpers_ns;
    features.extend(load.features());
    let named = workload.streams.iter().zip(records);
    let streams = named
        .filter_map(|(stream, record)| Some((stream.name.clone(), record?)))
        .collect();
    let facts = RunFacts {
        elapsed_ns,
        ended_by: ended_by(load),
        cpu,
        generator: GeneratorFigures {
            engine: load.engine(),
            timestamps: match load.plan.options.timestamps {
                Timestamps::Request => "request",
                Timestamps::Batch => "batch",
            }
            .to_owned(),
            features: features.into_iter().collect(),
            busiest_worker: busiest,
            ..GeneratorFigures::default()
        },
        steady,
    };
    let mut figures = RunFigures::new(streams, facts)?;
    for (stream, lag) in figures.streams.iter_mut().zip(lags) {
        stream.max_lag_ns = stream.max_lag_ns.max(lag);
    }
    for ((stream, worker), record) in workers {
        let own = record.worker_figures(worker);
        figures.streams[stream].workers.push(own);
    }
    figures.log = log;
    Ok(figures)
}

/// An empty recorder, to replace one that has been read.
const NOTHING: Plan<'static> = Plan {
    kinds: &[] as &[OpKind],
    service: false,
    ramp_ns: 0,
    start_ns: 0,
    interval_ns: 1,
    expected_ns: Some(0),
    end_ns: None,
    max_intervals: 2,
};

/// The run's own reason; otherwise that of the last stream, which for most is that its time was over.
fn ended_by(load: &Load) -> EndedBy {
    load.shared.ended().unwrap_or_else(|| {
        let streams = load.shared.streams.iter().rev();
        let reasons: Vec<_> = streams.filter_map(|stream| stream.ended()).collect();
        match reasons.first() {
            Some(reason) if reasons.len() == load.shared.streams.len() => reason.clone(),
            _ => EndedBy::Time,
        }
    })
}
