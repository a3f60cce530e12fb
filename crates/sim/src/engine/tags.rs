//! The map of free requests where an elevator leaves some kinds a part of it only (`sbitmap_get_shallow`).
//!
//! Linux 6.1 `lib/sbitmap.c`, for one processor. The first bit that is looked at is random there until a request is done.

/// Bits of requests, in words.
#[derive(Debug)]
pub(super) struct Tags {
    words: Vec<Word>,
    /// Bits of a word.
    width: u32,
    hint: u32,
    depth: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Word {
    taken: u64,
    /// Taken bits that are free again once all others are taken (`cleared`).
    cleared: u64,
}

/// `sbitmap_calculate_shift`: words of up to 64 bits, at least four of them.
pub(crate) fn word_width(depth: u32) -> u32 {
    let mut width = 64;
    while depth >= 4 && 4 * width > depth {
        width /= 2;
    }
    width
}

impl Tags {
    pub(super) fn new(depth: u32) -> Tags {
        let width = word_width(depth);
        Tags {
            words: vec![Word::default(); depth.div_ceil(width) as usize],
            width,
            hint: 0,
            depth,
        }
    }

    /// Takes a bit. `share`: sixteenths of each word that may be used.
    pub(super) fn take(&mut self, share: Option<u32>) -> Option<u32> {
        let words = self.words.len();
        let first = (self.hint / self.width) as usize;
        // Without a share, the hint names the word only.
        let mut from = share.map_or(0, |_| self.hint % self.width);
        for step in 0..words {
            let index = (first + step) % words;
            let usable = self.usable(index, share);
            if let Some(bit) = self.words[index].take(usable, from) {
                let tag = index as u32 * self.width + bit;
                if tag == self.hint {
                    self.hint = if tag + 1 >= self.depth - 1 {
                        0
                    } else {
                        tag + 1
                    };
                }
                return Some(tag);
            }
            from = 0;
        }
        self.hint = 0;
        None
    }

    /// Bits that are free for this share.
    pub(super) fn free(&self, share: Option<u32>) -> u32 {
        let of_word = |(index, word): (usize, &Word)| word.free(self.usable(index, share));
        self.words.iter().enumerate().map(of_word).sum()
    }

    /// Bits of a word that may be used.
    fn usable(&self, index: usize, share: Option<u32>) -> u32 {
        let bits = self.width.min(self.depth - index as u32 * self.width);
        share.map_or(bits, |share| bits.min((self.width * share / 16).max(1)))
    }

    pub(super) fn give_back(&mut self, tag: u32) {
        self.words[(tag / self.width) as usize].cleared |= 1 << (tag % self.width);
        self.hint = tag;
    }
}

impl Word {
    fn take(&mut self, usable: u32, from: u32) -> Option<u32> {
        let found = self.find(usable, from).or_else(|| {
            let cleared = std::mem::take(&mut self.cleared);
            self.taken &= !cleared;
            self.find(usable, from)
        })?;
        self.taken |= 1 << found;
        Some(found)
    }

    fn free(&self, usable: u32) -> u32 {
        ((!self.taken | self.cleared) & mask(usable)).count_ones()
    }

    /// The first free bit from one on, then from the begin.
    fn find(&self, usable: u32, from: u32) -> Option<u32> {
        let free = !self.taken & mask(usable);
        let after = if from >= 64 { 0 } else { free >> from << from };
        let found = if after == 0 { free } else { after };
        (found != 0).then(|| found.trailing_zeros())
    }
}

/// The lowest so many bits.
fn mask(bits: u32) -> u64 {
    if bits >= 64 {
        u64::MAX
    } else {
        (1 << bits) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_a_quarter_of_the_map_and_at_most_64_bits() {
        for (depth, width) in [(64, 16), (256, 64), (512, 64), (62, 8), (2, 64)] {
            assert_eq!(word_width(depth), width, "{depth}");
        }
    }

    #[test]
    fn a_share_is_of_each_word() {
        let mut tags = Tags::new(64);
        let taken: Vec<u32> = std::iter::from_fn(|| tags.take(Some(6))).collect();
        assert_eq!(taken.len(), 4 * 6);
        assert_eq!((tags.free(Some(6)), tags.free(None)), (0, 40));
        assert!(taken.iter().all(|tag| tag % 16 < 6));
        let rest = std::iter::from_fn(|| tags.take(None)).count();
        assert_eq!(rest, 40);
        // A whole request takes any place, also one that is left to a share.
        tags.give_back(1);
        assert_eq!(tags.take(None), Some(1));
        tags.give_back(40);
        assert_eq!(tags.take(Some(6)), None);
        tags.give_back(36);
        assert_eq!((tags.free(Some(6)), tags.free(None)), (1, 2));
        assert_eq!(tags.take(Some(6)), Some(36));
    }

    #[test]
    fn bits_that_were_used_come_back_when_a_word_is_full() {
        let mut tags = Tags::new(64);
        assert_eq!(tags.take(None), Some(0));
        tags.give_back(0);
        // Its word is looked at first; the bit itself is cleared only when no other is free.
        assert_eq!(tags.take(None), Some(1));
        for _ in 2..16 {
            tags.take(None);
        }
        assert_eq!(tags.take(None), Some(0));
    }
}
