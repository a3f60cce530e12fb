//! An entry of the journal: kind, length, payload and a CRC-32C over the three, which detects any cut
//! or change.

use serde::{Deserialize, Serialize};

use super::content::crc32c;
use super::plan::Plan;

/// First bytes of a journal; the number is the version of the format.
pub(crate) const MAGIC: &[u8] = b"spindle durability journal 1\n";
/// First bytes of a journal of any version.
pub(crate) const NAME: &[u8] = b"spindle durability journal ";
/// Bytes around a payload: kind, length, check sum.
pub(crate) const FRAME: usize = 1 + 4 + 4;
/// Longest payload, bytes: anything longer is not an entry.
pub(crate) const PAYLOAD_MAX: usize = 1 << 20;
/// Most blocks whose state before the run is in one entry.
pub(crate) const BEFORE_MAX: usize = 16_384;

/// The first entry: the run and its plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Number of the run, 16 hexadecimal digits; every block written carries it.
    pub run: String,
    /// The plan of the writes.
    pub plan: Plan,
    /// Host, target and time of the writer, from the front end.
    pub about: serde_json::Value,
}

impl Header {
    /// The run's number.
    pub(crate) fn run_number(&self) -> Option<u64> {
        (self.run.len() == 16)
            .then(|| u64::from_str_radix(&self.run, 16).ok())
            .flatten()
    }
}

/// The reason why a writer ended in good order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// Its time was over.
    Time,
    /// Somebody stopped it.
    Stopped,
    /// A write or sync failed, as it does when the target loses its power.
    Error,
}

/// One entry.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Entry {
    /// The first one.
    Header(Box<Header>),
    /// CRC-32C of blocks as they were before the run, from block `first` of all regions on.
    Before { first: u64, sums: Vec<u32> },
    /// Writing begins now; times count from here.
    Begin,
    /// A worker's writes up to number `count` are durable: its sync returned at `at_ns`.
    Acked { worker: u32, count: u64, at_ns: u64 },
    /// The writer was alive.
    Alive { at_ns: u64 },
    /// The writer ended in good order.
    End { at_ns: u64, end: End },
}

/// The next bytes of a journal.
#[derive(Debug, PartialEq)]
pub(crate) enum Parsed {
    /// An entry and its length, bytes.
    Whole(Entry, usize),
    /// The beginning of one.
    Short,
    /// Not an entry.
    Damaged,
}

impl Entry {
    fn kind(&self) -> u8 {
        match self {
            Entry::Header(_) => b'H',
            Entry::Before { .. } => b'B',
            Entry::Begin => b'S',
            Entry::Acked { .. } => b'A',
            Entry::Alive { .. } => b'L',
            Entry::End { .. } => b'E',
        }
    }

    /// Appends the encoded entry.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.push(self.kind());
        out.extend([0; 4]);
        match self {
            Entry::Header(header) => out.extend(serde_json::to_vec(header).unwrap_or_default()),
            Entry::Before { first, sums } => {
                out.extend(first.to_le_bytes());
                out.extend(sums.iter().flat_map(|sum| sum.to_le_bytes()));
            }
            Entry::Begin => {}
            Entry::Acked {
                worker,
                count,
                at_ns,
            } => {
                out.extend(worker.to_le_bytes());
                out.extend(count.to_le_bytes());
                out.extend(at_ns.to_le_bytes());
            }
            Entry::Alive { at_ns } => out.extend(at_ns.to_le_bytes()),
            Entry::End { at_ns, end } => {
                out.extend(at_ns.to_le_bytes());
                out.push(match end {
                    End::Time => 0,
                    End::Stopped => 1,
                    End::Error => 2,
                });
            }
        }
        let length = (out.len() - start - 5) as u32;
        out[start + 1..start + 5].copy_from_slice(&length.to_le_bytes());
        let sum = crc32c(&out[start..]);
        out.extend(sum.to_le_bytes());
    }

    /// Reads the entry at the beginning of `bytes`.
    pub(crate) fn parse(bytes: &[u8]) -> Parsed {
        let Some(length) = bytes.get(1..5) else {
            return Parsed::Short;
        };
        let length = u32::from_le_bytes(length.try_into().unwrap_or_default()) as usize;
        if length > PAYLOAD_MAX {
            return Parsed::Damaged;
        }
        let Some((framed, rest)) = bytes.split_at_checked(5 + length) else {
            return Parsed::Short;
        };
        let Some(sum) = rest.get(..4) else {
            return Parsed::Short;
        };
        if crc32c(framed).to_le_bytes() != sum {
            return Parsed::Damaged;
        }
        match Entry::of(framed[0], &framed[5..]) {
            Some(entry) => Parsed::Whole(entry, length + FRAME),
            None => Parsed::Damaged,
        }
    }

    fn of(kind: u8, payload: &[u8]) -> Option<Entry> {
        let mut fields = Fields(payload);
        let entry = match kind {
            b'H' => return serde_json::from_slice(payload).ok().map(Entry::Header),
            b'B' => {
                let first = fields.long()?;
                let mut sums = Vec::with_capacity(fields.0.len() / 4);
                while !fields.0.is_empty() {
                    sums.push(fields.word()?);
                }
                Entry::Before { first, sums }
            }
            b'S' => Entry::Begin,
            b'A' => Entry::Acked {
                worker: fields.word()?,
                count: fields.long()?,
                at_ns: fields.long()?,
            },
            b'L' => Entry::Alive {
                at_ns: fields.long()?,
            },
            b'E' => Entry::End {
                at_ns: fields.long()?,
                end: match fields.take::<1>()? {
                    [0] => End::Time,
                    [1] => End::Stopped,
                    [2] => End::Error,
                    _ => return None,
                },
            },
            _ => return None,
        };
        fields.0.is_empty().then_some(entry)
    }
}

/// The rest of a payload.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn word(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn long(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::{Pattern, SyncKind, tests::plan};
    use super::*;

    fn entries() -> Vec<Entry> {
        vec![
            Entry::Header(Box::new(Header {
                run: "00000000000000ff".to_owned(),
                plan: plan(Pattern::Mixed, SyncKind::Fsync),
                about: serde_json::json!({"target": {"path": "/dev/sdb"}}),
            })),
            Entry::Before {
                first: 3,
                sums: vec![1, 2, 3],
            },
            Entry::Begin,
            Entry::Acked {
                worker: 1,
                count: 17,
                at_ns: 12_345,
            },
            Entry::Alive { at_ns: 13 },
            Entry::End {
                at_ns: 14,
                end: End::Stopped,
            },
        ]
    }

    #[test]
    fn what_is_written_is_read() {
        for entry in entries() {
            let mut bytes = Vec::new();
            entry.encode(&mut bytes);
            let length = bytes.len();
            bytes.extend(b"more");
            assert_eq!(Entry::parse(&bytes), Parsed::Whole(entry, length));
        }
    }

    #[test]
    fn an_acknowledgement_takes_29_bytes() {
        let mut bytes = Vec::new();
        entries()[3].encode(&mut bytes);
        assert_eq!(bytes.len(), 29);
    }

    #[test]
    fn an_entry_cut_off_anywhere_is_short_and_a_changed_bit_is_seen() {
        for entry in entries() {
            let mut bytes = Vec::new();
            entry.encode(&mut bytes);
            for length in 0..bytes.len() {
                assert_eq!(
                    Entry::parse(&bytes[..length]),
                    Parsed::Short,
                    "{entry:?} cut at {length}"
                );
            }
            for bit in 0..bytes.len() * 8 {
                let mut changed = bytes.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                // A longer length looks like an entry that is not complete yet.
                assert!(
                    !matches!(Entry::parse(&changed), Parsed::Whole(..)),
                    "{entry:?}, bit {bit}"
                );
            }
        }
    }
}
