//! A stream that goes through a mapping: what it moves, what it makes durable, and that a page which cannot be brought in
//! is an I/O error, not the end of the process.

mod common;

use std::os::unix::fs::FileExt;

use common::*;
use spindle_engine::{EngineChoice, EngineError, Options, Run};
use spindle_measure::EndedBy;
use spindle_workload::{End, Mix, Pattern, Stream};

fn mapped(name: &str, write: f64) -> Stream {
    Stream {
        mapped: true,
        mix: Mix {
            write,
            ..Mix::READS
        },
        ..stream(name)
    }
}

#[test]
fn what_is_written_through_a_mapping_is_in_the_file_and_reads_are_those_of_the_file() {
    let scratch = Scratch::new((1 << 20) + 1000);
    let mut writes = mapped("writes", 1.0);
    writes.pattern = Pattern::Sequential;
    writes.passes = Some(1.0);
    (writes.workers, writes.depth) = (2, 2);
    writes.sync.fsync_every = 8;
    let mut load = workload(vec![writes]);
    load.end = End::default();
    let figures = run_with(&load, &scratch, options(EngineChoice::Auto));
    assert_eq!(figures.generator.engine, "mmap");
    assert_eq!(requests(&figures, 0), 256);
    let syncs = figures.streams[0].fsync.as_ref().expect("fsyncs").requests;
    assert!((28..=32).contains(&syncs), "{syncs} of 32");
    let mut content = vec![0; 1 << 20];
    scratch.file.read_exact_at(&mut content, 0).expect("read");
    let untouched = content
        .chunks(4096)
        .filter(|block| block.iter().all(|&byte| byte == 0x5a));
    assert_eq!(untouched.count(), 0);
    let mut rest = vec![0; 1000];
    scratch
        .file
        .read_exact_at(&mut rest, 1 << 20)
        .expect("read");
    assert!(
        rest.iter().all(|&byte| byte == 0x5a),
        "nothing beyond the region"
    );
}

#[test]
fn a_file_that_is_cut_meanwhile_gives_errors_with_their_places_and_the_process_goes_on() {
    for (write, op) in [(0.0, "read"), (1.0, "write")] {
        let scratch = Scratch::new(1 << 20);
        let load = workload(vec![mapped("stream", write)]);
        let files = vec![vec![scratch.stream_file()]];
        let run = Run::start(&load, files, options(EngineChoice::Auto)).expect("start");
        wait_for_requests(&run);
        scratch.file.set_len(512 << 10).expect("cut");
        let figures = run.finish().expect("figures");
        let EndedBy::Error {
            errno,
            op: asked,
            offset,
            len,
            ..
        } = figures.ended_by
        else {
            panic!("{:?}", figures.ended_by);
        };
        assert_eq!((errno, asked.as_str(), len), (libc::EIO, op, 4096));
        assert!(offset >= 512 << 10);
    }
}

#[test]
fn errors_that_are_tolerated_stay_errors_and_pages_that_come_back_are_read_again() {
    let scratch = Scratch::new(1 << 20);
    let mut load = workload(vec![mapped("reads", 0.0)]);
    load.end.time_ns = Some(3_600_000 * MS);
    let options = Options {
        tolerate_errors: true,
        ..Options::default()
    };
    let files = vec![vec![scratch.stream_file()]];
    let run = Run::start(&load, files, options).expect("start");
    wait_for_requests(&run);
    scratch.file.set_len(512 << 10).expect("cut");
    wait_until(&run, |done| done.errors > 0);
    scratch.file.set_len(1 << 20).expect("grow");
    let at_growth = run.progress().streams[0].clone();
    wait_until(&run, |done| {
        done.reads > at_growth.reads + 3 * at_growth.errors
    });
    run.stop();
    let figures = run.finish().expect("figures");
    assert_eq!(figures.ended_by, EndedBy::Stopped);
    let errors = &figures.streams[0].errors[0];
    assert_eq!(errors.errno, libc::EIO);
    assert!(errors.count > 0);
    // Half of what was asked for failed while the file was short; before and afterwards nothing did.
    assert!(requests(&figures, 0) > 2 * errors.count, "{errors:?}");
}

#[test]
fn a_file_that_grows_and_polling_are_refused() {
    let scratch = Scratch::new(1 << 20);
    let load = workload(vec![mapped("writes", 1.0)]);
    let mut file = scratch.stream_file();
    file.size_bytes *= 2;
    let refused = Run::start(&load, vec![vec![file]], Options::default()).expect_err("short");
    assert!(matches!(refused, EngineError::Workload { ref why, .. } if why.contains("mapping")));
    let options = Options {
        sqpoll: true,
        ..Options::default()
    };
    let files = vec![vec![scratch.stream_file()]];
    let refused = Run::start(&load, files, options).expect_err("polled");
    assert!(matches!(refused, EngineError::Workload { ref why, .. } if why.contains("polled")));
}
