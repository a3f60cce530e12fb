//! One value with its key and place, read as the type that the caller asks for.

use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::error::{ConfigError, Place, Problem, clean};
use crate::nearest::nearest;
use crate::table::Table;
use crate::units::{self, Rate, UnitError};

/// A value as it was written, in a file or on the command line.
#[derive(Debug, Clone)]
pub struct Value {
    key: String,
    scope: Arc<str>,
    place: Place,
    data: Data,
}

#[derive(Debug, Clone)]
pub(crate) enum Data {
    /// In a file.
    Text(String),
    /// On the command line, where numbers and flags are text as well.
    Typed(String),
    Integer {
        digits: String,
        radix: u32,
    },
    Float(String),
    Flag(bool),
    Date,
    List(Vec<Value>),
    Table(Table),
}

impl Value {
    pub(crate) fn new(key: String, place: Place, data: Data) -> Value {
        Value {
            key,
            scope: Arc::from(""),
            place,
            data,
        }
    }

    /// A value given as text, as on the command line: `64KiB`, `0.2`, `true`.
    #[must_use]
    pub fn typed(key: &str, text: &str, place: Place) -> Value {
        Value::new(key.to_owned(), place, Data::Typed(text.to_owned()))
    }

    pub(crate) fn rescope(&mut self, scope: &Arc<str>) {
        self.scope = scope.clone();
        if let Data::List(items) = &mut self.data {
            for item in items {
                item.rescope(scope);
            }
        }
    }

    /// The place where it was written.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The key it was written for.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// An error at this value, in the reader's words: the problem and the allowed values.
    #[must_use]
    pub fn error(&self, what: impl Into<String>) -> ConfigError {
        let (key, scope) = (self.label(), self.scope.to_string());
        ConfigError::new(
            self.place.clone(),
            Problem::Value {
                key,
                scope,
                what: what.into(),
            },
        )
    }

    /// Text.
    pub fn text(&self) -> Result<&str, ConfigError> {
        match &self.data {
            Data::Text(text) | Data::Typed(text) => Ok(text),
            _ => Err(self.wrong("text in quotes")),
        }
    }

    /// `true` or `false`.
    pub fn flag(&self) -> Result<bool, ConfigError> {
        match &self.data {
            Data::Flag(flag) => Ok(*flag),
            Data::Typed(text) if text == "true" => Ok(true),
            Data::Typed(text) if text == "false" => Ok(false),
            _ => Err(self.wrong("true or false")),
        }
    }

    /// A whole number within `allowed`.
    pub fn integer(&self, allowed: RangeInclusive<u64>) -> Result<u64, ConfigError> {
        let (low, high) = (allowed.start(), allowed.end());
        let expected = match (*low, *high) {
            (0, u64::MAX) => "a whole number, not negative".to_owned(),
            (low, u64::MAX) => format!("a whole number of at least {low}"),
            (low, high) => format!("a whole number from {low} to {high}"),
        };
        let number = match &self.data {
            Data::Integer { digits, radix } => u64::from_str_radix(digits, *radix).ok(),
            Data::Typed(text) => text.parse().ok(),
            _ => None,
        };
        number
            .filter(|number| allowed.contains(number))
            .ok_or_else(|| self.wrong(&expected))
    }

    /// A finite number within `allowed`.
    pub fn number(&self, allowed: RangeInclusive<f64>) -> Result<f64, ConfigError> {
        let expected = match (*allowed.start(), *allowed.end()) {
            (low, high) if high >= f64::MAX => format!("a number of at least {low}"),
            (low, high) => format!("a number from {low} to {high}"),
        };
        self.plain_number()
            .filter(|number| allowed.contains(number))
            .ok_or_else(|| self.wrong(&expected))
    }

    /// Bytes: `64KiB`, or a plain number of bytes.
    pub fn size(&self) -> Result<u64, ConfigError> {
        self.quantity("a size such as \"64KiB\"", units::parse_size)
    }

    /// Nanoseconds: `2s`, `1h30m`.
    pub fn duration(&self) -> Result<u64, ConfigError> {
        self.quantity("a duration such as \"2s\"", units::parse_duration)
    }

    /// Nanoseconds: a plain number of seconds, or a duration.
    pub fn seconds(&self) -> Result<u64, ConfigError> {
        self.quantity(
            "a number of seconds or a duration such as \"2m\"",
            units::parse_seconds,
        )
    }

    /// 0..=1: `20%` or 0.2.
    pub fn fraction(&self) -> Result<f64, ConfigError> {
        self.quantity("a fraction such as 0.2 or \"20%\"", units::parse_fraction)
    }

    /// Bytes or requests per second: `10 MB/s`, `500 IOPS`.
    pub fn rate(&self) -> Result<Rate, ConfigError> {
        self.quantity(
            "a rate such as \"10 MB/s\" or \"500 IOPS\"",
            units::parse_rate,
        )
    }

    /// A part of a target: `0%-10%`, `1GiB-2GiB`.
    pub fn range(&self) -> Result<(units::Place, units::Place), ConfigError> {
        self.quantity("a range such as \"0%-10%\"", units::parse_range)
    }

    /// One of a list of names.
    pub fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, ConfigError> {
        let text = self.text()?;
        if let Some((_, value)) = choices.iter().find(|(name, _)| *name == text) {
            return Ok(*value);
        }
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let meant = nearest(text, names.iter().copied())
            .map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
        Err(self.error(format!(
            "`{}` is none of {}{meant}",
            clean(text),
            names.join(", ")
        )))
    }

    /// Items of a list.
    pub fn list(&self) -> Result<&[Value], ConfigError> {
        match &self.data {
            Data::List(items) => Ok(items),
            _ => Err(self.wrong("a list")),
        }
    }

    /// A number or a flag as it was written: its text, or its digits.
    pub(crate) fn as_written(&self) -> Result<String, ConfigError> {
        match &self.data {
            Data::Flag(flag) => Ok(flag.to_string()),
            _ => self.quantity("a number", |text| Ok(text.to_owned())),
        }
    }

    /// A table. Messages about its keys name it by its key.
    pub fn into_table(self) -> Result<Table, ConfigError> {
        let wrong = self.wrong("a table");
        let Data::Table(mut table) = self.data else {
            return Err(wrong);
        };
        table.describe(format!("[{}]", clean(&self.key)));
        Ok(table)
    }

    /// A list of tables (`[[key]]`). Messages name the n-th by key and number.
    pub fn into_tables(self) -> Result<Vec<Table>, ConfigError> {
        let wrong = self.wrong(&format!("tables, each headed [[{}]]", clean(&self.key)));
        let Data::List(items) = self.data else {
            return Err(wrong);
        };
        let mut tables = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let Data::Table(mut table) = item.data else {
                return Err(wrong);
            };
            table.describe(format!("[[{}]] number {}", clean(&self.key), index + 1));
            tables.push(table);
        }
        Ok(tables)
    }

    /// Reads the value's text with `parse`, whether it was written as text or as a number. `expected`
    /// names the type for values that are neither.
    pub fn quantity<T>(
        &self,
        expected: &str,
        parse: impl FnOnce(&str) -> Result<T, UnitError>,
    ) -> Result<T, ConfigError> {
        let text = match &self.data {
            Data::Text(text) | Data::Typed(text) | Data::Float(text) => text.clone(),
            Data::Integer { digits, radix: 10 } => digits.clone(),
            Data::Integer { digits, radix } => match u64::from_str_radix(digits, *radix) {
                Ok(number) => number.to_string(),
                Err(_) => return Err(self.wrong(expected)),
            },
            _ => return Err(self.wrong(expected)),
        };
        parse(&text).map_err(|error| {
            let (key, scope) = (self.label(), self.scope.to_string());
            ConfigError::new(self.place.clone(), Problem::Quantity { key, scope, error })
        })
    }

    /// The key for messages; empty where the option's name has named it already.
    fn label(&self) -> String {
        match self.place {
            Place::Option { .. } => String::new(),
            _ => self.key.clone(),
        }
    }

    fn plain_number(&self) -> Option<f64> {
        let number = match &self.data {
            Data::Integer { digits, radix } => i64::from_str_radix(digits, *radix).ok()? as f64,
            Data::Float(text) | Data::Typed(text) => text.parse().ok()?,
            _ => return None,
        };
        Some(number).filter(|number: &f64| number.is_finite())
    }

    /// An error that names the allowed values.
    fn wrong(&self, expected: &str) -> ConfigError {
        let problem = Problem::Type {
            key: self.label(),
            scope: self.scope.to_string(),
            expected: expected.to_owned(),
            found: self.found(),
        };
        ConfigError::new(self.place.clone(), problem)
    }

    fn found(&self) -> String {
        match &self.data {
            Data::Text(text) => format!("\"{}\"", clean(text)),
            Data::Typed(text) => format!("`{}`", clean(text)),
            Data::Integer { digits, radix: 10 } | Data::Float(digits) => clean(digits),
            Data::Integer { .. } => "a number".to_owned(),
            Data::Flag(flag) => flag.to_string(),
            Data::Date => "a date".to_owned(),
            Data::List(_) => "a list".to_owned(),
            Data::Table(_) => "a table".to_owned(),
        }
    }
}
