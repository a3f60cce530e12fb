//! Slots without a request.

/// A stack: the slot that came free last is taken first, its memory being the warmest. Taken slots are above the
/// top until it is issued, so that no second list of it is needed.
#[derive(Debug)]
pub(crate) struct FreeSlots {
    slots: Box<[u32]>,
    /// Free ones are `..top`, those taken and not yet issued `top..taken`.
    top: usize,
    taken: usize,
}

impl FreeSlots {
    /// All of `0..depth`.
    pub(crate) fn all(depth: usize) -> FreeSlots {
        FreeSlots {
            slots: (0..depth as u32).rev().collect(),
            top: depth,
            taken: depth,
        }
    }

    /// Gives a slot back; all taken slots must have been issued.
    #[inline(always)]
    pub(crate) fn give(&mut self, slot: u32) {
        debug_assert_eq!(self.top, self.taken, "a slot was taken and not issued");
        self.slots[self.top] = slot;
        self.top += 1;
        self.taken = self.top;
    }

    /// The slot to be taken next.
    #[inline(always)]
    pub(crate) fn last(&self) -> Option<u32> {
        self.slots[..self.top].last().copied()
    }

    /// Takes a slot.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> Option<u32> {
        let slot = self.last()?;
        self.top -= 1;
        Some(slot)
    }

    /// The slots that are taken and not yet issued.
    #[inline(always)]
    pub(crate) fn taken(&self) -> &[u32] {
        &self.slots[self.top..self.taken]
    }

    /// Marks the taken slots as issued.
    #[inline(always)]
    pub(crate) fn issued(&mut self) {
        self.taken = self.top;
    }

    /// The free slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &u32> {
        self.slots[..self.top].iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_is_known_until_it_is_issued() {
        let mut free = FreeSlots::all(3);
        assert_eq!((free.take(), free.take()), (Some(0), Some(1)));
        assert_eq!(free.taken(), [1, 0]);
        free.issued();
        assert!(free.taken().is_empty());
        free.give(0);
        assert_eq!(free.iter().copied().collect::<Vec<_>>(), [2, 0]);
        assert_eq!(
            (free.take(), free.take(), free.take()),
            (Some(0), Some(2), None)
        );
        assert_eq!(free.taken(), [2, 0]);
    }
}
