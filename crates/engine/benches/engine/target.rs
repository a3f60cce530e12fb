//! What is read: a file that lies in the page cache, and a zram device.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

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
        let tell = |error: std::io::Error| format!("{}: {error}", path.display());
        let mut file = File::create_new(&path).map_err(tell)?;
        fill(&mut file).map_err(tell)?;
        file.sync_all().map_err(tell)?;
        let mut file = File::open(&path).map_err(tell)?;
        std::io::copy(&mut file, &mut std::io::sink()).map_err(tell)?;
        Ok(CachedFile { path, file })
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

/// A zram device of our own, full; given back at the end.
pub(crate) struct Zram {
    path: PathBuf,
    file: File,
}

impl Zram {
    pub(crate) fn new() -> Result<Zram, String> {
        let size = SIZE.to_string();
        let made = Command::new("zramctl")
            .args(["--find", "--size", &size])
            .output()
            .map_err(|error| format!("zramctl: {error}"))?;
        if !made.status.success() {
            return Err(format!(
                "no zram device to be had (needs root): {}",
                String::from_utf8_lossy(&made.stderr).trim()
            ));
        }
        let path = PathBuf::from(String::from_utf8_lossy(&made.stdout).trim());
        match open_full(&path) {
            Ok(file) => Ok(Zram { path, file }),
            Err(error) => {
                reset(&path);
                Err(format!("{}: {error}", path.display()))
            }
        }
    }

    pub(crate) fn target(&self) -> BenchTarget<'_> {
        BenchTarget {
            fd: self.file.as_raw_fd(),
            path: &self.path,
            direct: true,
        }
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        // The device cannot be given back while it is open: put another file in its place first.
        if let Ok(null) = File::open("/dev/null") {
            self.file = null;
        }
        reset(&self.path);
    }
}

fn open_full(path: &Path) -> std::io::Result<File> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    fill(&mut file)?;
    file.sync_all()?;
    drop(file);
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(path)
}

fn reset(path: &Path) {
    let _ = Command::new("zramctl").arg("--reset").arg(path).status();
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
