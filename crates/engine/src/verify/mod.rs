//! Verification: every block written says what it is (`spindle_verify`), a table says what must be where, and what is
//! read is held against it. `docs/reference/verify.md` tells what is promised.

mod checked;
mod entry;
mod findings;
mod plan;
mod read_back;
mod state;
mod table;
#[cfg(test)]
mod tests;
mod written;

pub(crate) use checked::{Checked, Memory, Ready};
pub(crate) use plan::plan;
pub use read_back::{ReadBack, ReadBackProgress};
pub use state::StateError;
pub(crate) use written::Verify;
pub use written::{Written, WrittenFile};
