//! A cursor over one table: typed `take` for each known key, then `finish`.

use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::error::{ConfigError, Place, Problem};
use crate::nearest::nearest;
use crate::units::{self, Rate};
use crate::value::Value;

/// A table whose keys are taken one by one.
///
/// Each `take_*` gives `Ok(None)` if the key is absent, an error if its value is not of that type or out
/// of range.
#[derive(Debug, Clone)]
pub struct Table {
    place: Place,
    scope: Arc<str>,
    values: Vec<Value>,
    asked: Vec<&'static str>,
}

impl Table {
    pub(crate) fn new(place: Place, values: Vec<Value>) -> Table {
        Table {
            place,
            scope: Arc::from(""),
            values,
            asked: Vec::new(),
        }
    }

    /// Sets how messages name this table, such as `[stream "log"]`.
    pub fn describe(&mut self, scope: String) {
        self.scope = scope.into();
        for value in &mut self.values {
            value.rescope(&self.scope);
        }
    }

    /// Where the table begins.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Names of the keys that have not been taken, in the order of the file.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(Value::key)
    }

    /// The value of a key, of whatever type; the key counts as known from now on.
    pub fn take(&mut self, key: &'static str) -> Option<Value> {
        if !self.asked.contains(&key) {
            self.asked.push(key);
        }
        let index = self.values.iter().position(|value| value.key() == key)?;
        Some(self.values.remove(index))
    }

    /// The value of a key, which remains in the table.
    pub(crate) fn written(&self, key: &str) -> Option<&Value> {
        self.values.iter().find(|value| value.key() == key)
    }

    /// Puts a value in place of the one of the same key, if there is one.
    pub(crate) fn put(&mut self, value: Value) {
        self.values.retain(|other| other.key() != value.key());
        self.values.push(value);
    }

    /// Text.
    pub fn take_text(&mut self, key: &'static str) -> Result<Option<String>, ConfigError> {
        self.take(key)
            .map(|value| value.text().map(str::to_owned))
            .transpose()
    }

    /// `true` or `false`.
    pub fn take_flag(&mut self, key: &'static str) -> Result<Option<bool>, ConfigError> {
        self.take(key).map(|value| value.flag()).transpose()
    }

    /// A whole number within `allowed`.
    pub fn take_integer(
        &mut self,
        key: &'static str,
        allowed: RangeInclusive<u64>,
    ) -> Result<Option<u64>, ConfigError> {
        self.take(key)
            .map(|value| value.integer(allowed))
            .transpose()
    }

    /// A finite number within `allowed`.
    pub fn take_number(
        &mut self,
        key: &'static str,
        allowed: RangeInclusive<f64>,
    ) -> Result<Option<f64>, ConfigError> {
        self.take(key)
            .map(|value| value.number(allowed))
            .transpose()
    }

    /// Bytes: `64KiB`.
    pub fn take_size(&mut self, key: &'static str) -> Result<Option<u64>, ConfigError> {
        self.take(key).map(|value| value.size()).transpose()
    }

    /// Nanoseconds: `8.5ms`.
    pub fn take_duration(&mut self, key: &'static str) -> Result<Option<u64>, ConfigError> {
        self.take(key).map(|value| value.duration()).transpose()
    }

    /// 0..=1: `20%` or 0.2.
    pub fn take_fraction(&mut self, key: &'static str) -> Result<Option<f64>, ConfigError> {
        self.take(key).map(|value| value.fraction()).transpose()
    }

    /// Bytes or requests per second: `10 MB/s`, `500 IOPS`.
    pub fn take_rate(&mut self, key: &'static str) -> Result<Option<Rate>, ConfigError> {
        self.take(key).map(|value| value.rate()).transpose()
    }

    /// A part of a target: `0%-10%`, `1GiB-2GiB`.
    pub fn take_range(
        &mut self,
        key: &'static str,
    ) -> Result<Option<(units::Place, units::Place)>, ConfigError> {
        self.take(key).map(|value| value.range()).transpose()
    }

    /// One of a list of names.
    pub fn take_choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, ConfigError> {
        self.take(key)
            .map(|value| value.choice(choices))
            .transpose()
    }

    /// A table under this one: `[key]`.
    pub fn take_table(&mut self, key: &'static str) -> Result<Option<Table>, ConfigError> {
        self.take(key).map(Value::into_table).transpose()
    }

    /// A list of tables: `[[key]]`; empty if there is none.
    pub fn take_tables(&mut self, key: &'static str) -> Result<Vec<Table>, ConfigError> {
        self.take(key).map_or(Ok(Vec::new()), Value::into_tables)
    }

    /// The error for a key that must be there, at the table's head; it names an unknown key that may have
    /// been meant. For `table.take_size("size")?.ok_or_else(|| table.missing("size"))`.
    #[must_use]
    pub fn missing(&self, key: &'static str) -> ConfigError {
        let left = self.keys().filter(|left| !self.asked.contains(left));
        let problem = Problem::Missing {
            key: key.to_owned(),
            scope: self.scope.to_string(),
            instead: nearest(key, left).map(str::to_owned),
        };
        ConfigError::new(self.place.clone(), problem)
    }

    /// An error about the table as a whole, in the reader's words.
    #[must_use]
    pub fn error(&self, what: impl Into<String>) -> ConfigError {
        ConfigError::new(self.place.clone(), Problem::Other { what: what.into() })
    }

    /// Ends the reading: a key that was never asked for is an error that names the nearest known one.
    pub fn finish(self) -> Result<(), ConfigError> {
        let Some(value) = self.values.first() else {
            return Ok(());
        };
        let problem = Problem::Unknown {
            kind: "key",
            name: value.key().to_owned(),
            scope: self.scope.to_string(),
            nearest: nearest(value.key(), self.asked.iter().copied()).map(str::to_owned),
            allowed: self.asked.iter().map(|&key| key.to_owned()).collect(),
        };
        Err(ConfigError::new(value.place().clone(), problem))
    }
}
