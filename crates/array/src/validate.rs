//! Compares the maps with block lists read off real md arrays (`spindle validate maps DIR`).
//!
//! Each file describes one array: a header of `# key=value` lines and rows `role,idx,lblk,len,dev,dblk`
//! (with RAID6 also `qexp`) in 4 KiB blocks. Sizes, every copy, every parity position, the powers of Q and
//! the blocks left unused are compared, forwards and backwards.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::array::Array;
use crate::config::ArrayConfig;
use crate::layout::Layout;
use crate::level::Level;
use crate::place::{Place, Role};

/// Unit of the lists, bytes.
const BLOCK: u64 = 4096;
/// Largest member a list may have, blocks: 1 TiB. Lists are compared in memory.
const MOST_BLOCKS: u64 = 1 << 28;

/// The directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ValidateError {
    /// A directory or file cannot be read.
    #[error("{path}: {source}")]
    Unreadable {
        /// Directory or file.
        path: String,
        /// The reason.
        source: std::io::Error,
    },
    /// The directory contains no lists.
    #[error("{0}: no .csv file with an md address map in it")]
    Empty(String),
}

/// Result for one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileReport {
    /// File name.
    pub file: String,
    /// Level, layout and members in words.
    pub array: String,
    /// Member blocks compared.
    pub blocks: u64,
    /// The first difference; `None` if all is the same.
    pub mismatch: Option<String>,
}

/// Result for a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MapsReport {
    /// Per file, in the order of their names.
    pub files: Vec<FileReport>,
    /// Files.
    pub arrays: u64,
    /// Member blocks compared in all.
    pub blocks: u64,
    /// Files that differ.
    pub mismatches: u64,
    /// The first difference with its file.
    pub first_mismatch: Option<String>,
}

/// Compares every list in `directory` with the maps.
pub fn validate_maps(directory: &Path) -> Result<MapsReport, ValidateError> {
    let unreadable = |path: &Path| {
        let path = path.display().to_string();
        move |source| ValidateError::Unreadable { path, source }
    };
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(directory).map_err(unreadable(directory))? {
        let path = entry.map_err(unreadable(directory))?.path();
        if path.extension().is_some_and(|extension| extension == "csv") {
            paths.push(path);
        }
    }
    if paths.is_empty() {
        return Err(ValidateError::Empty(directory.display().to_string()));
    }
    paths.sort();
    let mut files = Vec::new();
    for path in &paths {
        let text = fs::read_to_string(path).map_err(unreadable(path))?;
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        files.push(compare(name.unwrap_or_default(), &text));
    }
    let first = files
        .iter()
        .find_map(|file| Some(format!("{}: {}", file.file, file.mismatch.as_ref()?)));
    Ok(MapsReport {
        arrays: files.len() as u64,
        blocks: files.iter().map(|file| file.blocks).sum(),
        mismatches: files.iter().filter(|file| file.mismatch.is_some()).count() as u64,
        first_mismatch: first,
        files,
    })
}

fn compare(file: String, text: &str) -> FileReport {
    let mut report = FileReport {
        file,
        array: String::new(),
        blocks: 0,
        mismatch: None,
    };
    let result = List::parse(text).and_then(|list| {
        let array = list.array()?;
        let config = array.config();
        report.array = format!(
            "{} {} over {} drives",
            config.level,
            config.layout,
            config.members.len()
        );
        list.compare_sizes(&array)?;
        report.blocks = list.compare_blocks(&array)?;
        Ok(())
    });
    report.mismatch = result.err();
    report
}

/// A parsed list.
#[derive(Debug)]
struct List {
    level: Level,
    layout: i64,
    chunk: u64,
    /// Size of each member's data area, bytes.
    members: Vec<u64>,
    capacity: u64,
    /// md's `component_size`, bytes; 0 where md keeps none.
    component: u64,
    rows: Vec<Row>,
}

/// One line of the list.
#[derive(Debug, Clone, Copy)]
struct Row {
    line: usize,
    held: BlockContent,
    len: u64,
    dev: u32,
    dblk: u64,
}

/// The content of a run of blocks, by its first block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockContent {
    Data {
        copy: u32,
        lblk: u64,
        power: Option<u32>,
    },
    P,
    Q,
    Unused,
}

impl List {
    fn parse(text: &str) -> Result<List, String> {
        let mut header = Header::default();
        let mut rows = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            if let Some(comment) = line.strip_prefix('#') {
                header.read(comment.trim());
            } else if !line.starts_with("role,") && !line.is_empty() {
                let row = Row::parse(number, line);
                rows.push(row.ok_or_else(|| {
                    format!("line {number}: not a row of an address map: {line}")
                })?);
            }
        }
        let level = header.word("md", "level")?;
        let layout: i64 = header.number("md", "layout")?;
        let kib = |value: u64| {
            value
                .checked_mul(1024)
                .ok_or("a size in the header is too large".to_owned())
        };
        let members = header.value("", "member_data_kib")?;
        let members = members
            .split(',')
            .map(|size| {
                kib(size
                    .trim()
                    .parse()
                    .map_err(|_| format!("member_data_kib={members}: not a list of sizes"))?)
            })
            .collect::<Result<Vec<u64>, String>>()?;
        let level: Level = level
            .parse()
            .map_err(|error: crate::ArrayError| error.to_string())?;
        // Without a layout of its own, RAID0 takes the one the kernel was started with.
        let default = header
            .value("", "raid0.default_layout")
            .ok()
            .and_then(|value| value.trim().parse().ok());
        let layout = if level == Level::Raid0 && layout <= 0 {
            default.unwrap_or(layout)
        } else {
            layout
        };
        Ok(List {
            level,
            layout,
            chunk: header.number("md", "chunk_size")?,
            members,
            capacity: header.number("", "array_bytes")?,
            component: kib(header.number("md", "component_size")?)?,
            rows,
        })
    }

    fn array(&self) -> Result<Array, String> {
        let layout = Layout::from_md(self.level, self.layout).map_err(|error| error.to_string())?;
        let chunk = if self.level == Level::Raid1 {
            0
        } else {
            self.chunk
        };
        let config = ArrayConfig::new(self.level, self.members.clone())
            .layout(layout)
            .chunk(chunk);
        Array::new(config).map_err(|error| error.to_string())
    }

    fn compare_sizes(&self, array: &Array) -> Result<(), String> {
        if array.capacity() != self.capacity {
            return Err(format!(
                "array_bytes is {}, the map says {}",
                self.capacity,
                array.capacity()
            ));
        }
        if array.component() != self.component {
            return Err(format!(
                "component_size is {} KiB, the map says {} KiB",
                self.component / 1024,
                array.component() / 1024
            ));
        }
        Ok(())
    }

    /// Compares every block of every member once with the map.
    fn compare_blocks(&self, array: &Array) -> Result<u64, String> {
        let sizes: Vec<u64> = self.members.iter().map(|size| size / BLOCK).collect();
        if let Some(size) = sizes.iter().find(|size| **size > MOST_BLOCKS) {
            return Err(format!(
                "a member of {size} blocks is more than can be compared"
            ));
        }
        let mut seen: Vec<Vec<bool>> = sizes
            .iter()
            .map(|size| vec![false; *size as usize])
            .collect();
        let mut copies =
            vec![0u32; usize::try_from(self.capacity / BLOCK).map_err(|error| error.to_string())?];
        for row in &self.rows {
            let member = seen
                .get_mut(row.dev as usize)
                .ok_or_else(|| format!("line {}: no member {}", row.line, row.dev))?;
            for index in 0..row.len {
                let place = row
                    .dblk
                    .checked_add(index)
                    .and_then(|block| usize::try_from(block).ok());
                let slot = place
                    .and_then(|place| member.get_mut(place))
                    .ok_or_else(|| {
                        format!(
                            "line {}: member {} has no block {}",
                            row.line,
                            row.dev,
                            row.dblk.saturating_add(index)
                        )
                    })?;
                if std::mem::replace(slot, true) {
                    return Err(format!(
                        "line {}: block {} of member {} again",
                        row.line,
                        row.dblk + index,
                        row.dev
                    ));
                }
                self.compare_block(array, row, index)?;
                if let BlockContent::Data { lblk, .. } = row.held {
                    copies[(lblk + index) as usize] += 1;
                }
            }
        }
        for (dev, blocks) in (0..).zip(&seen) {
            for (block, _) in (0..).zip(blocks).filter(|(_, seen)| !**seen) {
                let held = mapped_content(
                    array,
                    Place {
                        member: dev,
                        offset: block * BLOCK,
                    },
                );
                if held != BlockContent::Unused {
                    return Err(format!(
                        "member {dev} block {block}: not in the list, the map says {held}"
                    ));
                }
            }
        }
        let most = if parity_is_data(array) {
            2
        } else {
            array.copies()
        };
        for (lblk, count) in (0u64..).zip(&copies) {
            // A block across the end of a member is on none as a whole.
            let right = (array.copies()..=most).contains(count);
            if !right && is_whole(array, lblk * BLOCK) {
                return Err(format!(
                    "array block {lblk}: {count} copies in the list, the map has {}",
                    array.copies()
                ));
            }
        }
        Ok(sizes.iter().sum())
    }

    fn compare_block(&self, array: &Array, row: &Row, index: u64) -> Result<(), String> {
        let place = Place {
            member: row.dev,
            offset: (row.dblk + index) * BLOCK,
        };
        let (listed, mapped) = (row.held.at(index), mapped_content(array, place));
        if parity_is_data(array) {
            return compare_twins(array, place, listed, mapped).map_err(|mapped| {
                format!(
                    "line {}: member {} block {}: listed as {listed}, the map says {mapped}",
                    row.line,
                    row.dev,
                    row.dblk + index
                )
            });
        }
        let place_text = format!(
            "line {}: member {} block {}",
            row.line,
            row.dev,
            row.dblk + index
        );
        // The list numbers copies by their place on the members, the map in md's order: only that
        // there is such a copy is compared.
        let same = match (listed, mapped) {
            (
                BlockContent::Data { copy, lblk, power },
                BlockContent::Data {
                    lblk: ours,
                    power: our_power,
                    ..
                },
            ) => copy < array.copies() && lblk == ours && (power.is_none() || power == our_power),
            (listed, mapped) => listed == mapped,
        };
        if !same {
            return Err(format!(
                "{place_text}: listed as {listed}, the map says {mapped}"
            ));
        }
        let BlockContent::Data { lblk, .. } = listed else {
            return Ok(());
        };
        if !array.places(lblk * BLOCK).any(|copy| copy == place) {
            return Err(format!(
                "{place_text}: holds array block {lblk}, the map puts that elsewhere"
            ));
        }
        // Forward, parity too: the list has it on the same rows as the data.
        let parity = array
            .parity(lblk * BLOCK)
            .map_err(|error| error.to_string())?;
        let parity = parity
            .into_iter()
            .flat_map(|places| [Some(places.p), places.q])
            .flatten();
        for found in parity {
            if !matches!(array.role_at(found), Role::P { .. } | Role::Q { .. }) {
                return Err(format!(
                    "{place_text}: the map puts its parity where it has none"
                ));
            }
        }
        Ok(())
    }
}

impl BlockContent {
    /// The content of the block `index` blocks after the run's first.
    fn at(self, index: u64) -> BlockContent {
        match self {
            BlockContent::Data { copy, lblk, power } => BlockContent::Data {
                copy,
                lblk: lblk + index,
                power,
            },
            other => other,
        }
    }
}

impl std::fmt::Display for BlockContent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BlockContent::Data {
                lblk,
                power: Some(power),
                ..
            } => write!(f, "array block {lblk} (2^{power} in Q)"),
            BlockContent::Data { lblk, .. } => write!(f, "array block {lblk}"),
            BlockContent::P => f.write_str("P"),
            BlockContent::Q => f.write_str("Q"),
            BlockContent::Unused => f.write_str("unused"),
        }
    }
}

/// The content of a block by the map: unused also when the array uses only a part of it.
fn mapped_content(array: &Array, place: Place) -> BlockContent {
    match array.role_at(place) {
        Role::Data { logical, copy }
            if logical.is_multiple_of(BLOCK) && is_whole(array, logical) =>
        {
            let parity = array
                .parity(logical)
                .ok()
                .flatten()
                .filter(|parity| parity.q.is_some());
            BlockContent::Data {
                copy,
                lblk: logical / BLOCK,
                power: parity.map(|parity| parity.q_exponent),
            }
        }
        Role::Data { .. } | Role::Unused => BlockContent::Unused,
        Role::P { .. } => BlockContent::P,
        Role::Q { .. } => BlockContent::Q,
    }
}

/// True if the parity of a stripe equals its data because it has only one block of them: a list made from contents cannot
/// show which is which.
fn parity_is_data(array: &Array) -> bool {
    let config = array.config();
    matches!(config.level, Level::Raid4 | Level::Raid5) && config.members.len() == 2
}

/// Compares a block of such an array: data and parity may have changed places, or both may be listed as data. The error
/// is what the map says.
fn compare_twins(
    array: &Array,
    place: Place,
    listed: BlockContent,
    mapped: BlockContent,
) -> Result<(), BlockContent> {
    let held = match mapped {
        BlockContent::P => mapped_content(
            array,
            Place {
                member: 1 - place.member,
                ..place
            },
        ),
        other => other,
    };
    let same = match (listed, held) {
        (BlockContent::Data { copy, lblk, .. }, BlockContent::Data { lblk: ours, .. }) => {
            copy < 2 && lblk == ours
        }
        (BlockContent::P, BlockContent::Data { .. }) => true,
        (listed, held) => listed == held,
    };
    if same { Ok(()) } else { Err(mapped) }
}

/// True if the block at `logical` is contiguous on one member.
fn is_whole(array: &Array, logical: u64) -> bool {
    array
        .locate(logical)
        .is_ok_and(|piece| piece.len >= BLOCK && piece.offset.is_multiple_of(BLOCK))
}

impl Row {
    fn parse(line: usize, text: &str) -> Option<Row> {
        let mut fields = text.split(',');
        let role = fields.next()?;
        let idx: u32 = fields.next()?.parse().ok()?;
        let lblk: i64 = fields.next()?.parse().ok()?;
        let len = fields.next()?.parse().ok()?;
        let dev = fields.next()?.parse().ok()?;
        let dblk = fields.next()?.parse().ok()?;
        let power = match fields.next() {
            None | Some("") => None,
            Some(power) => Some(power.parse().ok()?),
        };
        let held = match role {
            "D" => BlockContent::Data {
                copy: idx,
                lblk: u64::try_from(lblk).ok()?,
                power,
            },
            "P" => BlockContent::P,
            "Q" => BlockContent::Q,
            "U" => BlockContent::Unused,
            _ => return None,
        };
        Some(Row {
            line,
            held,
            len,
            dev,
            dblk,
        })
    }
}

/// The header: `# key=value`, `# key: name=value name=value`, `# key=value key=value`.
#[derive(Debug, Default)]
struct Header(Vec<(String, String, String)>);

impl Header {
    fn read(&mut self, line: &str) {
        // A command line contains words that look like sizes of the array; only its own key counts.
        if line.starts_with("cmd=") {
            return;
        }
        let (group, rest) = match line.split_once(": ") {
            Some((group, rest)) if !group.contains('=') => (group, rest),
            _ => ("", line),
        };
        for word in rest.split_whitespace() {
            if let Some((key, value)) = word.split_once('=') {
                self.0
                    .push((group.to_owned(), key.to_owned(), value.to_owned()));
            }
        }
    }

    fn value(&self, group: &str, key: &str) -> Result<&str, String> {
        let found = self
            .0
            .iter()
            .find(|(in_group, name, _)| in_group == group && name == key);
        found
            .map(|(_, _, value)| value.as_str())
            .ok_or_else(|| format!("the header lacks {key}"))
    }

    fn word(&self, group: &str, key: &str) -> Result<String, String> {
        self.value(group, key).map(str::to_owned)
    }

    fn number<T: std::str::FromStr>(&self, group: &str, key: &str) -> Result<T, String> {
        let value = self.value(group, key)?;
        value
            .parse()
            .map_err(|_| format!("{key}={value}: not a number"))
    }
}
