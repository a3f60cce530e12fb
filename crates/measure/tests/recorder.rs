//! Recorders against a ledger of all requests.

use proptest::prelude::*;
use spindle_measure::{
    CpuFigures, EndedBy, GeneratorFigures, IntervalFigures, LATENCY_BUCKETS, MergeError, OpKind,
    Plan, RunFacts, RunFigures, StreamRecord, StreamRecorder, latency_bucket_ns, little,
};

const SECOND: u64 = 1_000_000_000;

fn plan() -> Plan<'static> {
    Plan {
        kinds: &[OpKind::Read, OpKind::Write],
        service: false,
        ramp_ns: 0,
        start_ns: 0,
        interval_ns: SECOND,
        expected_ns: None,
        end_ns: None,
        max_intervals: Plan::DEFAULT_MAX_INTERVALS,
    }
}

fn facts() -> RunFacts {
    RunFacts {
        elapsed_ns: 0,
        ended_by: EndedBy::Time,
        cpu: CpuFigures::default(),
        generator: GeneratorFigures::default(),
        steady: None,
    }
}

fn run_of(record: StreamRecord) -> RunFigures {
    RunFigures::new(vec![("main".to_owned(), record)], facts()).unwrap()
}

/// Series of the only stream.
fn series(run: &RunFigures) -> Vec<IntervalFigures> {
    run.series
        .iter()
        .map(|interval| interval.streams[0].clone())
        .collect()
}

#[derive(Debug, Clone)]
struct Request {
    kind: OpKind,
    completed_ns: u64,
    latency_ns: u64,
    bytes: u64,
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let request = (0usize..OpKind::ALL.len(), 0u64..3_000, 0u64..5_000, 1u64..9).prop_map(
        |(kind, distance, latency_ns, blocks)| Request {
            kind: OpKind::ALL[kind],
            completed_ns: distance,
            latency_ns,
            bytes: if OpKind::ALL[kind] == OpKind::Fsync {
                0
            } else {
                512 * blocks
            },
        },
    );
    prop::collection::vec(request, 1..200).prop_map(|mut requests| {
        let mut now = 0;
        for request in &mut requests {
            now += request.completed_ns;
            request.completed_ns = now;
        }
        requests
    })
}

/// Counts a latency in the bucket that holds it.
fn count(counts: &mut Vec<(u8, u64)>, latency_ns: u64) {
    let bucket = (0..LATENCY_BUCKETS)
        .find(|&bucket| latency_ns < latency_bucket_ns(bucket).1)
        .unwrap_or(LATENCY_BUCKETS - 1) as u8;
    match counts.binary_search_by_key(&bucket, |pair| pair.0) {
        Ok(at) => counts[at].1 += 1,
        Err(at) => counts.insert(at, (bucket, 1)),
    }
}

fn record_all(plan: &Plan, requests: &[Request], end_ns: u64) -> StreamRecord {
    let mut recorder = StreamRecorder::new(plan);
    for request in requests {
        recorder.record(
            request.kind,
            request.completed_ns,
            request.latency_ns,
            request.bytes,
        );
    }
    recorder.finish(end_ns)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn figures_and_series_agree_with_the_ledger(
        requests in requests(),
        ramp_ns in 0u64..50_000,
        interval_ns in 1u64..10_000,
        max_intervals in 0usize..40,
        idle_ns in 0u64..20_000,
    ) {
        let plan = Plan { ramp_ns, interval_ns, max_intervals, ..plan() };
        let last_ns = requests.last().unwrap().completed_ns;
        let end_ns = last_ns + idle_ns;
        let run = run_of(record_all(&plan, &requests, end_ns));
        let stream = &run.streams[0];

        let counted: Vec<&Request> = requests.iter().filter(|r| r.completed_ns >= ramp_ns).collect();
        for kind in OpKind::ALL {
            let figures = stream.of(kind);
            let of_kind: Vec<_> = counted.iter().filter(|r| r.kind == kind).collect();
            prop_assert_eq!(figures.is_some(), !of_kind.is_empty());
            let Some(figures) = figures else { continue };
            prop_assert_eq!(figures.requests, of_kind.len() as u64);
            prop_assert_eq!(figures.bytes, of_kind.iter().map(|r| r.bytes).sum::<u64>());
            prop_assert_eq!(figures.latency.min_ns, of_kind.iter().map(|r| r.latency_ns).min().unwrap());
            prop_assert_eq!(figures.latency.max_ns, of_kind.iter().map(|r| r.latency_ns).max().unwrap());
        }
        prop_assert_eq!(stream.total_bytes, requests.iter().map(|r| r.bytes).sum::<u64>());
        prop_assert_eq!(run.measured_ns, end_ns.saturating_sub(ramp_ns));
        prop_assert_eq!(stream.measured_ns, run.measured_ns);

        // The intervals cover the measured time without gap, and contain the requests that completed in them.
        let doubled = run.interval_ns / interval_ns;
        prop_assert!(run.interval_ns.is_multiple_of(interval_ns) && doubled.is_power_of_two());
        prop_assert!(run.series.len() <= max_intervals.max(2) + 2);
        prop_assert_eq!(run.series.iter().map(|i| i.length_ns).sum::<u64>(), run.measured_ns);
        let mut expected = vec![IntervalFigures::default(); run.series.len()];
        for request in counted.iter().filter(|r| r.kind != OpKind::Fsync) {
            if expected.is_empty() {
                break; // nothing of any length was measured
            }
            // A request that completes on the last nanosecond belongs to the interval that ends there.
            let index = ((request.completed_ns - ramp_ns) / run.interval_ns).min(expected.len() as u64 - 1);
            let interval = &mut expected[index as usize];
            if OpKind::LOOKING.contains(&request.kind) {
                interval.reads += 1;
                interval.read_bytes += request.bytes;
                interval.read_latency_ns += request.latency_ns;
            } else {
                interval.writes += 1;
                interval.write_bytes += request.bytes;
                interval.write_latency_ns += request.latency_ns;
            }
            interval.max_latency_ns = interval.max_latency_ns.max(request.latency_ns);
            count(&mut interval.latency_counts, request.latency_ns);
        }
        prop_assert_eq!(series(&run), expected);
    }

    #[test]
    fn merged_workers_give_what_one_worker_would_have(
        requests in requests(),
        ramp_ns in 0u64..50_000,
        interval_ns in 1u64..10_000,
        max_intervals in 2usize..40,
        workers in 1usize..5,
    ) {
        let plan = Plan { ramp_ns, interval_ns, max_intervals, ..plan() };
        let end_ns = requests.last().unwrap().completed_ns;
        let together = run_of(record_all(&plan, &requests, end_ns));
        let mut merged: Option<StreamRecord> = None;
        for worker in 0..workers {
            let own: Vec<Request> = requests.iter().skip(worker).step_by(workers).cloned().collect();
            // A worker that has nothing left to do ends early.
            let own_end = own.last().map_or(0, |r| r.completed_ns);
            let record = record_all(&plan, &own, own_end);
            match &mut merged {
                None => merged = Some(record),
                Some(merged) => merged.merge(record).unwrap(),
            }
        }
        let merged = run_of(merged.unwrap());
        prop_assert_eq!(&merged.streams, &together.streams);
        prop_assert_eq!(merged.measured_ns, together.measured_ns);
        // Workers that ended at different times may have halved their series at different times, and a completion on the
        // last nanosecond of a worker may be in either neighbour: the sums are right.
        let sum = |run: &RunFigures| series(run).iter().fold((0, 0, 0, 0), |sum, i| (sum.0 + i.reads + i.writes, sum.1 + i.read_bytes, sum.2 + i.write_latency_ns, sum.3 + i.latency_counts.iter().map(|pair| pair.1 * u64::from(pair.0)).sum::<u64>()));
        if together.measured_ns > 0 {
            prop_assert_eq!(sum(&merged), sum(&together));
        }
        prop_assert_eq!(merged.interval_ns, together.interval_ns);
    }

    #[test]
    fn the_outstanding_count_is_weighted_by_time(
        changes in prop::collection::vec((0u64..1_000, 0u64..64), 1..100),
        ramp_ns in 0u64..20_000,
    ) {
        let mut recorder = StreamRecorder::new(&Plan { ramp_ns, ..plan() });
        let (mut now, mut count, mut area) = (0u64, 0u64, 0u128);
        for (distance, next) in changes {
            let later = now + distance;
            area += u128::from(count) * u128::from(later.max(ramp_ns) - now.max(ramp_ns));
            (now, count) = (later, next);
            recorder.set_outstanding(now, count);
        }
        let end = now + 100;
        area += u128::from(count) * u128::from(end.max(ramp_ns) - now.max(ramp_ns));
        let record = recorder.finish(end);
        let measured = record.measured_ns();
        let expected = if measured == 0 { 0.0 } else { area as f64 / measured as f64 };
        prop_assert_eq!(record.figures("main").mean_outstanding, expected);
    }
}

#[test]
fn the_ramp_is_counted_in_the_totals_only() {
    let mut recorder = StreamRecorder::new(&Plan {
        ramp_ns: 2 * SECOND,
        ..plan()
    });
    recorder.record(OpKind::Read, SECOND, 900, 4096);
    recorder.record(OpKind::Write, 2 * SECOND - 1, 900, 4096);
    recorder.record(OpKind::Read, 2 * SECOND, 100, 512);
    let totals = recorder.totals();
    assert_eq!((totals.reads(), totals.writes()), ((2, 4608), (1, 4096)));
    let run = run_of(recorder.finish(4 * SECOND));
    let stream = &run.streams[0];
    let read = stream.read.as_ref().unwrap();
    assert_eq!(
        (read.requests, read.bytes, read.latency.max_ns),
        (1, 512, 100)
    );
    assert_eq!(read.iops, 0.5);
    assert!(stream.write.is_none());
    assert_eq!(stream.total_read_bytes, 4608);
    assert_eq!(stream.total_write_bytes, 4096);
    assert_eq!(run.measured_ns, 2 * SECOND);
}

#[test]
fn a_run_that_ends_within_the_ramp_has_totals_and_no_figures() {
    let mut recorder = StreamRecorder::new(&Plan {
        ramp_ns: 10 * SECOND,
        ..plan()
    });
    recorder.set_outstanding(0, 4);
    recorder.record(OpKind::Read, SECOND, 900, 4096);
    let run = run_of(recorder.finish(2 * SECOND));
    assert_eq!(run.measured_ns, 0);
    assert!(run.series.is_empty());
    assert!(run.streams[0].read.is_none());
    assert_eq!(run.streams[0].total_bytes, 4096);
    assert_eq!(run.streams[0].mean_outstanding, 0.0);
}

#[test]
fn a_stream_that_starts_late_is_measured_from_its_start() {
    let mut recorder = StreamRecorder::new(&Plan {
        ramp_ns: SECOND,
        start_ns: 3 * SECOND,
        ..plan()
    });
    recorder.set_outstanding(3 * SECOND, 1);
    for n in 1..=20 {
        recorder.record(OpKind::Read, 3 * SECOND + n * SECOND / 10, SECOND / 10, 512);
    }
    let run = run_of(recorder.finish(5 * SECOND));
    let stream = &run.streams[0];
    assert_eq!(stream.measured_ns, 2 * SECOND);
    assert_eq!(run.measured_ns, 4 * SECOND);
    assert_eq!(stream.read.as_ref().unwrap().iops, 10.0);
    assert_eq!(stream.mean_outstanding, 1.0);
    let reads: Vec<u64> = series(&run).iter().map(|interval| interval.reads).collect();
    assert_eq!(reads, [0, 0, 9, 11]);
}

#[test]
fn streams_stand_side_by_side_in_the_series() {
    let mut fast = StreamRecorder::new(&plan());
    let mut slow = StreamRecorder::new(&Plan {
        interval_ns: 2 * SECOND,
        ..plan()
    });
    fast.record(OpKind::Read, SECOND / 2, 10, 512);
    fast.record(OpKind::Read, SECOND + SECOND / 2, 30, 512);
    slow.record(OpKind::Write, 2 * SECOND + 1, 20, 4096);
    let run = RunFigures::new(
        vec![
            ("fast".to_owned(), fast.finish(2 * SECOND)),
            ("slow".to_owned(), slow.finish(3 * SECOND)),
        ],
        facts(),
    )
    .unwrap();
    assert_eq!(run.interval_ns, 2 * SECOND);
    assert_eq!(run.series.len(), 2);
    assert_eq!(run.series[0].streams[0].reads, 2);
    assert_eq!(run.series[0].streams[0].max_latency_ns, 30);
    assert_eq!(run.series[1].streams[0], IntervalFigures::default());
    assert_eq!(run.series[1].streams[1].writes, 1);
    assert_eq!(
        (run.series[1].start_ns, run.series[1].length_ns),
        (2 * SECOND, SECOND)
    );
}

#[test]
fn open_loops_keep_service_times_and_the_largest_lag() {
    let mut recorder = StreamRecorder::new(&Plan {
        service: true,
        ..plan()
    });
    recorder.record_open(OpKind::Read, 1_000, 500, 500, 512);
    recorder.record_open(OpKind::Read, 2_000, 900, 400, 512);
    let record = recorder.finish(SECOND);
    let figures = record.figures("main");
    let read = figures.read.unwrap();
    assert_eq!(read.latency.mean_ns, 700.0);
    assert_eq!(read.service.unwrap().mean_ns, 450.0);
    assert_eq!(figures.max_lag_ns, 500);
}

#[test]
fn errors_are_counted_by_kind_and_errno_with_the_first_place() {
    let mut first = StreamRecorder::new(&plan());
    first.error(OpKind::Read, 5, 8192);
    first.error(OpKind::Read, 5, 512);
    first.error(OpKind::Write, 28, 0);
    assert_eq!(first.totals().errors, 3);
    let mut second = StreamRecorder::new(&plan());
    second.error(OpKind::Read, 5, 4096);
    let mut record = first.finish(SECOND);
    record.merge(second.finish(SECOND)).unwrap();
    let errors: Vec<_> = record
        .figures("main")
        .errors
        .into_iter()
        .map(|error| (error.op, error.errno, error.count, error.first_offset))
        .collect();
    assert_eq!(
        errors,
        [
            ("read".to_owned(), 5, 3, 8192),
            ("write".to_owned(), 28, 1, 0)
        ]
    );
}

#[test]
fn a_full_series_doubles_its_interval_and_loses_nothing() {
    let mut recorder = StreamRecorder::new(&Plan {
        max_intervals: 8,
        ..plan()
    });
    for second in 0..1000 {
        recorder.record(OpKind::Read, second * SECOND, second, 512);
    }
    let run = run_of(recorder.finish(1000 * SECOND));
    assert_eq!(run.interval_ns, 128 * SECOND);
    assert_eq!(run.series.len(), 8);
    let reads: Vec<u64> = series(&run).iter().map(|interval| interval.reads).collect();
    assert_eq!(reads, [128, 128, 128, 128, 128, 128, 128, 104]);
    assert_eq!(run.series[7].length_ns, 104 * SECOND);
    assert_eq!(run.series[3].streams[0].max_latency_ns, 511);
}

#[test]
fn a_clock_that_jumps_to_its_end_is_survived() {
    let mut recorder = StreamRecorder::new(&Plan {
        interval_ns: 1,
        max_intervals: 2,
        ..plan()
    });
    recorder.set_outstanding(1, u64::MAX);
    recorder.record(OpKind::Read, 1, u64::MAX, u64::MAX);
    recorder.record(OpKind::Read, u64::MAX, u64::MAX, u64::MAX);
    recorder.record(OpKind::Read, u64::MAX, 1, 1);
    let run = run_of(recorder.finish(u64::MAX));
    assert_eq!(run.streams[0].read.as_ref().unwrap().requests, 3);
    assert!(run.series.len() <= 4);
}

#[test]
fn recorders_of_different_plans_are_not_merged() {
    let mut record = StreamRecorder::new(&plan()).finish(SECOND);
    let thirds = StreamRecorder::new(&Plan {
        interval_ns: 3 * SECOND,
        ..plan()
    });
    assert_eq!(
        record.merge(thirds.finish(SECOND)),
        Err(MergeError::Interval {
            a_ns: SECOND,
            b_ns: 3 * SECOND
        })
    );
    let later = StreamRecorder::new(&Plan {
        ramp_ns: SECOND,
        ..plan()
    });
    assert_eq!(
        record.merge(later.finish(SECOND)),
        Err(MergeError::Start {
            a_ns: 0,
            b_ns: SECOND
        })
    );
}

#[test]
fn recording_does_not_allocate() {
    let mut recorder = StreamRecorder::new(&Plan {
        service: true,
        ramp_ns: SECOND,
        expected_ns: Some(20 * SECOND),
        max_intervals: 64,
        ..plan()
    });
    let used = allocation_counter::measure(|| {
        // Ten times as long as asked, so that the series is full and is merged, too.
        for n in 0..20_000 {
            let now = n * SECOND / 100;
            recorder.set_outstanding(now, n % 3);
            recorder.record(OpKind::Read, now, n * 1000, 4096);
            recorder.record_open(OpKind::Write, now, n * 1000, n * 900, 4096);
        }
    });
    // The series grows by doubling beyond the asked time, up to its bound.
    assert!(used.count_total <= 2, "{used:?}");
    let mut recorder = StreamRecorder::new(&Plan {
        expected_ns: Some(200 * SECOND),
        ..plan()
    });
    let used = allocation_counter::measure(|| {
        for n in 0..20_000 {
            recorder.record(OpKind::Read, n * SECOND / 100, u64::MAX - n, 4096);
        }
    });
    assert_eq!(used.count_total, 0, "{used:?}");
}

#[test]
fn littles_law_holds_for_a_closed_loop_and_betrays_lost_latencies() {
    // Four outstanding requests of 1 ms each, recorded twice: as they are, and with every tenth latency lost.
    let run = |lossy: bool| {
        let mut recorder = StreamRecorder::new(&plan());
        recorder.set_outstanding(0, 4);
        for n in 1..=4000u64 {
            let latency = if lossy && n % 10 == 0 { 0 } else { 1_000_000 };
            recorder.record(OpKind::Read, n * 250_000, latency, 4096);
        }
        let figures = recorder.finish(SECOND).figures("main");
        let read = figures.read.unwrap();
        little(read.iops, read.latency.mean_ns, figures.mean_outstanding).unwrap()
    };
    assert!(run(false).abs() < 1e-12);
    assert!((run(true) + 0.1).abs() < 1e-12);
}

#[test]
fn littles_law_says_nothing_about_an_idle_stream() {
    assert_eq!(little(0.0, 0.0, 0.0), None);
    assert_eq!(little(f64::NAN, 1.0, 1.0), None);
}

#[test]
fn what_completes_after_the_end_is_drained_but_not_counted() {
    let mut recorder = StreamRecorder::new(&Plan {
        end_ns: Some(2 * SECOND),
        ..plan()
    });
    recorder.set_outstanding(0, 2);
    recorder.record(OpKind::Read, SECOND, SECOND, 100);
    recorder.record(OpKind::Read, 2 * SECOND, SECOND, 100);
    recorder.record(OpKind::Read, 2 * SECOND + 1, SECOND, 100);
    recorder.record(OpKind::Write, 5 * SECOND, 4 * SECOND, 10);
    recorder.set_outstanding(5 * SECOND, 0);
    let totals = recorder.totals();
    assert_eq!(totals.bytes[OpKind::Read as usize], 300);
    assert_eq!(totals.requests[OpKind::Write as usize], 1);
    let record = recorder.finish(2 * SECOND);
    assert_eq!(record.measured_ns(), 2 * SECOND);
    assert_eq!(record.last_ns(), 5 * SECOND);
    let figures = record.figures("s");
    let read = figures.read.as_ref().unwrap();
    assert_eq!((read.requests, read.bytes), (2, 200));
    assert!((read.iops - 1.0).abs() < 1e-12);
    assert!(figures.write.is_none());
    assert_eq!(
        (figures.total_read_bytes, figures.total_write_bytes),
        (300, 10)
    );
    assert_eq!(figures.late.requests, 2);
    assert_eq!(figures.late.max_latency_ns, 4 * SECOND);
    assert!((figures.mean_outstanding - 2.0).abs() < 1e-12);
}

#[test]
fn a_rate_held_until_the_end_is_exact_whatever_straggles() {
    let rate_of = |end_ns| {
        let mut recorder = StreamRecorder::new(&Plan { end_ns, ..plan() });
        for request in 1..=1000_u64 {
            recorder.record(OpKind::Read, request * SECOND / 100, SECOND / 100, 4096);
        }
        recorder.record(OpKind::Read, 11 * SECOND, SECOND, 4096);
        recorder.finish(10 * SECOND).figures("s").read.unwrap().iops
    };
    assert!((rate_of(Some(10 * SECOND)) - 100.0).abs() < 1e-9);
    assert!(rate_of(None) < 92.0);
}

#[test]
fn a_run_that_is_stopped_before_its_end_is_measured_until_it_stopped() {
    let mut recorder = StreamRecorder::new(&Plan {
        end_ns: Some(10 * SECOND),
        ..plan()
    });
    recorder.record(OpKind::Read, SECOND, SECOND, 1);
    recorder.record(OpKind::Read, 3 * SECOND, SECOND, 1);
    let record = recorder.finish(2 * SECOND);
    assert_eq!(record.measured_ns(), 3 * SECOND);
    assert_eq!(record.figures("s").late.requests, 0);
}

#[test]
fn late_requests_of_all_workers_are_added_up() {
    let worker = |latency_ns| {
        let mut recorder = StreamRecorder::new(&Plan {
            end_ns: Some(SECOND),
            ramp_ns: SECOND / 2,
            ..plan()
        });
        recorder.record(OpKind::Read, SECOND + latency_ns, latency_ns, 7);
        recorder.finish(SECOND)
    };
    let mut record = worker(SECOND);
    record.merge(worker(3 * SECOND)).unwrap();
    let figures = record.figures("s");
    assert_eq!(figures.late.requests, 2);
    assert_eq!(figures.late.max_latency_ns, 3 * SECOND);
    assert_eq!(figures.total_bytes, 14);
    assert!(figures.read.is_none());
    assert_eq!(record.measured_ns(), SECOND / 2);
}
