//! Virtual time: the messages of the lab's kernel, the calendar that decides who runs next, and its socket.

mod calendar;
mod link;
mod message;

pub use calendar::{Calendar, FOREVER, Step, TIME_OF_DAY_NS};
pub use link::TimeLink;
pub use message::{Answer, Interrupt, Kick, Message, Operation};
