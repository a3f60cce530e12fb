//! The durability test: writers that note every acknowledged write in a journal on another device or host, and the check
//! of the target after a power cut.
//!
//! All writes are a pure function of the [`Plan`], so that the journal only has to record how far each worker had come
//! when its sync returned. `docs/reference/durability.md` describes the promises, their order, and the conclusions.

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
pub use findings::{BlockContent, Findings, Loss, Verdict};
pub use journal::{JournalError, JournalSummary, summarise};
pub use plan::{Pattern, Plan, PlanError, SyncKind};
pub use sink::SinkKind;
pub use writer::{Durability, DurableFigures, DurablePhase, DurableProgress, Failure};
