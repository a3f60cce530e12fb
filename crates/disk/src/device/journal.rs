//! Writes that a power cut may undo.

use std::collections::VecDeque;

use crate::contents::Contents;

const SECTOR: usize = 512;

#[derive(Debug)]
struct Change {
    offset: u64,
    before: Vec<u8>,
    after: Vec<u8>,
}

/// The writes since the last flush, in the order in which they were done.
#[derive(Debug, Default)]
pub(super) struct Journal {
    changes: VecDeque<Change>,
    /// Changes ever made.
    made: u64,
}

impl Journal {
    /// A write that is about to be done to `contents`.
    pub(super) fn note(&mut self, contents: &Contents, offset: u64, after: Vec<u8>) {
        let mut before = vec![0; after.len()];
        // Contents in memory do not fail.
        let _ = contents.read(offset, &mut before);
        self.changes.push_back(Change {
            offset,
            before,
            after,
        });
        self.made += 1;
    }

    /// The point up to which a flush that comes now makes everything durable.
    pub(super) fn point(&self) -> u64 {
        self.made
    }

    /// Everything before `point` is durable.
    pub(super) fn flush(&mut self, point: u64) {
        let kept = (self.made - point) as usize;
        let durable = self.changes.len().saturating_sub(kept);
        self.changes.drain(..durable);
    }

    /// The power is cut: by the seed each write is there, gone, or torn after one of its sectors.
    pub(super) fn cut(&mut self, contents: &mut Contents, seed: u64) {
        for change in self.changes.iter().rev() {
            let _ = contents.write(change.offset, &change.before);
        }
        let mut state = seed;
        for change in self.changes.drain(..) {
            let sectors = change.after.len() / SECTOR;
            let whole = match draw(&mut state) % 3 {
                0 => 0,
                1 => sectors,
                _ => (draw(&mut state) % (sectors as u64 + 1)) as usize,
            };
            let _ = contents.write(change.offset, &change.after[..whole * SECTOR]);
        }
    }
}

/// SplitMix64 (Steele, Lea & Flood, OOPSLA 2014).
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(journal: &mut Journal, contents: &mut Contents, sector: u64, value: u8) {
        let bytes = vec![value; 4 * SECTOR];
        journal.note(contents, sector * SECTOR as u64, bytes.clone());
        contents.write(sector * SECTOR as u64, &bytes).unwrap();
    }

    fn sector(contents: &Contents, sector: u64) -> u8 {
        let mut bytes = [0; SECTOR];
        contents.read(sector * SECTOR as u64, &mut bytes).unwrap();
        assert!(bytes.iter().all(|byte| *byte == bytes[0]), "torn inside");
        bytes[0]
    }

    #[test]
    fn flushed_writes_stay_and_later_ones_are_there_gone_or_torn() {
        let mut outcomes = std::collections::HashSet::new();
        for seed in 0..60 {
            let mut contents = Contents::default();
            let mut journal = Journal::default();
            write(&mut journal, &mut contents, 0, 1);
            let point = journal.point();
            write(&mut journal, &mut contents, 0, 2);
            journal.flush(point);
            journal.cut(&mut contents, seed);
            let found = [0, 1, 2, 3].map(|place| sector(&contents, place));
            assert!(found.is_sorted_by(|one, next| one >= next), "{found:?}");
            assert!(found.iter().all(|value| [1, 2].contains(value)));
            outcomes.insert(found);
        }
        assert!(outcomes.len() >= 4, "{outcomes:?}");
    }

    #[test]
    fn equal_seeds_give_equal_contents() {
        let cut = |seed| {
            let mut contents = Contents::default();
            let mut journal = Journal::default();
            for place in 0..20 {
                write(&mut journal, &mut contents, place * 2, place as u8 + 1);
            }
            journal.cut(&mut contents, seed);
            (0..44)
                .map(|place| sector(&contents, place))
                .collect::<Vec<_>>()
        };
        assert_eq!(cut(3), cut(3));
        assert_ne!(cut(3), cut(4));
    }
}
