//! Verification: every written block is stamped (`spindle_verify`), a table keeps the expected content of each block, and
//! reads are compared with it. `docs/reference/verify.md` describes the promises.

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

pub(crate) use checked::{CheckingBackend, Memory, Ready};
pub(crate) use plan::plan;
pub use read_back::{ReadBack, ReadBackProgress};
pub use state::StateError;
pub(crate) use written::Verify;
pub use written::{ExpectedContent, WrittenFile};
