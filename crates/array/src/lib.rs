//! RAID address maps as Linux md has them, parity arithmetic, and md's choices in reading and writing.
//!
//! Pure functions: an [`Array`] is made from an [`ArrayConfig`] and answers questions; it keeps no state.
//!
//! - [`Array::locate`], [`Array::places`], [`Array::parity`]: from a byte of the array to the members;
//!   [`Array::role_at`]: from a byte of a member back.
//! - [`Array::pieces`], [`Array::requests`], [`Merger`]: a request cut at chunks, and merged again.
//! - [`Array::plan_write`], [`Array::rows`], [`Rows::plan`]: full stripe, read-modify-write or
//!   reconstruct-write; [`Array::plan_read`], [`Array::plan_rebuild`] with missing members.
//! - [`balance`]: which copy of a mirror is read.
//! - [`gf`], [`StripeCode`]: P and Q, and lost blocks from what is left.
//! - [`Array::tolerance`], [`Array::queue_limits`], [`Array::drawing`], [`LayoutReport`]: properties of an array.
//! - [`validate_maps`]: the maps against block lists read off real md arrays.
//!
//! All offsets and sizes are bytes; offsets on members count from the start of their data area.
//!
//! ```
//! use spindle_array::{Array, ArrayConfig, Level, Layout, Place};
//!
//! let config = ArrayConfig::new(Level::Raid10, vec![500_000_000_000; 6])
//!     .layout(Layout::parse(Level::Raid10, "f2")?)
//!     .chunk(64 * 1024);
//! let array = Array::new(config)?;
//! let places: Vec<Place> = array.places(65536).collect();
//! assert_eq!((places[0].member, places[1].member), (1, 2));
//! assert_eq!(array.tolerance().best_case, 3);
//! # Ok::<(), spindle_array::ArrayError>(())
//! ```

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod array;
pub mod balance;
mod code;
mod config;
mod divide;
mod drawing;
mod error;
pub mod gf;
mod layout;
mod level;
mod limits;
mod members;
mod mirror;
mod nested;
mod parity;
mod place;
mod read;
mod report;
mod split;
mod tolerance;
mod validate;
mod write;
mod zones;

pub use self::limits::{DEFAULT_READ_AHEAD, QueueLimits};
pub use array::Array;
pub use code::StripeCode;
pub use config::{ArrayConfig, DEFAULT_CHUNK, MAX_MEMBERS};
pub use drawing::{Drawing, Row, Section};
pub use error::ArrayError;
pub use layout::{CopyLayout, FarSets, Layout, ParityLayout, ZoneLayout};
pub use level::Level;
pub use members::MemberSet;
pub use place::{ParityPlaces, Piece, Place, Role};
pub use report::{LayoutReport, SmallWrite, creation};
pub use split::{MemberRequest, Merger};
pub use tolerance::Tolerance;
pub use validate::{FileReport, MapsReport, ValidateError, validate_maps};
pub use write::{
    RmwLevel, RowPlan, Rows, STRIPE_BLOCK, WriteMethod, WritePlanner, WriteRule, WriteStep,
};
