//! A modelled drive as a disk that others read and write.
//!
//! | module | role |
//! |---|---|
//! | [`disk`] | requests at a [`spindle_drive::Drive`], each done when its model says |
//! | [`contents`] | the bytes, in memory or in a sparse file |
//! | [`device`] | virtio devices: the disk, and a console |
//! | [`virtio`] | rings of descriptors in the front end's memory |
//! | [`vhost`] | vhost-user: a front end reaches its devices over sockets |
//! | [`serve`] | a disk in real time, over vhost-user, NBD or FUSE |
//!
//! Nothing but [`serve`] knows what time it is: the lab's clock is virtual.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod alone;
pub mod contents;
pub mod device;
pub mod disk;
pub mod serve;
pub mod vhost;
pub mod virtio;
