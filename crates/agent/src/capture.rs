//! The kernel's files on the block stack and the machine, unchanged: `spindle` reads them later with its own parsers.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::devices::{Device, text_of};

/// Counters: read again right before and after a load.
const COUNTERS: [&str; 2] = [DISKSTATS, "proc/self/io"];
/// Has all devices; only the lines of the target's are kept.
const DISKSTATS: &str = "proc/diskstats";
/// Facts of the machine, read once. Not `cmdline`: it may have names and secrets in it.
const FACTS: [&str; 5] = [
    "proc/cpuinfo",
    "proc/meminfo",
    "proc/swaps",
    "proc/sys/kernel/osrelease",
    "proc/sys/kernel/version",
];
/// States and settings of the machine.
const FILES: [&str; 3] = [
    "proc/mdstat",
    "proc/sys/dev/raid/speed_limit_min",
    "proc/sys/dev/raid/speed_limit_max",
];
/// Settings of virtual memory.
const VM: &str = "proc/sys/vm";
/// Folders of a device whose files are all kept.
const OF_DEVICE: [&str; 8] = [
    "",
    "queue",
    "queue/iosched",
    "md",
    "md/bitmap",
    "loop",
    "dm",
    "device",
];
/// Files that change all the time, and one that makes the kernel work when it is read.
const LEFT_OUT: [&str; 4] = ["stat", "inflight", "uevent", "stat_refresh"];
/// Longest file that is kept, bytes.
const MOST_BYTES: usize = 1 << 20;

/// Files and links by their paths below the root, as in a capture of `spindle inspect`.
#[derive(Debug, Default, Clone, Serialize)]
pub(crate) struct Capture {
    files: BTreeMap<String, String>,
    links: BTreeMap<String, String>,
    /// The kernel's names of the devices.
    #[serde(skip)]
    names: Vec<String>,
}

impl Capture {
    /// The machine and these devices, now.
    pub(crate) fn take(devices: &[Device]) -> Capture {
        let mut capture = Capture {
            names: devices.iter().map(Device::name).collect(),
            ..Capture::default()
        };
        for name in FACTS.iter().chain(&FILES).chain(&COUNTERS) {
            capture.keep_file(name);
        }
        capture.keep_folder(VM);
        for device in devices {
            capture.keep_device(device);
        }
        capture
    }

    /// The counters, now.
    pub(crate) fn refresh(&mut self) {
        for name in COUNTERS {
            self.keep_file(name);
        }
    }

    /// The files whose content is another now; `None`: gone.
    pub(crate) fn changes(&self) -> BTreeMap<String, Option<String>> {
        // Counters first: reading the rest takes time in which others go on.
        let rest = self.files.keys().map(String::as_str);
        let rest = rest.filter(|name| !COUNTERS.contains(name) && !FACTS.contains(name));
        let mut found = BTreeMap::new();
        for name in COUNTERS.into_iter().chain(rest) {
            let (before, now) = (self.files.get(name), self.read(name));
            if before != now.as_ref() {
                found.insert(name.to_owned(), now);
            }
        }
        found
    }

    fn keep_device(&mut self, device: &Device) {
        let Some(folder) = below_root(&device.folder) else {
            return;
        };
        if device.is_partition() {
            self.keep_folder(&folder);
        } else {
            for inside in OF_DEVICE {
                self.keep_folder(format!("{folder}/{inside}").trim_end_matches('/'));
            }
        }
        let number = device.number;
        for link in [
            format!("sys/class/block/{}", device.name()),
            format!("sys/dev/block/{number}"),
        ] {
            self.links.insert(link, folder.clone());
        }
        for slave in device.slaves() {
            if let Some(to) = below_root(&slave.folder) {
                let link = format!("{folder}/slaves/{}", slave.name());
                self.links.insert(link, to);
            }
        }
    }

    fn keep_folder(&mut self, folder: &str) {
        let entries = fs::read_dir(Path::new("/").join(folder));
        for entry in entries.into_iter().flatten().flatten() {
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            let name = entry.file_name();
            if let Some(name) = name.to_str()
                && is_file
                && !LEFT_OUT.contains(&name)
            {
                self.keep_file(&format!("{folder}/{name}"));
            }
        }
    }

    fn keep_file(&mut self, name: &str) {
        if let Some(text) = self.read(name) {
            self.files.insert(name.to_owned(), text);
        }
    }

    /// Files that may only be written, or are not text, are left out.
    fn read(&self, name: &str) -> Option<String> {
        let text = text_of(&Path::new("/").join(name))?;
        if name == DISKSTATS {
            return Some(self.own_lines(&text));
        }
        Some(text).filter(|text| text.len() <= MOST_BYTES)
    }

    fn own_lines(&self, diskstats: &str) -> String {
        let is_own = |line: &&str| {
            let name = line.split_whitespace().nth(2).unwrap_or_default();
            // sysfs writes `!` where a name has a slash.
            self.names.iter().any(|own| own.replace('!', "/") == name)
        };
        let lines: Vec<&str> = diskstats.lines().filter(is_own).collect();
        lines.join("\n")
    }
}

fn below_root(path: &Path) -> Option<String> {
    Some(path.strip_prefix("/").ok()?.to_str()?.to_owned())
}
