//! The durability test: writers that note every acknowledged write in a journal kept elsewhere, and the check of what
//! is there after power was cut.
//!
//! What is written is a pure function of the [`Plan`], so that the journal only has to say how far each worker had come
//! when its sync returned. `docs/reference/durability.md` tells what is promised, in which order, and what follows from it.

mod check;
mod content;
mod entry;
mod findings;
mod journal;
mod open;
mod plan;
mod replay;
mod sink;
#[cfg(test)]
mod tests;
mod writer;

pub use check::check;
pub use entry::{End, Header};
pub use findings::{Findings, Found, Loss, Verdict};
pub use journal::{JournalError, JournalSummary, summarise};
pub use plan::{Pattern, Plan, PlanError, SyncKind};
pub use sink::SinkKind;
pub use writer::{Durability, DurableFigures, DurablePhase, DurableProgress, Failure};
