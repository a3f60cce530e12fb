//! Reading a journal, which may have been cut off anywhere: up to the last whole entry.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::RawFd;

use serde::Serialize;

use super::entry::{End, Entry, Header, MAGIC, NAME, PAYLOAD_MAX, Parsed};
use super::open::duplicate;
use super::plan::PlanError;

/// A file that is not a usable journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file begins with something else.
    #[error("is not a journal of a durability test")]
    NoJournal,
    /// Its format is of another version.
    #[error("is a journal of another version of spindle; check it with the one that wrote it")]
    Version,
    /// Not even the first entry is whole.
    #[error(
        "its first entry, which says what was written, is cut off or damaged; nothing can be checked"
    )]
    NoHeader,
    /// The header's plan cannot be carried out.
    #[error("its plan makes no sense: {0}")]
    Plan(#[from] PlanError),
    /// The operating system's message.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
}

/// The state of a journal's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    /// After a whole entry.
    Whole,
    /// In the middle of an entry: its own host was cut off too, or the connection.
    Cut,
    /// At bytes that are not an entry.
    Damaged,
}

/// Reads entry by entry.
#[derive(Debug)]
pub(crate) struct Reader {
    file: File,
    buffer: Vec<u8>,
    at: usize,
    exhausted: bool,
    ending: Ending,
    read: u64,
}

impl Reader {
    /// From the start of an open file; its position is not used.
    pub(crate) fn new(fd: RawFd) -> Result<(Reader, Box<Header>), JournalError> {
        let mut file = File::from(duplicate(fd)?);
        file.seek(SeekFrom::Start(0))?;
        let mut reader = Reader {
            file,
            buffer: Vec::new(),
            at: 0,
            exhausted: false,
            ending: Ending::Whole,
            read: 0,
        };
        reader.refill()?;
        if !reader.buffer.starts_with(MAGIC) {
            return Err(if reader.buffer.starts_with(NAME) {
                JournalError::Version
            } else {
                JournalError::NoJournal
            });
        }
        reader.at = MAGIC.len();
        reader.read = MAGIC.len() as u64;
        match reader.next()? {
            Some(Entry::Header(header)) if header.run_number().is_some() => {
                header.plan.check()?;
                Ok((reader, header))
            }
            _ => Err(JournalError::NoHeader),
        }
    }

    /// The next whole entry.
    pub(crate) fn next(&mut self) -> io::Result<Option<Entry>> {
        loop {
            match Entry::parse(&self.buffer[self.at..]) {
                Parsed::Whole(entry, length) => {
                    self.at += length;
                    self.read += length as u64;
                    return Ok(Some(entry));
                }
                Parsed::Damaged => {
                    self.ending = Ending::Damaged;
                    return Ok(None);
                }
                Parsed::Short if self.exhausted => {
                    if self.at < self.buffer.len() {
                        self.ending = Ending::Cut;
                    }
                    return Ok(None);
                }
                Parsed::Short => self.refill()?,
            }
        }
    }

    /// After the last entry: how the journal ends, and how many bytes were read of it.
    pub(crate) fn ending(&self) -> (Ending, u64) {
        (self.ending, self.read)
    }

    fn refill(&mut self) -> io::Result<()> {
        self.buffer.drain(..self.at);
        self.at = 0;
        let before = self.buffer.len();
        let mut part = (&mut self.file).take(2 * PAYLOAD_MAX as u64);
        part.read_to_end(&mut self.buffer)?;
        self.exhausted = self.buffer.len() == before;
        Ok(())
    }
}

/// Summary of a journal, without the target.
#[derive(Debug, Clone, Serialize)]
pub struct JournalSummary {
    /// The run.
    pub header: Header,
    /// True if writing had begun: everything before it is complete.
    pub begun: bool,
    /// Writes of each worker that were acknowledged as durable.
    pub acknowledged: Vec<u64>,
    /// Acknowledgements.
    pub syncs: u64,
    /// Last sign of life, ns since writing began.
    pub last_ns: u64,
    /// The reason why the writer ended, if it ended in good order.
    pub end: Option<End>,
    /// The state of the journal's end.
    pub ending: Ending,
    /// Length of the complete entries, bytes.
    pub bytes: u64,
    /// Length of the rest, bytes.
    pub bytes_after: u64,
}

/// Reads a journal through; `each` receives every entry.
pub(crate) fn read_through(
    fd: RawFd,
    mut each: impl FnMut(&Entry),
) -> Result<JournalSummary, JournalError> {
    let (mut reader, header) = Reader::new(fd)?;
    let mut summary = JournalSummary {
        acknowledged: vec![0; header.plan.workers as usize],
        header: *header,
        begun: false,
        syncs: 0,
        last_ns: 0,
        end: None,
        ending: Ending::Whole,
        bytes: 0,
        bytes_after: 0,
    };
    while let Some(entry) = reader.next()? {
        match &entry {
            Entry::Begin => summary.begun = true,
            Entry::Acked {
                worker,
                count,
                at_ns,
            } => {
                if let Some(acknowledged) = summary.acknowledged.get_mut(*worker as usize) {
                    *acknowledged = (*acknowledged).max(*count);
                }
                summary.syncs += 1;
                summary.last_ns = summary.last_ns.max(*at_ns);
            }
            Entry::Alive { at_ns } => summary.last_ns = summary.last_ns.max(*at_ns),
            Entry::End { at_ns, end } => {
                summary.last_ns = summary.last_ns.max(*at_ns);
                summary.end = Some(*end);
            }
            Entry::Header(_) | Entry::Before { .. } => {}
        }
        each(&entry);
    }
    (summary.ending, summary.bytes) = reader.ending();
    let length = reader.file.metadata()?.len();
    summary.bytes_after = length.saturating_sub(summary.bytes);
    Ok(summary)
}

/// Summarises a journal.
pub fn summarise(fd: RawFd) -> Result<JournalSummary, JournalError> {
    read_through(fd, |_| {})
}
