//! The expected content of the target: for each block of each file, the last write of the run.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use serde::{Deserialize, Serialize};
use spindle_measure::{FaultPlace, VerificationFigures};
use spindle_verify::{Expected, Fault, Stamp, classify, classify_zeroes, is_sealed};

use super::entry::{Entry, State};
use super::findings::{Findings, UNREADABLE};
use super::table::Table;
use crate::StreamFile;

/// The expected content of the target. Loads on the same files may share it, one after another.
#[derive(Debug)]
pub struct ExpectedContent {
    /// The run's number in every stamp.
    run: u64,
    /// Length of a block, bytes.
    unit: u64,
    files: Vec<KnownFile>,
    /// Numbers of open files by device and inode.
    numbers: HashMap<(u64, u64), u32>,
    table: Table,
}

/// One file of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenFile {
    /// Its path during the run.
    pub path: String,
    /// Its size, bytes.
    pub bytes: u64,
}

/// A file with its device and inode and an open descriptor, while the run that writes it is on.
pub(crate) type NewFile = (WrittenFile, Option<((u64, u64), StreamFile)>);

#[derive(Debug)]
pub(crate) struct KnownFile {
    pub(crate) file: WrittenFile,
    pub(crate) open: Option<((u64, u64), StreamFile)>,
    /// Entry of its first block.
    pub(crate) first: usize,
}

/// A part of one file: whole blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) file: u32,
    /// First byte in the file.
    pub(crate) offset: u64,
    /// Entries.
    pub(crate) blocks: Range<usize>,
}

/// The result of the check of one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judgement {
    Right,
    /// The expected content is not known.
    Unknown,
    /// It was being written, and has neither the old nor the new content.
    Raced,
    Wrong(Fault),
}

impl ExpectedContent {
    /// A table without writes. Each file with its identity and an open descriptor.
    pub(crate) fn new(
        unit: u64,
        run: u64,
        files: Vec<NewFile>,
    ) -> std::io::Result<ExpectedContent> {
        let mut first = 0;
        let mut known = Vec::new();
        let mut numbers = HashMap::new();
        for (file, open) in files {
            if let Some((identity, _)) = open {
                numbers.insert(identity, known.len() as u32);
            }
            let blocks = usize::try_from(file.bytes / unit).unwrap_or(usize::MAX);
            known.push(KnownFile { file, open, first });
            first = blocks.saturating_add(first);
        }
        Ok(ExpectedContent {
            run,
            unit,
            files: known,
            numbers,
            table: Table::new(first)?,
        })
    }

    /// The same table for further loads, whose blocks are of `unit` bytes and which use further files. As every sector is
    /// stamped, a block may be split and its parts keep their generation; blocks are never joined.
    pub(crate) fn go_on(
        self: Arc<Self>,
        unit: u64,
        further: Vec<NewFile>,
    ) -> std::io::Result<Arc<ExpectedContent>> {
        let unit = gcd(unit, self.unit);
        if unit == self.unit && further.is_empty() {
            return Ok(self);
        }
        let own = self
            .files
            .iter()
            .map(|known| (known.file.clone(), known.open));
        let finer = ExpectedContent::new(unit, self.run, own.chain(further).collect())?;
        let parts = (self.unit / unit) as usize;
        for (old, new) in self.files.iter().zip(&finer.files) {
            for block in 0..(old.file.bytes / self.unit) as usize {
                let entry = self.table.get(old.first + block);
                if entry != Entry::default() {
                    for part in 0..parts {
                        finer.table.set(new.first + block * parts + part, entry);
                    }
                }
            }
        }
        Ok(Arc::new(finer))
    }

    /// Number of an open file.
    pub(crate) fn number(&self, identity: (u64, u64)) -> Option<u32> {
        self.numbers.get(&identity).copied()
    }

    /// Number in the stamps.
    pub(crate) fn run(&self) -> u64 {
        self.run
    }

    /// The same as 16 hexadecimal digits.
    #[must_use]
    pub fn run_name(&self) -> String {
        format!("{:016x}", self.run)
    }

    /// Length of a block, bytes.
    #[must_use]
    pub fn unit(&self) -> u64 {
        self.unit
    }

    /// The files, in the order of their numbers.
    pub fn files(&self) -> impl Iterator<Item = &WrittenFile> {
        self.files.iter().map(|known| &known.file)
    }

    pub(crate) fn known_files(&self) -> &[KnownFile] {
        &self.files
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// Entries of a request, which is made of whole blocks.
    #[inline(always)]
    pub(crate) fn blocks(&self, file: u32, offset: u64, len: u32) -> Range<usize> {
        let first = self.files[file as usize].first + (offset / self.unit) as usize;
        first..first + (u64::from(len) / self.unit) as usize
    }

    /// File and offset of an entry.
    pub(crate) fn place(&self, block: usize) -> (u32, u64) {
        let file = self.files.partition_point(|known| known.first <= block) - 1;
        let offset = (block - self.files[file].first) as u64 * self.unit;
        (file as u32, offset)
    }

    /// True if there is a block whose content is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        (0..self.table.len()).all(|block| !self.table.get(block).is_known())
    }

    /// The next part of one file, from entry `from` on, that begins and ends with a known block, is at most `most` blocks
    /// long and has no gap longer than `gap` blocks.
    pub(crate) fn next_known(&self, from: usize, most: usize, gap: usize) -> Option<Extent> {
        let known = |block: &usize| self.table.get(*block).is_known();
        let first = (from..self.table.len()).find(known)?;
        let (file, offset) = self.place(first);
        let next_file = self
            .files
            .get(file as usize + 1)
            .map_or(self.table.len(), |next| next.first);
        let mut last = first;
        for block in first + 1..next_file.min(first.saturating_add(most)) {
            if known(&block) {
                last = block;
            } else if block - last > gap {
                break;
            }
        }
        Some(Extent {
            file,
            offset,
            blocks: first..last + 1,
        })
    }

    /// Checks a block that was read: `before` and `after` are its entry before the read was issued and after it was done.
    #[inline]
    pub(crate) fn judge(
        &self,
        file: u32,
        offset: u64,
        bytes: &[u8],
        before: Entry,
        after: Entry,
    ) -> Judgement {
        if before == after && before.state() == State::ExpectedContent && !before.is_busy() {
            let stamp = Stamp {
                run: self.run,
                file,
                generation: before.generation(),
                offset,
            };
            if is_sealed(bytes, &stamp) {
                return Judgement::Right;
            }
        }
        self.judge_closely(file, offset, bytes, before, after)
    }

    #[cold]
    fn judge_closely(
        &self,
        file: u32,
        offset: u64,
        bytes: &[u8],
        before: Entry,
        after: Entry,
    ) -> Judgement {
        let expected = |generations| Expected {
            run: self.run,
            file,
            offset,
            generations,
        };
        let still = before == after && !before.is_busy();
        match (before.state(), after.state()) {
            (State::ExpectedContent, State::ExpectedContent) if still => {
                let generation = before.generation();
                match classify(bytes, &expected(generation..=generation)) {
                    Ok(_) => Judgement::Right,
                    Err(fault) => Judgement::Wrong(fault),
                }
            }
            (State::Zeroed, State::Zeroed) if still => {
                let generation = before.generation();
                match classify_zeroes(bytes, &expected(generation..=generation)) {
                    Ok(()) => Judgement::Right,
                    Err(fault) => Judgement::Wrong(fault),
                }
            }
            // It was being written meanwhile, maybe more than once.
            (State::ExpectedContent, State::ExpectedContent) => {
                let newest = if after.is_busy() {
                    after.next_generation()
                } else {
                    after.generation()
                };
                match classify(bytes, &expected(before.generation()..=newest)) {
                    Ok(_) => Judgement::Right,
                    Err(_) => Judgement::Raced,
                }
            }
            (State::Untouched | State::Unknown, _) | (_, State::Unknown) => Judgement::Unknown,
            _ => Judgement::Raced,
        }
    }
}

/// The verification of one load.
#[derive(Debug)]
pub(crate) struct Verify {
    pub(crate) written: Arc<ExpectedContent>,
    /// For each stream the numbers of its files; empty: the stream takes no part.
    pub(crate) streams: Vec<Vec<u32>>,
    /// The first fault ends the run.
    pub(crate) fatal: bool,
    pub(crate) findings: Findings,
    /// Writes that had to wait.
    pub(crate) waited: AtomicU64,
}

impl Verify {
    pub(crate) fn figures(&self) -> VerificationFigures {
        VerificationFigures {
            block_bytes: self.written.unit,
            run: self.written.run_name(),
            delayed_writes: self.waited.load(Relaxed),
            during_load: self.findings.figures(),
            read_back: None,
        }
    }
}

/// A fault for the figures.
pub(crate) fn place_of(file: u32, offset: u64, fault: &Fault) -> FaultPlace {
    FaultPlace {
        file,
        offset,
        description: fault.to_string(),
    }
}

/// A block that could not be read.
pub(crate) fn unreadable(file: u32, offset: u64, errno: i32) -> (&'static str, FaultPlace) {
    let why = std::io::Error::from_raw_os_error(errno);
    let description = format!("{UNREADABLE}: {why}");
    (
        UNREADABLE,
        FaultPlace {
            file,
            offset,
            description,
        },
    )
}

/// Greatest common divisor.
pub(crate) fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A number that no other run has.
#[allow(unsafe_code)]
pub(crate) fn run_number() -> u64 {
    let mut bytes = [0_u8; 8];
    // SAFETY: the kernel writes at most 8 bytes to them.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if got == 8 {
        u64::from_le_bytes(bytes)
    } else {
        crate::clock::monotonic_ns() ^ u64::from(std::process::id()) << 40
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spindle_verify::seal;

    fn written(files: &[u64]) -> ExpectedContent {
        let files = files.iter().map(|&bytes| {
            let path = "x".to_owned();
            (WrittenFile { path, bytes }, None)
        });
        ExpectedContent::new(4096, 5, files.collect()).expect("memory")
    }

    fn block(generation: u32, offset: u64) -> Vec<u8> {
        let mut bytes = vec![7; 4096];
        let stamp = Stamp {
            run: 5,
            file: 0,
            generation,
            offset,
        };
        seal(&mut bytes, &stamp);
        bytes
    }

    #[test]
    fn a_block_that_is_being_written_may_be_old_or_new() {
        let written = written(&[1 << 20]);
        let judge = |bytes: &[u8], before, after| written.judge(0, 8192, bytes, before, after);
        let one = Entry::default().written();
        let two = one.written();
        let (old, new) = (block(1, 8192), block(2, 8192));
        for (before, after) in [
            (one.busy(), one.busy()),
            (one, one.busy()),
            (one.busy(), two),
            (one, two),
        ] {
            assert_eq!(judge(&old, before, after), Judgement::Right);
            assert_eq!(judge(&new, before, after), Judgement::Right);
            let mut mixed = old.clone();
            mixed[..512].copy_from_slice(&new[..512]);
            assert_eq!(judge(&mixed, before, after), Judgement::Raced);
        }
        assert!(matches!(judge(&old, two, two), Judgement::Wrong(_)));
        assert_eq!(judge(&new, two, two), Judgement::Right);
    }

    #[test]
    fn what_this_run_did_not_write_is_not_judged() {
        let written = written(&[1 << 20]);
        let blank = Entry::default();
        assert_eq!(
            written.judge(0, 0, &[1; 4096], blank, blank),
            Judgement::Unknown
        );
        assert_eq!(
            written.judge(0, 0, &[1; 4096], blank, blank.busy()),
            Judgement::Unknown
        );
        let trimmed = blank.written().unknown();
        assert_eq!(
            written.judge(0, 0, &[1; 4096], trimmed, trimmed),
            Judgement::Unknown
        );
    }

    #[test]
    fn a_zeroed_block_holds_zeroes_or_is_wrong() {
        let written = written(&[1 << 20]);
        let zeroed = Entry::default().written().zeroed();
        assert_eq!(
            written.judge(0, 0, &[0; 4096], zeroed, zeroed),
            Judgement::Right
        );
        assert!(matches!(
            written.judge(0, 0, &block(1, 0), zeroed, zeroed),
            Judgement::Wrong(_)
        ));
        assert_eq!(
            written.judge(0, 0, &block(2, 0), zeroed, zeroed.busy()),
            Judgement::Raced
        );
    }

    #[test]
    fn a_block_keeps_its_generation_when_later_loads_split_it() {
        let before = Arc::new(written(&[1 << 20]));
        let two = Entry::default().written().written();
        before.table().set(3, two);
        let file = (
            WrittenFile {
                path: "y".to_owned(),
                bytes: 1 << 20,
            },
            None,
        );
        let same = Arc::clone(&before).go_on(8192, Vec::new()).expect("memory");
        assert!(
            Arc::ptr_eq(&before, &same),
            "larger requests are made of these blocks"
        );
        let after = before.go_on(512, vec![file]).expect("memory");
        assert_eq!(
            (after.unit(), after.run(), after.files().count()),
            (512, 5, 2)
        );
        for (block, wanted) in [
            (23, Entry::default()),
            (24, two),
            (31, two),
            (32, Entry::default()),
        ] {
            assert_eq!(after.table().get(block), wanted, "{block}");
        }
    }

    #[test]
    fn extents_bridge_small_gaps_and_end_with_the_file() {
        let written = written(&[40 * 4096, 40 * 4096]);
        for block in [3, 4, 6, 30, 39, 40, 41] {
            written.table().set(block, Entry::default().written());
        }
        let mut from = 0;
        let mut found = Vec::new();
        while let Some(extent) = written.next_known(from, 20, 4) {
            from = extent.blocks.end;
            found.push((extent.file, extent.offset / 4096, extent.blocks));
        }
        assert_eq!(
            found,
            [
                (0, 3, 3..7),
                (0, 30, 30..31),
                (0, 39, 39..40),
                (1, 0, 40..42)
            ]
        );
        assert_eq!(
            (written.place(39), written.place(40)),
            ((0, 39 * 4096), (1, 0))
        );
    }
}
