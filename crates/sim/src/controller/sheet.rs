//! The data sheet of a controller: `catalogue/controllers`, with a source for each number, as drives have.

use std::sync::Arc;

use spindle_config::catalogue::CONTROLLERS;
use spindle_config::units::Rate;
use spindle_config::{Change, ConfigError, Document, Range, Table};

use super::board::Board;

/// The numbers of a controller. Times ns, sizes bytes, rates bytes per second.
#[derive(Debug, Clone, PartialEq)]
pub struct ControllerSheet {
    /// Model.
    pub name: String,
    /// Maker and model, for people.
    pub title: String,
    /// Commands that all units together take from the host.
    pub commands: u32,
    /// Commands that a unit takes from the host.
    pub commands_per_unit: u32,
    /// Longest command that its driver sends.
    pub max_request: u64,
    /// Time of its processor for each command of the host.
    pub command_ns: u64,
    /// Host link, both directions together.
    pub link_rate: f64,
    /// Times that written data pass the link: twice if cache and drives are on the same bus.
    pub write_passes: u32,
    /// Cache for written data; 0 without one.
    pub cache: u64,
    /// Commands that a drive gets at once. As many writes of the cache for each drive are on their way.
    pub commands_per_drive: u32,
    /// Share of a drive's commands that are writes of the cache while the host waits for them, and other commands beside
    /// them; above 0, at most 1.
    pub destage_share: f64,
    /// The drives' own write caches are on, in the maker's default setting.
    pub drive_write_cache: bool,
    /// Rate at which parity is computed, of the data that go into it.
    pub xor_rate: f64,
    /// Number and source.
    pub sources: Vec<(String, String)>,
    /// Uncertain numbers and their ranges.
    pub ranges: Vec<Range>,
}

const KEYS: [&str; 11] = [
    "commands",
    "commands_per_unit",
    "max_request",
    "command_overhead",
    "link_rate",
    "write_passes",
    "cache",
    "commands_per_drive",
    "destage_share",
    "drive_write_cache",
    "xor_rate",
];

impl ControllerSheet {
    /// An adapter with these numbers, for its units.
    pub(crate) fn board(&self) -> Arc<Board> {
        Arc::new(Board::new(self.commands))
    }

    /// Names in the catalogue.
    pub fn names() -> impl Iterator<Item = &'static str> {
        CONTROLLERS.iter().map(|(name, _)| *name)
    }

    /// The sheet of a controller of the catalogue; `None` if there is none of this name.
    #[must_use]
    pub fn named(name: &str, changes: &[Change]) -> Option<Result<ControllerSheet, ConfigError>> {
        let (known, text) = CONTROLLERS
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        let source = format!("catalogue/controllers/{known}.toml");
        Some(Document::parse(text, &source).and_then(|table| ControllerSheet::read(table, changes)))
    }

    fn read(mut table: Table, changes: &[Change]) -> Result<ControllerSheet, ConfigError> {
        let name = text(&mut table, "name")?;
        let ranges = table.take_ranges(&KEYS)?;
        table.change(&name, changes);
        let title = text(&mut table, "title")?;
        let mut sheet = ControllerSheet {
            name,
            title,
            commands: count(&mut table, "commands")?,
            commands_per_unit: count(&mut table, "commands_per_unit")?,
            max_request: size(&mut table, "max_request")?,
            command_ns: table
                .take_duration("command_overhead")?
                .ok_or_else(|| table.missing("command_overhead"))?,
            link_rate: rate(&mut table, "link_rate")?,
            write_passes: count(&mut table, "write_passes")?,
            cache: size(&mut table, "cache")?,
            commands_per_drive: count(&mut table, "commands_per_drive")?,
            destage_share: share(&mut table, "destage_share")?,
            drive_write_cache: table
                .take_flag("drive_write_cache")?
                .ok_or_else(|| table.missing("drive_write_cache"))?,
            xor_rate: rate(&mut table, "xor_rate")?,
            sources: Vec::new(),
            ranges,
        };
        let mut facts = table
            .take_table("source")?
            .ok_or_else(|| table.missing("source"))?;
        facts.describe("[source]".to_owned());
        for key in KEYS {
            let source = facts.take_text(key)?.ok_or_else(|| facts.missing(key))?;
            sheet.sources.push((key.to_owned(), source));
        }
        facts.finish()?;
        table.finish()?;
        Ok(sheet)
    }
}

fn text(table: &mut Table, key: &'static str) -> Result<String, ConfigError> {
    table.take_text(key)?.ok_or_else(|| table.missing(key))
}

fn size(table: &mut Table, key: &'static str) -> Result<u64, ConfigError> {
    table.take_size(key)?.ok_or_else(|| table.missing(key))
}

fn count(table: &mut Table, key: &'static str) -> Result<u32, ConfigError> {
    table
        .take_integer(key, 1..=65_536)?
        .map(|number| number as u32)
        .ok_or_else(|| table.missing(key))
}

fn share(table: &mut Table, key: &'static str) -> Result<f64, ConfigError> {
    let value = table.take(key).ok_or_else(|| table.missing(key))?;
    match value.fraction()? {
        0.0 => Err(value.error("expected a fraction above 0")),
        share => Ok(share),
    }
}

fn rate(table: &mut Table, key: &'static str) -> Result<f64, ConfigError> {
    match table.take(key) {
        None => Err(table.missing(key)),
        Some(value) => match value.rate()? {
            Rate::Bytes(rate) => Ok(rate),
            Rate::Iops(_) => Err(value.error("expected a rate in bytes, such as '533 MB/s'")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_nothing_is_refused() {
        let change = Change {
            part: "9650SE-16ML".to_owned(),
            key: "destage_share".to_owned(),
            value: "0".to_owned(),
        };
        let error = ControllerSheet::named("9650SE-16ML", &[change]).unwrap();
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("destage_share") && error.contains("above 0"),
            "{error}"
        );
    }

    #[test]
    fn every_sheet_of_the_catalogue_is_listed_and_is_read() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../catalogue/controllers");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter_map(|file| file.strip_suffix(".toml").map(str::to_owned))
            .collect();
        files.sort();
        assert_eq!(files, ControllerSheet::names().collect::<Vec<_>>());
        for name in ControllerSheet::names() {
            let sheet = ControllerSheet::named(name, &[]).unwrap().unwrap();
            assert_eq!(sheet.name, name);
            assert_eq!(sheet.sources.len(), KEYS.len());
        }
    }
}
