//! Reads TOML written by people into typed values: one cursor that knows lines and names, one place for units.
//!
//! A reader takes the keys it knows from a [`Table`], each with its type, and ends with
//! [`Table::finish`], which refuses every key that was not taken. So the known keys are exactly the keys
//! that the reader takes, and every error is one line: the place, the problem, the allowed values.
//!
//! ```
//! use spindle_config::Document;
//!
//! let mut table = Document::parse("capacity = '750 GB'\nrpn = 7200", "drive.toml").unwrap();
//! let capacity = table.take_size("capacity").unwrap();
//! let rpm = table.take_integer("rpm", 1..=100_000).unwrap();
//! assert_eq!((capacity, rpm), (Some(750_000_000_000), None));
//! assert_eq!(
//!     table.finish().unwrap_err().to_string(),
//!     "drive.toml:2: unknown key `rpn`; did you mean `rpm`?"
//! );
//! ```

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod catalogue;
mod document;
mod error;
mod nearest;
mod ranges;
mod table;
pub mod units;
mod value;

pub use document::{Document, MAX_BYTES};
pub use error::{ConfigError, Place, Problem, clean};
pub use nearest::nearest;
pub use ranges::{Change, Range};
pub use table::Table;
pub use value::Value;
