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
                let unit = self.stripe_unit.or(chunk).map_or(1, |unit| unit / BLOCK);
                let inodes = XFS_HEADERS.next_multiple_of(unit);
                Some((inodes + XFS_INODES).next_multiple_of(unit) * BLOCK)
            }
            _ => None,
        }
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
