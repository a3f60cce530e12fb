//! Block devices: a loop device over a scratch file. Needs root.
#![allow(unsafe_code)]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use common::*;
use spindle_engine::{EngineChoice, Options, Run, StreamFile};
use spindle_measure::EndedBy;
use spindle_workload::{End, Mix};

/// Requests in the 300 ms of a run below which a device may be too slow for the trials: they compare back ends
/// from 200 reads in 80 ms on. A control group may hold a loop device below that.
const SLOW: u64 = 2 * 750;

/// A loop device of our own; detached at the end.
struct LoopDevice {
    path: PathBuf,
    backing: Scratch,
}

impl LoopDevice {
    /// `None`: there can be none here, and why was said.
    fn new(bytes: u64) -> Option<LoopDevice> {
        if !is_root() {
            eprintln!("skipped: loop devices need root");
            return None;
        }
        let backing = Scratch::new(bytes);
        let made = Command::new("losetup")
            .args(["--find", "--show"])
            .arg(&backing.path)
            .output();
        match made {
            Ok(output) if output.status.success() => Some(LoopDevice {
                path: PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()),
                backing,
            }),
            other => {
                eprintln!("skipped: losetup gives no loop device here: {other:?}");
                None
            }
        }
    }

    fn open(&self, flags: i32) -> (std::fs::File, StreamFile) {
        let file = open(&self.path, flags);
        let described = StreamFile {
            fd: std::os::fd::AsRawFd::as_raw_fd(&file),
            size_bytes: self.backing.bytes,
            block_bytes: 512,
            memory_align: 512,
        };
        (file, described)
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup")
            .arg("--detach")
            .arg(&self.path)
            .status();
    }
}

#[test]
fn both_back_ends_read_and_write_a_device_directly() {
    let Some(device) = LoopDevice::new(16 << 20) else {
        return;
    };
    let (_open, file) = device.open(libc::O_DIRECT);
    for engine in BOTH {
        let mut mixed = stream("mixed");
        mixed.direct = true;
        mixed.mix.write = 0.3;
        (mixed.workers, mixed.depth) = (2, 4);
        mixed.sync.fsync_fraction = 0.02;
        mixed.end.requests = Some(2_000);
        let mut load = workload(vec![mixed]);
        load.end = End::default();
        let run = Run::start(&load, vec![vec![file]], options(engine)).expect("start");
        let figures = run.finish().expect("figures");
        assert_eq!(requests(&figures, 0), 2_000, "{engine:?}");
        assert!(figures.streams[0].fsync.is_some());
        assert!(
            figures.streams[0].errors.is_empty(),
            "{:?}",
            figures.streams[0].errors
        );
    }
}

#[test]
fn a_direct_target_is_calibrated_by_its_own_reads() {
    let Some(device) = LoopDevice::new(64 << 20) else {
        return;
    };
    let (_open, file) = device.open(libc::O_DIRECT);
    undisturbed(|| {
        let before = bytes_read(&device.path);
        let mut reads = stream("reads");
        reads.direct = true;
        let run = Run::start(&workload(vec![reads]), vec![vec![file]], Options::default())
            .expect("start");
        let figures = run.finish().expect("figures");
        let generator = &figures.generator;
        if generator.calibration.len() == 2 {
            assert!(
                generator.reason.contains("direct reads of this target"),
                "{}",
                generator.reason
            );
            assert!(generator.ceiling_iops.is_some_and(|rate| rate > 0.0));
        } else if requests(&figures, 0) > SLOW {
            // A trial of 80 ms that hardly got a CPU.
            return Err(format!("{generator:?}"));
        } else {
            assert!(generator.reason.contains("too few"), "{}", generator.reason);
        }
        // The trials read the device but are not in the figures.
        let device_read = bytes_read(&device.path) - before;
        assert!(
            figures.streams[0].total_bytes < device_read,
            "trials are in the figures"
        );
        assert_eq!(figures.measured_ns, 300 * MS);
        Ok(())
    });
}

#[test]
fn trims_and_zeroes_reach_the_device() {
    for engine in BOTH {
        let Some(device) = LoopDevice::new(1 << 20) else {
            return;
        };
        let (_open, file) = device.open(libc::O_DIRECT);
        let mut changes = stream("changes");
        changes.direct = true;
        changes.mix = Mix {
            write: 0.0,
            trim: 0.5,
            zero: 0.5,
            rewrite: 0.0,
        };
        changes.depth = 4;
        changes.end.requests = Some(4_000);
        let mut load = workload(vec![changes]);
        load.end = End::default();
        let run = Run::start(&load, vec![vec![file]], options(engine)).expect("start");
        let figures = run.finish().expect("figures");
        assert!(
            figures.streams[0].errors.is_empty(),
            "{engine:?}: {:?}",
            figures.streams[0].errors
        );
        let count = |of: &Option<spindle_measure::OpFigures>| {
            of.as_ref().map_or(0, |figures| figures.requests)
        };
        let (trims, zeroes) = (
            count(&figures.streams[0].trim),
            count(&figures.streams[0].zero),
        );
        assert_eq!(trims + zeroes, 4_000);
        assert!(
            trims > 1_800 && zeroes > 1_800,
            "{trims} trims, {zeroes} zeroes"
        );
        let data = std::fs::read(&device.backing.path).expect("data");
        assert!(data.iter().all(|&byte| byte == 0), "{engine:?}");
    }
}

#[test]
fn polling_modes_work_where_the_kernel_has_them() {
    let Some(device) = LoopDevice::new(16 << 20) else {
        return;
    };
    let (_open, file) = device.open(libc::O_DIRECT);
    for (sqpoll, iopoll) in [(true, false), (false, true), (true, true)] {
        let mut reads = stream("reads");
        reads.direct = true;
        reads.depth = 4;
        let mut options = options(EngineChoice::Auto);
        (options.sqpoll, options.iopoll) = (sqpoll, iopoll);
        let run = Run::start(&workload(vec![reads]), vec![vec![file]], options).expect("start");
        let figures = run.finish().expect("figures");
        if let EndedBy::Error {
            errno: libc::EOPNOTSUPP,
            ..
        } = figures.ended_by
        {
            assert!(iopoll, "only polled completions may be unsupported");
            eprintln!("skipped: loop devices have no polled completions on this kernel");
            continue;
        }
        assert!(
            requests(&figures, 0) > 0,
            "sqpoll {sqpoll}, iopoll {iopoll}"
        );
        assert_eq!(
            figures.generator.features.contains(&"sqpoll".to_owned()),
            sqpoll
        );
        assert_eq!(
            figures.generator.features.contains(&"iopoll".to_owned()),
            iopoll
        );
    }
}

#[test]
fn a_device_whose_data_vanish_ends_the_run() {
    for engine in BOTH {
        let Some(device) = LoopDevice::new(16 << 20) else {
            return;
        };
        let (_open, file) = device.open(libc::O_DIRECT);
        let mut reads = stream("reads");
        reads.direct = true;
        let mut load = workload(vec![reads]);
        load.end.time_ns = Some(60_000 * MS);
        let run = Run::start(&load, vec![vec![file]], options(engine)).expect("start");
        wait_for_requests(&run);
        device.backing.file.set_len(0).expect("cut");
        let figures = run.finish().expect("figures");
        assert!(
            matches!(
                figures.ended_by,
                EndedBy::Error {
                    errno: libc::EIO | libc::ENODATA,
                    ..
                }
            ),
            "{engine:?}: {:?}",
            figures.ended_by
        );
        assert!(requests(&figures, 0) > 0, "what was done before is kept");
        assert!(figures.elapsed_ns < 60_000 * MS);
    }
}

#[test]
fn the_device_is_free_as_soon_as_the_run_is_over() {
    let Some(device) = LoopDevice::new(4 << 20) else {
        return;
    };
    for engine in BOTH {
        let (open_file, file) = device.open(libc::O_DIRECT);
        let mut reads = stream("reads");
        reads.direct = true;
        reads.depth = 4;
        let mut load = workload(vec![reads]);
        load.end.time_ns = Some(30 * MS);
        drop(
            Run::start(&load, vec![vec![file]], options(engine))
                .expect("start")
                .finish(),
        );
        drop(open_file);
        // Exclusive: fails while any thread of the run still holds the device.
        let mut again = std::fs::OpenOptions::new();
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut again, libc::O_EXCL);
        assert!(again.read(true).open(&device.path).is_ok(), "{engine:?}");
    }
}

#[test]
fn a_call_that_hangs_in_the_kernel_is_left_behind() {
    // A frozen file system holds every writer until it is thawed.
    let Some(device) = LoopDevice::new(32 << 20) else {
        return;
    };
    let mount = std::env::temp_dir().join(format!("spindle-frozen-{}", std::process::id()));
    std::fs::create_dir_all(&mount).expect("mount point");
    let frozen = FrozenFileSystem::new(mount.clone());
    let run_command = |name: &str, arguments: &[&Path]| {
        Command::new(name)
            .args(arguments)
            .output()
            .is_ok_and(|output| output.status.success())
    };
    if !run_command("mkfs.ext4", &[Path::new("-q"), &device.path])
        || !run_command("mount", &[&device.path, &mount])
    {
        eprintln!("skipped: cannot make and mount a file system here");
        return;
    }
    let path = mount.join("file");
    std::fs::write(&path, vec![1; 1 << 20]).expect("file");
    for engine in BOTH {
        let file = open(&path, 0);
        let described = StreamFile {
            fd: std::os::fd::AsRawFd::as_raw_fd(&file),
            size_bytes: 1 << 20,
            block_bytes: 1,
            memory_align: 512,
        };
        let mut writes = stream("writes");
        writes.mix.write = 1.0;
        let mut load = workload(vec![writes]);
        load.end.time_ns = Some(60_000 * MS);
        let mut options = options(engine);
        options.stop_grace_ns = 200 * MS;
        let run = Run::start(&load, vec![vec![described]], options).expect("start");
        wait_for_requests(&run);
        assert!(
            run_command("fsfreeze", &[Path::new("--freeze"), &mount]),
            "freeze"
        );
        std::thread::sleep(Duration::from_millis(300));
        let asked = Instant::now();
        run.stop();
        let figures = run.finish();
        let waited = asked.elapsed();
        assert!(
            run_command("fsfreeze", &[Path::new("--unfreeze"), &mount]),
            "thaw"
        );
        let figures = figures.expect("figures");
        assert!(waited < Duration::from_secs(60), "{engine:?}: {waited:?}");
        assert_eq!(figures.ended_by, EndedBy::Stopped);
        let error = &figures.streams[0].errors[0];
        assert_eq!(
            (error.errno, error.op.as_str()),
            (libc::ETIMEDOUT, "write"),
            "{engine:?}"
        );
        assert!(
            requests(&figures, 0) > 0,
            "{engine:?}: what was done before is kept"
        );
        // The thread left behind ends now, and touches nothing any more.
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(frozen);
}

/// Thaws and unmounts whatever happens, even if the test is killed.
struct FrozenFileSystem {
    mount: PathBuf,
    warden: std::process::Child,
}

impl FrozenFileSystem {
    fn new(mount: PathBuf) -> FrozenFileSystem {
        let thaw =
            "for i in 1 2 3 4 5 6; do sleep 20; fsfreeze --unfreeze \"$0\" 2>/dev/null; done";
        let mut shell = Command::new("sh");
        let warden = shell.args(["-c", thaw]).arg(&mount).spawn().expect("sh");
        FrozenFileSystem { mount, warden }
    }
}

impl Drop for FrozenFileSystem {
    fn drop(&mut self) {
        let _ = self.warden.kill();
        let _ = self.warden.wait();
        let _ = Command::new("fsfreeze")
            .arg("--unfreeze")
            .arg(&self.mount)
            .output();
        // Lazily: a ring that was left behind holds its file until this process ends, and the device with it.
        let _ = Command::new("umount")
            .args(["--lazy".as_ref(), self.mount.as_os_str()])
            .output();
        let _ = std::fs::remove_dir(&self.mount);
    }
}

/// Bytes the device has read since it was made (third field of its `stat`, in sectors).
fn bytes_read(device: &Path) -> u64 {
    let name = device
        .file_name()
        .expect("a device")
        .to_string_lossy()
        .into_owned();
    let stat = std::fs::read_to_string(format!("/sys/block/{name}/stat")).expect("statistics");
    stat.split_whitespace()
        .nth(2)
        .and_then(|field| field.parse::<u64>().ok())
        .expect("sectors")
        * 512
}

#[test]
fn a_submission_poller_that_completes_within_its_batch_never_finds_the_queue_full() {
    let scratch = Scratch::new(4 << 20);
    for depth in [1, 2, 3, 4, 7, 32] {
        let mut reads = stream("reads");
        reads.depth = depth;
        let mut options = options(EngineChoice::IoUring);
        options.sqpoll = true;
        let figures = run_with(&workload(vec![reads]), &scratch, options);
        assert!(requests(&figures, 0) > 0, "depth {depth}");
    }
}
