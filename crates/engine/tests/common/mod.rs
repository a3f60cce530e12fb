//! Workloads, files and devices for the tests.
#![allow(dead_code)]

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use spindle_engine::{EngineChoice, Options, Phase, Run, StreamFile, StreamProgress};
use spindle_measure::RunFigures;
use spindle_workload::*;

pub(crate) const MS: u64 = 1_000_000;

/// 4 KiB uniform reads, closed loop, one worker of depth one, for 300 ms.
pub(crate) fn stream(name: &str) -> Stream {
    Stream {
        name: name.to_owned(),
        mix: Mix::READS,
        pattern: Pattern::Uniform,
        size: Size::Fixed { bytes: 4096 },
        align_bytes: 0,
        workers: 1,
        depth: 1,
        arrival: Arrival::Closed,
        rate_limit: None,
        think: None,
        direct: false,
        sync: Sync::default(),
        priority: None,
        region: Region {
            offset: Place::Bytes { bytes: 0 },
            end: Place::Fraction { fraction: 1.0 },
        },
        separate_writes: None,
        trim_first: false,
        window: None,
        repeats: None,
        ends: Vec::new(),
        mapped: false,
        files: None,
        content: Content::Random,
        verify: false,
        verify_fatal: false,
        start_delay_ns: 0,
        end: End::default(),
        passes: None,
        names: None,
        per_worker: false,
    }
}

pub(crate) fn workload(streams: Vec<Stream>) -> Workload {
    Workload {
        name: "test".to_owned(),
        about: String::new(),
        table: "streams".to_owned(),
        seed: 1,
        ramp_ns: 0,
        end: End {
            time_ns: Some(300 * MS),
            ..End::default()
        },
        filesets: Vec::new(),
        streams,
        phases: Vec::new(),
    }
}

/// A scratch file that goes with the value.
pub(crate) struct Scratch {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    pub(crate) bytes: u64,
}

impl Scratch {
    pub(crate) fn new(bytes: u64) -> Scratch {
        Scratch::with_flags(bytes, 0)
    }

    pub(crate) fn with_flags(bytes: u64, flags: i32) -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("spindle-engine-{}-{number}", std::process::id()));
        let mut file = File::create(&path).expect("scratch file");
        let block = vec![0x5a; 1 << 20];
        let mut left = bytes;
        while left > 0 {
            let part = left.min(block.len() as u64);
            file.write_all(&block[..part as usize])
                .expect("scratch data");
            left -= part;
        }
        file.sync_all().expect("scratch data on disk");
        let file = open(&path, flags);
        Scratch { path, file, bytes }
    }

    pub(crate) fn stream_file(&self) -> StreamFile {
        StreamFile {
            fd: self.file.as_raw_fd(),
            size_bytes: self.bytes,
            block_bytes: 1,
            memory_align: 4096,
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

pub(crate) fn open(path: &Path, flags: i32) -> File {
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(flags)
        .open(path)
        .expect("open")
}

pub(crate) fn options(engine: EngineChoice) -> Options {
    Options {
        engine,
        ..Options::default()
    }
}

pub(crate) fn run_with(workload: &Workload, scratch: &Scratch, options: Options) -> RunFigures {
    let files = workload
        .streams
        .iter()
        .map(|_| vec![scratch.stream_file()])
        .collect();
    Run::start(workload, files, options)
        .expect("start")
        .finish()
        .expect("figures")
}

pub(crate) const BOTH: [EngineChoice; 2] = [EngineChoice::IoUring, EngineChoice::Pread];

/// Requests of a stream, of all kinds, fsyncs apart.
pub(crate) fn requests(figures: &RunFigures, stream: usize) -> u64 {
    let stream = &figures.streams[stream];
    [&stream.read, &stream.write, &stream.trim, &stream.zero]
        .into_iter()
        .flatten()
        .map(|figures| figures.requests)
        .sum()
}

/// Tries again as long as something else may have held the CPUs: what is wrong by itself is wrong every time.
pub(crate) fn undisturbed(mut attempt: impl FnMut() -> Result<(), String>) {
    let begun = Instant::now();
    while let Err(why) = attempt() {
        assert!(begun.elapsed() < PATIENCE, "{why}");
    }
}

/// Waits until the first stream has read or written something.
pub(crate) fn wait_for_requests(run: &Run) {
    wait_until(run, |done| done.reads + done.writes > 0);
}

/// Waits until this is true of what the first stream has done.
pub(crate) fn wait_until(run: &Run, is_done: impl Fn(&StreamProgress) -> bool) {
    let begun = Instant::now();
    loop {
        // On a busy machine workers are ahead of the thread that publishes the phase.
        let progress = run.progress();
        if progress.phase == Phase::Measure && is_done(&progress.streams[0]) {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "nothing was done");
        assert!(!run.wait(Duration::from_millis(10)), "over too early");
    }
}

/// Longer than any machine keeps a thread waiting that could run.
const PATIENCE: Duration = Duration::from_secs(60);

/// True if the test may make devices.
pub(crate) fn is_root() -> bool {
    std::fs::metadata("/proc/self")
        .is_ok_and(|status| std::os::unix::fs::MetadataExt::uid(&status) == 0)
}
