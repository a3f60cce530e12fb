//! Keys with their values as text: the written form of a workload.

use spindle_config::units::{self, Rate};

use crate::keys::{Key, Kind, NONE};
use crate::spec::Place;

/// The keys in force at one place of a workload, in the order in which they are written.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeyTexts(Vec<Entry>);

/// A key, its value as on the command line, and whether that is the default.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: &'static Key,
    pub(crate) text: String,
    pub(crate) usual: bool,
}

impl KeyTexts {
    /// A key, whose default is the table's.
    pub(crate) fn put(&mut self, key: &'static Key, text: impl ToString) {
        let text = text.to_string();
        let usual = text == key.default;
        self.put_or(key, text, usual);
    }

    /// A key whose default depends on others.
    pub(crate) fn put_or(&mut self, key: &'static Key, text: impl ToString, usual: bool) {
        let text = text.to_string();
        self.0.push(Entry { key, text, usual });
    }

    /// A key that may be `none`.
    pub(crate) fn optional<T: ToString>(&mut self, key: &'static Key, value: Option<T>) {
        self.put(
            key,
            value.map_or_else(|| NONE.to_owned(), |it| it.to_string()),
        );
    }

    /// One of a key's choices.
    pub(crate) fn choice<T: PartialEq>(
        &mut self,
        key: &'static Key,
        choices: &[(&str, T)],
        value: &T,
    ) {
        let found = choices.iter().find(|(_, known)| known == value);
        self.put(key, found.map_or(key.default, |(name, _)| name));
    }

    pub(crate) fn size(&mut self, key: &'static Key, bytes: u64) {
        self.put(key, units::format_size(bytes));
    }

    pub(crate) fn optional_size(&mut self, key: &'static Key, bytes: Option<u64>) {
        self.optional(key, bytes.map(units::format_size));
    }

    pub(crate) fn duration(&mut self, key: &'static Key, ns: u64) {
        self.put(key, units::format_duration(ns));
    }

    pub(crate) fn optional_duration(&mut self, key: &'static Key, ns: Option<u64>) {
        self.optional(key, ns.map(units::format_duration));
    }

    pub(crate) fn fraction(&mut self, key: &'static Key, fraction: f64) {
        self.put(key, units::exact_fraction(fraction));
    }

    pub(crate) fn rate(&mut self, key: &'static Key, rate: Option<Rate>) {
        self.optional(key, rate);
    }

    /// All keys, those at their defaults too.
    pub(crate) fn all(&self) -> &[Entry] {
        &self.0
    }

    /// The entries that must be written.
    pub(crate) fn needed(self) -> Vec<Entry> {
        self.0.into_iter().filter(|entry| !entry.usual).collect()
    }

    /// The text of a key in force.
    pub(crate) fn text(&self, key: &Key) -> Option<&str> {
        let found = self.0.iter().find(|entry| entry.key.name == key.name);
        found.map(|entry| entry.text.as_str())
    }

    /// True if a key has this value, and keeps it if others change: a default may depend on them.
    pub(crate) fn says(&self, wanted: &Entry) -> bool {
        let mut entries = self.0.iter();
        entries.any(|entry| entry.is(wanted) && (wanted.usual || !entry.usual))
    }

    /// Marks the name as needed if there are several.
    pub(crate) fn named(mut self, several: bool) -> KeyTexts {
        let name = self.0.iter_mut().find(|entry| entry.key.name == "name");
        if let Some(name) = name.filter(|_| several) {
            name.usual = false;
        }
        self
    }

    pub(crate) fn forget(&mut self, key: &Key) {
        self.0.retain(|entry| entry.key.name != key.name);
    }

    /// Marks a value that a table above has as the default.
    pub(crate) fn inherit(&mut self, from: &KeyTexts) {
        for entry in &mut self.0 {
            if let Some(text) = from.text(entry.key) {
                entry.usual = entry.text == text;
            }
        }
    }
}

impl Entry {
    pub(crate) fn is(&self, other: &Entry) -> bool {
        self.key.name == other.key.name && self.text == other.text
    }

    /// A line of a file.
    pub(crate) fn line(&self) -> String {
        let bare = match self.key.kind {
            Kind::Flag | Kind::Integer | Kind::Number => self.text != NONE,
            _ => false,
        };
        let value = if bare {
            self.text.clone()
        } else {
            quoted(&self.text)
        };
        format!("{} = {value}\n", self.key.name)
    }
}

/// Text in quotes, as TOML reads it; control characters are not allowed.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// `10%` or `1GiB`.
pub(crate) fn place(place: Place) -> String {
    match place {
        Place::Bytes { bytes } => units::format_size(bytes),
        Place::Fraction { fraction } => units::exact_percent(fraction),
    }
}
