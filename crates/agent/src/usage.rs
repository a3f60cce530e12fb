//! Who uses a block device. The kernel's claim (O_EXCL) keeps users apart; these are names for them, and users without a
//! claim: loop devices, programs that have the device open for writing, other paths to the same drive.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use crate::devices::{Device, Mount, Number, mounts, text_of, unescaped};

/// Why nothing may be written to a device, as a clause: `is mounted on /data`. `None`: nobody is known to use it.
pub(crate) fn use_of(device: &Device) -> Option<String> {
    let tables = Tables::read();
    let disk = device.whole();
    let own = tables.of(device);
    let parts = || in_words(&device.partitions(), &tables, "its partition");
    let siblings = || {
        let others: Vec<Device> = disk.partitions();
        let others: Vec<Device> = others
            .into_iter()
            .filter(|part| part.number != device.number)
            .collect();
        let around = if device.is_partition() {
            [vec![disk.clone()], others].concat()
        } else {
            Vec::new()
        };
        in_words(&around, &tables, "on the same disk,")
    };
    let below = || {
        let under = device.members();
        under.iter().find_map(|lower| {
            let used = tables.mounted(lower).or_else(|| tables.swapped(lower))?;
            Some(format!("is built of {}, which {used}", lower.name()))
        })
    };
    own.or_else(parts)
        .or_else(siblings)
        .or_else(below)
        .or_else(|| other_path(&disk))
        .or_else(|| writer_of(device, &disk))
}

fn in_words(devices: &[Device], tables: &Tables, what: &str) -> Option<String> {
    devices.iter().find_map(|device| {
        let used = tables.of(device)?;
        Some(format!("{what} {} {used}", device.name()))
    })
}

/// The kernel's tables, read once.
struct Tables {
    mounts: Vec<(Number, Mount)>,
    swaps: Vec<Number>,
    loops: Vec<(String, Number)>,
}

impl Tables {
    fn read() -> Tables {
        let mut mounted = Vec::new();
        for mount in mounts() {
            if let Some(source) = Number::at(Path::new(&mount.source)) {
                mounted.push((source, mount.clone()));
            }
            mounted.push((mount.number, mount));
        }
        let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
        let names = swaps
            .lines()
            .skip(1)
            .filter_map(|line| line.split(' ').next());
        let loops = Device::all().into_iter().filter_map(|device| {
            let behind = Number::at(&device.backing()?)?;
            Some((device.name(), behind))
        });
        Tables {
            mounts: mounted,
            swaps: names
                .filter_map(|name| Number::at(Path::new(&unescaped(name))))
                .collect(),
            loops: loops.collect(),
        }
    }

    fn mounted(&self, device: &Device) -> Option<String> {
        let mut found = self.mounts.iter();
        let (_, mount) = found.find(|(number, _)| *number == device.number)?;
        Some(format!("is mounted on {}", mount.point))
    }

    fn swapped(&self, device: &Device) -> Option<String> {
        let is_swap = self.swaps.contains(&device.number);
        is_swap.then(|| "is in use as swap".to_owned())
    }

    fn of(&self, device: &Device) -> Option<String> {
        let held = || {
            let holders = device.holders();
            Some(format!("is part of {}", holders.first()?.name()))
        };
        let looped = || {
            let mut loops = self.loops.iter();
            let (name, _) = loops.find(|(_, behind)| *behind == device.number)?;
            Some(format!("is behind {name}"))
        };
        self.mounted(device)
            .or_else(|| self.swapped(device))
            .or_else(held)
            .or_else(looped)
            .or_else(|| btrfs_of(device))
    }
}

/// A member of a mounted btrfs of several devices is in no table of mounts.
fn btrfs_of(device: &Device) -> Option<String> {
    let pools = fs::read_dir("/sys/fs/btrfs").ok()?;
    let mut pools = pools.flatten().map(|pool| pool.path());
    let member = pools.any(|pool| pool.join("devices").join(device.name()).exists());
    member.then(|| "is a member of a mounted btrfs".to_owned())
}

/// Another disk with the same world-wide name: a second path to the drive, whose users the kernel does not know here.
fn other_path(disk: &Device) -> Option<String> {
    let own = world_wide_name(disk)?;
    let all = Device::all();
    let mut others = all
        .iter()
        .filter(|other| other.number != disk.number && !other.is_partition());
    let other = others.find(|other| world_wide_name(other).as_ref() == Some(&own))?;
    Some(format!("can be reached as {} too", other.name()))
}

fn world_wide_name(disk: &Device) -> Option<String> {
    let name = disk.text("wwid").or_else(|| disk.text("device/wwid"))?;
    Some(name).filter(|name| !name.is_empty())
}

/// Another program that has the device, its disk, one of its partitions or a device below open for writing.
fn writer_of(device: &Device, disk: &Device) -> Option<String> {
    let around = [
        vec![device.clone(), disk.clone()],
        disk.partitions(),
        device.members(),
    ]
    .concat();
    let numbers: BTreeSet<Number> = around.iter().map(|device| device.number).collect();
    let own = std::process::id().to_string();
    for process in fs::read_dir("/proc").ok()?.flatten() {
        let name = process.file_name().to_string_lossy().into_owned();
        if name == own || !name.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let open = fs::read_dir(process.path().join("fd"));
        for descriptor in open.into_iter().flatten().flatten() {
            if is_written(&descriptor.path(), &process.path(), &numbers) {
                let called = text_of(&process.path().join("comm")).unwrap_or_default();
                return Some(format!("is open for writing by process {name} ({called})"));
            }
        }
    }
    None
}

fn is_written(descriptor: &Path, process: &Path, numbers: &BTreeSet<Number>) -> bool {
    // A file of a dead server is not asked for: devices alone have such names.
    let is_near = fs::read_link(descriptor).is_ok_and(|to| to.starts_with("/dev"));
    let found = if is_near {
        fs::metadata(descriptor).ok()
    } else {
        None
    };
    let is_one = found.is_some_and(|found| {
        found.file_type().is_block_device() && numbers.contains(&Number::of(found.rdev()))
    });
    let number = descriptor.file_name().unwrap_or_default();
    is_one
        && text_of(&process.join("fdinfo").join(number)).is_some_and(|info| allows_writing(&info))
}

/// `flags` of fdinfo are octal (proc_pid_fdinfo(5)). What cannot be read counts as reading.
fn allows_writing(info: &str) -> bool {
    let mut lines = info.lines();
    let flags = lines.find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & libc::O_ACCMODE != libc::O_RDONLY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_access_of_a_descriptor_is_read_from_its_flags() {
        assert!(allows_writing("pos:\t0\nflags:\t0100002\nmnt_id:\t5"));
        assert!(!allows_writing("pos:\t0\nflags:\t0100000\nmnt_id:\t5"));
        assert!(!allows_writing("pos:\t0"));
    }
}
