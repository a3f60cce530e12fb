//! The completion log: every completion of a run as a line of a file.
//!
//! A worker puts each completion into a ring of its own that was made and touched before the run, which takes some ns and
//! never waits. One thread takes them out and writes the lines (docs/reference/log.md). If the file takes lines more
//! slowly than the load makes them, completions are lost and counted: the load never waits, and memory does not grow.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Release};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rtrb::{Consumer, Producer, RingBuffer};
use spindle_measure::{LogFigures, OpKind};

/// First line of the file: the names of the columns.
const HEAD: &str = "time_ns,latency_ns,service_ns,operation,file,offset,bytes,stream,worker\n";
/// Memory of all rings together unless there are very many, bytes.
const RINGS: usize = 64 << 20;
/// Bounds of one ring, completions.
const MOST: usize = 1 << 16;
const LEAST: usize = 256;
/// Text is written in pieces of this size.
const PIECE: usize = 1 << 20;
/// Completions taken from a ring before the next has its turn.
const TURN: usize = 4096;
/// Time that the writer sleeps when there is nothing to write: the smallest ring takes 250 000 a second meanwhile.
const PAUSE: Duration = Duration::from_millis(1);

/// One completion.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Completion {
    /// Time of the completion, ns since the start of the run.
    pub(crate) at: u64,
    /// From the issue, or in an open loop from the intended start, ns.
    pub(crate) latency: u64,
    /// From the issue, ns.
    pub(crate) service: u64,
    /// Offset, bytes.
    pub(crate) offset: u64,
    /// Length, bytes.
    pub(crate) len: u32,
    /// Number of the file in the stream.
    pub(crate) file: u32,
    pub(crate) kind: OpKind,
}

impl Default for Completion {
    fn default() -> Self {
        Completion {
            at: 0,
            latency: 0,
            service: 0,
            offset: 0,
            len: 0,
            file: 0,
            kind: OpKind::Read,
        }
    }
}

/// The worker's end.
#[derive(Debug)]
pub(crate) struct Log {
    ring: Producer<Completion>,
    /// Completions for which the ring had no room.
    pub(crate) lost: u64,
}

impl Log {
    #[inline]
    pub(crate) fn push(&mut self, completion: Completion) {
        if self.ring.push(completion).is_err() {
            self.lost += 1;
        }
    }
}

/// The other ends of all rings.
#[derive(Debug)]
pub(crate) struct Writer {
    sources: Vec<Source>,
    capacity: usize,
    file: File,
}

#[derive(Debug)]
struct Source {
    ring: Consumer<Completion>,
    /// End of its lines: stream and worker.
    tail: String,
}

/// A writer at work.
#[derive(Debug)]
pub(crate) struct RunningWriter {
    over: Arc<AtomicBool>,
    thread: JoinHandle<LogFigures>,
}

impl Writer {
    /// For this many threads.
    pub(crate) fn new(file: File, threads: usize) -> Writer {
        let fair = RINGS / size_of::<Completion>() / threads.max(1);
        Writer {
            sources: Vec::with_capacity(threads),
            capacity: fair.clamp(LEAST, MOST),
            file,
        }
    }

    /// Makes the ring of one thread.
    pub(crate) fn log(&mut self, stream: &str, worker: u32) -> Log {
        let (mut producer, consumer) = RingBuffer::new(self.capacity);
        // Touched now, so that no page fault falls into the measurement.
        drop(producer.write_chunk(self.capacity));
        self.sources.push(Source {
            ring: consumer,
            tail: format!(",{},{worker}\n", quoted(stream)),
        });
        Log {
            ring: producer,
            lost: 0,
        }
    }

    /// Writes from now on.
    pub(crate) fn start(self) -> io::Result<RunningWriter> {
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        let thread = Builder::new()
            .name("spindle-log".to_owned())
            .spawn(move || self.write_all(&seen))?;
        Ok(RunningWriter { over, thread })
    }

    fn write_all(mut self, over: &AtomicBool) -> LogFigures {
        let mut page = Page::new(self.file);
        loop {
            // Before the rings are read: all entries from before the end are then found.
            let last = over.load(Acquire);
            let mut found = 0;
            for source in &mut self.sources {
                found += source.take(&mut page);
            }
            if found == 0 && last {
                break;
            }
            if found == 0 {
                std::thread::sleep(PAUSE);
            }
        }
        page.finish()
    }
}

impl RunningWriter {
    /// Waits until all entries are written. No thread adds any more.
    pub(crate) fn finish(self) -> LogFigures {
        self.over.store(true, Release);
        self.thread.join().unwrap_or_else(|_| LogFigures {
            error: Some("its writer broke down".to_owned()),
            ..LogFigures::default()
        })
    }
}

impl Source {
    /// Takes the entries, but only a limited number: other rings wait.
    fn take(&mut self, page: &mut Page) -> usize {
        let count = self.ring.slots().min(TURN);
        let Ok(chunk) = self.ring.read_chunk(count) else {
            return 0;
        };
        for completion in chunk {
            page.line(&completion, &self.tail);
        }
        count
    }
}

/// Lines on their way to the file.
struct Page {
    file: File,
    text: Vec<u8>,
    /// Lines in `text`.
    lines: u64,
    figures: LogFigures,
}

impl Page {
    fn new(file: File) -> Page {
        let mut text = Vec::with_capacity(PIECE + 512);
        text.extend(HEAD.as_bytes());
        Page {
            file,
            text,
            lines: 0,
            figures: LogFigures::default(),
        }
    }

    fn line(&mut self, completion: &Completion, tail: &str) {
        let Completion {
            at,
            latency,
            service,
            offset,
            len,
            file,
            kind,
        } = completion;
        let kind = kind.name();
        // Writing to a vector does not fail.
        let _ = write!(
            self.text,
            "{at},{latency},{service},{kind},{file},{offset},{len}{tail}"
        );
        self.lines += 1;
        if self.text.len() >= PIECE {
            self.put();
        }
    }

    /// After the first failure nothing more is written: a file with a hole in its middle would look whole.
    fn put(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        if self.figures.error.is_none() {
            match self.file.write_all(&self.text) {
                Ok(()) => self.figures.completions += lines,
                Err(error) => self.figures.error = Some(error.to_string()),
            }
        }
        if self.figures.error.is_some() {
            self.figures.lost += lines;
        }
        self.text.clear();
    }

    fn finish(mut self) -> LogFigures {
        self.put();
        self.figures
    }
}

/// A field of CSV (RFC 4180).
fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
