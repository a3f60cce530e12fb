//! What was set for a stream or for the whole workload, by whom, and what holds otherwise.

use std::collections::BTreeMap;

use spindle_config::{ConfigError, Place, Table, Value};

use crate::keys::{KEYS, Key, Level, NONE};

/// Who set a value; later ones win.
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
    /// Nothing set; `place` is told for errors about defaults.
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

    /// Takes a value out of force.
    pub(crate) fn forget(&mut self, key: &Key) {
        self.values.remove(key.name);
    }

    /// The value in force, be it the default.
    pub(crate) fn value(&self, key: &Key) -> Value {
        match self.values.get(key.name) {
            Some((_, value)) => value.clone(),
            None => Value::typed(key.name, key.default, self.place.clone()),
        }
    }

    /// The value in force, unless it is `none`.
    pub(crate) fn optional(&self, key: &Key) -> Option<Value> {
        Some(self.value(key)).filter(|value| !matches!(value.text(), Ok(NONE)))
    }

    /// Who set the value in force.
    pub(crate) fn layer(&self, key: &Key) -> Layer {
        self.values
            .get(key.name)
            .map_or(Layer::Default, |(layer, _)| *layer)
    }

    /// Of several keys, the value that was set last: the one to complain about.
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

    /// Checks a key that only means something for some value of `owner`: if it does not hold now, setting
    /// the key beside or after the owner is an error; set before, it was for an owner since overruled.
    pub(crate) fn only_with(
        &self,
        key: &Key,
        owner: &Key,
        holds: bool,
        when: &str,
    ) -> Result<(), ConfigError> {
        let layer = self.layer(key);
        if holds || layer == Layer::Default || layer < self.layer(owner) {
            return Ok(());
        }
        Err(self
            .value(key)
            .error(format!("only means something with {when}")))
    }
}
