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

/// Returns an error unless the number of requests is close to the wanted one.
fn near(figures: &RunFigures, wanted: f64, slack: f64) -> Result<(), String> {
    let done = requests(figures, 0) as f64;
    if (done - wanted).abs() <= slack {
        Ok(())
    } else {
        Err(format!("{done} requests instead of {wanted}"))
    }
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
        // Poisson: four standard deviations of sqrt(2000).
        let slack = if spacing == Spacing::Constant {
            20.0
        } else {
            180.0
        };
        undisturbed(|| near(&on_server(&load, 0), 2_000.0, slack));
    }
}

#[test]
fn latency_counts_from_the_intended_start() {
    // Twice as much as the server can do: the queue grows all the time, and only the latency shows it.
    let mut load = workload(vec![open(2_000.0, Spacing::Constant)]);
    load.end.time_ns = Some(400 * MS);
    let figures = on_server(&load, MS);
    let read = figures.streams[0].read.as_ref().expect("reads");
    let service = read.service.as_ref().expect("service time");
    let done = read.requests as f64;
    assert!((1.0..=401.0).contains(&done), "{done}");
    // However slow the machine: the n-th ends n ms after the start at the earliest, was meant to begin n/2 ms after it, and
    // those behind it take their milliseconds too before the end at 400 ms.
    let ms = MS as f64;
    let longest = read.latency.max_ns as f64 / ms;
    assert!(
        (done / 2.0 - 1.0..402.0 - done / 2.0).contains(&longest),
        "{longest} ms with {done} requests"
    );
    // The n-th was issued n ms after the start at the earliest: on average n/2 behind its time, for n from 0.
    let lags = (read.latency.mean_ns - service.mean_ns) / ms;
    assert!(lags > done / 4.0 - 1.0, "{lags} ms with {done} requests");
    assert!(service.mean_ns >= ms, "service {}", service.mean_ns);
    // Requests that were due and never issued show as lag.
    let lag = figures.streams[0].max_lag_ns as f64 / ms;
    assert!(lag > 398.0 - done / 2.0, "lag {lag}");
}

#[test]
fn an_unloaded_open_loop_waits_for_nobody() {
    let mut stream = open(200.0, Spacing::Constant);
    stream.depth = 4;
    let mut load = workload(vec![stream]);
    load.end.time_ns = Some(100 * MS);
    undisturbed(|| {
        let figures = on_server(&load, MS);
        let read = figures.streams[0].read.as_ref().ok_or("no reads")?;
        let mut percentiles = read.latency.percentiles.iter();
        let median = percentiles.find(|pair| pair.0 == 50.0).ok_or("no median")?;
        if (MS..2 * MS).contains(&median.1) {
            Ok(())
        } else {
            Err(format!("median {}", median.1))
        }
    });
}

#[test]
fn a_rate_limit_holds_for_all_workers_together() {
    let mut stream = stream("limited");
    (stream.workers, stream.depth) = (4, 2);
    stream.rate_limit = Some(RateLimit::Iops { iops: 3_000.0 });
    let mut load = workload(vec![stream]);
    load.end.time_ns = Some(1_000 * MS);
    undisturbed(|| near(&on_server(&load, 0), 3_000.0, 60.0));
}

#[test]
fn a_limit_on_bytes_counts_bytes() {
    let mut stream = stream("limited");
    stream.rate_limit = Some(RateLimit::Bytes {
        bytes_per_s: 4096.0 * 1_000.0,
    });
    let mut load = workload(vec![stream]);
    load.end.time_ns = Some(1_000 * MS);
    undisturbed(|| near(&on_server(&load, 0), 1_000.0, 20.0));
}

#[test]
fn a_pause_follows_each_completion() {
    for exponential in [false, true] {
        let mut stream = stream("thinking");
        stream.depth = 4;
        stream.think = Some(Think {
            mean_ns: 4 * MS,
            exponential,
            every: 0,
            work_ns: 0,
            spin_ns: 0,
        });
        let mut load = workload(vec![stream]);
        load.end.time_ns = Some(1_000 * MS);
        // Four slots, each one request in 4 ms and what waking costs; if they paused one after another, 250.
        undisturbed(|| near(&on_server(&load, 0), 730.0, 350.0));
    }
}

#[test]
fn a_worker_that_rests_as_a_whole_pauses_after_each_batch() {
    let mut stream = stream("thinking");
    stream.depth = 4;
    stream.think = Some(Think {
        mean_ns: 20 * MS,
        exponential: false,
        every: 10,
        work_ns: 0,
        spin_ns: 5 * MS,
    });
    let mut load = workload(vec![stream]);
    load.end.time_ns = Some(1_000 * MS);
    // Ten requests in each 20 ms and a little; never more, however late it is woken.
    undisturbed(|| {
        let figures = on_server(&load, 0);
        assert!(requests(&figures, 0) <= 510);
        near(&figures, 470.0, 60.0)
    });
}

#[test]
fn a_batch_ends_with_the_run_and_counts() {
    let mut stream = stream("thinking");
    stream.think = Some(Think {
        mean_ns: MS,
        exponential: false,
        every: 7,
        work_ns: 0,
        spin_ns: 0,
    });
    stream.end.requests = Some(24);
    let mut load = workload(vec![stream]);
    load.end.time_ns = Some(60_000 * MS);
    let figures = on_server(&load, 0);
    assert_eq!(requests(&figures, 0), 24);
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
        undisturbed(|| {
            let figures = run_with(&load, &scratch, options(engine));
            assert!(requests(&figures, 0) <= 1_000, "{engine:?}");
            near(&figures, 1_000.0, 15.0)
        });
    }
}
