//! The expected content of the target as bytes, so that it can be read back on another day.
//!
//! A line that names the format, a line of JSON and its CRC-32C (u32), then pieces of the table: first entry (u64), number
//! of entries (u32), length (u32), the entries as deflated 32-bit words, and the CRC-32C (u32) of all that. Pieces without
//! any known entry are left out. Integers are little-endian.

use std::io;

use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::decompress_to_vec_with_limit;
use serde::{Deserialize, Serialize};
use spindle_verify::crc32c;

use super::entry::Entry;
use super::written::{ExpectedContent, WrittenFile};

const FORMAT: &[u8] = b"spindle verify-state 1\n";
/// Entries of a piece.
const PIECE: usize = 1 << 18;
/// Fast, and generations are small numbers: what a better level gains is little.
const LEVEL: u8 = 3;

/// The reason why a state cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The file is something else.
    #[error("not a state that `verify_state=` saved")]
    Foreign,
    /// The state is cut off or changed.
    #[error("damaged at byte {at}: {what}")]
    Damaged {
        /// Offset, bytes.
        at: usize,
        /// The problem.
        what: &'static str,
    },
    /// There is not enough memory for the table.
    #[error("no memory for its table: {0}")]
    Memory(#[from] io::Error),
}

#[derive(Debug, Serialize, Deserialize)]
struct Head {
    run: u64,
    block_bytes: u64,
    files: Vec<WrittenFile>,
    /// Pieces that follow.
    pieces: usize,
}

impl ExpectedContent {
    /// The state as bytes. A block that is being written is saved as unknown. `paths`: paths of the files, if their names are not
    /// those under which the kernel knows their descriptors.
    #[must_use]
    pub fn to_state(&self, paths: &[String]) -> Vec<u8> {
        let mut body = Vec::new();
        let mut pieces = 0;
        let mut words = Vec::with_capacity(PIECE * 4);
        for first in (0..self.table().len()).step_by(PIECE) {
            let last = self.table().len().min(first + PIECE);
            words.clear();
            for block in first..last {
                let entry = self.table().get(block);
                let entry = if entry.is_busy() {
                    entry.idle().unknown()
                } else {
                    entry
                };
                words.extend_from_slice(&entry.0.to_le_bytes());
            }
            if words.iter().all(|byte| *byte == 0) {
                continue;
            }
            let packed = compress_to_vec(&words, LEVEL);
            let start = body.len();
            body.extend_from_slice(&(first as u64).to_le_bytes());
            body.extend_from_slice(&((last - first) as u32).to_le_bytes());
            body.extend_from_slice(&(packed.len() as u32).to_le_bytes());
            body.extend_from_slice(&packed);
            let crc = crc32c(&body[start..]);
            body.extend_from_slice(&crc.to_le_bytes());
            pieces += 1;
        }
        let head = Head {
            run: self.run(),
            block_bytes: self.unit(),
            files: self
                .files()
                .enumerate()
                .map(|(index, file)| WrittenFile {
                    path: paths.get(index).unwrap_or(&file.path).clone(),
                    bytes: file.bytes,
                })
                .collect(),
            pieces,
        };
        let mut state = FORMAT.to_vec();
        // Numbers and text alone: nothing in it can fail.
        let head = serde_json::to_vec(&head).unwrap_or_default();
        state.extend_from_slice(&head);
        state.push(b'\n');
        state.extend_from_slice(&crc32c(&head).to_le_bytes());
        state.append(&mut body);
        state
    }

    /// The state from bytes.
    ///
    /// # Errors
    /// If they are not a whole state.
    pub fn from_state(state: &[u8]) -> Result<ExpectedContent, StateError> {
        let rest = state.strip_prefix(FORMAT).ok_or(StateError::Foreign)?;
        let mut at = FORMAT.len();
        let damaged = |at: usize, what: &'static str| StateError::Damaged { at, what };
        let end = rest
            .iter()
            .position(|byte| *byte == b'\n')
            .ok_or_else(|| damaged(at, "its head does not end"))?;
        let head: Head = serde_json::from_slice(&rest[..end])
            .map_err(|_| damaged(at, "its head cannot be read"))?;
        at += end + 1;
        let crc: &[u8; 4] = state[at..]
            .first_chunk()
            .ok_or_else(|| damaged(at, "it is cut off"))?;
        if u32::from_le_bytes(*crc) != crc32c(&rest[..end]) {
            return Err(damaged(at, "the CRC of its head is wrong"));
        }
        at += crc.len();
        if head.block_bytes == 0 || !head.block_bytes.is_multiple_of(512) || head.files.is_empty() {
            return Err(damaged(at, "its head makes no sense"));
        }
        let files = head.files.into_iter().map(|file| (file, None)).collect();
        let written = ExpectedContent::new(head.block_bytes, head.run, files)?;
        for _ in 0..head.pieces {
            at = read_piece(&written, state, at)?;
        }
        if at != state.len() {
            return Err(damaged(at, "there is more than there should be"));
        }
        Ok(written)
    }
}

/// Takes one piece into the table; returns the offset of the next one.
fn read_piece(written: &ExpectedContent, state: &[u8], at: usize) -> Result<usize, StateError> {
    let damaged = |what: &'static str| StateError::Damaged { at, what };
    let cut = || damaged("it is cut off");
    let head: &[u8; 16] = state[at..].first_chunk().ok_or_else(cut)?;
    let number = |bytes: &[u8]| -> u32 {
        let mut word = [0; 4];
        word.copy_from_slice(bytes);
        u32::from_le_bytes(word)
    };
    let first = u64::from(number(&head[..4])) | u64::from(number(&head[4..8])) << 32;
    let (entries, length) = (number(&head[8..12]) as usize, number(&head[12..]) as usize);
    let start = at + head.len();
    let end = start.saturating_add(length);
    let packed = state.get(start..end).ok_or_else(cut)?;
    let crc = state.get(end..end.saturating_add(4)).ok_or_else(cut)?;
    if crc32c(&state[at..end]) != number(crc) {
        return Err(damaged("its CRC is wrong"));
    }
    let first = usize::try_from(first).unwrap_or(usize::MAX);
    let fits = first
        .checked_add(entries)
        .is_some_and(|end| end <= written.table().len());
    if !fits || entries > PIECE {
        return Err(damaged("it is outside the files"));
    }
    let words = decompress_to_vec_with_limit(packed, entries * 4)
        .map_err(|_| damaged("it does not inflate"))?;
    let (words, rest) = words.as_chunks::<4>();
    if words.len() != entries || !rest.is_empty() {
        return Err(damaged("it has not as many entries as it says"));
    }
    for (index, word) in words.iter().enumerate() {
        written
            .table()
            .set(first + index, Entry(u32::from_le_bytes(*word)));
    }
    Ok(end + crc.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(bytes: u64) -> ExpectedContent {
        let file = |path: &str, bytes| {
            (
                WrittenFile {
                    path: path.to_owned(),
                    bytes,
                },
                None,
            )
        };
        let written = ExpectedContent::new(512, 77, vec![file("a", bytes), file("b", 1 << 20)]);
        let written = written.expect("memory");
        let end = bytes as usize / 512;
        for block in [0, 1, 5, end - 1, end + 3] {
            written.table().set(block, Entry::default().written());
        }
        written.table().set(6, Entry::default().written().zeroed());
        written.table().set(7, Entry::default().written().busy());
        written
    }

    #[test]
    fn a_state_comes_back_as_it_was() {
        let before = written(1 << 29);
        let state = before.to_state(&[]);
        assert!(state.len() < 10_000, "{}", state.len());
        let after = ExpectedContent::from_state(&state).expect("a whole state");
        assert_eq!((after.run(), after.unit()), (77, 512));
        assert!(after.files().eq(before.files()));
        for block in (0..before.table().len()).filter(|block| *block != 7) {
            assert_eq!(
                after.table().get(block),
                before.table().get(block),
                "{block}"
            );
        }
        assert!(!after.table().get(7).is_known());
    }

    #[test]
    fn a_state_that_is_cut_off_or_changed_is_refused() {
        let state = written(1 << 20).to_state(&[]);
        for length in 0..state.len() {
            assert!(
                ExpectedContent::from_state(&state[..length]).is_err(),
                "{length}"
            );
        }
        for at in FORMAT.len()..state.len() {
            let mut changed = state.clone();
            changed[at] ^= 0x11;
            assert!(ExpectedContent::from_state(&changed).is_err(), "{at}");
        }
        assert!(matches!(
            ExpectedContent::from_state(b"{}"),
            Err(StateError::Foreign)
        ));
    }
}
