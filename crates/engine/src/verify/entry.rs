//! The state of one block, in 32 bits.

/// Bits of the generation; the state is above them, and above that a bit for a write under way.
const GENERATION_BITS: u32 = 29;
const GENERATION: u32 = (1 << GENERATION_BITS) - 1;
const BUSY: u32 = 1 << 31;

/// The content of a block, as far as this run is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// The content from before the run.
    Untouched = 0,
    /// The write of the entry's generation.
    ExpectedContent = 1,
    /// Zeroes.
    Zeroed = 2,
    /// Content that cannot be known: trimmed, or a write of it failed.
    Unknown = 3,
}

/// An entry of the table. All zero: untouched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Entry(pub(crate) u32);

impl Entry {
    fn new(state: State, generation: u32) -> Entry {
        Entry(generation & GENERATION | (state as u32) << GENERATION_BITS)
    }

    #[inline(always)]
    pub(crate) fn state(self) -> State {
        match self.0 >> GENERATION_BITS & 3 {
            0 => State::Untouched,
            1 => State::ExpectedContent,
            2 => State::Zeroed,
            _ => State::Unknown,
        }
    }

    /// Generation of the last write; 0: there was none.
    #[inline(always)]
    pub(crate) fn generation(self) -> u32 {
        self.0 & GENERATION
    }

    /// True if a write to it is under way.
    #[inline(always)]
    pub(crate) fn is_busy(self) -> bool {
        self.0 & BUSY != 0
    }

    #[inline(always)]
    pub(crate) fn busy(self) -> Entry {
        Entry(self.0 | BUSY)
    }

    /// The entry without a write under way.
    #[inline(always)]
    pub(crate) fn idle(self) -> Entry {
        Entry(self.0 & !BUSY)
    }

    /// Generation of the next write. After 2^29 of them it begins again at 2, as 1 is the first of all.
    #[inline(always)]
    pub(crate) fn next_generation(self) -> u32 {
        match self.generation() {
            GENERATION => 2,
            generation => generation + 1,
        }
    }

    /// After the next write.
    #[inline(always)]
    pub(crate) fn written(self) -> Entry {
        Entry::new(State::ExpectedContent, self.next_generation())
    }

    /// After it was zeroed.
    pub(crate) fn zeroed(self) -> Entry {
        Entry::new(State::Zeroed, self.generation())
    }

    /// After an operation that may have been done in part; a write of the next generation may have been part of it.
    pub(crate) fn unknown(self) -> Entry {
        Entry::new(State::Unknown, self.next_generation())
    }

    /// True if the content of the block is known.
    pub(crate) fn is_known(self) -> bool {
        !self.is_busy() && matches!(self.state(), State::ExpectedContent | State::Zeroed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_goes_from_write_to_write() {
        let first = Entry::default().written();
        assert_eq!(
            (first.state(), first.generation()),
            (State::ExpectedContent, 1)
        );
        let zeroed = first.zeroed();
        assert_eq!((zeroed.state(), zeroed.generation()), (State::Zeroed, 1));
        let busy = zeroed.busy();
        assert!(busy.is_busy() && !busy.is_known() && busy.idle() == zeroed);
        assert_eq!(zeroed.written().generation(), 2);
        assert_eq!(
            (first.unknown().state(), first.unknown().generation()),
            (State::Unknown, 2)
        );
        assert_eq!(
            Entry::new(State::ExpectedContent, GENERATION).next_generation(),
            2
        );
    }
}
