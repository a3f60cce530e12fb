//! The example machines of `catalogue/machines`, part of the program.

use spindle_config::catalogue::MACHINES;
use spindle_config::{clean, nearest};

/// No example of that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no machine named \"{name}\"{hint}")]
pub struct UnknownMachine {
    name: String,
    hint: String,
}

/// Names of the examples, in alphabetical order.
pub fn machine_names() -> impl Iterator<Item = &'static str> {
    MACHINES.iter().map(|(name, _)| *name)
}

/// The text of an example.
pub fn machine_text(name: &str) -> Result<&'static str, UnknownMachine> {
    MACHINES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
        .ok_or_else(|| UnknownMachine {
            name: clean(name).to_string(),
            hint: match nearest(name, machine_names()) {
                Some(near) => format!("; did you mean \"{near}\"?"),
                None => format!(
                    "; give a file, or one of {}",
                    machine_names().collect::<Vec<_>>().join(", ")
                ),
            },
        })
}
