//! Workloads that come with the program.

use spindle_config::catalogue::PRESETS;
use spindle_config::{ConfigError, Place, Problem, nearest};

use crate::keys;

/// Names of all presets.
pub fn preset_names() -> impl Iterator<Item = &'static str> + Clone {
    PRESETS.iter().map(|(name, _)| *name)
}

/// Tables that presets are shown in, and the usual one, as choices.
pub(crate) fn tables() -> Vec<(&'static str, &'static str)> {
    let named = PRESETS.iter().flat_map(|(_, text)| text.lines());
    let named = named.filter_map(|line| line.strip_prefix("table = \"")?.strip_suffix('"'));
    let mut tables = vec![(keys::TABLE.default, keys::TABLE.default)];
    for name in named {
        if !tables.contains(&(name, name)) {
            tables.push((name, name));
        }
    }
    tables
}

/// TOML of a preset; the error names the nearest one.
pub fn preset_text(name: &str) -> Result<&'static str, ConfigError> {
    if let Some((_, text)) = PRESETS.iter().find(|(preset, _)| *preset == name) {
        return Ok(text);
    }
    let problem = Problem::Unknown {
        kind: "preset",
        name: name.to_owned(),
        scope: String::new(),
        nearest: nearest(name, preset_names()).map(str::to_owned),
        allowed: preset_names().map(str::to_owned).collect(),
    };
    Err(ConfigError::new(Place::Argument, problem))
}
