//! Faults of a drive at times that the caller chooses.

use std::collections::HashSet;
use std::ops::Range;

/// One fault, from a time on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// When it begins, nanoseconds.
    pub at_ns: u64,
    /// Kind.
    pub kind: FaultKind,
}

/// Kinds of faults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// The drive fails all requests, those that it works on too.
    Dies,
    /// The drive finishes nothing for so many nanoseconds.
    Freezes(u64),
    /// Reads of these sectors fail until they are written.
    ReadError(Range<u64>),
    /// Writes of these sectors fail.
    WriteError(Range<u64>),
    /// Flushes are acknowledged, and nothing is made durable.
    IgnoresFlushes,
}

/// The faults of a drive.
#[derive(Debug, Default)]
pub(super) struct Faults {
    faults: Vec<Fault>,
    /// Sectors with a read error that were written since.
    written: HashSet<u64>,
}

impl Faults {
    pub(super) fn new(faults: Vec<Fault>) -> Self {
        Self {
            faults,
            written: HashSet::new(),
        }
    }

    /// When the drive dies, if it does.
    pub(super) fn death_ns(&self) -> Option<u64> {
        let deaths = self.faults.iter().filter(|one| one.kind == FaultKind::Dies);
        deaths.map(|one| one.at_ns).min()
    }

    /// When something that would be done at `at_ns` is done.
    pub(super) fn thawed_ns(&self, at_ns: u64) -> u64 {
        self.faults.iter().fold(at_ns, |at, one| match one.kind {
            FaultKind::Freezes(ns) if (one.at_ns..one.at_ns + ns).contains(&at) => one.at_ns + ns,
            _ => at,
        })
    }

    pub(super) fn ignores_flushes(&self, now_ns: u64) -> bool {
        self.began(now_ns)
            .any(|kind| *kind == FaultKind::IgnoresFlushes)
    }

    pub(super) fn fails_read(&self, now_ns: u64, sectors: &Range<u64>) -> bool {
        self.began(now_ns).any(|kind| match kind {
            FaultKind::ReadError(bad) => {
                common(bad, sectors).any(|sector| !self.written.contains(&sector))
            }
            _ => false,
        })
    }

    pub(super) fn fails_write(&self, now_ns: u64, sectors: &Range<u64>) -> bool {
        self.began(now_ns).any(|kind| match kind {
            FaultKind::WriteError(bad) => !common(bad, sectors).is_empty(),
            _ => false,
        })
    }

    /// Sectors were written.
    pub(super) fn heal(&mut self, now_ns: u64, sectors: &Range<u64>) {
        for fault in &self.faults {
            if let FaultKind::ReadError(bad) = &fault.kind
                && fault.at_ns <= now_ns
            {
                self.written.extend(common(bad, sectors));
            }
        }
    }

    fn began(&self, now_ns: u64) -> impl Iterator<Item = &FaultKind> {
        let began = self.faults.iter().filter(move |one| one.at_ns <= now_ns);
        began.map(|one| &one.kind)
    }
}

fn common(one: &Range<u64>, other: &Range<u64>) -> Range<u64> {
    one.start.max(other.start)..one.end.min(other.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(kind: FaultKind) -> Faults {
        Faults::new(vec![Fault { at_ns: 100, kind }])
    }

    #[test]
    fn a_read_error_begins_at_its_time_and_ends_with_a_write() {
        let mut faults = faults(FaultKind::ReadError(10..12));
        assert!(!faults.fails_read(99, &(0..20)));
        assert!(faults.fails_read(100, &(11..20)));
        assert!(!faults.fails_read(100, &(12..20)));
        faults.heal(150, &(11..12));
        assert!(!faults.fails_read(150, &(11..20)));
        assert!(faults.fails_read(150, &(0..20)));
        assert!(!faults.fails_write(150, &(0..20)));
    }

    #[test]
    fn a_frozen_drive_finishes_when_it_thaws() {
        let faults = faults(FaultKind::Freezes(50));
        let thawed = [99, 100, 149, 150].map(|at| faults.thawed_ns(at));
        assert_eq!(thawed, [99, 150, 150, 150]);
    }

    #[test]
    fn write_errors_deaths_and_lies_are_apart() {
        assert!(faults(FaultKind::WriteError(5..6)).fails_write(100, &(0..8)));
        assert!(!faults(FaultKind::WriteError(5..6)).fails_read(100, &(0..8)));
        assert_eq!(faults(FaultKind::Dies).death_ns(), Some(100));
        assert!(faults(FaultKind::IgnoresFlushes).ignores_flushes(100));
        assert!(!faults(FaultKind::IgnoresFlushes).ignores_flushes(99));
    }
}
