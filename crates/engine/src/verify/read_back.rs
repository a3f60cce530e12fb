//! Reads all written blocks again, from the medium, and checks them.
#![allow(unsafe_code)]

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use serde::Serialize;
use spindle_measure::{CheckFigures, ReadBackFigures};

use super::findings::{Findings, Tally};
use super::written::{ExpectedContent, Extent, Judgement, place_of, unreadable};
use crate::kernel::drop_cache;
use crate::shared::lock;
use crate::target::OpenFile;
use crate::{EngineError, StreamFile};

/// Largest read, bytes.
const READ: u64 = 1 << 20;
/// Unwritten parts that are read rather than left out, bytes: a second request costs more.
const GAP: u64 = 64 << 10;
/// Reads under way at once, each on a thread of its own. They go over the target in one direction together.
const THREADS: usize = 8;

/// A read-back in progress on its own threads. It starts when constructed; dropping it stops it.
#[derive(Debug)]
pub struct ReadBack {
    task: Arc<Task>,
    coordinator: Mutex<Option<JoinHandle<()>>>,
}

/// The progress of a read-back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ReadBackProgress {
    /// Blocks checked.
    pub done: u64,
    /// Blocks to be checked.
    pub total: u64,
    /// Blocks found wrong.
    pub faults: u64,
}

#[derive(Debug)]
struct Task {
    written: Arc<ExpectedContent>,
    sources: Vec<Source>,
    /// First entry that no thread has taken.
    next: Mutex<usize>,
    total: u64,
    done: AtomicU64,
    stop: AtomicBool,
    findings: Findings,
    started: Instant,
    /// Its duration, once it is over.
    over: Mutex<Option<Duration>>,
    ended: Condvar,
}

/// A file with its requirements for reads.
#[derive(Debug, Clone, Copy)]
struct Source {
    fd: RawFd,
    direct: bool,
    /// Offsets and lengths are multiples of this, bytes.
    block: u64,
    /// Addresses are multiples of this, bytes.
    align: usize,
    bytes: u64,
}

impl ReadBack {
    /// Reads back what is known, from `files` in the order of the files of `written`, or, without them, from the open files
    /// of the run that wrote it, which must still be open.
    ///
    /// # Errors
    /// If the files do not suit, or no thread can be started.
    pub fn start(
        written: Arc<ExpectedContent>,
        files: Option<&[StreamFile]>,
    ) -> Result<ReadBack, EngineError> {
        let sources = sources(&written, files)?;
        for source in sources.iter().filter(|source| !source.direct) {
            drop_cache(source.fd);
        }
        let total = (0..written.table().len())
            .filter(|&block| written.table().get(block).is_known())
            .count() as u64;
        let task = Arc::new(Task {
            written,
            sources,
            next: Mutex::new(0),
            total,
            done: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            findings: Findings::default(),
            started: Instant::now(),
            over: Mutex::new(None),
            ended: Condvar::new(),
        });
        let own = Arc::clone(&task);
        let coordinator = Builder::new()
            .name("spindle-verify".to_owned())
            .spawn(move || {
                let _guard = EndNotifier(&own);
                std::thread::scope(|scope| {
                    for _ in 1..THREADS {
                        // With fewer threads it takes longer, that is all.
                        let _ = Builder::new().spawn_scoped(scope, || own.work());
                    }
                    own.work();
                });
            })
            .map_err(|error| EngineError::system("cannot start a thread", &error))?;
        Ok(ReadBack {
            task,
            coordinator: Mutex::new(Some(coordinator)),
        })
    }

    /// The progress.
    #[must_use]
    pub fn progress(&self) -> ReadBackProgress {
        let faults = self.task.findings.figures().faults;
        ReadBackProgress {
            done: self.task.done.load(Relaxed),
            total: self.task.total,
            faults: faults.iter().map(|kind| kind.blocks).sum(),
        }
    }

    /// Asks it to end; findings up to then are kept.
    pub fn stop(&self) {
        self.task.stop.store(true, Relaxed);
    }

    /// True if it is over; waits at most `timeout` for that.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> bool {
        let over = lock(&self.task.over);
        let waited = self
            .task
            .ended
            .wait_timeout_while(over, timeout, |over| over.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.is_some()
    }

    /// Waits for the end and returns the findings.
    #[must_use]
    pub fn finish(&self) -> ReadBackFigures {
        while !self.wait(Duration::from_secs(3600)) {}
        if let Some(coordinator) = lock(&self.coordinator).take() {
            drop(coordinator.join());
        }
        let task = &self.task;
        let found: CheckFigures = task.findings.figures();
        ReadBackFigures {
            expected: task.total,
            complete: task.done.load(Relaxed) == task.total,
            direct: task.sources.iter().all(|source| source.direct),
            elapsed_ns: lock(&task.over).map_or(0, |took| took.as_nanos() as u64),
            found,
        }
    }
}

impl Drop for ReadBack {
    fn drop(&mut self) {
        self.stop();
        if let Some(coordinator) = lock(&self.coordinator).take() {
            drop(coordinator.join());
        }
    }
}

/// Wakes waiters when it is over, also after a panic of the coordinator.
struct EndNotifier<'a>(&'a Task);

impl Drop for EndNotifier<'_> {
    fn drop(&mut self) {
        *lock(&self.0.over) = Some(self.0.started.elapsed());
        self.0.ended.notify_all();
    }
}

impl Task {
    fn work(&self) {
        let align = self
            .sources
            .iter()
            .map(|source| source.align)
            .max()
            .unwrap_or(1);
        let block = self
            .sources
            .iter()
            .map(|source| source.block)
            .max()
            .unwrap_or(1);
        let longest = (READ.max(self.written.unit()) + 2 * block) as usize;
        let mut memory = vec![0; longest + align];
        let skip = memory.as_ptr().align_offset(align);
        let memory = &mut memory[skip..skip + longest];
        let mut tally = Tally::of(&self.findings);
        while !self.stop.load(Relaxed) {
            let Some(extent) = self.take() else { break };
            self.check(&extent, memory, &mut tally);
        }
    }

    /// The next part that no thread has taken.
    fn take(&self) -> Option<Extent> {
        let unit = self.written.unit();
        let mut next = lock(&self.next);
        let most = (READ / unit).max(1) as usize;
        let extent = self.written.next_known(*next, most, (GAP / unit) as usize);
        *next = extent
            .as_ref()
            .map_or(self.written.table().len(), |extent| extent.blocks.end);
        extent
    }

    fn check(&self, extent: &Extent, memory: &mut [u8], tally: &mut Tally<'_>) {
        let unit = self.written.unit();
        let source = &self.sources[extent.file as usize];
        let end = extent.offset + extent.blocks.len() as u64 * unit;
        // The part in whole blocks of the device or file system.
        let from = extent.offset / source.block * source.block;
        let to = end
            .next_multiple_of(source.block)
            .min(source.bytes.max(end));
        let memory = &mut memory[..(to - from) as usize];
        let got = read(source.fd, memory, from);
        for block in extent.blocks.clone() {
            let entry = self.written.table().get(block);
            if !entry.is_known() {
                continue;
            }
            let offset = extent.offset + (block - extent.blocks.start) as u64 * unit;
            let at = (offset - from) as usize;
            let part = &mut memory[at..at + unit as usize];
            let single = match got {
                Ok(length) if at + unit as usize <= length => Ok(()),
                Ok(_) => Err(libc::ENODATA),
                // One bad block must not hide those beside it.
                Err(errno) if unit.is_multiple_of(source.block) => {
                    read(source.fd, part, offset).map_err(|_| errno).map(drop)
                }
                Err(errno) => Err(errno),
            };
            tally.blocks += 1;
            match single {
                Err(errno) => {
                    let (kind, place) = unreadable(extent.file, offset, errno);
                    self.findings.fault(kind, place);
                }
                Ok(()) => {
                    let judged = self.written.judge(extent.file, offset, part, entry, entry);
                    if let Judgement::Wrong(fault) = judged {
                        let place = place_of(extent.file, offset, &fault);
                        self.findings.fault(fault.kind.name(), place);
                    }
                }
            }
            self.done.fetch_add(1, Relaxed);
        }
    }
}

fn sources(
    written: &ExpectedContent,
    files: Option<&[StreamFile]>,
) -> Result<Vec<Source>, EngineError> {
    let known = written.known_files();
    let files: Vec<StreamFile> = match files {
        Some(files) => files.to_vec(),
        None => known
            .iter()
            .filter_map(|known| Some(known.open?.1))
            .collect(),
    };
    if files.len() != known.len() {
        return Err(EngineError::FileCount {
            streams: known.len(),
            files: files.len(),
        });
    }
    let pairs = files.into_iter().zip(known);
    pairs
        .map(|(file, known)| {
            let open = OpenFile::inspect(file).map_err(|error| {
                EngineError::system(format!("cannot use {}", known.file.path), &error)
            })?;
            Ok(Source {
                fd: file.fd,
                direct: open.is_direct,
                block: u64::from(file.block_bytes.max(1)),
                align: file.memory_align.max(1) as usize,
                bytes: file.size_bytes,
            })
        })
        .collect()
}

/// Reads up to the end; returns the length, or errno.
fn read(fd: RawFd, memory: &mut [u8], offset: u64) -> Result<usize, i32> {
    let mut done = 0;
    while done < memory.len() {
        let rest = &mut memory[done..];
        // SAFETY: the kernel writes at most `rest.len()` bytes to it.
        let got = unsafe {
            libc::pread64(
                fd,
                rest.as_mut_ptr().cast(),
                rest.len(),
                (offset + done as u64) as libc::off64_t,
            )
        };
        match got {
            0 => break,
            got if got > 0 => done += got as usize,
            _ => match std::io::Error::last_os_error().raw_os_error() {
                Some(libc::EINTR) => {}
                errno => return Err(errno.unwrap_or(libc::EIO)),
            },
        }
    }
    Ok(done)
}
