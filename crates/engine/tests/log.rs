//! The completion log against the figures of the same run.

mod common;

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;

use common::*;
use spindle_engine::{EngineChoice, NullTarget, Options, Run};
use spindle_measure::{OpKind, RunFigures};
use spindle_workload::{Arrival, Spacing};

/// Lines of the log as (column -> text).
fn lines(path: &std::path::Path) -> Vec<HashMap<String, String>> {
    let text = fs::read_to_string(path).expect("log");
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().expect("head").split(',').collect();
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            assert_eq!(fields.len(), names.len(), "{line}");
            names
                .iter()
                .zip(fields)
                .map(|(name, field)| ((*name).to_owned(), field.to_owned()))
                .collect()
        })
        .collect()
}

fn number(line: &HashMap<String, String>, name: &str) -> u64 {
    line[name].parse().expect("a number")
}

/// Holds what the log has of a kind of operation of a stream against its figures.
fn check(lines: &[HashMap<String, String>], run: &RunFigures, stream: usize, kind: OpKind) {
    let figures = &run.streams[stream];
    let of_kind = match kind {
        OpKind::Read => &figures.read,
        OpKind::Write => &figures.write,
        OpKind::Fsync => &figures.fsync,
        _ => unreachable!("not in these runs"),
    };
    let own: Vec<_> = lines
        .iter()
        .filter(|line| line["stream"] == figures.name && line["operation"] == kind.name())
        .collect();
    let of_kind = of_kind.as_ref().expect("figures");
    // Requests that complete after the end are in the log, but not in the figures.
    assert!(own.len() as u64 >= of_kind.requests);
    assert!(own.len() as u64 <= of_kind.requests + figures.late.requests);
    if figures.late.requests == 0 {
        assert_eq!(
            own.iter().map(|line| number(line, "bytes")).sum::<u64>(),
            of_kind.bytes
        );
        let longest = own.iter().map(|line| number(line, "latency_ns")).max();
        assert_eq!(longest, Some(of_kind.latency.max_ns));
        let sum: u64 = own.iter().map(|line| number(line, "latency_ns")).sum();
        let mean = sum as f64 / own.len() as f64;
        assert!((mean - of_kind.latency.mean_ns).abs() < 1e-6 * mean);
    }
}

fn log_file(scratch: &Scratch) -> (std::path::PathBuf, File) {
    let path = scratch.path.with_extension("log");
    let file = File::create(&path).expect("log");
    (path, file)
}

#[test]
fn every_completion_is_a_line_and_none_is_lost() {
    for engine in BOTH {
        let scratch = Scratch::new(8 << 20);
        let (path, file) = log_file(&scratch);
        let mut mixed = stream("mixed");
        mixed.mix.write = 0.5;
        mixed.depth = 4;
        mixed.workers = 2;
        mixed.sync.fsync_fraction = 0.2;
        mixed.end.requests = Some(2_000);
        let mut open = stream("open, loop");
        open.arrival = Arrival::Open {
            rate_iops: 2_000.0,
            spacing: Spacing::Poisson,
        };
        open.end.requests = Some(400);
        let mut load = workload(vec![mixed, open]);
        load.end.time_ns = None;
        let options = Options {
            log: Some(file.as_raw_fd()),
            ..options(engine)
        };
        let files = vec![vec![scratch.stream_file()], vec![scratch.stream_file()]];
        let run = Run::start(&load, files, options).expect("start");
        let run = run.finish().expect("figures");
        let text = fs::read_to_string(&path).expect("log");
        fs::write(&path, text.replace("\"open, loop\"", "open; loop")).expect("log");
        let lines = lines(&path);
        fs::remove_file(&path).expect("log");
        let log = run.log.clone().expect("figures of the log");
        assert_eq!((log.lost, &log.error), (0, &None));
        assert_eq!(log.completions, lines.len() as u64);
        for kind in [OpKind::Read, OpKind::Write, OpKind::Fsync] {
            check(&lines, &run, 0, kind);
        }
        let open: Vec<_> = lines
            .iter()
            .filter(|line| line["stream"] == "open; loop")
            .collect();
        assert_eq!(open.len(), 400);
        assert!(
            open.iter()
                .all(|line| number(line, "latency_ns") >= number(line, "service_ns"))
        );
        // Lines of one thread are in the order of time.
        let workers: Vec<_> = lines
            .iter()
            .filter(|line| line["stream"] == "mixed" && line["worker"] == "1")
            .collect();
        if engine == EngineChoice::IoUring {
            assert!(workers.is_sorted_by_key(|line| number(line, "time_ns")));
        }
        assert!(!workers.is_empty());
    }
}

/// /dev/full takes nothing: the load goes on, and all completions are reported as lost.
#[test]
fn a_log_that_cannot_be_written_costs_no_request_and_is_reported() {
    let full = OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("/dev/full");
    let mut load = workload(vec![stream("main")]);
    load.end.time_ns = None;
    load.end.requests = Some(100_000);
    let target = NullTarget {
        size_bytes: 1 << 30,
        service_ns: 0,
    };
    let options = Options {
        log: Some(full.as_raw_fd()),
        ..Options::default()
    };
    let run = Run::start_null(&load, target, options).expect("start");
    let run = run.finish().expect("figures");
    let log = run.log.clone().expect("figures of the log");
    assert_eq!(requests(&run, 0), 100_000);
    assert_eq!((log.completions, log.lost), (0, 100_000));
    assert!(log.error.expect("why").contains("No space left"));
}

/// A pipe that nobody reads: what does not fit into the rings is counted, and memory stays bounded.
#[test]
fn what_the_file_does_not_take_in_time_is_counted() {
    let (reader, writer) = std::io::pipe().expect("pipe");
    let mut load = workload(vec![stream("main")]);
    load.end.time_ns = None;
    load.end.requests = Some(1_000_000);
    let target = NullTarget {
        size_bytes: 1 << 30,
        service_ns: 0,
    };
    let options = Options {
        log: Some(writer.as_raw_fd()),
        ..Options::default()
    };
    let run = Run::start_null(&load, target, options).expect("start");
    // The load is over long before anybody reads.
    while run
        .progress()
        .streams
        .iter()
        .any(|stream| stream.reads < 1_000_000)
    {
        assert!(!run.wait(std::time::Duration::from_millis(1)));
    }
    let read = std::thread::spawn(move || {
        let mut text = Vec::new();
        std::io::copy(&mut { reader }, &mut text).expect("read");
        text
    });
    let run = run.finish().expect("figures");
    drop(writer);
    let text = read.join().expect("reader");
    let log = run.log.clone().expect("figures of the log");
    assert!(log.lost > 0);
    assert_eq!(log.completions + log.lost, 1_000_000);
    let lines = text.iter().filter(|&&byte| byte == b'\n').count() as u64;
    assert_eq!(lines, log.completions + 1);
}
