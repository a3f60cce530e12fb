//! Calls of FUSE.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spindle_disk::serve::fuse::{Call, Volume, carry_out};

const VOLUME: Volume = Volume {
    bytes: 1 << 20,
    user: 0,
    group: 0,
    queue_depth: 32,
};

fuzz_target!(|bytes: &[u8]| {
    if let Call::Request { request, .. } = carry_out(&VOLUME, bytes) {
        assert!(request.offset + request.len <= VOLUME.bytes);
    }
});
