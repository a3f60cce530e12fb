//! The settings of a machine as a kernel takes them: names of devices, values in the units of sysfs, mdadm's commands.

use std::collections::BTreeMap;

use serde::Serialize;
use spindle_array::{Array, Level, creation};
use spindle_drive::Device as _;
use spindle_sim::{ArraySetup, DriveSetup, FileSystem, Kernel, Machine, ParameterValue, Scheduler};

use crate::error::LabError;

/// Requests that an ATA adapter takes.
const ATA_DEPTH: u32 = 32;
/// `BLKDEV_DEFAULT_RQ`: twice as many requests at most (`blk_mq_init_sched`).
const DEFAULT_REQUESTS: u32 = 128;
/// Elevators of a kernel with blk-mq.
const ELEVATORS: [&str; 4] = ["none", "mq-deadline", "kyber", "bfq"];

/// Everything that a machine file sets in a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KernelSetup {
    /// The drives, in slot order.
    pub drives: Vec<DriveKnobs>,
    /// The array over them.
    pub array: Option<ArrayCommands>,
    /// Read-ahead of the device under test, KiB.
    pub read_ahead_kib: Option<u64>,
    /// The file system on it.
    pub filesystem: Option<FileSystem>,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Files of `/proc/sys/vm` that the machine file sets.
    pub vm: BTreeMap<&'static str, u64>,
    /// CPU time of a request, ns.
    pub cpu_per_request_ns: u64,
}

/// The queue of a drive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DriveKnobs {
    /// The kernel's name.
    pub device: String,
    /// False for flash.
    pub rotational: bool,
    /// Elevator.
    pub scheduler: &'static str,
    /// Files of `queue/iosched` that the machine file sets.
    pub iosched: BTreeMap<&'static str, u64>,
    /// `nr_requests`; `None` without an elevator: there are as many as the drive has tags.
    pub nr_requests: Option<u32>,
    /// `max_sectors_kb`, if it is set.
    pub max_sectors_kib: Option<u64>,
}

/// An array as mdadm makes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArrayCommands {
    /// Commands that create it, in order; the array is the last one's.
    pub create: Vec<String>,
    /// mdadm makes a write-intent bitmap.
    pub has_bitmap: bool,
    /// `stripe_cache_size` of levels with parity.
    pub stripe_cache_size: Option<u32>,
    /// A member that is rebuilt, or a check.
    pub rebuild: Option<RebuildCommand>,
}

/// A rebuild or a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RebuildCommand {
    /// The device that is added; none: a check.
    pub device: Option<String>,
    /// `sync_speed_min`, KiB/s.
    pub min_kib: u64,
    /// `sync_speed_max`, KiB/s.
    pub max_kib: u64,
}

impl KernelSetup {
    /// The setup of a machine.
    pub fn new(machine: &Machine) -> Result<Self, LabError> {
        let is_synced = machine.array.as_ref().is_some_and(|array| array.synced);
        for (part, is_there) in [
            ("[controller]", machine.controller.is_some()),
            ("[partition]", machine.partition_start > 0),
            ("`synced` of [array]", is_synced),
        ] {
            if is_there {
                return Err(LabError::OnlySimulated { part });
            }
        }
        let drives = machine.drives.iter().enumerate();
        Ok(Self {
            drives: drives
                .map(|(slot, drive)| drive_knobs(machine, slot, drive))
                .collect::<Result<_, _>>()?,
            array: machine
                .array
                .as_ref()
                .map(|array| array_commands(array, machine.drives.len()))
                .transpose()?,
            read_ahead_kib: machine.queue.read_ahead.map(|bytes| bytes / 1024),
            filesystem: machine.filesystem.clone(),
            memory_bytes: machine.host.memory_bytes(),
            vm: machine.host.dirty.changed(),
            cpu_per_request_ns: machine.host.cpu_per_request_ns,
        })
    }
}

/// `vda`, `vdz`, `vdaa` (virtio_blk.c, `virtblk_name_format`).
#[must_use]
pub fn device_name(slot: usize) -> String {
    let mut letters = Vec::new();
    let mut left = slot + 1;
    while left > 0 {
        left -= 1;
        letters.push(char::from(b'a' + (left % 26) as u8));
        left /= 26;
    }
    format!("vd{}", letters.iter().rev().collect::<String>())
}

fn drive_knobs(machine: &Machine, slot: usize, setup: &DriveSetup) -> Result<DriveKnobs, LabError> {
    let drive = setup
        .build()
        .map_err(|source| LabError::Drive { slot, source })?;
    let depth = drive.queue_depth();
    let is_ata = setup.is_ata(depth);
    let scheduler = match &machine.queue.scheduler {
        None if setup.is_flash() && !is_ata => Scheduler::None,
        // blk-mq's default (elevator_get_default): a machine of an older kernel has it here too.
        None => Scheduler::named("mq-deadline", Kernel::DEFAULT).unwrap_or(Scheduler::None),
        Some(scheduler) if ELEVATORS.contains(&scheduler.name()) => scheduler.clone(),
        Some(scheduler) => {
            return Err(LabError::Elevator {
                name: scheduler.name(),
                known: ELEVATORS.join(", "),
            });
        }
    };
    let has_elevator = scheduler != Scheduler::None;
    let tags = if is_ata { ATA_DEPTH } else { depth };
    Ok(DriveKnobs {
        device: device_name(slot),
        rotational: !setup.is_flash(),
        nr_requests: match machine.queue.nr_requests {
            Some(requests) if has_elevator => Some(requests),
            Some(requests) => Some(requests.min(depth)),
            None => has_elevator.then(|| 2 * tags.min(DEFAULT_REQUESTS)),
        },
        iosched: match &machine.queue.scheduler {
            Some(scheduler) => iosched(scheduler),
            None => BTreeMap::new(),
        },
        scheduler: scheduler.name(),
        max_sectors_kib: machine.queue.max_request.map(|bytes| bytes / 1024),
    })
}

/// The parameters that differ from the kernel's own.
fn iosched(scheduler: &Scheduler) -> BTreeMap<&'static str, u64> {
    let defaults = Scheduler::named(scheduler.name(), Kernel::DEFAULT);
    let defaults = defaults.map(files).unwrap_or_default();
    let mut found = files(scheduler.clone());
    found.retain(|file, value| defaults.get(file) != Some(value));
    found
}

/// The values of an elevator's files.
fn files(mut scheduler: Scheduler) -> BTreeMap<&'static str, u64> {
    let parameters = scheduler.parameters().into_iter();
    parameters
        .filter_map(|parameter| {
            let value = match parameter.value {
                ParameterValue::Milliseconds(ns) => *ns / 1_000_000,
                ParameterValue::Nanoseconds(ns) => *ns,
                ParameterValue::Blocks(blocks, _) => *blocks / 2,
                ParameterValue::Count(count, _) => u64::from(*count),
                ParameterValue::Factor(factor) => *factor,
                ParameterValue::Flag(flag) => u64::from(*flag),
            };
            Some((parameter.file?, value))
        })
        .collect()
}

fn array_commands(setup: &ArraySetup, drives: usize) -> Result<ArrayCommands, LabError> {
    let array = Array::new(setup.config.clone())?;
    let rebuilt = setup.rebuild.and_then(|rebuild| rebuild.member);
    let is_absent = |slot: &u32| setup.missing.contains(slot) || rebuilt == Some(*slot);
    let members: Vec<String> = (0..drives)
        .map(|slot| match is_absent(&(slot as u32)) {
            true => "missing".to_owned(),
            false => format!("/dev/{}", device_name(slot)),
        })
        .collect();
    let create = creation(&array, &members);
    if create.is_empty() {
        return Err(LabError::Layout {
            layout: setup.config.layout.to_string(),
        });
    }
    let has_parity = matches!(
        setup.config.level,
        Level::Raid4 | Level::Raid5 | Level::Raid6 | Level::Raid50 | Level::Raid60
    );
    let bitmap = match setup.bitmap {
        None => String::new(),
        Some(bitmap) => match bitmap.chunk {
            None => " --bitmap=internal".to_owned(),
            Some(bytes) => format!(" --bitmap=internal --bitmap-chunk={}K", bytes / 1024),
        },
    };
    // Without it mdadm chooses by the size of the drives.
    let offset = match setup.data_offset {
        0 => String::new(),
        bytes => format!(" --data-offset={}K", bytes / 1024),
    };
    Ok(ArrayCommands {
        create: create
            .into_iter()
            .map(|command| {
                let is_plain = ["--level=0 ", "--level=linear "]
                    .iter()
                    .any(|level| command.contains(level));
                let map = match (is_plain, bitmap.as_str()) {
                    (true, _) => "",
                    (false, "") => " --bitmap=none",
                    (false, bitmap) => bitmap,
                };
                format!("{command} --metadata=1.2 --assume-clean --run{map}{offset}")
            })
            .collect(),
        has_bitmap: setup.bitmap.is_some(),
        stripe_cache_size: has_parity.then_some(setup.stripe_cache),
        rebuild: setup.rebuild.map(|rebuild| RebuildCommand {
            device: rebuild.member.map(|slot| device_name(slot as usize)),
            min_kib: rebuild.speed_min / 1024,
            max_kib: rebuild.speed_max / 1024,
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(text: &str) -> Result<KernelSetup, LabError> {
        KernelSetup::new(&Machine::parse(text, "machine.toml").unwrap())
    }

    #[test]
    fn names_go_on_after_z() {
        let names = [0, 25, 26, 701, 702].map(device_name);
        assert_eq!(names, ["vda", "vdz", "vdaa", "vdzz", "vdaaa"]);
    }

    #[test]
    fn six_sata_drives_are_made_into_far_copies() {
        let text = spindle_sim::machine_text("six-sata-f2").unwrap();
        let found = setup(text).unwrap();
        let array = found.array.unwrap();
        assert_eq!(
            array.create,
            [
                "mdadm --create /dev/md0 --level=10 --layout=f2 --chunk=64K --raid-devices=6 /dev/vda /dev/vdb /dev/vdc \
                 /dev/vdd /dev/vde /dev/vdf --metadata=1.2 --assume-clean --run --bitmap=none"
            ]
        );
        assert_eq!(array.stripe_cache_size, None);
        let knobs = &found.drives[5];
        assert_eq!((knobs.device.as_str(), knobs.rotational), ("vdf", true));
        assert_eq!(
            (knobs.scheduler, knobs.nr_requests),
            ("mq-deadline", Some(64))
        );
    }

    #[test]
    fn a_member_that_is_rebuilt_is_absent_at_first() {
        let found = setup(
            "[array]\nlevel = 'raid6'\nmissing = 1\nrebuild = 3\nsync_speed_max = '50 MiB/s'\nbitmap = 'internal'\n\
             bitmap_chunk = '1MiB'\n[[drive]]\nmodel = 'WD10EACS'\ncount = 5",
        )
        .unwrap();
        let array = found.array.unwrap();
        assert!(array.create[0].contains(
            "/dev/vda missing /dev/vdc missing /dev/vde --metadata=1.2 --assume-clean --run --bitmap=internal \
             --bitmap-chunk=1024K"
        ));
        assert_eq!(array.stripe_cache_size, Some(256));
        assert_eq!(
            array.rebuild,
            Some(RebuildCommand {
                device: Some("vdd".to_owned()),
                min_kib: 1000,
                max_kib: 51_200,
            })
        );
    }

    #[test]
    fn only_what_differs_from_the_kernel_is_set() {
        let found = setup(
            "[queue]\nscheduler = 'mq-deadline'\nread_ahead = '8MiB'\nmax_request = '256KiB'\n\
             [queue.iosched]\nread_expire = '100ms'\nfifo_batch = 16\n[[drive]]\nmodel = 'WD10EACS'",
        )
        .unwrap();
        let knobs = &found.drives[0];
        assert_eq!(knobs.iosched, BTreeMap::from([("read_expire", 100)]));
        assert_eq!(knobs.max_sectors_kib, Some(256));
        assert_eq!(found.read_ahead_kib, Some(8192));
        assert_eq!(found.array, None);
    }

    #[test]
    fn an_elevator_that_the_kernel_lacks_is_refused() {
        let error = setup("[queue]\nscheduler = 'cfq'\n[[drive]]\nmodel = 'WD10EACS'").unwrap_err();
        assert_eq!(
            error.to_string(),
            "[queue] `scheduler` cfq: the lab's kernel has none, mq-deadline, kyber, bfq; set one of them"
        );
    }

    #[test]
    fn what_only_the_simulator_has_is_refused() {
        for (lines, part) in [
            ("[controller]\nmodel = '9211-8i'", "[controller]"),
            ("[partition]\nstart = 32256", "[partition]"),
            ("", "`synced` of [array]"),
        ] {
            let synced = part.contains("synced");
            let error = setup(&format!(
                "{lines}\n[array]\nlevel = 'raid1'\nsynced = {synced}\n[[drive]]\nmodel = 'WD10EACS'\ncount = 2"
            ))
            .unwrap_err();
            let complaint = "the lab has none; leave it out, or run without `kernel=`";
            assert_eq!(error.to_string(), format!("{part}: {complaint}"));
        }
    }

    #[test]
    fn flash_with_a_deep_queue_has_no_elevator() {
        let found = setup(spindle_sim::machine_text("one-nvme").unwrap()).unwrap();
        assert_eq!(found.drives[0].scheduler, "none");
        assert_eq!(found.drives[0].nr_requests, None);
        assert!(!found.drives[0].rotational);
        let found = setup(spindle_sim::machine_text("one-sata-ssd").unwrap()).unwrap();
        assert_eq!(found.drives[0].scheduler, "mq-deadline");
    }
}
