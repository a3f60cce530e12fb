//! The report of `spindle array layout` about an array.

use serde::Serialize;

use crate::array::{Array, Map};
use crate::config::ArrayConfig;
use crate::drawing::Drawing;
use crate::error::ArrayError;
use crate::layout::Layout;
use crate::level::Level;
use crate::limits::QueueLimits;
use crate::members::MemberSet;
use crate::tolerance::Tolerance;
use crate::write::{STRIPE_BLOCK, WritePlanner, WriteRule};

/// The cost of one small write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SmallWrite {
    /// Kernel whose rule it is.
    pub kernel: &'static str,
    /// Blocks read first.
    pub reads: u32,
    /// Blocks written, parity or copies included.
    pub writes: u32,
}

/// An array explained.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LayoutReport {
    /// The configuration.
    pub config: ArrayConfig,
    /// md's number of the layout.
    pub md_layout: Option<u32>,
    /// Usable bytes of the array.
    pub capacity: u64,
    /// Sum of the members, bytes.
    pub raw: u64,
    /// Bytes used on each member; 0 where each is used as far as it goes.
    pub component: u64,
    /// Chunk of the RAID0 over the groups of RAID50 and RAID60, bytes.
    pub outer_chunk: Option<u64>,
    /// Copies of each byte.
    pub copies: u32,
    /// Members that may be lost.
    pub tolerance: Tolerance,
    /// Cost of writing one aligned 4 KiB block with nothing cached, per kernel.
    pub small_writes: Vec<SmallWrite>,
    /// Queue attributes under Linux 6.1.
    pub queue: QueueLimits,
    /// Commands that create it, with example device names; empty if mdadm cannot.
    pub mdadm: Vec<String>,
    /// Matching `mkfs.xfs`, where there is a stripe to match.
    pub mkfs_xfs: Option<String>,
    /// Matching `mkfs.ext4`.
    pub mkfs_ext4: Option<String>,
    /// The picture.
    pub drawing: Drawing,
    /// Remarks for the administrator.
    pub notes: Vec<String>,
}

impl LayoutReport {
    /// Explains the array made from `config`, drawing `rows` of each section.
    pub fn new(config: ArrayConfig, rows: Option<u64>) -> Result<LayoutReport, ArrayError> {
        let array = Array::new(config)?;
        let (xfs, ext4) = mkfs(&array).unzip();
        Ok(LayoutReport {
            md_layout: array.config().layout.md_word(),
            capacity: array.capacity(),
            raw: array.config().members.iter().sum(),
            component: array.component(),
            outer_chunk: match &array.map {
                Map::Nested(map) => Some(map.outer_chunk()),
                _ => None,
            },
            copies: array.copies(),
            tolerance: array.tolerance(),
            small_writes: small_writes(&array)?,
            queue: array.queue_limits(),
            mdadm: mdadm(&array, example_drives),
            mkfs_xfs: xfs,
            mkfs_ext4: ext4,
            drawing: array.drawing(rows),
            notes: notes(&array),
            config: array.config().clone(),
        })
    }
}

fn small_writes(array: &Array) -> Result<Vec<SmallWrite>, ArrayError> {
    let rules = [
        ("2.6.32", WriteRule::LINUX_2_6_32),
        ("6.1", WriteRule::LINUX_6_1),
    ];
    let mut planner = WritePlanner::new(array.members());
    let cost = |(kernel, rule)| {
        let (reads, writes) = array.plan_write(
            0,
            STRIPE_BLOCK,
            rule,
            &MemberSet::EMPTY,
            &mut planner,
            |_| (),
        )?;
        Ok(SmallWrite {
            kernel,
            reads,
            writes,
        })
    };
    rules.into_iter().map(cost).collect()
}

/// `mkfs.xfs` and `mkfs.ext4` lines for the stripe that md itself reports.
fn mkfs(array: &Array) -> Option<(String, String)> {
    let (chunk, data) = (array.chunk()?, array.stripe_chunks()?);
    if !chunk.is_multiple_of(STRIPE_BLOCK) {
        return None;
    }
    let stride = chunk / STRIPE_BLOCK;
    Some((
        format!("mkfs.xfs -d su={}k,sw={data} /dev/md0", chunk / 1024),
        format!(
            "mkfs.ext4 -E stride={stride},stripe-width={} /dev/md0",
            stride * data
        ),
    ))
}

/// Commands that create the array of these devices, one for each member in slot order; mdadm's word for an absent one is
/// `missing`. Empty if mdadm cannot make it.
#[must_use]
pub fn creation(array: &Array, devices: &[String]) -> Vec<String> {
    mdadm(array, |first, count| {
        devices[first..first + count].join(" ")
    })
}

fn mdadm(array: &Array, drives: impl Fn(usize, usize) -> String) -> Vec<String> {
    let config = array.config();
    if let Map::Nested(map) = &array.map {
        let (width, groups) = (map.width() as usize, map.groups().len());
        let level = config.level.of_groups().unwrap_or(Level::Raid5);
        let mut commands: Vec<String> = (0..groups)
            .map(|group| {
                create(
                    group + 1,
                    level,
                    config,
                    &drives(group * width, width),
                    width,
                )
            })
            .collect();
        let inner: Vec<String> = (1..=groups)
            .map(|group| format!("/dev/md{group}"))
            .collect();
        commands.push(format!(
            "mdadm --create /dev/md0 --level=0 --chunk={}K --raid-devices={groups} {}",
            map.outer_chunk() / 1024,
            inner.join(" ")
        ));
        return commands;
    }
    if matches!(config.layout, Layout::Copies(layout) if !layout.mdadm_makes()) {
        return Vec::new();
    }
    let count = config.members.len();
    vec![create(0, config.level, config, &drives(0, count), count)]
}

fn create(md: usize, level: Level, config: &ArrayConfig, drives: &str, count: usize) -> String {
    let unequal = config.members.iter().any(|size| *size != config.members[0]);
    let layout = match (level, config.layout) {
        (Level::Raid5 | Level::Raid6 | Level::Raid10, layout) => format!(" --layout={layout}"),
        (Level::Raid0, layout) if unequal => format!(" --layout={layout}"),
        _ => String::new(),
    };
    let chunk = match (level, config.chunk / 1024) {
        (_, 0) => String::new(),
        (Level::Linear, kib) => format!(" --rounding={kib}K"),
        (_, kib) => format!(" --chunk={kib}K"),
    };
    let force = if count == 1 { " --force" } else { "" };
    let level = level.name().strip_prefix("raid").unwrap_or(level.name());
    format!(
        "mdadm --create /dev/md{md}{force} --level={level}{layout}{chunk} --raid-devices={count} {drives}"
    )
}

/// Example names from /dev/sdb on (sda tends to be the system's), as the shell's patterns.
fn example_drives(first: usize, count: usize) -> String {
    let name = |index: usize| {
        let letter = |at: usize| char::from(b'a' + (at % 26) as u8);
        match (index + 1) / 26 {
            0 => ("/dev/sd".to_owned(), letter(index + 1)),
            more => (format!("/dev/sd{}", letter(more - 1)), letter(index + 1)),
        }
    };
    let mut groups: Vec<(String, char, char)> = Vec::new();
    for (stem, letter) in (first..first + count).map(name) {
        match groups.last_mut() {
            Some((last_stem, _, end)) if *last_stem == stem => *end = letter,
            _ => groups.push((stem, letter, letter)),
        }
    }
    let patterns = groups.into_iter().map(|(stem, from, to)| match (from, to) {
        (from, to) if from == to => format!("{stem}{from}"),
        (from, to) => format!("{stem}[{from}-{to}]"),
    });
    patterns.collect::<Vec<_>>().join(" ")
}

fn notes(array: &Array) -> Vec<String> {
    let config = array.config();
    let mut notes = Vec::new();
    if let Layout::Copies(layout) = config.layout {
        if !layout.mdadm_makes() {
            notes.push(format!(
                "mdadm cannot make this layout; the kernel takes it through sysfs: echo {} > /sys/block/md0/md/layout",
                layout.word()
            ));
        }
        if array.tolerance().guaranteed + 1 < layout.copies() {
            notes.push("some copies of a chunk share a drive: they do not protect it".to_owned());
        }
    }
    let used = array.component();
    let left: u64 = if used > 0 && !matches!(array.map, Map::Nested(_)) {
        config.members.iter().map(|size| size - used).sum()
    } else {
        0
    };
    let smallest = config.members.iter().min().copied().unwrap_or(0);
    if config.members.iter().any(|size| *size > smallest) && left > 0 {
        notes.push(format!(
            "{left} bytes of the drives stay unused: each is used as far as the smallest"
        ));
    }
    if matches!(config.level, Level::Raid0 | Level::Raid50 | Level::Raid60)
        && !array_outer_chunk(array).is_power_of_two()
    {
        notes.push(
            "a RAID0 chunk that is not a power of two costs md a little space at the end"
                .to_owned(),
        );
    }
    if matches!(config.level, Level::Raid4 | Level::Raid5) && config.members.len() == 2 {
        notes.push("with two drives this is a mirror kept as parity".to_owned());
    }
    notes
}

fn array_outer_chunk(array: &Array) -> u64 {
    match &array.map {
        Map::Nested(map) => map.outer_chunk(),
        _ => array.config().chunk,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(level: Level, layout: &str, members: usize) -> LayoutReport {
        let layout = Layout::parse(level, layout).unwrap();
        let config = ArrayConfig::new(level, vec![500_000_000_000; members]).layout(layout);
        let config = match level {
            Level::Linear | Level::Raid1 => config,
            _ => config.chunk(64 * 1024),
        };
        LayoutReport::new(config, None).unwrap()
    }

    #[test]
    fn six_drives_in_raid10_are_drawn_as_the_textbooks_do() {
        let rows = |layout| {
            let drawing = report(Level::Raid10, layout, 6).drawing;
            let rows = drawing
                .sections
                .into_iter()
                .flat_map(|section| section.rows);
            rows.map(|row| row.cells.join(" ")).collect::<Vec<_>>()
        };
        assert_eq!(rows("n2")[..2], ["A1 A1 A2 A2 A3 A3", "A4 A4 A5 A5 A6 A6"]);
        assert_eq!(
            rows("f2")[..2],
            ["A1 A2 A3 A4 A5 A6", "A7 A8 A9 A10 A11 A12"]
        );
        assert_eq!(rows("f2")[3], "A6 A1 A2 A3 A4 A5");
        assert_eq!(rows("o2")[..2], ["A1 A2 A3 A4 A5 A6", "A6 A1 A2 A3 A4 A5"]);
    }

    #[test]
    fn small_writes_cost_what_the_textbooks_say() {
        let cost = |level, members| {
            let writes = report(level, "default", members).small_writes;
            writes
                .into_iter()
                .map(|write| (write.reads, write.writes))
                .collect::<Vec<_>>()
        };
        assert_eq!(cost(Level::Raid5, 6), [(2, 2), (2, 2)]);
        assert_eq!(
            cost(Level::Raid5, 3),
            [(1, 2), (1, 2)],
            "reading the other block is cheaper"
        );
        assert_eq!(cost(Level::Raid6, 8), [(5, 3), (3, 3)]);
        assert_eq!(cost(Level::Raid10, 6), [(0, 2), (0, 2)]);
        assert_eq!(cost(Level::Raid0, 6), [(0, 1), (0, 1)]);
        assert_eq!(cost(Level::Raid60, 16), [(5, 3), (3, 3)]);
    }

    #[test]
    fn commands_say_how_to_make_the_array_and_its_file_system() {
        let far = report(Level::Raid10, "f2", 6);
        assert_eq!(
            far.mdadm,
            [
                "mdadm --create /dev/md0 --level=10 --layout=f2 --chunk=64K --raid-devices=6 /dev/sd[b-g]"
            ]
        );
        assert_eq!(
            far.mkfs_xfs.as_deref(),
            Some("mkfs.xfs -d su=64k,sw=6 /dev/md0")
        );
        assert_eq!(
            far.mkfs_ext4.as_deref(),
            Some("mkfs.ext4 -E stride=16,stripe-width=96 /dev/md0")
        );
        let nested = report(Level::Raid50, "ls", 6);
        assert_eq!(nested.mdadm.len(), 3);
        assert_eq!(
            nested.mkfs_xfs.as_deref(),
            Some("mkfs.xfs -d su=64k,sw=4 /dev/md0")
        );
        assert!(report(Level::Raid10, "f2s18", 6).mdadm.is_empty());
        assert_eq!(report(Level::Raid1, "default", 2).mkfs_xfs, None);
        assert_eq!(example_drives(24, 3), "/dev/sdz /dev/sda[a-b]");
    }
}
