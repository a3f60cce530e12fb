//! When data is forced to the medium.

mod common;

use common::*;
use spindle_measure::little;
use spindle_workload::{End, Mix, Stream};

fn writer() -> Stream {
    let mut writes = stream("writes");
    writes.mix = Mix {
        write: 1.0,
        trim: 0.0,
        zero: 0.0,
        rewrite: 0.0,
    };
    writes.end = End {
        requests: Some(200),
        ..End::default()
    };
    writes
}

fn without_end(streams: Vec<Stream>) -> spindle_workload::Workload {
    let mut load = workload(streams);
    load.end = End::default();
    load
}

#[test]
fn an_fsync_follows_every_kth_write() {
    let scratch = Scratch::new(1 << 20);
    for engine in BOTH {
        let mut writes = writer();
        writes.sync.fsync_every = 10;
        let figures = run_with(&without_end(vec![writes]), &scratch, options(engine));
        let fsync = figures.streams[0].fsync.as_ref().expect("fsyncs");
        assert_eq!(fsync.requests, 20, "{engine:?}");
        assert_eq!(fsync.bytes, 0);
        assert_eq!(
            figures.streams[0].write.as_ref().expect("writes").requests,
            200
        );
    }
}

#[test]
fn a_share_of_writes_is_synced() {
    let scratch = Scratch::new(1 << 20);
    for engine in BOTH {
        let mut writes = writer();
        writes.depth = 4;
        writes.sync.fsync_fraction = 0.25;
        let figures = run_with(&without_end(vec![writes]), &scratch, options(engine));
        let synced = figures.streams[0].fsync.as_ref().expect("fsyncs").requests;
        assert!((25..=75).contains(&synced), "{engine:?}: {synced}");
    }
}

#[test]
fn the_end_sync_is_inside_the_measured_time() {
    let scratch = Scratch::new(1 << 20);
    for engine in BOTH {
        let mut writes = writer();
        writes.workers = 2;
        writes.sync.end_fsync = true;
        let figures = run_with(&without_end(vec![writes]), &scratch, options(engine));
        let stream = &figures.streams[0];
        let fsync = stream.fsync.as_ref().expect("the end sync");
        assert_eq!(
            fsync.requests, 1,
            "one for the stream, not one for a worker"
        );
        assert!(stream.measured_ns >= fsync.latency.max_ns);
        assert_eq!(stream.write.as_ref().expect("writes").requests, 200);
    }
}

#[test]
fn a_timed_write_run_counts_its_end_sync() {
    let scratch = Scratch::new(1 << 20);
    let mut writes = writer();
    writes.end = End::default();
    writes.sync.end_fsync = true;
    let figures = run_with(
        &workload(vec![writes]),
        &scratch,
        options(spindle_engine::EngineChoice::Auto),
    );
    let fsync = figures.streams[0].fsync.as_ref().expect("the end sync");
    assert!(figures.measured_ns >= 300 * MS + fsync.latency.max_ns);
}

#[test]
fn little_holds_with_syncs_among_the_requests() {
    let scratch = Scratch::new(1 << 20);
    for engine in BOTH {
        let mut writes = writer();
        writes.depth = 4;
        writes.sync.fsync_fraction = 0.5;
        let load = without_end(vec![writes]);
        undisturbed(|| {
            let figures = run_with(&load, &scratch, options(engine));
            let stream = &figures.streams[0];
            let write = stream.write.as_ref().ok_or("no writes")?;
            let fsync = stream.fsync.as_ref().ok_or("no fsyncs")?;
            let iops = write.iops + fsync.iops;
            let mean =
                (write.iops * write.latency.mean_ns + fsync.iops * fsync.latency.mean_ns) / iops;
            match little(iops, mean, stream.mean_outstanding) {
                Some(off) if off.abs() < 0.01 => Ok(()),
                off => Err(format!("{engine:?}: off by {off:?}")),
            }
        });
    }
}

#[test]
fn a_descriptor_with_dsync_is_used_as_it_is() {
    let scratch = Scratch::with_flags(1 << 20, libc::O_DSYNC);
    for engine in BOTH {
        let figures = run_with(&without_end(vec![writer()]), &scratch, options(engine));
        assert_eq!(requests(&figures, 0), 200);
        assert!(figures.streams[0].errors.is_empty());
    }
}

#[test]
fn holes_and_zeroes_are_made_in_files() {
    for engine in BOTH {
        let scratch = Scratch::new(1 << 20);
        let mut changes = stream("changes");
        changes.mix = Mix {
            write: 0.0,
            trim: 0.5,
            zero: 0.5,
            rewrite: 0.0,
        };
        changes.end.requests = Some(4_000);
        let figures = run_with(&without_end(vec![changes]), &scratch, options(engine));
        let stream = &figures.streams[0];
        let (trim, zero) = (stream.trim.as_ref(), stream.zero.as_ref());
        if let Some(error) = stream
            .errors
            .iter()
            .find(|error| error.errno == libc::EOPNOTSUPP)
        {
            eprintln!(
                "skipped: the file system of the temporary directory cannot {}",
                error.op
            );
            return;
        }
        assert_eq!(
            trim.expect("trims").requests + zero.expect("zeroes").requests,
            4_000,
            "{engine:?}"
        );
        let data = std::fs::read(&scratch.path).expect("data");
        assert_eq!(data.len(), 1 << 20, "the size is kept");
        // 256 blocks, hit 15 times each on average.
        assert!(data.iter().all(|&byte| byte == 0), "{engine:?}");
    }
}
