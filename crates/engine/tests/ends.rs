//! When a run ends, and that its counts agree with each other and with what was asked.

mod common;

use std::time::Duration;

use common::*;
use spindle_engine::{NullTarget, Options, Phase, Run};
use spindle_measure::{EndedBy, little};
use spindle_workload::{
    Arrival, Content, End, Mix, Pattern, RateLimit, Spacing, SteadyRule, Stream, Think,
};

#[test]
fn a_number_of_requests_is_met_exactly() {
    let scratch = Scratch::new(4 << 20);
    for engine in BOTH {
        let mut reads = stream("reads");
        (reads.workers, reads.depth) = (3, 4);
        let mut load = workload(vec![reads]);
        load.end = End {
            requests: Some(10_007),
            ..End::default()
        };
        let figures = run_with(&load, &scratch, options(engine));
        assert_eq!(requests(&figures, 0), 10_007, "{engine:?}");
        assert_eq!(figures.ended_by, EndedBy::Requests);
        assert_eq!(figures.streams[0].total_bytes, 10_007 * 4096);
    }
}

#[test]
fn a_number_of_requests_is_met_exactly_after_a_ramp() {
    let scratch = Scratch::new(4 << 20);
    for engine in BOTH {
        let mut reads = stream("reads");
        (reads.workers, reads.depth) = (2, 8);
        reads.end.requests = Some(5_003);
        let mut load = workload(vec![reads]);
        load.ramp_ns = 30 * MS;
        load.end = End::default();
        undisturbed(|| {
            let figures = run_with(&load, &scratch, options(engine));
            assert_eq!(requests(&figures, 0), 5_003, "{engine:?}");
            if figures.streams[0].total_bytes > 5_003 * 4096 {
                Ok(())
            } else {
                Err("the ramp moved nothing".to_owned())
            }
        });
    }
}

#[test]
fn each_worker_ends_when_it_has_gone_over_its_part() {
    let scratch = Scratch::new((4 << 20) + 4096);
    for engine in BOTH {
        for (workers, depth) in [(1, 1), (3, 4)] {
            let mut reads = stream("reads");
            reads.pattern = Pattern::Sequential;
            (reads.workers, reads.depth) = (workers, depth);
            reads.passes = Some(2.0);
            let mut load = workload(vec![reads]);
            load.end = End::default();
            let figures = run_with(&load, &scratch, options(engine));
            assert_eq!(
                requests(&figures, 0),
                2 * 1025,
                "{engine:?} {workers} x {depth}"
            );
            assert_eq!(figures.ended_by, EndedBy::Requests);
        }
    }
}

#[test]
fn bytes_end_a_run_within_a_request_a_worker() {
    let scratch = Scratch::new(4 << 20);
    for engine in BOTH {
        let mut load = workload(vec![stream("reads")]);
        load.end = End {
            bytes: Some(1_000_000),
            ..End::default()
        };
        let figures = run_with(&load, &scratch, options(engine));
        let bytes = figures.streams[0].total_bytes;
        assert!(
            (1_000_000..1_000_000 + 4096).contains(&bytes),
            "{engine:?}: {bytes}"
        );
        assert_eq!(figures.ended_by, EndedBy::Bytes);
    }
}

#[test]
fn bytes_of_the_length_of_a_file_take_every_block_of_it() {
    for engine in BOTH {
        for round in 0..60 {
            let scratch = Scratch::new(512 << 10);
            let mut writes = stream("writes");
            writes.mix = Mix {
                write: 1.0,
                ..Mix::READS
            };
            writes.pattern = Pattern::Sequential;
            writes.content = Content::Zero;
            writes.depth = 8;
            let mut load = workload(vec![writes]);
            load.end = End {
                bytes: Some(512 << 10),
                ..End::default()
            };
            let figures = run_with(&load, &scratch, options(engine));
            assert_eq!(figures.streams[0].total_bytes, 512 << 10);
            let now = std::fs::read(&scratch.path).unwrap();
            let left = now.iter().position(|byte| *byte != 0);
            assert_eq!(left, None, "{engine:?}, round {round}");
        }
    }
}

/// How a stream waits, and the requests that it has sent until then.
type Wait<'a> = (&'a dyn Fn(&mut Stream), u64);

#[test]
fn nobody_waits_for_requests_that_a_waiting_worker_holds() {
    const WAIT: u64 = 20_000 * MS;
    let open = |slow: &mut Stream| {
        let (rate_iops, spacing) = (0.05, Spacing::Constant);
        slow.arrival = Arrival::Open { rate_iops, spacing };
    };
    let limited = |slow: &mut Stream| slow.rate_limit = Some(RateLimit::Iops { iops: 0.05 });
    let thinks = |every: u32| {
        move |slow: &mut Stream| {
            slow.depth = 16;
            slow.think = Some(Think {
                mean_ns: WAIT,
                exponential: false,
                every,
                work_ns: 0,
                spin_ns: 0,
            });
        }
    };
    let waits: [Wait; 4] = [
        (&open, 1),
        (&limited, 1),
        (&thinks(0), 16),
        (&thinks(16), 16),
    ];
    let target = NullTarget {
        size_bytes: 1 << 30,
        service_ns: MS / 20,
    };
    for (index, (wait, sent)) in waits.into_iter().enumerate() {
        let (mut slow, mut busy) = (stream("slow"), stream("busy"));
        wait(&mut slow);
        busy.depth = 4;
        let mut load = workload(vec![slow, busy]);
        load.end = End {
            requests: Some(8_000),
            ..End::default()
        };
        let run = Run::start_null(&load, target, Options::default()).expect("start");
        let figures = run.finish().expect("figures");
        assert_eq!(figures.ended_by, EndedBy::Requests);
        let done = (requests(&figures, 0), requests(&figures, 1));
        assert_eq!(done, (sent, 8_000 - sent), "wait {index}");
    }
}

#[test]
fn a_stream_may_end_before_the_run() {
    let scratch = Scratch::new(4 << 20);
    let mut short = stream("short");
    short.end.requests = Some(100);
    let load = workload(vec![short, stream("long")]);
    let figures = run_with(&load, &scratch, Options::default());
    assert_eq!(requests(&figures, 0), 100);
    assert!(figures.streams[0].measured_ns < figures.streams[1].measured_ns);
    assert_eq!(figures.ended_by, EndedBy::Time);
    assert_eq!(figures.measured_ns, 300 * MS);
}

#[test]
fn a_stream_starts_after_its_delay() {
    let scratch = Scratch::new(4 << 20);
    let mut late = stream("late");
    late.start_delay_ns = 200 * MS;
    let options = Options {
        interval_ns: 50 * MS,
        ..Options::default()
    };
    let figures = run_with(&workload(vec![stream("early"), late]), &scratch, options);
    assert_eq!(figures.streams[1].measured_ns, 100 * MS);
    let early: Vec<u64> = figures
        .series
        .iter()
        .map(|part| part.streams[1].reads)
        .collect();
    assert!(early[..4].iter().all(|&reads| reads == 0), "{early:?}");
    assert!(early[4..].iter().sum::<u64>() > 0, "{early:?}");
}

#[test]
fn the_ramp_is_run_but_not_counted() {
    let scratch = Scratch::new(4 << 20);
    for engine in BOTH {
        let mut load = workload(vec![stream("reads")]);
        load.ramp_ns = 200 * MS;
        load.end.time_ns = Some(100 * MS);
        let figures = run_with(&load, &scratch, options(engine));
        let counted = figures.streams[0].read.as_ref().expect("reads").bytes;
        assert_eq!(figures.measured_ns, 100 * MS);
        assert!(figures.elapsed_ns >= 300 * MS);
        assert!(figures.streams[0].total_read_bytes > counted, "{engine:?}");
    }
}

#[test]
fn the_series_adds_up_to_the_figures() {
    let scratch = Scratch::new(4 << 20);
    for engine in BOTH {
        let mut mixed = stream("mixed");
        mixed.mix.write = 0.3;
        mixed.depth = 4;
        let mut options = options(engine);
        options.interval_ns = 40 * MS;
        let figures = run_with(&workload(vec![mixed]), &scratch, options);
        let (read, write) = (
            figures.streams[0].read.as_ref(),
            figures.streams[0].write.as_ref(),
        );
        let sum = |of: fn(&spindle_measure::IntervalFigures) -> u64| -> u64 {
            figures.series.iter().map(|part| of(&part.streams[0])).sum()
        };
        assert_eq!(sum(|part| part.reads), read.expect("reads").requests);
        assert_eq!(sum(|part| part.writes), write.expect("writes").requests);
        assert_eq!(sum(|part| part.write_bytes), write.expect("writes").bytes);
        assert_eq!(figures.series.len(), 8);
    }
}

#[test]
fn littles_law_holds_within_one_percent() {
    let scratch = Scratch::new(16 << 20);
    for engine in BOTH {
        for depth in [1, 8, 32] {
            let mut reads = stream("reads");
            reads.depth = depth;
            // An end by number: no request is cut off by the end of the window.
            reads.end.requests = Some(100_000);
            let mut load = workload(vec![reads]);
            load.end = End::default();
            undisturbed(|| {
                let figures = run_with(&load, &scratch, options(engine));
                let read = figures.streams[0].read.as_ref().ok_or("no reads")?;
                let outstanding = figures.streams[0].mean_outstanding;
                let off = little(read.iops, read.latency.mean_ns, outstanding);
                match off {
                    Some(off) if off.abs() < 0.01 => Ok(()),
                    off => Err(format!("{engine:?} at depth {depth}: off by {off:?}")),
                }
            });
        }
    }
}

#[test]
fn the_asked_depth_is_really_outstanding() {
    // A server of 0.2 ms a request: all slots but the one between two requests are always outstanding.
    let target = NullTarget {
        size_bytes: 1 << 30,
        service_ns: MS / 5,
    };
    let mut reads = stream("reads");
    reads.depth = 16;
    let run = Run::start_null(&workload(vec![reads]), target, Options::default()).expect("start");
    let figures = run.finish().expect("figures");
    let outstanding = figures.streams[0].mean_outstanding;
    assert!((15.0..=16.0).contains(&outstanding), "{outstanding}");
}

#[test]
fn a_stop_keeps_what_was_done() {
    let scratch = Scratch::new(4 << 20);
    for engine in BOTH {
        let mut reads = stream("reads");
        reads.depth = 4;
        let mut load = workload(vec![reads]);
        load.end = End::default();
        let run =
            Run::start(&load, vec![vec![scratch.stream_file()]], options(engine)).expect("start");
        wait_for_requests(&run);
        let progress = run.progress();
        assert_eq!(progress.phase, Phase::Measure);
        assert!(progress.streams[0].reads > 0);
        run.stop();
        let figures = run.finish().expect("figures");
        assert_eq!(figures.ended_by, EndedBy::Stopped);
        // The outstanding requests were waited for, not given up.
        assert!(figures.streams[0].errors.is_empty());
        assert!(requests(&figures, 0) >= progress.streams[0].reads);
        assert_eq!(run.progress().phase, Phase::Done);
        // Asking again gives the same.
        assert_eq!(run.finish().expect("figures"), figures);
    }
}

#[test]
fn a_stop_during_calibration_ends_the_run() {
    let scratch = Scratch::new(4 << 20);
    let run = Run::start(
        &workload(vec![stream("reads")]),
        vec![vec![scratch.stream_file()]],
        Options::default(),
    );
    let run = run.expect("start");
    run.stop();
    assert!(run.wait(Duration::from_secs(60)));
    assert_eq!(run.finish().expect("figures").ended_by, EndedBy::Stopped);
}

#[test]
fn a_dropped_run_stops() {
    let scratch = Scratch::new(1 << 20);
    let mut load = workload(vec![stream("reads")]);
    load.end = End::default();
    let run =
        Run::start(&load, vec![vec![scratch.stream_file()]], Options::default()).expect("start");
    // It has no end of its own: a run that went on would keep this waiting for ever.
    drop(run);
}

#[test]
fn a_steady_load_ends_by_itself() {
    let target = NullTarget {
        size_bytes: 1 << 30,
        service_ns: MS,
    };
    // Whose requests come evenly whatever else the machine does.
    let mut even = stream("reads");
    even.arrival = Arrival::Open {
        rate_iops: 50.0,
        spacing: Spacing::Constant,
    };
    let mut load = workload(vec![even]);
    load.end = End {
        steady: true,
        steady_rule: Some(SteadyRule {
            window_ns: 3_000 * MS,
            drift_per_minute: None,
            ..SteadyRule::default()
        }),
        time_ns: Some(60_000 * MS),
        ..End::default()
    };
    let run = Run::start_null(&load, target, Options::default()).expect("start");
    let figures = run.finish().expect("figures");
    assert_eq!(figures.ended_by, EndedBy::Steady);
    let window = figures.steady.expect("the window that was steady");
    assert!(window.at_ns - window.from_ns >= 2_900 * MS, "{window:?}");
    assert!((window.mean - 50.0).abs() < 5.0, "{window:?}");
}

#[test]
fn both_back_ends_read_the_same_places() {
    // A file whose every block holds its own number; sequential reads of all of it.
    let scratch = Scratch::new(4 << 20);
    for engine in BOTH {
        let mut reads = stream("reads");
        reads.pattern = Pattern::Sequential;
        reads.end.requests = Some(1024);
        let mut load = workload(vec![reads]);
        load.end = End::default();
        let figures = run_with(&load, &scratch, options(engine));
        assert_eq!(figures.streams[0].total_read_bytes, 4 << 20, "{engine:?}");
        assert!(figures.streams[0].errors.is_empty());
    }
}

#[test]
fn written_blocks_are_all_different() {
    for engine in BOTH {
        let scratch = Scratch::new(8 << 20);
        let mut writes = stream("writes");
        writes.mix = Mix {
            write: 1.0,
            trim: 0.0,
            zero: 0.0,
            rewrite: 0.0,
        };
        writes.pattern = Pattern::Sequential;
        (writes.workers, writes.depth) = (2, 3);
        writes.end.requests = Some(2048);
        let mut load = workload(vec![writes]);
        load.end = End::default();
        let figures = run_with(&load, &scratch, options(engine));
        assert_eq!(figures.streams[0].total_write_bytes, 8 << 20);
        let data = std::fs::read(&scratch.path).expect("data");
        let blocks: std::collections::HashSet<&[u8]> = data.chunks(4096).collect();
        // Workers go through their own halves and count together: the faster begins its half again.
        let untouched = data
            .chunks(4096)
            .filter(|block| block.iter().all(|&byte| byte == 0x5a))
            .count();
        assert_eq!(
            blocks.len(),
            2048 - untouched.saturating_sub(1),
            "{engine:?}"
        );
    }
}

#[test]
fn a_rewrite_reads_a_block_and_then_writes_it() {
    for engine in BOTH {
        for (workers, depth) in [(1, 1), (2, 8)] {
            let scratch = Scratch::new(4 << 20);
            let mut rewrites = stream("rewrites");
            rewrites.mix = Mix {
                rewrite: 1.0,
                ..Mix::READS
            };
            rewrites.pattern = Pattern::Sequential;
            rewrites.content = Content::Zero;
            (rewrites.workers, rewrites.depth) = (workers, depth);
            rewrites.passes = Some(1.0);
            rewrites.sync.fsync_every = 100;
            let mut load = workload(vec![rewrites]);
            load.end = End::default();
            let figures = run_with(&load, &scratch, options(engine));
            let stream = &figures.streams[0];
            let (read, write) = (
                stream.read.as_ref().unwrap(),
                stream.write.as_ref().unwrap(),
            );
            assert_eq!((read.requests, write.requests), (1024, 1024), "{engine:?}");
            assert_eq!(
                stream.fsync.as_ref().unwrap().requests,
                u64::from(1024 / workers / 100 * workers)
            );
            assert_eq!(stream.total_bytes, 8 << 20);
            // Every block was written.
            let now = std::fs::read(&scratch.path).unwrap();
            assert!(now.iter().all(|byte| *byte == 0), "{engine:?}");
        }
    }
}

#[test]
fn some_of_the_requests_rewrite() {
    let scratch = Scratch::new(4 << 20);
    for engine in BOTH {
        let mut seeks = stream("seeks");
        seeks.mix = Mix {
            rewrite: 0.1,
            ..Mix::READS
        };
        (seeks.workers, seeks.depth) = (3, 2);
        seeks.end.requests = Some(10_000);
        let mut load = workload(vec![seeks]);
        load.end = End::default();
        let figures = run_with(&load, &scratch, options(engine));
        let stream = &figures.streams[0];
        assert_eq!(stream.read.as_ref().unwrap().requests, 10_000);
        let share = stream.write.as_ref().unwrap().requests as f64 / 10_000.0;
        assert!((share - 0.1).abs() < 0.02, "{share}");
    }
}

#[test]
fn a_stream_that_is_done_ends_those_it_names_and_no_others() {
    let scratch = Scratch::new(4 << 20);
    for engine in BOTH {
        let mut short = stream("short");
        short.end.requests = Some(50);
        short.ends = vec!["endless".to_owned()];
        let endless = stream("endless");
        let mut own = stream("own");
        own.end.requests = Some(100_000);
        let mut load = workload(vec![short, endless, own]);
        load.end = End {
            time_ns: Some(60_000 * MS),
            ..End::default()
        };
        let figures = run_with(&load, &scratch, options(engine));
        assert_eq!(requests(&figures, 0), 50, "{engine:?}");
        assert_eq!(requests(&figures, 2), 100_000, "{engine:?}");
        assert!(figures.streams[1].measured_ns < 50_000 * MS);
        assert_eq!(figures.ended_by, EndedBy::Requests);
    }
}
