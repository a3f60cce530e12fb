//! Bytes of an NBD client, before and after it has chosen the disk.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spindle_disk::serve::nbd::{Export, Protocol, Step};

/// Flags of the client, and the option `GO` without a name.
const CHOSEN: &[u8] = b"\0\0\0\x03IHAVEOPT\0\0\0\x07\0\0\0\x06\0\0\0\0\0\0";

fuzz_target!(|input: (bool, Vec<Vec<u8>>)| {
    let mut protocol = Protocol::new(Export {
        bytes: 1 << 30,
        is_rotational: false,
    });
    if input.0 {
        protocol.receive(CHOSEN);
    }
    for piece in input.1 {
        protocol.receive(&piece);
        while matches!(protocol.step(), Step::Request(_)) {}
    }
});
