//! The values set for a stream or for the whole workload, the layer that set each, and the defaults.

use std::collections::BTreeMap;

use spindle_config::{ConfigError, Place, Table, Value};

use crate::keys::{self, KEYS, Key, Kind, Level, NONE, Need};

/// The layer that set a value; later ones win.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Layer {
    /// The table of keys.
    Default,
    /// The head of the file, for all streams.
    Head,
    /// The head of a phase, for all its streams.
    Phase,
    /// The stream's own table.
    Stream,
    /// An option for all streams.
    Option,
    /// An option for one phase, or for all its streams.
    PhaseOption,
    /// An option for this stream.
    StreamOption,
}

/// Values by key, each from the last layer that set it.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    values: BTreeMap<&'static str, (Layer, Value)>,
    place: Place,
}

impl Settings {
    /// Nothing set; errors about defaults name `place`.
    pub(crate) fn new(place: Place) -> Settings {
        Settings {
            values: BTreeMap::new(),
            place,
        }
    }

    /// Takes all keys of a level out of a table.
    pub(crate) fn take(&mut self, table: &mut Table, level: Level, layer: Layer) {
        for key in KEYS.iter().filter(|key| key.level == level) {
            if let Some(value) = table.take(key.name) {
                self.set(key, layer, value);
            }
        }
    }

    /// Sets a value, unless a later layer has.
    pub(crate) fn set(&mut self, key: &'static Key, layer: Layer, value: Value) {
        let stronger = self
            .values
            .get(key.name)
            .is_some_and(|(present, _)| *present > layer);
        if !stronger {
            self.values.insert(key.name, (layer, value));
        }
    }

    /// Removes a value.
    pub(crate) fn forget(&mut self, key: &Key) {
        self.values.remove(key.name);
    }

    /// The value, or the default.
    pub(crate) fn value(&self, key: &Key) -> Value {
        match self.values.get(key.name) {
            Some((_, value)) => value.clone(),
            None => Value::typed(key.name, key.default, self.place.clone()),
        }
    }

    /// The value or default, unless it is `none`.
    pub(crate) fn optional(&self, key: &Key) -> Option<Value> {
        Some(self.value(key)).filter(|value| !matches!(value.text(), Ok(NONE)))
    }

    /// The layer that set the value.
    pub(crate) fn layer(&self, key: &Key) -> Layer {
        self.values
            .get(key.name)
            .map_or(Layer::Default, |(layer, _)| *layer)
    }

    /// The value that was set last among several keys: the one to complain about.
    pub(crate) fn last_set(&self, keys: &[&Key]) -> Value {
        let line = |key: &Key| match self.value(key).place() {
            Place::Line { line, .. } => *line,
            _ => 0,
        };
        let last = keys.iter().max_by_key(|key| (self.layer(key), line(key)));
        last.map_or_else(
            || Value::typed("", "", self.place.clone()),
            |key| self.value(key),
        )
    }

    /// A whole number within the key's range.
    pub(crate) fn integer(&self, key: &Key) -> Result<u64, ConfigError> {
        let (least, most) = key.range.unwrap_or((0.0, f64::MAX));
        self.value(key).integer(least as u64..=most as u64)
    }

    /// A number within the key's range.
    pub(crate) fn number(&self, key: &Key) -> Result<f64, ConfigError> {
        let (least, most) = key.range.unwrap_or((f64::MIN, f64::MAX));
        self.value(key).number(least..=most)
    }

    /// A key's number, unless it is `none`; 0 is refused.
    pub(crate) fn positive(
        &self,
        key: &Key,
        read: impl Fn(&Value) -> Result<u64, ConfigError>,
    ) -> Result<Option<u64>, ConfigError> {
        let Some(value) = self.optional(key) else {
            return Ok(None);
        };
        match read(&value)? {
            0 => Err(value.error("must be above 0, or none")),
            number => Ok(Some(number)),
        }
    }

    /// A key's whole number within its range, unless it is `none`.
    pub(crate) fn optional_integer(&self, key: &Key) -> Result<Option<u64>, ConfigError> {
        let value = self.optional(key);
        value.map(|_| self.integer(key)).transpose()
    }

    /// Checks that the other keys of the level which its keys need are set.
    pub(crate) fn check_needs(&self, level: Level) -> Result<(), ConfigError> {
        let set = |key: &&Key| key.level == level && self.layer(key) != Layer::Default;
        for key in KEYS.iter().filter(set) {
            let owners = key.needs.iter().filter_map(|need| keys::find(need.key));
            if owners
                .clone()
                .next()
                .is_some_and(|owner| owner.level == level)
            {
                let fits = key.needs.iter().map(|need| self.fits(need));
                let holds = fits.collect::<Result<Vec<_>, _>>()?.contains(&true);
                self.only_with(key, owners, holds, &when(key.needs))?;
            }
        }
        Ok(())
    }

    fn fits(&self, need: &Need) -> Result<bool, ConfigError> {
        let Some(owner) = keys::find(need.key) else {
            return Ok(false);
        };
        match (need.values, owner.kind) {
            ([], Kind::Flag) => self.value(owner).flag(),
            ([], Kind::Fraction) => Ok(self.value(owner).fraction()? > 0.0),
            ([], _) => Ok(self.optional(owner).is_some()),
            (values, _) => Ok(values.contains(&self.value(owner).text()?)),
        }
    }

    /// Checks a key that has an effect only for some value of its owners: if the condition is not met, setting
    /// the key beside or after them is an error; set before, it was for an owner since overruled.
    pub(crate) fn only_with(
        &self,
        key: &Key,
        owners: impl IntoIterator<Item = &'static Key>,
        holds: bool,
        when: &str,
    ) -> Result<(), ConfigError> {
        let layer = self.layer(key);
        let owned_since = owners.into_iter().any(|owner| layer < self.layer(owner));
        if holds || layer == Layer::Default || owned_since {
            return Ok(());
        }
        Err(self
            .value(key)
            .error(format!("only means something with {when}")))
    }
}

/// `pattern = "zipf" or "pareto"`; "`rate` or `worker_rate`".
fn when(needs: &[Need]) -> String {
    let alternatives = needs.iter().map(|need| match need.values {
        [] if keys::find(need.key).is_some_and(|key| key.kind == Kind::Flag) => need.key.to_owned(),
        [] => format!("`{}`", need.key),
        values => {
            let values = values.iter().map(|value| format!("\"{value}\""));
            let values = values.collect::<Vec<_>>().join(" or ");
            format!("{} = {values}", need.key)
        }
    });
    alternatives.collect::<Vec<_>>().join(" or ")
}
