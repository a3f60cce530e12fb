//! Counts of faults by kind, with the first places of each.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use spindle_measure::{CheckFigures, FaultFigures, FaultPlace};
use spindle_verify::Kind;

use crate::shared::lock;

/// Places kept of each kind.
const FIRST: usize = 10;
/// Kind of a block that could not be read.
pub(crate) const UNREADABLE: &str = "unreadable";

/// Counts that several threads add to.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    blocks: AtomicU64,
    unknown: AtomicU64,
    raced: AtomicU64,
    faults: Mutex<BTreeMap<&'static str, KindCounts>>,
}

#[derive(Debug, Default)]
struct KindCounts {
    blocks: u64,
    first: Vec<FaultPlace>,
}

/// One thread's counts, added to all others' at its end.
#[derive(Debug)]
pub(crate) struct Tally<'a> {
    findings: &'a Findings,
    pub(crate) blocks: u64,
    pub(crate) unknown: u64,
    pub(crate) raced: u64,
}

impl Tally<'_> {
    pub(crate) fn of(findings: &Findings) -> Tally<'_> {
        Tally {
            findings,
            blocks: 0,
            unknown: 0,
            raced: 0,
        }
    }
}

impl Drop for Tally<'_> {
    fn drop(&mut self) {
        self.findings.blocks.fetch_add(self.blocks, Relaxed);
        self.findings.unknown.fetch_add(self.unknown, Relaxed);
        self.findings.raced.fetch_add(self.raced, Relaxed);
    }
}

impl Findings {
    /// Counts a block that is wrong.
    #[cold]
    pub(crate) fn fault(&self, kind: &'static str, place: FaultPlace) {
        let mut faults = lock(&self.faults);
        let found = faults.entry(kind).or_default();
        found.blocks += 1;
        let at = found.first.partition_point(|other| *other < place);
        if at < FIRST && found.first.get(at) != Some(&place) {
            found.first.insert(at, place);
            found.first.truncate(FIRST);
        }
    }

    /// The counts, kinds in the order of `Kind::ALL`.
    pub(crate) fn figures(&self) -> CheckFigures {
        let faults = lock(&self.faults);
        let kinds = Kind::ALL.into_iter().map(Kind::name).chain([UNREADABLE]);
        CheckFigures {
            blocks: self.blocks.load(Relaxed),
            unknown: self.unknown.load(Relaxed),
            raced: self.raced.load(Relaxed),
            faults: kinds
                .filter_map(|kind| {
                    let found = faults.get(kind)?;
                    Some(FaultFigures {
                        kind: kind.to_owned(),
                        blocks: found.blocks,
                        first: found.first.clone(),
                    })
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_places_are_kept_in_order_and_each_once() {
        let findings = Findings::default();
        for offset in (0..40).rev().chain(0..40) {
            findings.fault(
                "torn",
                FaultPlace {
                    file: 0,
                    offset: offset * 4096,
                    description: "torn".to_owned(),
                },
            );
        }
        let figures = findings.figures();
        assert_eq!(figures.faults.len(), 1);
        assert_eq!(figures.faults[0].blocks, 80);
        let offsets: Vec<u64> = figures.faults[0]
            .first
            .iter()
            .map(|place| place.offset / 4096)
            .collect();
        assert_eq!(offsets, (0..10).collect::<Vec<_>>());
    }
}
