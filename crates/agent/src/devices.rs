//! Block devices by number, and the devices below them, from sysfs.

use std::collections::VecDeque;
use std::fmt;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

const SYSFS: &str = "/sys";

/// Major and minor number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Number {
    major: u32,
    minor: u32,
}

impl Number {
    /// Splits `st_rdev` or `st_dev`.
    pub(crate) fn of(number: u64) -> Number {
        Number {
            major: libc::major(number),
            minor: libc::minor(number),
        }
    }

    /// `8:16`, as sysfs and mountinfo write it.
    pub(crate) fn parse(text: &str) -> Option<Number> {
        let (major, minor) = text.trim().split_once(':')?;
        Some(Number {
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
        })
    }

    /// The number of the block device that a path leads to.
    pub(crate) fn at(path: &Path) -> Option<Number> {
        let found = fs::metadata(path).ok()?;
        let is_device = found.file_type().is_block_device();
        is_device.then(|| Number::of(found.rdev()))
    }
}

impl fmt::Display for Number {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.major, self.minor)
    }
}

/// A block device: its number, and its folder in sysfs without links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Device {
    pub(crate) number: Number,
    pub(crate) folder: PathBuf,
}

impl Device {
    /// The device of this number; `None`: the kernel knows none.
    pub(crate) fn of(number: Number) -> Option<Device> {
        let link = Path::new(SYSFS).join("dev/block").join(number.to_string());
        Device::in_folder(&link)
    }

    /// The device whose folder this leads to.
    pub(crate) fn in_folder(path: &Path) -> Option<Device> {
        let folder = fs::canonicalize(path).ok()?;
        let number = Number::parse(&text_of(&folder.join("dev"))?)?;
        Some(Device { number, folder })
    }

    /// All that the kernel lists, partitions included.
    pub(crate) fn all() -> Vec<Device> {
        linked(&Path::new(SYSFS).join("class/block"))
    }

    /// The kernel's name.
    pub(crate) fn name(&self) -> String {
        let name = self.folder.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// A file of its folder, without the final newline.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        text_of(&self.folder.join(name))
    }

    pub(crate) fn is_partition(&self) -> bool {
        self.folder.join("partition").exists()
    }

    /// The disk of a partition; any other device itself.
    pub(crate) fn whole(&self) -> Device {
        let disk = self.folder.parent().filter(|_| self.is_partition());
        disk.and_then(Device::in_folder)
            .unwrap_or_else(|| self.clone())
    }

    /// The partitions of a disk.
    pub(crate) fn partitions(&self) -> Vec<Device> {
        let inside = folders(&self.folder);
        let parts = inside.iter().filter(|path| path.join("partition").exists());
        parts.filter_map(|path| Device::in_folder(path)).collect()
    }

    /// Devices that it is built of (md, dm).
    pub(crate) fn slaves(&self) -> Vec<Device> {
        linked(&self.folder.join("slaves"))
    }

    /// Devices that are built on it.
    pub(crate) fn holders(&self) -> Vec<Device> {
        linked(&self.folder.join("holders"))
    }

    /// The path of the storage behind a loop device in use.
    pub(crate) fn backing(&self) -> Option<PathBuf> {
        self.text("loop/backing_file").map(PathBuf::from)
    }

    /// The next layer below.
    fn directly_below(&self) -> Vec<Device> {
        if self.is_partition() {
            return vec![self.whole()];
        }
        match self.backing() {
            Some(path) => under(&path).into_iter().collect(),
            None => self.slaves(),
        }
    }

    /// All devices underneath, nearest first; those under the file of a loop device too.
    pub(crate) fn below(&self) -> Vec<Device> {
        self.walk(Device::directly_below)
    }

    /// All devices that it, or its disk, is built of, whose content a write changes.
    pub(crate) fn members(&self) -> Vec<Device> {
        self.walk(|device| device.whole().slaves())
    }

    fn walk(&self, step: impl Fn(&Device) -> Vec<Device>) -> Vec<Device> {
        let mut found: Vec<Device> = Vec::new();
        let mut pending = VecDeque::from(step(self));
        while let Some(device) = pending.pop_front() {
            if device.number != self.number && !found.contains(&device) {
                pending.extend(step(&device));
                found.push(device);
            }
        }
        found
    }
}

/// The block device itself, or the one under a file's file system; `None` for tmpfs, network file systems and the like.
pub(crate) fn under(path: &Path) -> Option<Device> {
    let found = fs::metadata(path).ok()?;
    if found.file_type().is_block_device() {
        return Device::of(Number::of(found.rdev()));
    }
    Device::of(Number::of(found.dev())).or_else(|| {
        // btrfs has numbers of its own; its mount names the device.
        let mounts = mounts();
        let own = Number::of(found.dev());
        let mount = mounts.iter().find(|mount| mount.number == own)?;
        Device::of(Number::at(Path::new(&mount.source))?)
    })
}

/// One line of mountinfo (proc_pid_mountinfo(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) id: String,
    pub(crate) number: Number,
    pub(crate) point: String,
    pub(crate) source: String,
    pub(crate) line: String,
}

/// The mounts that this process sees.
pub(crate) fn mounts() -> Vec<Mount> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    text.lines().filter_map(mount_of).collect()
}

fn mount_of(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let fields: Vec<&str> = before.split(' ').collect();
    Some(Mount {
        id: (*fields.first()?).to_owned(),
        number: Number::parse(fields.get(2)?)?,
        point: unescaped(fields.get(4)?),
        source: unescaped(after.split(' ').nth(1)?),
        line: line.to_owned(),
    })
}

/// Blanks and the like are written as `\040` in tables of /proc.
pub(crate) fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.get(..3).map(|digits| u8::from_str_radix(digits, 8)) {
            Some(Ok(byte)) => {
                plain.push(char::from(byte));
                plain.push_str(&part[3..]);
            }
            _ => {
                plain.push('\\');
                plain.push_str(part);
            }
        }
    }
    plain
}

/// The folders in a folder, in order of their names.
fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.retain(|path| path.is_dir());
    found.sort();
    found
}

fn linked(folder: &Path) -> Vec<Device> {
    let paths = folders(folder);
    paths
        .iter()
        .filter_map(|path| Device::in_folder(path))
        .collect()
}

/// A small kernel file without its final newline; `None` if it is missing, not readable or not text.
pub(crate) fn text_of(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim_end_matches('\n').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_mountinfo_is_taken_apart() {
        let line =
            r"36 35 98:0 /mnt1 /mnt\040two rw,noatime master:1 - ext3 /dev/root rw,errors=continue";
        let mount = mount_of(line).expect("a mount");
        assert_eq!(mount.number.to_string(), "98:0");
        assert_eq!(
            (mount.point.as_str(), mount.source.as_str()),
            ("/mnt two", "/dev/root")
        );
        assert_eq!(mount_of("36 35 98:0 /mnt1"), None);
    }

    #[test]
    fn what_is_no_escape_stays() {
        assert_eq!(unescaped(r"a\040b\x\"), r"a b\x\");
        assert_eq!(unescaped(r"\é04"), r"\é04");
    }
}
