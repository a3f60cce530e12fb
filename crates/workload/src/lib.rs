//! Workloads: the specification of I/O, presets, and the seeded request stream.
//!
//! [`Workload::parse`] turns a TOML file (or one of the [presets](preset_text)) and options into a resolved
//! specification; [`RequestStream`] turns that, a seed and the size of a target into requests.
//!
//! ```
//! use spindle_workload::{RequestStream, Workload, preset_text};
//!
//! let text = preset_text("randomio").unwrap();
//! let options = [("size".to_owned(), "64KiB".to_owned())];
//! let workload = Workload::parse(text, "randomio", "randomio", &options).unwrap();
//! let mut requests = RequestStream::new(&workload.streams[0], 0, 0, workload.seed, 1 << 30, 512).unwrap();
//! let request = requests.next_request();
//! assert_eq!((request.len, request.offset % 65_536), (65_536, 0));
//! ```

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod alias;
mod arrivals;
mod content;
mod file_tables;
mod fileset;
mod key_texts;
mod keys;
mod log_normal;
mod names;
mod order;
mod parse;
mod patterns;
mod phases;
mod presets;
mod ranks;
mod request;
mod rest;
mod rng;
mod run_keys;
mod scatter;
mod service;
mod settings;
mod sizer;
mod sizes;
mod spec;
mod stream;
mod stream_keys;
mod trees;
mod walk;
mod write;
mod zipf;

pub use arrivals::{Arrivals, Thinker};
pub use content::ContentFiller;
pub use keys::{KEYS, Key, Kind, Level, Need};
pub use names::NameStream;
pub use presets::{preset_names, preset_text};
pub use request::{Op, Request};
pub use rest::{Hold, Rest};
pub use spec::*;
pub use spindle_config::ConfigError;
pub use stream::{Passes, RequestStream, StreamError};

/// Every key of a workload file as JSON: a list of [`Key`].
pub fn workload_keys() -> Result<String, serde_json::Error> {
    serde_json::to_string(KEYS)
}
