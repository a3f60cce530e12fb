//! A modelled drive as a disk that others read and write.
//!
//! | module | role |
//! |---|---|
//! | [`device`] | the disks: block devices around [`spindle_drive::Drive`], and consoles |
//! | [`virtio`] | rings of descriptors in the front end's memory |
//! | [`vhost`] | vhost-user: a front end reaches its devices over sockets |
//!
//! Nothing here knows what time it is: the caller's clock is virtual in the lab.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod device;
pub mod vhost;
pub mod virtio;
