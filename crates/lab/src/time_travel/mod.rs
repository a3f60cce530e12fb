//! Virtual time: the messages of `include/uapi/linux/um_timetravel.h`, the calendar that answers them, and its socket.

mod calendar;
mod link;
mod message;

pub use calendar::{Calendar, FOREVER, Step};
pub use link::TimeLink;
pub use message::{Message, Operation};
