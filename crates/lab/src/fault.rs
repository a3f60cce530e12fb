//! Faults as people write them: `vdb at 2s: dies`, `at 3s: power cut`.

use std::ops::Range;

use spindle_config::units::parse_duration;
use spindle_disk::device::{Fault as DriveFault, FaultKind};

use crate::error::LabError;

/// A fault of the lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// One drive fails.
    Drive {
        /// Its slot.
        slot: usize,
        /// Kind and time.
        fault: DriveFault,
    },
    /// The lab ends: what was not flushed is lost or torn.
    PowerCut {
        /// When, nanoseconds.
        at_ns: u64,
        /// Decides what becomes of each write.
        seed: u64,
    },
}

const FORM: &str = "write `vdb at 2s: dies`, `... freezes for 300ms`, `... read error at 2048+8`, `... write error at 2048+8`, \
                    `... ignores flushes`, or `at 3s: power cut, seed 7`";

impl Fault {
    /// Reads a fault.
    pub fn parse(text: &str) -> Result<Self, LabError> {
        read(text).ok_or_else(|| LabError::Fault {
            text: text.to_owned(),
            form: FORM,
        })
    }
}

fn read(text: &str) -> Option<Fault> {
    let (place, what) = text.split_once(':')?;
    let (drive, time) = place.trim().split_once("at ")?;
    let at_ns = parse_duration(time).ok()?;
    let what = what.trim();
    if drive.is_empty() {
        let seed = what.strip_prefix("power cut")?;
        let seed = match seed.strip_prefix(", seed ") {
            Some(seed) => seed.parse().ok()?,
            None if seed.is_empty() => 1,
            None => return None,
        };
        return Some(Fault::PowerCut { at_ns, seed });
    }
    let kind = match what {
        "dies" => FaultKind::Dies,
        "ignores flushes" => FaultKind::IgnoresFlushes,
        _ if what.starts_with("freezes for ") => {
            FaultKind::Freezes(parse_duration(&what["freezes for ".len()..]).ok()?)
        }
        _ => match what.split_once(" error at ")? {
            ("read", sectors) => FaultKind::ReadError(range(sectors)?),
            ("write", sectors) => FaultKind::WriteError(range(sectors)?),
            _ => return None,
        },
    };
    Some(Fault::Drive {
        slot: slot(drive.trim())?,
        fault: DriveFault { at_ns, kind },
    })
}

/// The sectors of `2048` or `2048+8`.
fn range(text: &str) -> Option<Range<u64>> {
    let (first, count) = match text.split_once('+') {
        Some((first, count)) => (first, count.parse().ok()?),
        None => (text, 1),
    };
    let first: u64 = first.trim().parse().ok()?;
    Some(first..first.checked_add(count)?)
}

/// The slot of `vda`, `vdb` ... `vdaa`.
fn slot(name: &str) -> Option<usize> {
    let letters = name.strip_prefix("vd").filter(|rest| !rest.is_empty())?;
    let mut slot = 0_usize;
    for letter in letters.bytes() {
        if !letter.is_ascii_lowercase() || slot > 1000 {
            return None;
        }
        slot = slot * 26 + usize::from(letter - b'a') + 1;
    }
    Some(slot - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_drive(text: &str) -> (usize, u64, FaultKind) {
        match Fault::parse(text).unwrap() {
            Fault::Drive { slot, fault } => (slot, fault.at_ns, fault.kind),
            Fault::PowerCut { .. } => panic!("{text} is of a drive"),
        }
    }

    #[test]
    fn each_form_is_read() {
        assert_eq!(
            of_drive("vdb at 2s: dies"),
            (1, 2_000_000_000, FaultKind::Dies)
        );
        assert_eq!(
            of_drive("vda at 0s: read error at 2048+8"),
            (0, 0, FaultKind::ReadError(2048..2056))
        );
        assert_eq!(
            of_drive("vdz at 1ms: write error at 7").2,
            FaultKind::WriteError(7..8)
        );
        assert_eq!(
            of_drive("vdaa at 1.5s: freezes for 300ms"),
            (26, 1_500_000_000, FaultKind::Freezes(300_000_000))
        );
        assert_eq!(
            of_drive("vdc at 0s: ignores flushes").2,
            FaultKind::IgnoresFlushes
        );
        let cut = |seed| Fault::PowerCut {
            at_ns: 3_000_000_000,
            seed,
        };
        assert_eq!(Fault::parse("at 3s: power cut").unwrap(), cut(1));
        assert_eq!(Fault::parse("at 3s: power cut, seed 7").unwrap(), cut(7));
    }

    #[test]
    fn anything_else_is_an_error_that_shows_the_forms() {
        for text in [
            "",
            "vdb dies",
            "vdb at 2: dies",
            "sda at 2s: dies",
            "vdb at 2s: burns",
            "vdb at 2s: power cut",
            "at 2s: dies",
            "vdb at 2s: read error at x",
            "vdb at 2s: seek error at 5",
            "vd at 2s: dies",
        ] {
            let error = Fault::parse(text).unwrap_err().to_string();
            assert!(error.contains("vdb at 2s: dies"), "{text}: {error}");
        }
    }
}
