//! The content of written blocks.

use crate::rng::{Purpose, mix, sub_seed};
use crate::spec::Content;

/// Unit within which compressible data are laid out, bytes: small enough for file systems and drives that
/// compress 4 KiB at a time.
const UNIT: usize = 4096;

/// Fills buffers with one worker's data; each buffer differs from all before.
#[derive(Debug, Clone)]
pub struct ContentFiller {
    /// Random bytes at the start of each unit; the rest is zero.
    random_bytes: usize,
    /// Start of the worker's sequence.
    origin: u64,
    state: u64,
}

impl ContentFiller {
    /// Data of worker `worker` (from 0) of the stream with index `stream_index`.
    #[must_use]
    pub fn new(content: Content, stream_index: usize, worker: u32, seed: u64) -> ContentFiller {
        let random_bytes = match content {
            Content::Random => UNIT,
            Content::Zero => 0,
            Content::Compressible { ratio } => {
                // Whole words; what remains of a unit is zero and costs a compressor a few bytes.
                ((ratio.clamp(0.0, 1.0) * UNIT as f64 / 8.0).round() as usize) * 8
            }
        };
        let state = mix(sub_seed(seed, stream_index, worker, Purpose::Content));
        ContentFiller {
            random_bytes,
            origin: state,
            state,
        }
    }

    /// A filler that begins with the worker's content of this number: the same on every call.
    #[must_use]
    pub fn numbered(&self, number: u64) -> ContentFiller {
        ContentFiller {
            state: mix(self.origin ^ mix(number)),
            ..self.clone()
        }
    }

    /// Fills the whole buffer.
    pub fn fill(&mut self, buffer: &mut [u8]) {
        if self.random_bytes == 0 {
            buffer.fill(0);
            return;
        }
        for unit in buffer.chunks_mut(UNIT) {
            let random = self.random_bytes.min(unit.len());
            let (head, tail) = unit.split_at_mut(random);
            self.randomise(head);
            tail.fill(0);
        }
    }

    /// wyrand (Wang Yi, "wyhash"): a counter, one wide multiplication, one xor a word; the words do not
    /// depend on each other, so that a core makes several at a time.
    fn randomise(&mut self, bytes: &mut [u8]) {
        let mut state = self.state;
        let (words, rest) = bytes.as_chunks_mut::<8>();
        for word in words {
            state = state.wrapping_add(STEP);
            *word = scramble(state).to_le_bytes();
        }
        if !rest.is_empty() {
            state = state.wrapping_add(STEP);
            let word = scramble(state).to_le_bytes();
            rest.copy_from_slice(&word[..rest.len()]);
        }
        self.state = state;
    }
}

const STEP: u64 = 0xa076_1d64_78bd_642f;

#[inline]
fn scramble(state: u64) -> u64 {
    let product = u128::from(state) * u128::from(state ^ 0xe703_7ed1_a0b4_28db);
    (product >> 64) as u64 ^ product as u64
}
