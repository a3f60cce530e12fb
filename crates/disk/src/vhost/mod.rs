//! vhost-user, the protocol over which the kernel reaches its devices, as the back end speaks it.
//!
//! Notifications are in band (`VHOST_USER_PROTOCOL_F_INBAND_NOTIFICATIONS`): a kick is a message that is answered, and
//! so is an interrupt. That makes the order of all that happens a matter of the messages alone.

mod connection;
mod device;
mod error;
mod message;

pub use connection::Connection;
pub use device::{Session, Upshot};
pub use error::VhostError;
pub use message::{Header, Request};
