//! The targets: a file in the page cache, a loop device over it, and a zram device.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Size of each target, bytes.
pub(crate) const SIZE: u64 = 256 << 20;

/// An open target.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BenchTarget<'a> {
    pub(crate) fd: RawFd,
    pub(crate) path: &'a Path,
    pub(crate) direct: bool,
}

/// A file of incompressible data, read once so that it is cached; removed at the end.
pub(crate) struct CachedFile {
    path: PathBuf,
    file: File,
}

impl CachedFile {
    pub(crate) fn new(directory: &Path) -> Result<CachedFile, String> {
        let path = directory.join(format!("spindle-bench-{}", std::process::id()));
        let describe = |error: std::io::Error| format!("{}: {error}", path.display());
        let file = File::create_new(&path).map_err(describe)?;
        // From here on it goes with the value, whatever fails.
        let mut cached = CachedFile {
            path: path.clone(),
            file,
        };
        fill(&mut cached.file).map_err(describe)?;
        cached.file.sync_all().map_err(describe)?;
        // The engine sets O_NOATIME on what it reads; the bare loops read the same descriptor, from their first round on.
        cached.file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOATIME)
            .open(&path)
            .map_err(describe)?;
        std::io::copy(&mut cached.file, &mut std::io::sink()).map_err(describe)?;
        Ok(cached)
    }

    pub(crate) fn target(&self) -> BenchTarget<'_> {
        BenchTarget {
            fd: self.file.as_raw_fd(),
            path: &self.path,
            direct: false,
        }
    }
}

impl Drop for CachedFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A loop device over a cached file: a completion comes from another thread, as it does from a drive.
pub(crate) struct Loop {
    path: PathBuf,
    file: Option<File>,
    _backing: CachedFile,
}

impl Loop {
    pub(crate) fn new(directory: &Path) -> Result<Loop, String> {
        let backing = CachedFile::new(directory)?;
        let made = Command::new("losetup")
            .args(["--find", "--show", "--read-only"])
            .arg(&backing.path)
            .process_group(0)
            .output()
            .map_err(|error| format!("losetup: {error}"))?;
        if !made.status.success() {
            let why = String::from_utf8_lossy(&made.stderr).trim().to_owned();
            return Err(format!("no loop device to be had (needs root): {why}"));
        }
        let path = PathBuf::from(String::from_utf8_lossy(&made.stdout).trim());
        // From here on it is given back with the value, whatever fails.
        let mut looped = Loop {
            path: path.clone(),
            file: None,
            _backing: backing,
        };
        let file = open_direct(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        looped.file = Some(file);
        Ok(looped)
    }

    pub(crate) fn target(&self) -> BenchTarget<'_> {
        BenchTarget {
            fd: self.file.as_ref().map_or(-1, AsRawFd::as_raw_fd),
            path: &self.path,
            direct: true,
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        self.file = None;
        let _ = Command::new("losetup")
            .arg("--detach")
            .arg(&self.path)
            .status();
    }
}

/// A zram device of our own, full; given back at the end.
pub(crate) struct Zram {
    device: ZramDevice,
    file: Option<File>,
}

impl Zram {
    pub(crate) fn new() -> Result<Zram, String> {
        let device = ZramDevice::take()?;
        let file = open_full(&device.path)
            .map_err(|error| format!("{}: {error}", device.path.display()))?;
        Ok(Zram {
            device,
            file: Some(file),
        })
    }

    pub(crate) fn target(&self) -> BenchTarget<'_> {
        let fd = self.file.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        BenchTarget {
            fd,
            path: &self.device.path,
            direct: true,
        }
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        // The device cannot be given back while it is open.
        self.file = None;
    }
}

/// The device alone; given back when dropped.
struct ZramDevice {
    path: PathBuf,
    /// It did not exist before: it is removed, not only emptied.
    is_new: bool,
}

impl ZramDevice {
    fn take() -> Result<ZramDevice, String> {
        let before = zram_devices();
        let made = Command::new("zramctl")
            .args(["--find", "--size", &SIZE.to_string()])
            // Out of reach of Ctrl-C: half-way it would leave a device that nobody knows of.
            .process_group(0)
            .output()
            .map_err(|error| format!("zramctl: {error}"))?;
        if !made.status.success() {
            return Err(format!(
                "no zram device to be had (needs root): {}",
                String::from_utf8_lossy(&made.stderr).trim()
            ));
        }
        let path = PathBuf::from(String::from_utf8_lossy(&made.stdout).trim());
        let is_new = path.file_name().is_some_and(|name| !before.contains(name));
        Ok(ZramDevice { path, is_new })
    }

    /// Gives the device back; true if that worked.
    fn give_back(&self) -> bool {
        let Some(name) = self.path.file_name().and_then(|name| name.to_str()) else {
            return true;
        };
        let control = Path::new("/sys/class/zram-control");
        if self.is_new
            && control.exists()
            && let Some(number) = name.strip_prefix("zram")
        {
            return std::fs::write(control.join("hot_remove"), number).is_ok();
        }
        std::fs::write(format!("/sys/block/{name}/reset"), "1").is_ok()
    }
}

impl Drop for ZramDevice {
    fn drop(&mut self) {
        // A program that looks at new devices (udev) may have it open for a moment.
        const PATIENCE: Duration = Duration::from_secs(20);
        let begin = Instant::now();
        while !self.give_back() {
            if begin.elapsed() > PATIENCE {
                let path = self.path.display();
                eprintln!("{path} is in use and stays; `zramctl --reset {path}` gives it back");
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn zram_devices() -> HashSet<OsString> {
    let entries = std::fs::read_dir("/sys/block").into_iter().flatten();
    entries
        .filter_map(|entry| entry.ok().map(|entry| entry.file_name()))
        .filter(|name| name.to_string_lossy().starts_with("zram"))
        .collect()
}

fn open_full(path: &Path) -> std::io::Result<File> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    fill(&mut file)?;
    file.sync_all()?;
    drop(file);
    open_direct(path)
}

fn open_direct(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECT | libc::O_NOATIME)
        .open(path)
}

fn fill(file: &mut File) -> std::io::Result<()> {
    let mut random = File::open("/dev/urandom")?.take(SIZE);
    let mut block = vec![0; 1 << 20];
    for _ in 0..SIZE / block.len() as u64 {
        random.read_exact(&mut block)?;
        file.write_all(&block)?;
    }
    Ok(())
}
