//! The socket between the kernel and the calendar.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use super::message::Message;
use crate::error::LabError;

const NAME: &str = "time travel";

/// The connection. Messages to the kernel are collected until [`flush`](TimeLink::flush), so that those which belong
/// together wake it once.
#[derive(Debug)]
pub struct TimeLink {
    stream: UnixStream,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    /// Messages received and sent.
    pub messages: u64,
}

impl TimeLink {
    /// Wraps a connected socket.
    #[must_use]
    pub fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            outgoing: Vec::new(),
            incoming: Vec::new(),
            messages: 0,
        }
    }

    /// Adds a message to those that the next flush sends.
    pub fn queue(&mut self, message: Message) {
        self.messages += 1;
        self.outgoing.extend_from_slice(&message.to_bytes());
    }

    /// Sends what is queued. A kernel that is gone is noticed by the next `receive`.
    pub fn flush(&mut self) -> Result<(), LabError> {
        if self.outgoing.is_empty() {
            return Ok(());
        }
        let sent = self.stream.write_all(&self.outgoing);
        self.outgoing.clear();
        match sent {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(LabError::socket(NAME, error))
            }
            _ => Ok(()),
        }
    }

    /// True if a received message waits to be taken, without reading the socket.
    #[must_use]
    pub fn has_message(&self) -> bool {
        self.incoming.len() >= Message::LEN
    }

    /// Takes the next message, and waits for it; `None` if the kernel has closed the connection.
    pub fn receive(&mut self) -> Result<Option<Message>, LabError> {
        while !self.has_message() {
            let mut bytes = [0; 16 * Message::LEN];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Ok(None),
                Ok(count) => self.incoming.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
                Err(error) => return Err(LabError::socket(NAME, error)),
            }
        }
        let mut bytes = [0; Message::LEN];
        bytes.copy_from_slice(&self.incoming[..Message::LEN]);
        self.incoming.drain(..Message::LEN);
        self.messages += 1;
        Message::from_bytes(bytes)
            .map(Some)
            .map_err(|code| LabError::protocol(NAME, format!("operation {code} is unknown")))
    }
}

impl AsFd for TimeLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::Operation;
    use super::*;

    fn ack(sequence: u32) -> Message {
        Message {
            operation: Operation::Ack,
            sequence,
            time_ns: 0,
        }
    }

    #[test]
    fn messages_that_arrive_together_are_taken_one_by_one() {
        let (near, mut far) = UnixStream::pair().unwrap();
        far.write_all(&[ack(1).to_bytes(), ack(2).to_bytes()].concat())
            .unwrap();
        let mut link = TimeLink::new(near);
        assert_eq!(link.receive().unwrap(), Some(ack(1)));
        assert!(link.has_message());
        assert_eq!(link.receive().unwrap(), Some(ack(2)));
        drop(far);
        assert_eq!(link.receive().unwrap(), None);
    }

    #[test]
    fn nothing_is_sent_before_the_flush() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let mut link = TimeLink::new(near);
        link.queue(ack(1));
        link.queue(ack(2));
        far.set_nonblocking(true).unwrap();
        let mut bytes = [0; 64];
        assert!(far.read(&mut bytes).is_err());
        link.flush().unwrap();
        assert_eq!(far.read(&mut bytes).unwrap(), 2 * Message::LEN);
    }
}
