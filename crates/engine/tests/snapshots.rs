//! Figures of a load that is still on: each snapshot holds all that the one before held, and the end holds them all.

mod common;

use std::thread::sleep;
use std::time::Duration;

use common::*;
use spindle_engine::{EngineChoice, NullTarget, Options, Run};
use spindle_measure::{Histogram, OpFigures, RunFigures};
use spindle_workload::{RateLimit, Stream, Workload};

const PATIENCE: Duration = Duration::from_millis(500);

fn started_on_null(load: &Workload, service_ns: u64) -> Run {
    let target = NullTarget {
        size_bytes: 1 << 30,
        service_ns,
    };
    Run::start_null(load, target, Options::default()).expect("start")
}

/// Reads and writes, in the ratio of 3 to 1, by two workers with two requests each; 600 ms.
fn mixed(mut stream: Stream) -> Workload {
    stream.mix.write = 0.25;
    (stream.workers, stream.depth) = (2, 2);
    let mut load = workload(vec![stream]);
    load.end.time_ns = Some(600 * MS);
    load
}

/// Snapshots of a run until it is over, and its end.
fn followed(run: &Run) -> (Vec<RunFigures>, RunFigures) {
    let mut snapshots = Vec::new();
    while !run.wait(Duration::from_millis(40)) {
        snapshots.extend(run.so_far(PATIENCE).expect("they add up"));
    }
    (snapshots, run.finish().expect("figures"))
}

fn ops(figures: &RunFigures) -> impl Iterator<Item = &OpFigures> {
    let streams = figures.streams.iter();
    streams.flat_map(|stream| [&stream.read, &stream.write].into_iter().flatten())
}

/// Latencies, series and counts are the same requests.
fn check_whole(figures: &RunFigures) {
    let counted = |figures: &OpFigures| {
        let histogram = Histogram::decode(&figures.latency.histogram).expect("a histogram");
        (histogram.count(), figures.requests)
    };
    for (in_histogram, requests) in ops(figures).map(counted) {
        assert_eq!(in_histogram, requests);
    }
    let series = figures.series.iter().flat_map(|interval| &interval.streams);
    let in_series: u64 = series.map(|stream| stream.reads + stream.writes).sum();
    assert_eq!(in_series, ops(figures).map(|op| op.requests).sum::<u64>());
    assert!(figures.measured_ns <= figures.elapsed_ns);
}

fn check_growth(snapshots: &[RunFigures], end: &RunFigures) {
    let all: Vec<&RunFigures> = snapshots.iter().chain([end]).collect();
    for pair in all.windows(2) {
        let (before, after) = (pair[0], pair[1]);
        for stream in 0..before.streams.len() {
            assert!(requests(before, stream) <= requests(after, stream));
        }
        let total = |figures: &RunFigures| figures.streams[0].total_bytes;
        assert!(total(before) <= total(after));
        assert!(before.measured_ns <= after.measured_ns);
    }
    all.iter().for_each(|figures| check_whole(figures));
    let (first, last) = (all[0], all[all.len() - 2]);
    assert!(snapshots.len() >= 3, "{} snapshots", snapshots.len());
    assert!(requests(last, 0) > requests(first, 0), "nothing was added");
    assert_eq!(last.generator.engine, end.generator.engine);
    assert_eq!(last.generator.features, end.generator.features);
}

#[test]
fn snapshots_grow_into_the_final_figures_with_every_back_end() {
    let null = started_on_null(&mixed(stream("null")), 0);
    let (snapshots, end) = followed(&null);
    check_growth(&snapshots, &end);

    let scratch = Scratch::new(1 << 20);
    let mapped = Stream {
        mapped: true,
        ..stream("mapped")
    };
    for (load, engine) in [
        (mixed(stream("ring")), EngineChoice::IoUring),
        (mixed(stream("pread")), EngineChoice::Pread),
        (mixed(mapped), EngineChoice::Auto),
    ] {
        let files = vec![vec![scratch.stream_file()]];
        let run = Run::start(&load, files, options(engine)).expect("start");
        let (snapshots, end) = followed(&run);
        check_growth(&snapshots, &end);
    }
}

#[test]
fn a_worker_that_sleeps_between_its_requests_answers() {
    let mut slow = stream("slow");
    slow.rate_limit = Some(RateLimit::Iops { iops: 10.0 });
    let mut load = workload(vec![slow]);
    load.end.time_ns = Some(1_000 * MS);
    let run = started_on_null(&load, 0);
    wait_for_requests(&run);
    sleep(Duration::from_millis(300));
    undisturbed(|| {
        let figures = run.so_far(PATIENCE).expect("sums").ok_or("over")?;
        // The request at the start and those of 300 ms, although the next is not due yet.
        let done = requests(&figures, 0);
        (done >= 3).then_some(()).ok_or(format!("{done} requests"))
    });
}

#[test]
fn a_stream_that_has_ended_stays_in_the_snapshots() {
    let mut short = stream("short");
    short.end.requests = Some(100);
    let mut long = stream("long");
    long.rate_limit = Some(RateLimit::Iops { iops: 1_000.0 });
    let mut load = workload(vec![short, long]);
    load.end.time_ns = Some(500 * MS);
    let run = started_on_null(&load, 0);
    let (snapshots, end) = followed(&run);
    let last = snapshots.last().expect("snapshots");
    assert_eq!(requests(last, 0), 100);
    assert_eq!(requests(&end, 0), 100);
    assert!(requests(last, 1) <= requests(&end, 1));
}

#[test]
fn nothing_of_the_ramp_is_in_a_snapshot() {
    let mut load = workload(vec![stream("ramp")]);
    load.ramp_ns = 10_000 * MS;
    let run = started_on_null(&load, 0);
    undisturbed(|| {
        let figures = run.so_far(PATIENCE).expect("sums");
        let figures = figures.ok_or("not begun".to_owned())?;
        assert_eq!((requests(&figures, 0), figures.measured_ns), (0, 0));
        let moved = figures.streams[0].total_bytes;
        (moved > 0).then_some(()).ok_or("nothing moved".to_owned())
    });
    run.stop();
}

#[test]
fn a_run_that_is_over_has_no_snapshot() {
    let run = started_on_null(&workload(vec![stream("over")]), 0);
    run.finish().expect("figures");
    assert_eq!(run.so_far(PATIENCE).expect("sums"), None);
}
