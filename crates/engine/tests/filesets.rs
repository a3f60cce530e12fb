//! Streams over several files.

mod common;

use std::os::unix::fs::FileExt;

use common::*;
use spindle_engine::{EngineChoice, NullTarget, Options, Run, StreamFile};
use spindle_measure::{EndedBy, RunFigures};
use spindle_workload::*;

const FILE: u64 = 64 << 10;

/// A workload of one set of files of 64 KiB, ended by `requests` requests of 4 KiB.
fn over(files: u32, fill: bool, requests: u64, mut stream: Stream) -> Workload {
    stream.files = Some(StreamFiles {
        set: "set".to_owned(),
        service: FileService::RoundRobin,
        requests: 1,
    });
    let mut load = workload(vec![stream]);
    load.filesets = vec![FileSet {
        name: "set".to_owned(),
        nrfiles: files,
        each: Each::Stream,
        files,
        filesize: FileSize::Fixed { bytes: FILE },
        fill,
    }];
    load.end = End {
        requests: Some(requests),
        ..End::default()
    };
    load
}

fn writer() -> Stream {
    let mut writes = stream("writes");
    writes.mix.write = 1.0;
    writes.pattern = Pattern::Sequential;
    writes
}

fn scratches(count: usize, bytes: u64) -> Vec<Scratch> {
    (0..count).map(|_| Scratch::new(bytes)).collect()
}

fn described(scratches: &[Scratch]) -> Vec<StreamFile> {
    let files = scratches.iter().map(|scratch| StreamFile {
        size_bytes: FILE,
        ..scratch.stream_file()
    });
    files.collect()
}

fn run(load: &Workload, scratches: &[Scratch], engine: EngineChoice) -> RunFigures {
    let files = load.streams.iter().map(|_| described(scratches)).collect();
    let run = Run::start(load, files, options(engine)).expect("start");
    run.finish().expect("figures")
}

/// Content of a file: its length, and the number of blocks of 4 KiB that are not as `Scratch` made them.
fn written(scratch: &Scratch) -> (u64, usize) {
    let length = scratch.file.metadata().expect("metadata").len();
    let mut blocks = 0;
    for block in 0..length / 4096 {
        let mut bytes = [0; 4096];
        scratch
            .file
            .read_exact_at(&mut bytes, block * 4096)
            .expect("read");
        blocks += usize::from(bytes.iter().any(|&byte| byte != 0x5a));
    }
    (length, blocks)
}

#[test]
fn writes_reach_each_file_and_nothing_is_written_twice() {
    for engine in BOTH {
        for depth in [1, 8] {
            let scratches = scratches(5, FILE);
            let mut writes = writer();
            writes.depth = depth;
            // A quarter of each file.
            let figures = run(&over(5, true, 20, writes), &scratches, engine);
            assert_eq!(figures.ended_by, EndedBy::Requests);
            for scratch in &scratches {
                assert_eq!(written(scratch), (FILE, 4), "{engine:?}, depth {depth}");
            }
        }
    }
}

#[test]
fn files_that_grow_reach_the_length_that_was_declared() {
    for engine in BOTH {
        let scratches = scratches(3, 0);
        run(&over(3, false, 48, writer()), &scratches, engine);
        for scratch in &scratches {
            assert_eq!(written(scratch), (FILE, 16), "{engine:?}");
        }
    }
}

#[test]
fn each_worker_writes_its_own_files() {
    for engine in BOTH {
        let scratches = scratches(6, FILE);
        let mut writes = writer();
        writes.workers = 3;
        let mut load = over(6, true, 96, writes);
        load.filesets[0].each = Each::Worker;
        load.filesets[0].nrfiles = 2;
        load.end = End {
            time_ns: Some(300 * MS),
            ..End::default()
        };
        run(&load, &scratches, engine);
        let blocks: usize = scratches.iter().map(|scratch| written(scratch).1).sum();
        assert_eq!(blocks, 6 * 16, "{engine:?}");
    }
}

#[test]
fn a_read_of_a_file_that_nothing_writes_is_refused() {
    let scratches = scratches(2, 0);
    let load = over(2, false, 10, stream("reads"));
    let error = Run::start(&load, vec![described(&scratches)], Options::default())
        .expect_err("must be refused")
        .to_string();
    assert!(
        error.contains("file 1") && error.contains("0 of 65536 bytes") && error.contains("fill"),
        "{error}"
    );
}

#[test]
fn what_an_earlier_load_wrote_can_be_read() {
    for engine in BOTH {
        let scratches = scratches(2, 0);
        run(&over(2, false, 32, writer()), &scratches, engine);
        let figures = run(&over(2, false, 32, stream("reads")), &scratches, engine);
        assert_eq!(figures.ended_by, EndedBy::Requests);
        assert_eq!(requests(&figures, 0), 32);
    }
}

#[test]
fn a_failure_names_the_file() {
    for engine in BOTH {
        let scratches = scratches(3, FILE);
        scratches[1].file.set_len(0).expect("cut");
        let figures = run(&over(3, true, 1000, stream("reads")), &scratches, engine);
        let EndedBy::Error { errno, file, .. } = figures.ended_by else {
            panic!("{:?}", figures.ended_by);
        };
        assert_eq!(errno, libc::ENODATA);
        assert_eq!(file.as_deref(), scratches[1].path.to_str(), "{engine:?}");
    }
}

#[test]
fn the_end_sync_is_made_of_the_files_that_were_written_and_no_others() {
    for engine in BOTH {
        let scratches = scratches(4, FILE);
        let mut writes = writer();
        writes.workers = 2;
        writes.sync.end_fsync = true;
        let mut load = over(4, true, 8, writes);
        let files = load.streams[0].files.as_mut().expect("files");
        files.service = FileService::Sequential;
        let figures = run(&load, &scratches, engine);
        let fsync = figures.streams[0].fsync.as_ref().expect("the end sync");
        // The workers begin with a file each; one alone may have made all requests.
        assert!((1..=2).contains(&fsync.requests), "{}", fsync.requests);
        assert_eq!(fsync.bytes, 0);
    }
}

#[test]
fn fdatasync_follows_each_kth_write() {
    for engine in BOTH {
        let scratches = scratches(2, FILE);
        let mut writes = writer();
        writes.sync.fdatasync_every = 4;
        let figures = run(&over(2, true, 32, writes), &scratches, engine);
        let fsync = figures.streams[0].fsync.as_ref().expect("syncs");
        assert_eq!(fsync.requests, 8, "{engine:?}");
    }
}

#[test]
fn another_number_of_files_is_refused() {
    let scratches = scratches(2, FILE);
    let load = over(3, true, 10, stream("reads"));
    let error = Run::start(&load, vec![described(&scratches)], Options::default())
        .expect_err("must be refused")
        .to_string();
    assert!(error.contains("uses 3 files but 2"), "{error}");
}

#[test]
fn a_request_larger_than_a_file_is_refused_and_the_file_named() {
    let scratches = scratches(2, FILE);
    let mut reads = stream("reads");
    reads.size = Size::Fixed { bytes: 1 << 20 };
    let error = Run::start(
        &over(2, true, 10, reads),
        vec![described(&scratches)],
        Options::default(),
    )
    .expect_err("must be refused")
    .to_string();
    assert!(error.contains("file 1 of `set`"), "{error}");
}

#[test]
fn the_null_target_stands_for_files_too() {
    let target = NullTarget {
        size_bytes: 1 << 30,
        service_ns: 0,
    };
    let load = over(1000, true, 100_000, stream("reads"));
    let run = Run::start_null(&load, target, Options::default()).expect("start");
    assert_eq!(requests(&run.finish().expect("figures"), 0), 100_000);
}

#[test]
fn the_back_end_is_chosen_by_trial_on_the_files_themselves() {
    let scratches = scratches(3, FILE);
    let figures = run(
        &over(3, true, 100, stream("reads")),
        &scratches,
        EngineChoice::Auto,
    );
    assert_eq!(figures.ended_by, EndedBy::Requests);
    assert!(!figures.generator.reason.is_empty());
}
