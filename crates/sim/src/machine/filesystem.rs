//! The file system of a machine, with one test file in it. A real kernel makes it; the simulator knows where the file is
//! and how its pages are written.

use serde::Serialize;
use spindle_config::{ConfigError, Table};

/// Size of the test file unless the machine says otherwise: it is filled, and its content needs memory.
const SIZE: u64 = 256 << 20;
/// Block of ext4, in which `stride` and `stripe-width` are counted.
const BLOCK: u64 = 4096;
/// First block of the first file in ext4: files begin in the group after that of their folder (6.1 `fs/ext4/balloc.c`,
/// `ext4_inode_to_goal_block`), here group 1, whose first blocks hold a copy of the superblock; allocations of 8 MiB begin at
/// multiples of that (`fs/ext4/mballoc.c`, `ext4_mb_normalize_request`).
const EXT4_FILE: u64 = ((128 + 8) << 20) / BLOCK;
/// Blocks of XFS before its first inodes: headers and roots of the first allocation group, up to the alignment of inodes.
const XFS_HEADERS: u64 = 16;
/// Blocks of the first 64 inodes of XFS.
const XFS_INODES: u64 = 8;

/// Bytes of a cluster of inodes (`XFS_INODE_BIG_CLUSTER_SIZE`, doubled for inodes of 512 bytes).
const XFS_CLUSTER: u64 = 16 << 10;

/// Blocks of a group of ext4, and groups whose tables are together (`flex_bg`).
const EXT4_GROUP: u64 = 32768;
const EXT4_FLEX: u64 = 16;
/// Blocks of the tables of so many groups: two bitmaps and 512 blocks of inodes of each.
const EXT4_TABLES: u64 = EXT4_FLEX * (2 + 512);
/// Blocks of ext4 -> blocks of the journal (e2fsprogs 1.47 `ext2fs_default_journal_size`): at least so many blocks.
const EXT4_JOURNALS: [(u64, u64); 8] = [
    (32768 << 10, 262_144),
    (16384 << 10, 131_072),
    (8192 << 10, 65536),
    (4096 << 10, 32768),
    (512 << 10, 16384),
    (256 << 10, 8192),
    (32 << 10, 4096),
    (0, 1024),
];
/// Bytes of a record of XFS's log with an inode: header, and the inode's core with its headers.
const XFS_RECORD: u64 = 1024;
/// Bytes of XFS's log: mkfs's least for more than 300 MB.
const XFS_LOG: u64 = 64 << 20;
/// mkfs.xfs takes a `su` of more than the first for the log as the second.
const XFS_LONGEST_LOG_UNIT: u64 = 256 << 10;
const XFS_LOG_UNIT: u64 = 32 << 10;

/// No file system has a smaller log.
const LEAST_LOG: u64 = 1 << 20;

/// The way in which a log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogKind {
    /// ext4: descriptor and inodes; then, between two flushes, the block that commits them.
    Transactions,
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
}

impl FileSystem {
    /// First byte of the test file on a device; `None` if its place is not known. The file is taken to be in one piece: in
    /// ext4 copies of the superblock leave a gap of 8 MiB in some groups of 128 MiB. `chunk`: of the array below, to which
    /// mkfs.xfs aligns inodes and files.
    pub(super) fn first_byte(&self, chunk: Option<u64>) -> Option<u64> {
        match self.kind {
            "ext4" => Some(EXT4_FILE * BLOCK),
            "xfs" => {
                let unit = self.unit(chunk);
                let inodes = XFS_HEADERS.next_multiple_of(unit);
                Some((inodes + XFS_INODES).next_multiple_of(unit) * BLOCK)
            }
            _ => None,
        }
    }

    /// First byte and bytes of what is read when the test file is opened, with nothing of it in memory: XFS reads the cluster of
    /// its inode (6.1 `xfs_imap_to_bp`). ext4 keeps the block of inodes that it has written (`jbd2`).
    pub(super) fn inode(&self, start: u64, chunk: Option<u64>) -> Option<(u64, u64)> {
        let first = XFS_HEADERS.next_multiple_of(self.unit(chunk)) * BLOCK;
        (self.kind == "xfs").then_some((start + first, XFS_CLUSTER))
    }

    /// Blocks to whose multiples mkfs.xfs aligns inodes and files.
    fn unit(&self, chunk: Option<u64>) -> u64 {
        self.stripe_unit.or(chunk).map_or(1, |unit| unit / BLOCK)
    }

    /// The log, in the middle of a file system of so many bytes; `None` if there is none (`-O ^has_journal`), no room for one, or
    /// its kind is not known.
    pub(super) fn log(&self, start: u64, bytes: u64, chunk: Option<u64>) -> Option<Log> {
        let log = self.usual_log(start, bytes, chunk)?;
        let room = (start + bytes).saturating_sub(log.first);
        Some(Log {
            bytes: log.bytes.min(room),
            ..log
        })
        .filter(|log| log.bytes >= LEAST_LOG)
    }

    fn usual_log(&self, start: u64, bytes: u64, chunk: Option<u64>) -> Option<Log> {
        match self.kind {
            "ext4" if !self.mkfs.iter().any(|word| word.contains("^has_journal")) => {
                let blocks = bytes / BLOCK;
                let middle = blocks / 2 / EXT4_GROUP;
                // `get_midpoint_journal_block`
                let first = match middle > EXT4_FLEX {
                    true => middle / EXT4_FLEX * EXT4_FLEX * EXT4_GROUP + EXT4_TABLES,
                    false => middle * EXT4_GROUP,
                };
                let of = EXT4_JOURNALS.iter().find(|(least, _)| blocks >= *least);
                let journal = of.map_or(0, |(_, journal)| *journal);
                Some(Log {
                    kind: LogKind::Transactions,
                    first: start + first * BLOCK,
                    bytes: journal * BLOCK,
                })
            }
            "xfs" => {
                let unit = match self.stripe_unit.or(chunk) {
                    Some(unit) if unit > XFS_LONGEST_LOG_UNIT => XFS_LOG_UNIT,
                    Some(unit) => unit,
                    None => XFS_RECORD,
                };
                Some(Log {
                    kind: LogKind::Records(XFS_RECORD.next_multiple_of(unit)),
                    first: start + bytes / 2 / BLOCK * BLOCK,
                    bytes: XFS_LOG.min(bytes / 4) / unit * unit,
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
        let (mut mkfs, stripe_unit) = read_geometry(&mut table, kind)?;
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
        })
    }
}

/// `su` and `sw` of XFS; `stride` and `stripe_width` of ext4, sizes here and blocks in mkfs: mkfs's arguments, and `su`.
fn read_geometry(table: &mut Table, kind: &str) -> Result<(Vec<String>, Option<u64>), ConfigError> {
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
    let mut stripe_unit = None;
    match (&su, &sw) {
        (Some(su), Some(sw)) => {
            let unit = su.size()?;
            if unit == 0 || !unit.is_multiple_of(BLOCK) {
                return Err(su.error("expected a multiple of 4096 bytes"));
            }
            let count = sw.integer(1..=1024)?;
            stripe_unit = Some(unit);
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
        }
    }
    if !extended.is_empty() {
        words.extend(["-E".to_owned(), extended.join(",")]);
    }
    Ok((words, stripe_unit))
}

/// The words become part of a command: other devices and files are not theirs to name.
fn plain(text: &str) -> Result<String, &'static str> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "=,.:_+-^%".contains(letter);
    match text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err("expected letters, digits and = , . : _ + - ^ %"),
    }
}
