//! The file system of a machine: only a real kernel carries it out.

use serde::Serialize;
use spindle_config::{ConfigError, Table};

/// Size of the test file unless the machine says otherwise: it is filled, and its content needs memory.
const SIZE: u64 = 256 << 20;
/// Block of ext4, in which `stride` and `stripe-width` are counted.
const BLOCK: u64 = 4096;

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
}

impl FileSystem {
    pub(super) fn read(mut table: Table) -> Result<FileSystem, ConfigError> {
        table.describe("[filesystem]".to_owned());
        let kinds = [("xfs", "xfs"), ("ext4", "ext4"), ("btrfs", "btrfs")];
        let kind = table
            .take_choice("type", &kinds)?
            .ok_or_else(|| table.missing("type"))?;
        let mut mkfs = read_geometry(&mut table, kind)?;
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
        })
    }
}

/// `su` and `sw` of XFS; `stride` and `stripe_width` of ext4, sizes here and blocks in mkfs.
fn read_geometry(table: &mut Table, kind: &str) -> Result<Vec<String>, ConfigError> {
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
    match (&su, &sw) {
        (Some(su), Some(sw)) => {
            let unit = su.size()?;
            if unit == 0 || !unit.is_multiple_of(BLOCK) {
                return Err(su.error("expected a multiple of 4096 bytes"));
            }
            let count = sw.integer(1..=1024)?;
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
    Ok(words)
}

/// The words become part of a command: other devices and files are not theirs to name.
fn plain(text: &str) -> Result<String, &'static str> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "=,.:_+-^%".contains(letter);
    match text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err("expected letters, digits and = , . : _ + - ^ %"),
    }
}
