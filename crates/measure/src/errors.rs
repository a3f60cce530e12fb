//! Failed requests, counted by kind and errno.

use crate::figures::ErrorFigures;
use crate::kind::OpKind;

/// Few kinds of error ever occur in a run: a list is enough.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ErrorLog {
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    kind: OpKind,
    errno: i32,
    count: u64,
    first_offset: u64,
}

impl ErrorLog {
    pub(crate) fn add(&mut self, kind: OpKind, errno: i32, offset: u64, count: u64) {
        match self
            .entries
            .iter_mut()
            .find(|entry| entry.kind == kind && entry.errno == errno)
        {
            Some(entry) => entry.count = entry.count.saturating_add(count),
            None => self.entries.push(Entry {
                kind,
                errno,
                count,
                first_offset: offset,
            }),
        }
    }

    pub(crate) fn merge(&mut self, other: &ErrorLog) {
        for entry in &other.entries {
            self.add(entry.kind, entry.errno, entry.first_offset, entry.count);
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.entries.iter().map(|entry| entry.count).sum()
    }

    pub(crate) fn figures(&self) -> Vec<ErrorFigures> {
        self.entries
            .iter()
            .map(|entry| ErrorFigures {
                errno: entry.errno,
                op: entry.kind.name().to_owned(),
                count: entry.count,
                first_offset: entry.first_offset,
            })
            .collect()
    }
}
