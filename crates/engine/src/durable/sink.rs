//! The destination of the journal: a file on another device, or a receiver on another host.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use super::open::duplicate;

/// The kind of a journal's descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SinkKind {
    /// A file, written at its end.
    File,
    /// A pipe or console, which has no sync.
    Stream,
    /// A connection to a receiver that has reported that it is ready. Its lines are `stored N`, once N bytes are on its
    /// medium; `refused WHY`.
    Receiver,
}

/// The end to which entries are written. Once [`write`](Sink::write) has returned, its entries no longer depend
/// on this process.
#[derive(Debug)]
pub(crate) struct Sink {
    out: SinkEnd,
    written: u64,
}

#[derive(Debug)]
enum SinkEnd {
    File(File),
    Stream(File),
    Receiver(TcpStream),
}

/// The other half: makes written entries durable.
#[derive(Debug)]
pub(crate) struct SinkSyncer {
    end: SinkEnd,
    answer: Vec<u8>,
    stored: u64,
}

const NO_ANSWER: &str = "the receiver does not answer";
/// Longest line of a receiver, bytes.
const LINE_MAX: usize = 1000;

impl Sink {
    /// Both ends of a journal on a descriptor of the caller's.
    pub(crate) fn new(fd: RawFd, kind: SinkKind) -> io::Result<(Sink, SinkSyncer)> {
        let open = || {
            Ok::<SinkEnd, io::Error>(match kind {
                SinkKind::File => SinkEnd::File(File::from(duplicate(fd)?)),
                SinkKind::Stream => SinkEnd::Stream(File::from(duplicate(fd)?)),
                SinkKind::Receiver => SinkEnd::Receiver(TcpStream::from(duplicate(fd)?)),
            })
        };
        let sink = Sink {
            out: open()?,
            written: 0,
        };
        let keeper = SinkSyncer {
            end: open()?,
            answer: Vec::new(),
            stored: 0,
        };
        Ok((sink, keeper))
    }

    /// Sends whole entries.
    pub(crate) fn write(&mut self, entries: &[u8]) -> io::Result<()> {
        match &mut self.out {
            SinkEnd::File(file) | SinkEnd::Stream(file) => file.write_all(entries)?,
            SinkEnd::Receiver(stream) => stream.write_all(entries)?,
        }
        self.written += entries.len() as u64;
        Ok(())
    }

    /// Length so far, bytes.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }
}

impl SinkSyncer {
    /// To be called now and then: flushes a file, reads a receiver's answers; for `pause` at most.
    pub(crate) fn keep(&mut self, pause: Duration) -> io::Result<()> {
        match &mut self.end {
            SinkEnd::File(file) => {
                file.sync_data()?;
                std::thread::sleep(pause);
                Ok(())
            }
            SinkEnd::Stream(_) => {
                std::thread::sleep(pause);
                Ok(())
            }
            SinkEnd::Receiver(_) => self.listen(pause),
        }
    }

    /// Waits until the first `written` bytes are stored.
    pub(crate) fn settle(&mut self, written: u64, patience: Duration) -> io::Result<()> {
        match &self.end {
            SinkEnd::File(file) => return file.sync_all(),
            SinkEnd::Stream(_) => return Ok(()),
            SinkEnd::Receiver(_) => {}
        }
        let until = Instant::now() + patience;
        while self.stored < written {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::Error::new(io::ErrorKind::TimedOut, NO_ANSWER));
            }
            self.listen(left.min(Duration::from_millis(100)))?;
        }
        Ok(())
    }

    fn listen(&mut self, pause: Duration) -> io::Result<()> {
        let SinkEnd::Receiver(stream) = &mut self.end else {
            return Ok(());
        };
        stream.set_read_timeout(Some(pause.max(Duration::from_millis(1))))?;
        let mut part = [0; 256];
        match stream.read(&mut part) {
            Ok(0) => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the receiver has closed the connection",
            )),
            Ok(length) => {
                self.answer.extend(&part[..length]);
                self.hear()
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock
                        | io::ErrorKind::TimedOut
                        | io::ErrorKind::Interrupted
                ) =>
            {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Takes the whole lines of the answer.
    fn hear(&mut self) -> io::Result<()> {
        while let Some(end) = self.answer.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.answer.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            if let Some(stored) = line.strip_prefix("stored ") {
                let stored = stored.trim().parse().map_err(|_| odd(&line))?;
                self.stored = self.stored.max(stored);
            } else if let Some(why) = line.strip_prefix("refused ") {
                let text = format!("the receiver refuses: {}", why.trim());
                return Err(io::Error::other(text));
            } else {
                return Err(odd(&line));
            }
        }
        if self.answer.len() > LINE_MAX {
            return Err(odd(""));
        }
        Ok(())
    }
}

fn odd(line: &str) -> io::Error {
    let text = format!(
        "what answers is no receiver of journals ({:?})",
        line.trim().chars().take(40).collect::<String>()
    );
    io::Error::other(text)
}
