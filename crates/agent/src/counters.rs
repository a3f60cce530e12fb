//! The kernel's counters, for `spindle monitor --hosts`: as the kernel writes them, since the monitor reads those of its
//! own machine in the same form.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use spindle_engine::kernel;

use crate::devices::{self, Device};

/// Counters since boot, at one moment.
#[derive(Debug, Serialize)]
pub(crate) struct Counters {
    /// When `/proc/diskstats` was read, by the monotonic clock.
    at_ns: u64,
    /// The same since 1970.
    wall_ns: u64,
    /// The files' text; empty where the kernel has none.
    diskstats: String,
    stat: String,
    pressure: String,
    /// Whole disks with a size, and their sequence numbers (Linux 5.15). Read after the counters: if a disk is replaced
    /// just then, its number differs from the sample before.
    disks: BTreeMap<String, Option<u64>>,
}

impl Counters {
    pub(crate) fn now() -> Counters {
        let before = kernel::monotonic_ns();
        let diskstats = text("/proc/diskstats");
        let at_ns = before.midpoint(kernel::monotonic_ns());
        let since_1970 = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let stat = text("/proc/stat");
        let wanted = |line: &&str| line.starts_with("cpu ") || line.starts_with("procs_");
        Counters {
            at_ns,
            wall_ns: u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX),
            diskstats,
            stat: stat.lines().filter(wanted).collect::<Vec<_>>().join("\n"),
            pressure: text("/proc/pressure/io"),
            disks: disks(),
        }
    }
}

/// The kernel's name of the device that a path or name leads to: a device, or a file or folder on one. `None`: there is
/// none.
pub(crate) fn device_of(name: &str) -> Option<String> {
    let path = Path::new("/dev").join(name); // an absolute path stays itself
    Some(kernel_name(&devices::under(&path)?))
}

fn disks() -> BTreeMap<String, Option<u64>> {
    let number_in = |device: &Device, file| device.text(file)?.parse::<u64>().ok();
    Device::all()
        .iter()
        .filter(|device| !device.is_partition() && number_in(device, "size") != Some(0))
        .map(|device| (kernel_name(device), number_in(device, "diskseq")))
        .collect()
}

/// A slash in a name is written `!` in sysfs.
fn kernel_name(device: &Device) -> String {
    device.name().replace('!', "/")
}

fn text(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
