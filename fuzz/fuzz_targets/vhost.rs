//! Messages of a vhost-user front end: headers and requests.
#![no_main]

use std::collections::VecDeque;

use libfuzzer_sys::fuzz_target;
use spindle_disk::vhost::{Header, Request};

fuzz_target!(|bytes: &[u8]| {
    if let Some((head, payload)) = bytes.split_first_chunk::<{ Header::LEN }>()
        && let Ok(header) = Header::parse(*head)
    {
        let _ = Request::parse(header.request, payload, &mut VecDeque::new());
    }
});
