//! One socket of vhost-user: whole messages in and out, with descriptors.

use std::collections::VecDeque;
use std::io::{IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use super::error::VhostError;
use super::message::{Header, Request};

/// Most descriptors of one message: the regions of memory.
const DESCRIPTORS: usize = 8;
const PIECE: usize = 1024;

/// A piece of the incoming stream.
#[derive(Debug)]
pub enum Incoming {
    /// A message.
    Message(Header, Request),
    /// Nothing whole, on a socket that does not wait.
    Nothing,
    /// The other side has closed the socket.
    End,
}

enum Filled {
    Bytes,
    Nothing,
    End,
}

/// A connected socket.
#[derive(Debug)]
pub struct Connection {
    name: String,
    stream: UnixStream,
    incoming: Vec<u8>,
    descriptors: VecDeque<OwnedFd>,
}

impl Connection {
    /// Wraps a socket; `name` is for messages.
    #[must_use]
    pub fn new(name: String, stream: UnixStream) -> Self {
        Self {
            name,
            stream,
            incoming: Vec::new(),
            descriptors: VecDeque::new(),
        }
    }

    /// Takes the next message, and waits for it if the socket does; otherwise it may be [`Incoming::Nothing`].
    pub fn receive(&mut self) -> Result<Incoming, VhostError> {
        loop {
            let needed = match self.incoming.first_chunk::<{ Header::LEN }>() {
                None => Header::LEN,
                Some(bytes) => {
                    let header = Header::parse(*bytes);
                    let header =
                        header.map_err(|problem| VhostError::protocol(&self.name, problem))?;
                    let end = Header::LEN + header.size as usize;
                    if let Some(payload) = self.incoming.get(Header::LEN..end) {
                        let request =
                            Request::parse(header.request, payload, &mut self.descriptors);
                        let request =
                            request.map_err(|problem| VhostError::protocol(&self.name, problem))?;
                        self.incoming.drain(..end);
                        return Ok(Incoming::Message(header, request));
                    }
                    end
                }
            };
            while self.incoming.len() < needed {
                match self.fill()? {
                    Filled::Bytes => {}
                    Filled::Nothing => return Ok(Incoming::Nothing),
                    Filled::End => return Ok(Incoming::End),
                }
            }
        }
    }

    /// True if more of the next message has already been read, so that the socket need not become readable.
    #[must_use]
    pub fn has_bytes(&self) -> bool {
        !self.incoming.is_empty()
    }

    /// Sends a message. A front end that is gone is noticed by the next `receive`.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), VhostError> {
        match self.stream.write_all(bytes) {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                Err(VhostError::socket(&self.name, error))
            }
            _ => Ok(()),
        }
    }

    /// Reads a piece.
    fn fill(&mut self) -> Result<Filled, VhostError> {
        let mut piece = [0; PIECE];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let count = loop {
            let mut slices = [IoSliceMut::new(&mut piece)];
            match recvmsg(
                &self.stream,
                &mut slices,
                &mut control,
                RecvFlags::CMSG_CLOEXEC,
            ) {
                Ok(received) => break received.bytes,
                Err(Errno::INTR) => {}
                Err(Errno::CONNRESET) => return Ok(Filled::End),
                Err(Errno::AGAIN) => return Ok(Filled::Nothing),
                Err(error) => return Err(VhostError::socket(&self.name, error)),
            }
        };
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(found) = message {
                self.descriptors.extend(found);
            }
        }
        self.incoming.extend_from_slice(&piece[..count]);
        Ok(match count {
            0 => Filled::End,
            _ => Filled::Bytes,
        })
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
