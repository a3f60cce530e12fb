//! Open loop, rate limits and pauses, on a target whose service time is known.

mod common;

use common::*;
use spindle_engine::{NullTarget, Options, Run};
use spindle_measure::RunFigures;
use spindle_workload::{Arrival, RateLimit, Spacing, Stream, Think, Workload};

fn on_server(load: &Workload, service_ns: u64) -> RunFigures {
    let target = NullTarget {
        size_bytes: 1 << 30,
        service_ns,
    };
    let run = Run::start_null(load, target, Options::default()).expect("start");
    run.finish().expect("figures")
}

fn open(rate_iops: f64, spacing: Spacing) -> Stream {
    let mut stream = stream("open");
    stream.arrival = Arrival::Open { rate_iops, spacing };
    stream
}

#[test]
fn an_open_loop_keeps_its_rate() {
    for spacing in [Spacing::Constant, Spacing::Poisson] {
        let mut stream = open(2_000.0, spacing);
        (stream.workers, stream.depth) = (2, 16);
        let mut load = workload(vec![stream]);
        load.end.time_ns = Some(1_000 * MS);
        let figures = on_server(&load, 0);
        let issued = requests(&figures, 0) as f64;
        // Poisson: four standard deviations of sqrt(2000).
        let slack = if spacing == Spacing::Constant {
            20.0
        } else {
            180.0
        };
        assert!((issued - 2_000.0).abs() <= slack, "{spacing:?}: {issued}");
    }
}

#[test]
fn latency_counts_from_the_intended_start() {
    // Twice as much as the server can do: the queue grows all the time, and only the latency tells.
    let mut load = workload(vec![open(2_000.0, Spacing::Constant)]);
    load.end.time_ns = Some(400 * MS);
    let figures = on_server(&load, MS);
    let read = figures.streams[0].read.as_ref().expect("reads");
    let service = read.service.as_ref().expect("service time");
    let done = read.requests;
    assert!((300..=401).contains(&done), "{done}");
    // The last of N began N ms after the start and was meant to begin N/2 ms after it.
    let expected = done as f64 / 2.0 * 1e6;
    let longest = read.latency.max_ns as f64;
    assert!(
        (longest - expected).abs() < 0.15 * expected,
        "{longest} against {expected}"
    );
    assert!(service.mean_ns < 2.0 * 1e6, "service {}", service.mean_ns);
    // What was due and never issued shows as lag: the run ended half its length behind.
    let lag = figures.streams[0].max_lag_ns as f64;
    assert!(lag > 0.8 * expected, "lag {lag}");
}

#[test]
fn an_unloaded_open_loop_waits_for_nobody() {
    let mut stream = open(200.0, Spacing::Constant);
    stream.depth = 4;
    let mut load = workload(vec![stream]);
    load.end.time_ns = Some(500 * MS);
    let figures = on_server(&load, MS);
    let read = figures.streams[0].read.as_ref().expect("reads");
    let median = read
        .latency
        .percentiles
        .iter()
        .find(|pair| pair.0 == 50.0)
        .expect("median")
        .1;
    assert!((MS..2 * MS).contains(&median), "median {median}");
}

#[test]
fn a_rate_limit_holds_for_all_workers_together() {
    let mut stream = stream("limited");
    (stream.workers, stream.depth) = (4, 2);
    stream.rate_limit = Some(RateLimit::Iops { iops: 3_000.0 });
    let mut load = workload(vec![stream]);
    load.end.time_ns = Some(1_000 * MS);
    let done = requests(&on_server(&load, 0), 0) as f64;
    assert!((done - 3_000.0).abs() <= 60.0, "{done}");
}

#[test]
fn a_limit_on_bytes_counts_bytes() {
    let mut stream = stream("limited");
    stream.rate_limit = Some(RateLimit::Bytes {
        bytes_per_s: 4096.0 * 1_000.0,
    });
    let mut load = workload(vec![stream]);
    load.end.time_ns = Some(1_000 * MS);
    let done = requests(&on_server(&load, 0), 0) as f64;
    assert!((done - 1_000.0).abs() <= 20.0, "{done}");
}

#[test]
fn a_pause_follows_each_completion() {
    for exponential in [false, true] {
        let mut stream = stream("thinking");
        stream.depth = 4;
        stream.think = Some(Think {
            mean_ns: 4 * MS,
            exponential,
        });
        let mut load = workload(vec![stream]);
        load.end.time_ns = Some(1_000 * MS);
        let done = requests(&on_server(&load, 0), 0) as f64;
        // Four slots, each one request in 4 ms and what waking costs.
        assert!(
            (800.0..1_080.0).contains(&done),
            "exponential {exponential}: {done}"
        );
    }
}

#[test]
fn threads_that_share_a_worker_share_its_arrivals() {
    // pread at depth 8: eight threads, one schedule.
    let scratch = Scratch::new(1 << 20);
    let mut stream = open(1_000.0, Spacing::Constant);
    stream.depth = 8;
    let mut load = workload(vec![stream]);
    load.end.time_ns = Some(1_000 * MS);
    for engine in BOTH {
        let done = requests(&run_with(&load, &scratch, options(engine)), 0);
        assert!((985..=1_000).contains(&done), "{engine:?}: {done}");
    }
}
