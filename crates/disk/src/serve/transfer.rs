//! The data of requests whose bytes travel with them.

use crate::contents::Contents;
use crate::disk::{Done, Operation};

/// A request's tag, and the bytes that it writes.
#[derive(Debug)]
pub(super) struct Payload<T> {
    pub(super) tag: T,
    pub(super) data: Vec<u8>,
}

/// Carries out a request that the drive has done: the bytes of a read, or `None` if drive or contents failed.
pub(super) fn transfer<T>(contents: &mut Contents, done: &Done<Payload<T>>) -> Option<Vec<u8>> {
    if !done.is_fine {
        return None;
    }
    let request = &done.request;
    let mut bytes = Vec::new();
    let moved = match request.operation {
        Operation::Read => {
            bytes.resize(request.len as usize, 0);
            contents.read(request.offset, &mut bytes)
        }
        Operation::Write => contents.write(request.offset, &done.tag.data),
        Operation::Discard | Operation::WriteZeroes => {
            contents.discard(request.offset, request.len)
        }
        Operation::Flush => Ok(()),
    };
    moved.ok().map(|()| bytes)
}
