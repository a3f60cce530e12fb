//! Failures of the target: figures up to then are kept, nothing hangs.

mod common;

use std::fs::File;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use common::*;
use spindle_engine::{EngineChoice, EngineError, NullTarget, Options, Run, StreamFile};
use spindle_measure::EndedBy;
use spindle_workload::{Mix, Pattern, Priority, PriorityClass};

fn writes(share: f64) -> Mix {
    Mix {
        write: share,
        trim: 0.0,
        zero: 0.0,
        rewrite: 0.0,
    }
}

#[test]
fn a_file_cut_short_ends_the_run_with_the_place() {
    for engine in BOTH {
        let scratch = Scratch::new(1 << 20);
        let mut reads = stream("reads");
        reads.pattern = Pattern::Sequential;
        scratch.file.set_len(512 << 10).expect("cut");
        let figures = run_with(&workload(vec![reads]), &scratch, options(engine));
        assert_eq!(requests(&figures, 0), 128, "{engine:?}");
        let place = EndedBy::Error {
            errno: libc::ENODATA,
            op: "read".to_owned(),
            file: None,
            offset: 512 << 10,
            len: 4096,
        };
        assert_eq!(figures.ended_by, place);
        let error = &figures.streams[0].errors[0];
        assert_eq!(
            (error.errno, error.count, error.first_offset),
            (libc::ENODATA, 1, 512 << 10)
        );
    }
}

#[test]
fn a_short_read_is_continued_and_never_counted_as_whole() {
    for engine in BOTH {
        let scratch = Scratch::new(1 << 20);
        let mut reads = stream("reads");
        reads.pattern = Pattern::Sequential;
        // The last request has half its bytes: it is read on, and then there is nothing.
        scratch.file.set_len((512 << 10) + 2048).expect("cut");
        let figures = run_with(&workload(vec![reads]), &scratch, options(engine));
        assert_eq!(requests(&figures, 0), 128, "{engine:?}");
        assert_eq!(figures.streams[0].total_read_bytes, 512 << 10);
        assert_eq!(figures.streams[0].errors[0].errno, libc::ENODATA);
    }
}

#[test]
fn tolerated_errors_are_counted_beside_what_works() {
    for engine in BOTH {
        let scratch = Scratch::new(1 << 20);
        let mut reads = stream("reads");
        reads.depth = 4;
        scratch.file.set_len(512 << 10).expect("cut");
        let mut options = options(engine);
        options.tolerate_errors = true;
        let figures = run_with(&workload(vec![reads]), &scratch, options);
        assert_eq!(figures.ended_by, EndedBy::Time, "{engine:?}");
        let failed = figures.streams[0].errors[0].count as f64;
        let done = requests(&figures, 0) as f64;
        // Half of the places are gone.
        assert!(
            (0.9..1.1).contains(&(failed / done)),
            "{failed} failed, {done} done"
        );
    }
}

#[test]
fn a_full_file_system_ends_the_run() {
    let full = open(std::path::Path::new("/dev/full"), 0);
    for engine in BOTH {
        let mut load = stream("writes");
        load.mix = writes(1.0);
        let file = StreamFile {
            fd: full.as_raw_fd(),
            size_bytes: 1 << 20,
            block_bytes: 1,
            memory_align: 512,
        };
        let run =
            Run::start(&workload(vec![load]), vec![vec![file]], options(engine)).expect("start");
        let figures = run.finish().expect("figures");
        let EndedBy::Error { errno, op, .. } = figures.ended_by else {
            panic!("{engine:?}: ended by {:?}", figures.ended_by);
        };
        assert_eq!((errno, op.as_str()), (libc::ENOSPC, "write"), "{engine:?}");
    }
}

#[test]
fn an_error_of_one_stream_ends_all() {
    let scratch = Scratch::new(1 << 20);
    let short = Scratch::new(64 << 10);
    short.file.set_len(0).expect("cut");
    let mut load = workload(vec![stream("good"), stream("bad")]);
    load.end.time_ns = Some(60_000 * MS);
    let files = vec![vec![scratch.stream_file()], vec![short.stream_file()]];
    let run = Run::start(&load, files, options(EngineChoice::IoUring)).expect("start");
    let figures = run.finish().expect("figures");
    assert!(matches!(
        figures.ended_by,
        EndedBy::Error {
            errno: libc::ENODATA,
            ..
        }
    ));
    assert!(
        figures.elapsed_ns < 60_000 * MS,
        "{} ns",
        figures.elapsed_ns
    );
}

#[test]
fn requests_that_never_end_are_reported_and_left_behind() {
    // A server that takes a minute a request.
    let target = NullTarget {
        size_bytes: 1 << 30,
        service_ns: 60_000 * MS,
    };
    let mut reads = stream("reads");
    reads.depth = 3;
    let mut options = Options::default();
    options.stop_grace_ns = 200 * MS;
    let load = workload(vec![reads]);
    undisturbed(|| {
        let run = Run::start_null(&load, target, options.clone()).expect("start");
        // Time to issue them, of which nothing shows before they end.
        assert!(!run.wait(Duration::from_millis(100)));
        let asked = Instant::now();
        run.stop();
        let figures = run.finish().expect("figures");
        assert!(asked.elapsed() < Duration::from_secs(60), "it waited");
        assert_eq!(figures.ended_by, EndedBy::Stopped);
        match figures.streams[0].errors.first() {
            Some(error) if (error.errno, error.count) == (libc::ETIMEDOUT, 3) => Ok(()),
            error => Err(format!("{error:?}")),
        }
    });
}

#[test]
fn a_timed_run_gives_up_after_its_grace() {
    let target = NullTarget {
        size_bytes: 1 << 30,
        service_ns: 60_000 * MS,
    };
    let mut options = Options::default();
    options.grace_ns = 200 * MS;
    let run = Run::start_null(&workload(vec![stream("reads")]), target, options).expect("start");
    let figures = run.finish().expect("figures");
    let EndedBy::Error { errno, op, len, .. } = figures.ended_by else {
        panic!("ended by {:?}", figures.ended_by);
    };
    assert_eq!((errno, op.as_str(), len), (libc::ETIMEDOUT, "read", 4096));
}

#[test]
fn what_cannot_run_is_refused_in_one_line() {
    let scratch = Scratch::new(1 << 20);
    let refused =
        |load: &spindle_workload::Workload, files: Vec<Vec<StreamFile>>, options: Options| {
            let error = Run::start(load, files, options).expect_err("must be refused");
            let text = error.to_string();
            assert!(!text.contains('\n'), "{text}");
            (error, text)
        };
    let one = workload(vec![stream("reads")]);

    let (error, _) = refused(&one, vec![], Options::default());
    assert_eq!(
        error,
        EngineError::FileCount {
            streams: 1,
            files: 0
        }
    );

    let mut closed = scratch.stream_file();
    closed.fd = 1_000_000;
    let (_, text) = refused(&one, vec![vec![closed]], Options::default());
    assert!(
        text.contains("reads") && text.contains("Bad file descriptor"),
        "{text}"
    );

    let read_only = File::open(&scratch.path).expect("open");
    let mut load = stream("writes");
    load.mix = writes(0.5);
    let mut file = scratch.stream_file();
    file.fd = read_only.as_raw_fd();
    let (_, text) = refused(&workload(vec![load]), vec![vec![file]], Options::default());
    assert!(text.contains("open for reading only"), "{text}");

    let mut large = stream("large");
    large.size = spindle_workload::Size::Fixed { bytes: 2 << 20 };
    let (_, text) = refused(
        &workload(vec![large]),
        vec![vec![scratch.stream_file()]],
        Options::default(),
    );
    assert!(text.starts_with("stream \"large\":"), "{text}");

    let mut options = Options::default();
    options.cpus = vec![4_000];
    let (error, _) = refused(&one, vec![vec![scratch.stream_file()]], options);
    assert!(
        matches!(error, EngineError::Cpu { cpu: 4_000, .. }),
        "{error}"
    );

    let mut options = Options::default();
    options.iopoll = true;
    let (_, text) = refused(&one, vec![vec![scratch.stream_file()]], options);
    assert!(text.contains("direct I/O"), "{text}");
}

#[test]
fn priorities_are_set_or_refused() {
    let scratch = Scratch::new(1 << 20);
    for (class, level) in [(PriorityClass::BestEffort, 7), (PriorityClass::Idle, 0)] {
        for engine in BOTH {
            let mut reads = stream("reads");
            reads.priority = Some(Priority { class, level });
            let figures = run_with(&workload(vec![reads]), &scratch, options(engine));
            assert!(requests(&figures, 0) > 0, "{engine:?} {class:?}");
            assert!(figures.streams[0].errors.is_empty());
        }
    }
    let mut reads = stream("reads");
    reads.priority = Some(Priority {
        class: PriorityClass::Realtime,
        level: 0,
    });
    let run = Run::start(
        &workload(vec![reads]),
        vec![vec![scratch.stream_file()]],
        Options::default(),
    );
    match run {
        Ok(run) => assert!(is_root() && requests(&run.finish().expect("figures"), 0) > 0),
        Err(error) => {
            assert!(!is_root(), "{error}");
            assert!(error.to_string().contains("CAP_SYS_NICE"), "{error}");
        }
    }
}
