//! Verified loads: clean data is found right, however it is written and read; wrong data is found and named.

mod common;

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use common::*;
use spindle_engine::{EngineChoice, ExpectedContent, Options, ReadBack, Run};
use spindle_measure::{CheckFigures, EndedBy, ReadBackFigures, VerificationFigures};
use spindle_workload::*;

const BLOCK: u64 = 4096;

fn verified(write: f64, depth: u32) -> Stream {
    let mut stream = stream("main");
    stream.verify = true;
    stream.mix.write = write;
    stream.depth = depth;
    stream
}

/// The load, run to its end.
fn run(
    workload: &Workload,
    scratch: &Scratch,
    engine: EngineChoice,
    before: Option<Arc<ExpectedContent>>,
) -> Run {
    let options = Options {
        engine,
        ..Options::default()
    };
    let files = vec![vec![scratch.stream_file()]; workload.streams.len()];
    let run = Run::start_after(workload, files, options, before).expect("a run");
    run.finish().expect("figures");
    run
}

fn found(run: &Run) -> VerificationFigures {
    run.finish()
        .expect("figures")
        .verification
        .expect("it was verified")
}

fn read_back(run: &Run) -> ReadBackFigures {
    ReadBack::start(run.written().expect("it was verified"), None)
        .expect("a read-back")
        .finish()
}

fn kinds(figures: &CheckFigures) -> BTreeMap<String, u64> {
    figures
        .faults
        .iter()
        .map(|fault| (fault.kind.clone(), fault.blocks))
        .collect()
}

fn requests(count: u64) -> End {
    End {
        requests: Some(count),
        ..End::default()
    }
}

fn limited(streams: Vec<Stream>, count: u64) -> Workload {
    let mut workload = workload(streams);
    workload.end = requests(count);
    workload
}

#[test]
fn clean_data_is_right_whatever_writes_and_reads_it() {
    for engine in [EngineChoice::IoUring, EngineChoice::Pread] {
        for (write, depth, workers) in [(1.0, 1, 1), (0.5, 8, 1), (0.3, 4, 3)] {
            let scratch = Scratch::new(1 << 20);
            let mut stream = verified(write, depth);
            stream.workers = workers;
            let run = run(&limited(vec![stream], 20_000), &scratch, engine, None);
            let during = found(&run);
            assert_eq!(during.block_bytes, BLOCK);
            assert!(during.during_load.faults.is_empty(), "{during:?}");
            assert!(
                write == 1.0 || during.during_load.blocks > 1000,
                "{during:?}"
            );
            let after = read_back(&run);
            assert!(after.complete && after.found.faults.is_empty(), "{after:?}");
            assert!(
                after.expected > 250 && after.found.blocks == after.expected,
                "{after:?}"
            );
        }
    }
}

#[test]
fn sizes_patterns_trims_and_zeroes_in_one_load_leave_clean_data() {
    let scratch = Scratch::new(2 << 20);
    let mut mixed = verified(0.4, 8);
    mixed.size = Size::Range {
        min: 512,
        max: 16384,
        step: 512,
    };
    mixed.mix.trim = 0.1;
    mixed.mix.zero = 0.2;
    mixed.workers = 2;
    let mut log = verified(1.0, 4);
    log.name = "log".to_owned();
    log.pattern = Pattern::Sequential;
    log.size = Size::Fixed { bytes: 65536 };
    let mut reader = verified(0.0, 4);
    reader.name = "reader".to_owned();
    reader.verify = false; // it takes part all the same: the file is one that is verified
    let run = run(
        &limited(vec![mixed, log, reader], 30_000),
        &scratch,
        EngineChoice::IoUring,
        None,
    );
    let during = found(&run);
    assert_eq!(during.block_bytes, 512);
    assert!(
        during.during_load.faults.is_empty() && during.during_load.blocks > 1000,
        "{during:?}"
    );
    assert!(
        during.delayed_writes > 0,
        "writes of 64 KiB must have met others: {during:?}"
    );
    let after = read_back(&run);
    assert!(
        after.complete && after.found.faults.is_empty() && after.found.blocks > 1000,
        "{after:?}"
    );
}

#[test]
fn many_writers_of_one_block_take_turns() {
    let scratch = Scratch::new(BLOCK);
    for engine in [EngineChoice::IoUring, EngineChoice::Pread] {
        let mut stream = verified(0.7, 8);
        stream.workers = 2;
        let run = run(&limited(vec![stream], 2000), &scratch, engine, None);
        let during = found(&run);
        assert!(during.during_load.faults.is_empty(), "{during:?}");
        // A ring is given eight at once; threads may happen never to meet.
        assert!(
            during.delayed_writes > 0 || engine == EngineChoice::Pread,
            "{during:?}"
        );
        assert_eq!(read_back(&run).found.blocks, 1);
    }
}

/// Writes everything three times, the last of it kept beside.
fn written_thrice(scratch: &Scratch) -> (Run, Vec<Vec<u8>>) {
    let mut stream = verified(1.0, 1);
    stream.pattern = Pattern::Sequential;
    let mut written = None;
    let mut copies = Vec::new();
    let blocks = scratch.bytes / BLOCK;
    loop {
        let run = run(
            &limited(vec![stream.clone()], blocks),
            scratch,
            EngineChoice::Pread,
            written,
        );
        let mut copy = vec![0; scratch.bytes as usize];
        scratch.file.read_exact_at(&mut copy, 0).expect("read");
        copies.push(copy);
        if copies.len() == 3 {
            return (run, copies);
        }
        written = run.written();
    }
}

#[test]
fn planted_faults_are_found_and_called_by_their_names() {
    let scratch = Scratch::new(512 * BLOCK);
    let (run, copies) = written_thrice(&scratch);
    assert!(kinds(&read_back(&run).found).is_empty());
    let write = |bytes: &[u8], at: u64| scratch.file.write_all_at(bytes, at).expect("write");
    let part = |copy: usize, at: u64, len: u64| &copies[copy][at as usize..(at + len) as usize];
    let mut planted: BTreeMap<String, u64> = BTreeMap::new();
    let mut plant = |kind: &str, blocks| *planted.entry(kind.to_owned()).or_default() += blocks;
    for block in (0..500).step_by(10) {
        let at = |n: u64| (block + n) * BLOCK;
        write(
            &[part(2, at(0) + 100 * block % 4096, 1)[0] ^ 16],
            at(0) + 100 * block % 4096,
        );
        plant("corrupt", 1);
        write(part(block as usize / 10 % 2, at(1), BLOCK), at(1));
        plant("stale", 1);
        let cut = 512 * (block / 10 % 7 + 1);
        write(part(1, at(2), cut), at(2));
        plant("torn", 1);
        write(part(2, at(4), BLOCK), at(3));
        write(part(2, at(3), BLOCK), at(4));
        plant("misplaced", 2);
        write(&[0; 4096], at(5));
        write(&[0; 1024], at(6) + 512);
        plant("zeroed", 2);
        write(&vec![0xa5; 4096], at(7));
        plant("never-written", 1);
    }
    let figures = read_back(&run);
    assert_eq!(kinds(&figures.found), planted);
    let torn = &figures
        .found
        .faults
        .iter()
        .find(|fault| fault.kind == "torn")
        .expect("torn")
        .first;
    assert_eq!(torn.len(), 10);
    assert_eq!(
        (torn[0].offset, torn[0].description.as_str()),
        (2 * BLOCK, "torn: 1 sector from sector 0 on, generation 2")
    );

    // The reads of a load find the same, and nothing else.
    let mut reader = verified(0.0, 4);
    reader.pattern = Pattern::Sequential;
    let reads = run_after(&reader, &scratch, &run);
    assert_eq!(kinds(&found(&reads).during_load), planted);
}

fn run_after(stream: &Stream, scratch: &Scratch, before: &Run) -> Run {
    run(
        &limited(vec![stream.clone()], 512),
        scratch,
        EngineChoice::IoUring,
        before.written(),
    )
}

#[test]
fn the_first_fault_ends_a_run_that_asks_for_it() {
    let scratch = Scratch::new(512 * BLOCK);
    let (before, _) = written_thrice(&scratch);
    scratch
        .file
        .write_all_at(&[1], 100 * BLOCK + 7)
        .expect("write");
    let mut reader = verified(0.0, 1);
    reader.verify_fatal = true;
    reader.pattern = Pattern::Sequential;
    let mut forever = limited(vec![reader], 1 << 40);
    forever.end.time_ns = Some(120_000 * MS);
    let run = run(&forever, &scratch, EngineChoice::Pread, before.written());
    let ended = run.finish().expect("figures").ended_by;
    let EndedBy::Error { op, offset, .. } = ended else {
        panic!("{ended:?}");
    };
    assert_eq!((op.as_str(), offset), ("verify", 100 * BLOCK));
}

#[test]
fn a_saved_state_is_read_back_from_the_file_alone() {
    let scratch = Scratch::new(512 * BLOCK);
    let (run, copies) = written_thrice(&scratch);
    let state = run.written().expect("verified").to_state(&[]);
    drop(run);
    let written = Arc::new(ExpectedContent::from_state(&state).expect("a state"));
    let back = |files| {
        ReadBack::start(Arc::clone(&written), files)
            .expect("a read-back")
            .finish()
    };
    let files = [scratch.stream_file()];
    let figures = back(Some(&files[..]));
    assert!(figures.complete && figures.found.faults.is_empty() && figures.expected == 512);
    scratch
        .file
        .write_all_at(&copies[0][..4096], 0)
        .expect("write");
    scratch.file.set_len(500 * BLOCK).expect("cut");
    let figures = back(Some(&files[..]));
    let wanted = BTreeMap::from([("stale".to_owned(), 1), ("unreadable".to_owned(), 12)]);
    assert_eq!(kinds(&figures.found), wanted);
}

#[test]
fn what_cannot_be_verified_is_refused() {
    let scratch = Scratch::new(1 << 20);
    let mut stream = verified(1.0, 1);
    stream.size = Size::Fixed { bytes: 1000 };
    let workload = workload(vec![stream]);
    let refusal = Run::start(
        &workload,
        vec![vec![scratch.stream_file()]],
        Options::default(),
    );
    let text = refusal.expect_err("1000 bytes are no blocks").to_string();
    assert!(text.contains("multiples of 512 bytes"), "{text}");
    let null = spindle_engine::NullTarget {
        size_bytes: 1 << 20,
        service_ns: 0,
    };
    let text = Run::start_null(&workload, null, Options::default())
        .expect_err("it stores nothing")
        .to_string();
    assert!(text.contains("stores no data"), "{text}");
}

#[test]
fn each_file_of_a_set_is_verified_on_its_own() {
    let scratches: Vec<Scratch> = (0..3).map(|_| Scratch::new(1 << 20)).collect();
    let mut stream = verified(0.6, 4);
    stream.files = Some(StreamFiles {
        set: "set".to_owned(),
        service: FileService::RoundRobin,
        requests: 1,
    });
    let mut load = limited(vec![stream], 20_000);
    load.filesets = vec![FileSet {
        name: "set".to_owned(),
        nrfiles: 3,
        each: Each::Stream,
        files: 3,
        filesize: FileSize::Fixed { bytes: 1 << 20 },
        fill: true,
    }];
    let files = scratches.iter().map(Scratch::stream_file).collect();
    let run = Run::start(&load, vec![files], Options::default()).expect("a run");
    let during = found(&run);
    assert!(
        during.during_load.faults.is_empty() && during.during_load.blocks > 1000,
        "{during:?}"
    );
    assert_eq!(kinds(&read_back(&run).found), BTreeMap::new());
    // The same block of two files exchanged.
    let mut blocks = [vec![0; 4096], vec![0; 4096]];
    scratches[0]
        .file
        .read_exact_at(&mut blocks[0], 8192)
        .expect("read");
    scratches[2]
        .file
        .read_exact_at(&mut blocks[1], 8192)
        .expect("read");
    scratches[0]
        .file
        .write_all_at(&blocks[1], 8192)
        .expect("write");
    scratches[2]
        .file
        .write_all_at(&blocks[0], 8192)
        .expect("write");
    let after = read_back(&run).found;
    assert_eq!(kinds(&after), BTreeMap::from([("misplaced".to_owned(), 2)]));
    let places: Vec<(u32, u64)> = after.faults[0]
        .first
        .iter()
        .map(|place| (place.file, place.offset))
        .collect();
    assert_eq!(places, [(0, 8192), (2, 8192)]);
}
