//! A disk as a file: calls of the kernel, read from and answered on one descriptor.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::Path;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};
use spindle_sim::DriveSetup;

use super::fuse::{CALL_BYTES, Call, Volume, carry_out, done};
use super::mount::Mount;
use super::transfer::{Payload, transfer};
use super::{Clients, FrontEnd, ServeError};
use crate::contents::Contents;
use crate::disk::{Counts, Disk};

/// Calls taken at a time, so that completions do not wait for long.
const CALLS: usize = 8;

pub(super) struct FuseEnd {
    disk: Disk<Payload<u64>>,
    volume: Volume,
    device: File,
    buffer: Vec<u8>,
    clients: Clients,
    /// Last, so that it is unmounted when the rest is gone.
    _mount: Mount,
}

impl FuseEnd {
    pub(super) fn new(
        setup: &DriveSetup,
        contents: Contents,
        folder: &Path,
        queue_depth: u32,
    ) -> Result<Self, ServeError> {
        let disk = Disk::of(setup, contents, false)?;
        let volume = Volume {
            bytes: disk.capacity_bytes(),
            user: geteuid().as_raw(),
            group: getegid().as_raw(),
            queue_depth,
        };
        let (mount, device) = Mount::new(folder)?;
        Ok(Self {
            disk,
            volume,
            device,
            buffer: vec![0; CALL_BYTES],
            clients: Clients {
                connected: 1,
                ..Clients::default()
            },
            _mount: mount,
        })
    }

    /// An answer that the kernel no longer waits for is refused, which does not matter.
    fn answer(&mut self, bytes: &[u8]) {
        let _ = self.device.write(bytes);
    }
}

impl FrontEnd for FuseEnd {
    fn wait_for<'a>(&'a self, found: &mut Vec<PollFd<'a>>) {
        found.push(PollFd::from_borrowed_fd(self.device.as_fd(), PollFlags::IN));
    }

    fn serve(&mut self, now_ns: u64) -> Result<bool, ServeError> {
        for _ in 0..CALLS {
            let count = match self.device.read(&mut self.buffer) {
                Ok(count) => count,
                Err(error) => match error.raw_os_error().map(Errno::from_raw_os_error) {
                    Some(Errno::NODEV) => return Ok(false),
                    // The call was interrupted before it was read; or there is none.
                    Some(Errno::NOENT | Errno::INTR | Errno::AGAIN) => return Ok(true),
                    _ => return Err(ServeError::new("/dev/fuse", error)),
                },
            };
            match carry_out(&self.volume, &self.buffer[..count]) {
                Call::None => {}
                Call::Answer(bytes) => self.answer(&bytes),
                Call::Request {
                    unique,
                    request,
                    data,
                } if self.disk.is_inside(&request) => {
                    self.disk
                        .take(now_ns, request, Payload { tag: unique, data });
                }
                Call::Request {
                    unique, request, ..
                } => self.answer(&done(unique, &request, None)),
            }
        }
        Ok(true)
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.disk.next_event_ns()
    }

    fn advance(&mut self, now_ns: u64) -> Result<u64, ServeError> {
        let mut finished = Vec::new();
        self.disk.advance(now_ns, &mut finished);
        for one in &finished {
            let data = transfer(&mut self.disk.contents, one);
            let answer = done(one.tag.tag, &one.request, data.as_deref());
            self.answer(&answer);
        }
        Ok(finished.len() as u64)
    }

    fn clients(&self) -> &Clients {
        &self.clients
    }

    fn counts(&self) -> Counts {
        self.disk.counts()
    }

    fn memory_bytes(&self) -> u64 {
        self.disk.contents.memory_bytes()
    }
}
