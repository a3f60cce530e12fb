//! The socket between the kernel and the calendar.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use super::message::{Answer, Message};
use crate::error::LabError;

const NAME: &str = "time travel";

/// The connection.
#[derive(Debug)]
pub struct TimeLink {
    stream: UnixStream,
    incoming: Vec<u8>,
    /// Messages received.
    pub messages: u64,
}

impl TimeLink {
    /// Wraps a connected socket.
    #[must_use]
    pub fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            incoming: Vec::new(),
            messages: 0,
        }
    }

    /// Takes the next message, and waits for it; `None` if the kernel has closed the connection.
    pub fn receive(&mut self) -> Result<Option<Message>, LabError> {
        loop {
            if let Some((message, len)) = Message::parse(&self.incoming)? {
                self.incoming.drain(..len);
                self.messages += 1;
                return Ok(Some(message));
            }
            let mut bytes = [0; Message::LONGEST];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Ok(None),
                Ok(count) => self.incoming.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
                Err(error) => return Err(LabError::socket(NAME, error)),
            }
        }
    }

    /// Answers the last message. A kernel that is gone is noticed by the next `receive`.
    pub fn answer(&mut self, answer: &Answer) -> Result<(), LabError> {
        match self.stream.write_all(&answer.to_bytes()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(LabError::socket(NAME, error))
            }
            _ => Ok(()),
        }
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

    #[test]
    fn messages_that_arrive_together_are_taken_one_by_one() {
        let message = |now_ns| Message {
            operation: Operation::Wait,
            now_ns,
            request: 0,
            kicks: Vec::new(),
        };
        let (near, mut far) = UnixStream::pair().unwrap();
        far.write_all(&[message(1).to_bytes(), message(2).to_bytes()].concat())
            .unwrap();
        let mut link = TimeLink::new(near);
        assert_eq!(link.receive().unwrap(), Some(message(1)));
        assert_eq!(link.receive().unwrap(), Some(message(2)));
        drop(far);
        assert_eq!(link.receive().unwrap(), None);
        link.answer(&Answer::default()).unwrap();
    }
}
