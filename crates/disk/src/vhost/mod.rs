//! vhost-user, the protocol over which the kernel reaches its devices, as the back end speaks it.
//!
//! In the lab notifications are in band (`VHOST_USER_PROTOCOL_F_INBAND_NOTIFICATIONS`): a kick is a message that is
//! answered, and so is an interrupt. That makes the order of all that happens a matter of the messages alone. In real time
//! they are event descriptors, as front ends such as QEMU want them.

mod connection;
mod device;
mod error;
mod message;

pub use connection::{Connection, Incoming};
pub use device::{Session, Upshot};
pub use error::VhostError;
pub use message::{Header, Purpose, Request};
