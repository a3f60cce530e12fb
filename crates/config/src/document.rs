//! TOML texts as tables whose keys know their lines.

use std::ops::Range;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{ConfigError, Place, Problem};
use crate::table::Table;
use crate::value::{Data, Value};

/// Longest text that is read, bytes.
pub const MAX_BYTES: usize = 1 << 20;

/// A TOML text.
pub struct Document;

impl Document {
    /// Reads a text; `source` is the file's name for messages. The error is one line with
    /// the place of a syntax error.
    pub fn parse(text: &str, source: &str) -> Result<Table, ConfigError> {
        let lines = Lines::new(text, source);
        if text.len() > MAX_BYTES {
            let problem = Problem::TooLong {
                bytes: text.len(),
                limit: MAX_BYTES,
            };
            return Err(ConfigError::new(lines.place(0), problem));
        }
        let parsed = DeTable::parse(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            ConfigError::new(
                lines.place(start),
                Problem::Syntax {
                    message: error.message().to_owned(),
                },
            )
        })?;
        Ok(lines.table(parsed.into_inner(), lines.place(0)))
    }
}

/// Finds lines by byte.
struct Lines {
    source: Arc<str>,
    starts: Vec<usize>,
}

impl Lines {
    fn new(text: &str, source: &str) -> Lines {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0)
            .chain(breaks.map(|(index, _)| index + 1))
            .collect();
        Lines {
            source: source.into(),
            starts,
        }
    }

    fn place(&self, byte: usize) -> Place {
        let line = self.starts.partition_point(|start| *start <= byte).max(1) as u32;
        Place::Line {
            source: self.source.clone(),
            line,
        }
    }

    fn table(&self, table: DeTable<'_>, place: Place) -> Table {
        let mut entries: Vec<(Range<usize>, Value)> = table
            .into_iter()
            .map(|(key, value)| {
                let span = key.span();
                let name = key.into_inner().into_owned();
                let place = self.place(span.start);
                (span, self.value(name, value, place))
            })
            .collect();
        // The parser sorts by name; people read from the top.
        entries.sort_by_key(|(span, _)| span.start);
        Table::new(place, entries.into_iter().map(|(_, value)| value).collect())
    }

    // The parser bounds the depth of nesting, and with it this recursion.
    fn value(&self, key: String, value: Spanned<DeValue<'_>>, place: Place) -> Value {
        let data = match value.into_inner() {
            DeValue::String(text) => Data::Text(text.into_owned()),
            DeValue::Integer(number) => Data::Integer {
                digits: number.as_str().to_owned(),
                radix: number.radix(),
            },
            DeValue::Float(number) => Data::Float(number.as_str().to_owned()),
            DeValue::Boolean(flag) => Data::Flag(flag),
            DeValue::Datetime(_) => Data::Date,
            DeValue::Array(items) => Data::List(
                items
                    .into_iter()
                    .map(|item| {
                        let place = self.place(item.span().start);
                        self.value(key.clone(), item, place)
                    })
                    .collect(),
            ),
            DeValue::Table(table) => Data::Table(self.table(table, place.clone())),
        };
        Value::new(key, place, data)
    }
}
