//! Pages of the host's addresses whose units were not written together: reading one costs an operation for each unit.

use std::ops::Range;

/// A bit for each page.
#[derive(Debug, Clone)]
pub(super) struct Scatter {
    page_blocks: u64,
    pages: u64,
    /// The pages' state at the beginning.
    at_first: bool,
    /// Bits of the pages whose state has changed since; no memory until the first does.
    changed: Vec<u64>,
    /// Blocks of the writes that continued each other, up to the last one.
    run: Range<u64>,
}

impl Scatter {
    pub(super) fn new(capacity_blocks: u64, page_blocks: u32, at_first: bool) -> Self {
        Self {
            page_blocks: u64::from(page_blocks),
            pages: capacity_blocks.div_ceil(u64::from(page_blocks)),
            at_first,
            changed: Vec::new(),
            run: 0..0,
        }
    }

    /// False if no page is scattered.
    #[inline]
    pub(super) fn any(&self) -> bool {
        self.at_first || !self.changed.is_empty()
    }

    #[inline]
    pub(super) fn is_scattered(&self, page: u64) -> bool {
        let word = self.changed.get((page / 64) as usize).unwrap_or(&0);
        ((word >> (page % 64)) & 1 == 1) != self.at_first
    }

    fn set(&mut self, page: u64, scattered: bool) {
        if self.is_scattered(page) == scattered {
            return;
        }
        if self.changed.is_empty() {
            self.changed = vec![0; self.pages.div_ceil(64) as usize];
        }
        self.changed[(page / 64) as usize] ^= 1 << (page % 64);
    }

    /// The host writes these blocks.
    pub(super) fn write(&mut self, blocks: Range<u64>) {
        if self.run.end == blocks.start {
            self.run.end = blocks.end;
        } else {
            self.run = blocks.clone();
        }
        let size = self.page_blocks;
        for page in blocks.start / size..blocks.end.div_ceil(size) {
            let whole = self.run.start <= page * size && (page + 1) * size <= self.run.end;
            self.set(page, !whole);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_written_in_one_run_are_whole_however_short_its_writes() {
        let mut scatter = Scatter::new(1 << 20, 32, false);
        for start in (0..128).step_by(8) {
            scatter.write(start..start + 8);
        }
        assert!((0..4).all(|page| !scatter.is_scattered(page)));
        scatter.write(40..48);
        scatter.write(200..300);
        let found: Vec<u64> = (0..12).filter(|page| scatter.is_scattered(*page)).collect();
        assert_eq!(found, [1, 6, 9]);
    }

    #[test]
    fn a_used_drive_is_scattered_until_pages_are_written_whole() {
        let mut scatter = Scatter::new(1 << 20, 32, true);
        assert!(scatter.any() && scatter.is_scattered(5));
        scatter.write(160..192);
        assert!(!scatter.is_scattered(5) && scatter.is_scattered(4) && scatter.is_scattered(6));
    }
}
