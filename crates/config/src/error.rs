//! Errors of one line for people: the place, the problem, the allowed values.

use std::fmt;
use std::sync::Arc;

use crate::units::UnitError;

/// Longest piece of the user's own text that a message repeats, characters.
const MAX_QUOTED: usize = 60;

/// Longest file name in a message, characters: cut shorter, it would lose its end, by which files differ.
const MAX_SOURCE: usize = 300;

/// Something in a file or option is wrong. Displays as one line.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}{problem}", at(place))]
pub struct ConfigError {
    /// Place of the mistake.
    pub place: Place,
    /// The problem, with the allowed values.
    pub problem: Box<Problem>,
}

impl ConfigError {
    /// An error at a place.
    #[must_use]
    pub fn new(place: Place, problem: Problem) -> ConfigError {
        ConfigError {
            place,
            problem: Box::new(problem),
        }
    }
}

/// The place where something was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A line of a file, counted from 1.
    Line {
        /// File, as the user named it.
        source: Arc<str>,
        /// Line.
        line: u32,
    },
    /// A key given beside the file. Displays as the keyword of a caller, `` `size=` ``; the command line shows its
    /// option instead.
    Option {
        /// The key: `size`, or `log.size` of one stream.
        name: Arc<str>,
    },
    /// A name given directly, such as that of a preset: the message quotes the name, so it needs no place.
    Argument,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line { source, line } => write!(f, "{}:{line}", shorten(source, MAX_SOURCE)),
            Place::Option { name } => write!(f, "`{}=`", clean(name)),
            Place::Argument => f.write_str("argument"),
        }
    }
}

/// A problem with a name, a key or a value.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Not TOML.
    #[error("not valid TOML: {}", clean(message))]
    Syntax {
        /// The parser's words.
        message: String,
    },
    /// A text longer than any such file.
    #[error("the text is {bytes} bytes long; at most {limit} are read")]
    TooLong {
        /// Length, bytes.
        bytes: usize,
        /// Limit, bytes.
        limit: usize,
    },
    /// A name that is not known here.
    #[error("unknown {kind} `{}`{}{}", clean(name), within(scope), meant(nearest.as_deref(), allowed))]
    Unknown {
        /// Kind of name (`key`, `stream`, `preset`).
        kind: &'static str,
        /// The name.
        name: String,
        /// Table that contains it; empty at the top.
        scope: String,
        /// The known name that was probably meant.
        nearest: Option<String>,
        /// All known names, listed if none is near.
        allowed: Vec<String>,
    },
    /// A required key is missing.
    #[error("missing key `{key}`{}{}", within(scope), in_place(instead.as_deref()))]
    Missing {
        /// The key.
        key: String,
        /// Table that lacks it; empty at the top.
        scope: String,
        /// An unknown key that may have been meant to be it.
        instead: Option<String>,
    },
    /// A value of another type.
    #[error("{}expected {expected}, found {found}", lead(key, scope))]
    Type {
        /// The key; empty if the place names it.
        key: String,
        /// Table that contains it; empty at the top.
        scope: String,
        /// The allowed type or values.
        expected: String,
        /// The value in the file.
        found: String,
    },
    /// A quantity that cannot be read.
    #[error("{}{error}", lead(key, scope))]
    Quantity {
        /// The key; empty if the place names it.
        key: String,
        /// Table that contains it; empty at the top.
        scope: String,
        /// The reason.
        error: UnitError,
    },
    /// A value that the reader of the table refuses.
    #[error("{}{}", lead(key, scope), shorten(what, 400))]
    Value {
        /// The key; empty if the place names it.
        key: String,
        /// Table that contains it; empty at the top.
        scope: String,
        /// The problem and the allowed values.
        what: String,
    },
    /// Any other problem, in the reader's words.
    #[error("{}", shorten(what, 400))]
    Other {
        /// The problem and the allowed values.
        what: String,
    },
}

fn at(place: &Place) -> String {
    match place {
        Place::Argument => String::new(),
        _ => format!("{place}: "),
    }
}

/// The key that a message is about; empty if the place has named it already.
fn lead(key: &str, scope: &str) -> String {
    if key.is_empty() {
        String::new()
    } else {
        format!("{}{}: ", clean(key), within(scope))
    }
}

fn within(scope: &str) -> String {
    if scope.is_empty() {
        String::new()
    } else {
        format!(" in {}", shorten(scope, 100))
    }
}

fn in_place(key: Option<&str>) -> String {
    key.map_or_else(String::new, |key| {
        format!("; is `{}` meant to be it?", clean(key))
    })
}

fn meant(nearest: Option<&str>, allowed: &[String]) -> String {
    match nearest {
        Some(name) => format!("; did you mean `{}`?", clean(name)),
        None if allowed.is_empty() => String::new(),
        None => format!("; known: {}", allowed.join(", ")),
    }
}

/// The user's text made safe to repeat in a message: one line, no control or direction characters, and
/// not too long.
#[must_use]
pub fn clean(text: &str) -> String {
    shorten(text, MAX_QUOTED)
}

pub(crate) fn shorten(text: &str, limit: usize) -> String {
    let mut out: String = text
        .chars()
        .take(limit)
        .map(|c| if hidden(c) { '?' } else { c })
        .collect();
    if text.chars().nth(limit).is_some() {
        out.push('…');
    }
    out
}

/// Characters that would break a line, move the cursor, or turn the reading direction.
fn hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_wrote_cannot_break_the_line_or_move_the_cursor() {
        assert_eq!(clean("a\nb\x1b[2Jc\u{202e}d"), "a?b?[2Jc?d");
        assert_eq!(clean(&"x".repeat(1000)).chars().count(), MAX_QUOTED + 1);
    }

    #[test]
    fn a_file_keeps_its_name_however_deep_it_lies() {
        let line = |source: &str| {
            Place::Line {
                source: source.into(),
                line: 7,
            }
            .to_string()
        };
        let deep = format!("{}nightly.toml", "some-folder/".repeat(20));
        assert_eq!(line(&deep), format!("{deep}:7"));
        assert_eq!(line("a\nb.toml"), "a?b.toml:7");
        assert_eq!(line(&"x".repeat(1000)).chars().count(), MAX_SOURCE + 1 + 2);
    }
}
