//! The map as administrators draw it: a column per drive, A1 the first chunk of data, P and Q parity.

use serde::Serialize;

use crate::array::{Array, Map};
use crate::place::{Place, Role};

/// Most rows drawn of a section unless the caller asks for more.
const MOST_ROWS: u64 = 12;

/// A picture of an array.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Drawing {
    /// Stretches of the members, top to bottom.
    pub sections: Vec<Section>,
}

/// Rows that follow each other on the members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Section {
    /// The rows.
    pub rows: Vec<Row>,
    /// True if the members go on like this below the last row.
    pub more: bool,
}

/// One chunk of each member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Offset on the members, bytes.
    pub offset: u64,
    /// The content of each member there: `A1`, `P`, `Q`, or empty.
    pub cells: Vec<String>,
}

impl Array {
    /// Draws the beginning of each section: of each zone of RAID0, of each far copy of RAID10. `rows` per
    /// section, or as many as it takes to see the pattern.
    pub fn drawing(&self, rows: Option<u64>) -> Drawing {
        let starts: Vec<u64> = match &self.map {
            Map::Zones(map) => map.member_starts().collect(),
            Map::Mirror(map) => map.sections().collect(),
            _ => vec![0],
        };
        let unit = self.chunk();
        let end = self.config().members.iter().copied().max().unwrap_or(0);
        let wanted = rows
            .unwrap_or_else(|| self.pattern_rows().min(MOST_ROWS))
            .max(1);
        let section = |(at, start): (usize, &u64)| {
            let end = starts.get(at + 1).copied().unwrap_or(end);
            let Some(unit) = unit else {
                return Section {
                    rows: vec![self.row(0, None)],
                    more: false,
                };
            };
            let fit = (end - start) / unit;
            let row = |index| self.row(start + index * unit, Some(unit));
            let rows: Vec<Row> = (0..wanted.min(fit))
                .map(row)
                .filter(|row| row.cells.iter().any(|cell| !cell.is_empty()))
                .collect();
            let next = start + rows.len() as u64 * unit;
            let more = next < end
                && (0..self.members()).any(|member| {
                    self.role_at(Place {
                        member,
                        offset: next,
                    }) != Role::Unused
                });
            Section { rows, more }
        };
        Drawing {
            sections: starts.iter().enumerate().map(section).collect(),
        }
    }

    fn row(&self, offset: u64, unit: Option<u64>) -> Row {
        let cell = |member| match self.role_at(Place { member, offset }) {
            Role::Data { logical, .. } => match unit {
                Some(unit) => format!("A{}", logical / unit + 1),
                // Without chunks a member is one piece: its own with linear, the whole with RAID1.
                None if logical == 0 => "A1".to_owned(),
                None => format!("A{}", member + 1),
            },
            Role::P { .. } => "P".to_owned(),
            Role::Q { .. } => "Q".to_owned(),
            Role::Unused => String::new(),
        };
        Row {
            offset,
            cells: (0..self.members()).map(cell).collect(),
        }
    }

    /// Rows after which the pattern repeats, or that show how it goes on.
    fn pattern_rows(&self) -> u64 {
        match &self.map {
            Map::Linear(_) => 1,
            Map::Zones(_) => 3,
            Map::Mirror(map) if map.sections().count() > 1 => 3,
            Map::Mirror(map) => u64::from(map.copies()) * 2,
            Map::Parity(map) => map.period().max(3),
            Map::Nested(map) => map.first_group().period().max(3),
        }
    }
}
