//! The numbers of a sheet that no model of performance needs, but a buyer: how often the drive fails, its power, its place.
//!
//! Every key may be left out. `docs/explanation/reliability.md` explains the rates.

use serde::Serialize;
use spindle_config::units::{self, Rate};
use spindle_config::{ConfigError, Range, Table};

/// Keys of these numbers, for disks and flash.
pub(crate) const KEYS: [&str; 11] = [
    "afr",
    "unreadable_rate",
    "idle_watts",
    "active_watts",
    "bay",
    "interface",
    "warranty_years",
    "endurance",
    "stated_read_iops",
    "stated_read_depth",
    "stated_write_rate",
];

/// A number with the range in which it is uncertain; without one the ends equal the number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Uncertain {
    /// The sheet's.
    pub value: f64,
    /// The smallest that it may be.
    pub least: f64,
    /// The largest that it may be.
    pub most: f64,
}

/// The numbers. `None` where the sheet is silent.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Offer {
    /// Share of the drives that fail in a year of service.
    pub afr: Option<Uncertain>,
    /// Unrecoverable errors per bit read.
    pub unreadable_rate: Option<Uncertain>,
    /// Watts without a request.
    pub idle_watts: Option<Uncertain>,
    /// Watts under load.
    pub active_watts: Option<Uncertain>,
    /// The bay that it needs.
    pub bay: Option<&'static str>,
    /// Interface.
    pub interface: Option<&'static str>,
    /// Years of warranty; `endurance` is meant to last as long.
    pub warranty_years: Option<f64>,
    /// Bytes that may be written.
    pub endurance: Option<u64>,
    /// The maker's figure for random 4 KiB reads, with `stated_read_depth` outstanding.
    pub stated_read_iops: Option<f64>,
    /// See there.
    pub stated_read_depth: Option<u32>,
    /// The maker's figure for sequential writes, bytes per second.
    pub stated_write_rate: Option<f64>,
}

const BAYS: [(&str, &str); 4] = [
    ("3.5 inch", "3.5 inch"),
    ("2.5 inch", "2.5 inch"),
    ("M.2", "M.2"),
    ("card", "card"),
];
const INTERFACES: [(&str, &str); 3] = [("SATA", "SATA"), ("SAS", "SAS"), ("NVMe", "NVMe")];

impl Offer {
    /// Takes the numbers from a sheet. `ranges`: those that it states.
    pub(crate) fn read(table: &mut Table, ranges: &[Range]) -> Result<Offer, ConfigError> {
        let within = |key: &str, value: f64| uncertain(ranges, key, value);
        Ok(Offer {
            afr: table.take_fraction("afr")?.map(|afr| within("afr", afr)),
            unreadable_rate: table
                .take_number("unreadable_rate", 0.0..=1e-6)?
                .map(|rate| within("unreadable_rate", rate)),
            idle_watts: table
                .take_number("idle_watts", 0.0..=100.0)?
                .map(|watts| within("idle_watts", watts)),
            active_watts: table
                .take_number("active_watts", 0.0..=100.0)?
                .map(|watts| within("active_watts", watts)),
            bay: table.take_choice("bay", &BAYS)?,
            interface: table.take_choice("interface", &INTERFACES)?,
            warranty_years: table.take_number("warranty_years", 1.0..=10.0)?,
            endurance: table.take_size("endurance")?,
            stated_read_iops: table.take_number("stated_read_iops", 1.0..=1e9)?,
            stated_read_depth: table
                .take_integer("stated_read_depth", 1..=1 << 16)?
                .map(|depth| depth as u32),
            stated_write_rate: match table.take_rate("stated_write_rate")? {
                Some(Rate::Bytes(rate)) => Some(rate),
                Some(Rate::Iops(_)) => {
                    return Err(table.error("`stated_write_rate` must be bytes per second"));
                }
                None => None,
            },
        })
    }
}

fn uncertain(ranges: &[Range], key: &str, value: f64) -> Uncertain {
    let number = |text: &str| {
        let number = text.parse::<f64>().ok();
        number
            .or_else(|| units::parse_fraction(text).ok())
            .unwrap_or(value)
    };
    let range = ranges.iter().find(|range| range.key == key);
    Uncertain {
        value,
        least: range.map_or(value, |range| number(&range.least)),
        most: range.map_or(value, |range| number(&range.most)),
    }
}
