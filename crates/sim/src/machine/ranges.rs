//! The uncertain numbers of a machine.

use spindle_config::Range;
use spindle_drive::FlashState;

use super::{DriveKind, DriveSetup, Machine};

/// An uncertain number of a part of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartRange {
    /// Model of the drive or controller.
    pub part: String,
    /// The number.
    pub range: Range,
}

impl Machine {
    /// The uncertain numbers of its parts, each model once. Drives of one model are alike: they differ together.
    #[must_use]
    pub fn ranges(&self) -> Vec<PartRange> {
        let mut found: Vec<PartRange> = Vec::new();
        let controller = self.controller.iter().flat_map(|of| {
            let sheet = &of.sheet;
            sheet.ranges.iter().map(|range| (&sheet.name, range))
        });
        let drives = self.drives.iter().flat_map(|drive| {
            let matter = drive.ranges.iter().filter(|range| drive.feels(range));
            matter.map(|range| (&drive.model, range))
        });
        for (part, range) in controller.chain(drives) {
            let is_new = !found
                .iter()
                .any(|other| other.part == *part && other.range.key == range.key);
            if is_new {
                found.push(PartRange {
                    part: part.clone(),
                    range: range.clone(),
                });
            }
        }
        found
    }

    /// The numbers that a sheet assumes without stating a range: the part and the key of each.
    #[must_use]
    pub fn assumed(&self) -> Vec<(&str, &str)> {
        let mut found = Vec::new();
        if let Some(controller) = &self.controller {
            let sheet = &controller.sheet;
            let facts = sheet.sources.iter().map(|(key, source)| (key, source));
            found.extend(without_range(&sheet.name, facts, &sheet.ranges));
        }
        for drive in &self.drives {
            if let DriveKind::Sheet(sheet) = &drive.kind {
                let facts = sheet.sources.iter().map(|fact| (&fact.key, &fact.source));
                for fact in without_range(&drive.model, facts, &drive.ranges) {
                    if !found.contains(&fact) {
                        found.push(fact);
                    }
                }
            }
        }
        found
    }
}

/// The facts whose source is an assumption, except those that have a range.
fn without_range<'a>(
    part: &'a str,
    facts: impl Iterator<Item = (&'a String, &'a String)>,
    ranges: &'a [Range],
) -> impl Iterator<Item = (&'a str, &'a str)> {
    facts
        .filter(|(_, source)| source.starts_with("assumed"))
        .filter(|(key, _)| !ranges.iter().any(|range| range.key == **key))
        .map(move |(key, _)| (part, key.as_str()))
}

impl DriveSetup {
    /// False if the number has no effect: the drive's settings leave it unused.
    fn feels(&self, range: &Range) -> bool {
        match (self.state(), range.key) {
            // Collection begins when the spare space is used up.
            (Some(FlashState::Fresh), "spare" | "pages_per_block" | "erase_block") => false,
            (_, "ahead_of_cached" | "write_hit_overhead") => self.has_write_cache(),
            _ => true,
        }
    }
}
