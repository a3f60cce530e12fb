//! The file system of a machine, with one test file in it. A real kernel makes it; the simulator knows where the file is
//! and how its pages are written.

mod ext4;
mod xfs;

use serde::Serialize;
use spindle_array::Level;
use spindle_config::{ConfigError, Table};

use self::ext4::Ext4;
use self::xfs::{RECORD, SECTOR, Xfs};

/// Size of the test file unless the machine says otherwise: it is filled, and its content needs memory.
const SIZE: u64 = 256 << 20;
/// Block of ext4, in which `stride` and `stripe-width` are counted.
const BLOCK: u64 = 4096;
/// First block of the first file in ext4: files begin in the group after that of their folder (6.1 `fs/ext4/balloc.c`,
/// `ext4_inode_to_goal_block`), here group 1, whose first blocks hold a copy of the superblock; allocations of 8 MiB begin at
/// multiples of that (`fs/ext4/mballoc.c`, `ext4_mb_normalize_request`).
const EXT4_FILE: u64 = ((128 + 8) << 20) / BLOCK;
/// No file system has a smaller log.
const LEAST_LOG: u64 = 1 << 20;

/// The way in which a log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogKind {
    /// ext4: descriptor and inodes, in blocks of so many bytes; then, between two flushes, the block that commits them.
    Transactions(u64),
    /// XFS: a record between two flushes, a multiple of so many bytes.
    Records(u64),
}

/// The log of a file system, with which an fsync ends if the inode has changed since the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Log {
    pub(crate) kind: LogKind,
    /// First byte on the array or drive.
    pub(crate) first: u64,
    pub(crate) bytes: u64,
    /// Bytes before the first record or transaction: the journal's superblock, the record that mkfs writes.
    pub(crate) begin: u64,
}

/// A stretch of a file: its first byte in the file, and on the array or drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) offset: u64,
    pub(crate) first: u64,
}

/// The log's part for changes of a file's size and extents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Logged {
    /// Blocks: those of the creation, a bitmap for each group of so many bytes from `origin` on with new extents, and the
    /// descriptors of so many groups each.
    Blocks {
        creation: u64,
        origin: u64,
        group: u64,
        groups_of_descriptors: u64,
    },
    /// Bytes of a record that has the creation or an extent.
    Bytes { creation: u64, extent: u64 },
}

/// A file that the load makes, and that grows as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewFile {
    /// Reads that make it and find room, one step after another: first byte and bytes.
    pub(crate) reads: Vec<Vec<(u64, u64)>>,
    /// Bytes of a block.
    pub(crate) block: u64,
    /// Bytes that are allocated, and sent, at a time; `None`: no bound.
    pub(crate) piece: Option<u64>,
    /// Bytes whose extents a thread of the kernel converts together when all are written (`ext4_end_io_end`, `xfs_end_ioend`).
    pub(crate) converted: u64,
    /// A file of which less is there when it gets its first room grows `little` by little.
    pub(crate) small: u64,
    pub(crate) little: Vec<Extent>,
    pub(crate) at_once: Vec<Extent>,
    /// A larger file gets room beyond its end, so that its size doubles.
    pub(crate) doubles_from: Option<u64>,
    pub(crate) logged: Logged,
}

/// The stripe cache as mkfs and mount leave it: rows by which it has grown, and stretches of the array (first byte, bytes)
/// whose rows are in it with all their data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeftInStripes {
    pub(crate) grown: u32,
    pub(crate) kept: Vec<(u64, u64)>,
}

/// A file system, made new for each run, with one test file in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileSystem {
    /// `xfs`, `ext4` or `btrfs`.
    pub kind: &'static str,
    /// Arguments of mkfs, geometry included.
    pub mkfs: Vec<String>,
    /// Options of mount, with commas.
    pub mount: String,
    /// Size of the test file, bytes.
    pub size: u64,
    /// `su` of XFS, bytes.
    pub stripe_unit: Option<u64>,
    /// Bytes of a full stripe: `su` times `sw` of XFS, `stripe_width` of ext4.
    pub stripe_width: Option<u64>,
}

/// A volume that mkfs finds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Geometry {
    /// First byte on the array or drive, and bytes.
    pub(super) start: u64,
    pub(super) bytes: u64,
    /// Bytes of a chunk and of a full stripe of the array below, as far as mkfs takes note of them.
    pub(super) chunk: Option<u64>,
    pub(super) stripe: Option<u64>,
}

impl FileSystem {
    pub(super) fn is_xfs(&self) -> bool {
        self.kind == "xfs"
    }

    /// False if it is not known where its files are: only a real kernel has it.
    pub(super) fn has_place(&self) -> bool {
        matches!(self.kind, "ext4" | "xfs")
    }

    /// First byte of the test file on a device; `None` if its place is not known. The file is taken to be in one piece: in
    /// ext4 copies of the superblock leave a gap of 8 MiB in some groups of 128 MiB. `geometry`: of the volume.
    pub(super) fn first_byte(&self, geometry: Geometry) -> Option<u64> {
        match self.kind {
            "ext4" => Some(EXT4_FILE * BLOCK),
            "xfs" => Some(self.xfs(geometry).first_byte()),
            _ => None,
        }
    }

    /// First byte and bytes of what is read when the test file is opened, with nothing of it in memory: XFS reads the cluster of
    /// its inode (6.1 `xfs_imap_to_bp`). ext4 keeps the block of inodes that it has written (`jbd2`).
    pub(super) fn inode(&self, geometry: Geometry) -> Option<(u64, u64)> {
        let (first, bytes) = self.xfs(geometry).cluster();
        self.is_xfs().then_some((geometry.start + first, bytes))
    }

    /// A file that the load makes; `None` if its place is not known: it has no room behind the first one that it gets.
    /// `size`: the file's at the end. `first`: bytes that are written when it gets its first room.
    pub(super) fn new_file(&self, geometry: Geometry, size: u64, first: u64) -> Option<NewFile> {
        let file = match self.kind {
            "ext4" => self.ext4(geometry).new_file(geometry.start, size, first),
            "xfs" => self.xfs(geometry).new_file(geometry.start, size),
            _ => return None,
        };
        let end = geometry.start + geometry.bytes;
        let fits = |extents: &[Extent]| {
            extents
                .iter()
                .all(|of| of.first + size.saturating_sub(of.offset) <= end)
        };
        (fits(&file.little) && fits(&file.at_once)).then_some(file)
    }

    /// The state in which mkfs and mount leave the stripe cache of an array of this level: read off the lab with four drives
    /// of 512 MiB (`/proc/slabinfo`, and what the first writes of a new file read of its rows). Blocks of 4 KiB: the headers
    /// of the first allocation group of XFS, on RAID6 the cluster of its first inodes too.
    pub(super) fn left_in_stripes(&self, geometry: Geometry, level: Level) -> LeftInStripes {
        let (grown, kept): (u32, &[(u64, u64)]) = match (self.is_xfs(), level) {
            (true, Level::Raid4) => (42, &[(0, 8)]),
            (true, Level::Raid5) => (46, &[(0, 8)]),
            (true, _) => (62, &[(0, 6), (16, 8)]),
            (false, Level::Raid4 | Level::Raid5) => (20, &[]),
            (false, _) => (22, &[]),
        };
        let stretch =
            |&(first, blocks): &(u64, u64)| (geometry.start + first * BLOCK, blocks * BLOCK);
        LeftInStripes {
            grown,
            kept: kept.iter().map(stretch).collect(),
        }
    }

    fn ext4(&self, geometry: Geometry) -> Ext4 {
        let stripe = self.stripe_width.or(geometry.stripe).unwrap_or(0);
        Ext4::new(geometry.bytes, stripe)
    }

    fn xfs(&self, geometry: Geometry) -> Xfs {
        let unit = self.stripe_unit.or(geometry.chunk);
        let stripe = self.stripe_width.or(geometry.stripe).unwrap_or(0);
        Xfs::new(geometry.bytes, unit, stripe)
    }

    /// The log; `None` if there is none (`-O ^has_journal`), no room for one, or its kind is not known.
    pub(super) fn log(&self, geometry: Geometry) -> Option<Log> {
        let log = self.usual_log(geometry)?;
        let end = geometry.start + geometry.bytes;
        let bytes = log.bytes.min(end.saturating_sub(log.first));
        Some(Log { bytes, ..log }).filter(|log| log.bytes >= LEAST_LOG)
    }

    fn usual_log(&self, geometry: Geometry) -> Option<Log> {
        match self.kind {
            "ext4" if !self.mkfs.iter().any(|word| word.contains("^has_journal")) => {
                let ext4 = self.ext4(geometry);
                let (first, bytes) = ext4.journal();
                Some(Log {
                    kind: LogKind::Transactions(ext4.block),
                    first: geometry.start + first,
                    bytes,
                    begin: ext4.block,
                })
            }
            "xfs" => {
                let (first, bytes, unit) = self.xfs(geometry).log();
                Some(Log {
                    kind: LogKind::Records(if unit == RECORD { SECTOR } else { unit }),
                    first: geometry.start + first,
                    bytes,
                    begin: unit,
                })
            }
            _ => None,
        }
    }

    /// False if the file system is mounted without flushes.
    pub(super) fn has_barriers(&self) -> bool {
        let mut options = self.mount.split(',');
        !options.any(|option| option == "nobarrier" || option == "barrier=0")
    }

    pub(super) fn read(mut table: Table) -> Result<FileSystem, ConfigError> {
        table.describe("[filesystem]".to_owned());
        let kinds = [("xfs", "xfs"), ("ext4", "ext4"), ("btrfs", "btrfs")];
        let kind = table
            .take_choice("type", &kinds)?
            .ok_or_else(|| table.missing("type"))?;
        let Stripes {
            mut mkfs,
            stripe_unit,
            stripe_width,
        } = read_stripes(&mut table, kind)?;
        if let Some(value) = table.take("mkfs") {
            for word in value.list()? {
                mkfs.push(plain(word.text()?).map_err(|what| word.error(what))?);
            }
        }
        let mount = match table.take("mount") {
            Some(value) => plain(value.text()?).map_err(|what| value.error(what))?,
            None => String::new(),
        };
        let size = table.take_size("size")?.unwrap_or(SIZE);
        table.finish()?;
        Ok(FileSystem {
            kind,
            mkfs,
            mount,
            size,
            stripe_unit,
            stripe_width,
        })
    }
}

/// The geometry that a machine file gives: mkfs's arguments, and what they say.
struct Stripes {
    mkfs: Vec<String>,
    stripe_unit: Option<u64>,
    stripe_width: Option<u64>,
}

/// `su` and `sw` of XFS; `stride` and `stripe_width` of ext4, sizes here and blocks in mkfs.
fn read_stripes(table: &mut Table, kind: &str) -> Result<Stripes, ConfigError> {
    let (su, sw) = (table.take("su"), table.take("sw"));
    let (stride, width) = (table.take("stride"), table.take("stripe_width"));
    for (value, name) in [
        (&su, "xfs"),
        (&sw, "xfs"),
        (&stride, "ext4"),
        (&width, "ext4"),
    ] {
        if let Some(value) = value.as_ref().filter(|_| kind != name) {
            return Err(value.error(format!("only {name} has it; leave the key out")));
        }
    }
    let mut words = Vec::new();
    let (mut stripe_unit, mut stripe_width) = (None, None);
    match (&su, &sw) {
        (Some(su), Some(sw)) => {
            let unit = su.size()?;
            if unit == 0 || !unit.is_multiple_of(BLOCK) {
                return Err(su.error("expected a multiple of 4096 bytes"));
            }
            let count = sw.integer(1..=1024)?;
            stripe_unit = Some(unit);
            stripe_width = Some(unit.saturating_mul(count));
            words.extend(["-d".to_owned(), format!("su={unit},sw={count}")]);
        }
        (None, None) => {}
        (Some(value), None) | (None, Some(value)) => {
            return Err(value.error("`su` and `sw` go together"));
        }
    }
    let mut extended = Vec::new();
    for (value, name) in [(&stride, "stride"), (&width, "stripe-width")] {
        if let Some(value) = value {
            let bytes = value.size()?;
            if bytes == 0 || !bytes.is_multiple_of(BLOCK) {
                return Err(value.error("expected a size, a multiple of 4096 bytes"));
            }
            extended.push(format!("{name}={}", bytes / BLOCK));
            if name == "stripe-width" {
                stripe_width = Some(bytes);
            }
        }
    }
    if !extended.is_empty() {
        words.extend(["-E".to_owned(), extended.join(",")]);
    }
    Ok(Stripes {
        mkfs: words,
        stripe_unit,
        stripe_width,
    })
}

/// The words become part of a command: other devices and files are not theirs to name.
fn plain(text: &str) -> Result<String, &'static str> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "=,.:_+-^%".contains(letter);
    match text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err("expected letters, digits and = , . : _ + - ^ %"),
    }
}
