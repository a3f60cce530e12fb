//! A disk in real time: a front end reads and writes it, and each request is done when the model says.
//!
//! One thread waits for requests and for the drive's next event. It sleeps until shortly before the event, then spins.
//! Requests arrive at the model at the time at which the thread sees them; completions are delivered as soon as their
//! time has come, and how late that was is measured.

pub mod fuse;
mod fuse_end;
mod mount;
pub mod nbd;
mod nbd_end;
mod transfer;
mod vhost_end;

use std::fs::File;
use std::io::{self, Write};
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::thread::set_current_timer_slack;
use serde::Serialize;
use spindle_drive::DriveError;
use spindle_measure::Histogram;
use spindle_sim::DriveSetup;
use thiserror::Error;

use crate::contents::Contents;
use crate::disk::Counts;
use fuse_end::FuseEnd;
use nbd_end::{Listener, NbdEnd};
use vhost_end::VhostEnd;

/// A disk cannot be served; one line.
#[derive(Debug, Error)]
pub enum ServeError {
    /// A socket, mount or file could not be made or used.
    #[error("{what}: {source}")]
    System {
        /// Its role.
        what: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// The drive cannot be built.
    #[error(transparent)]
    Drive(#[from] DriveError),
}

impl ServeError {
    fn new(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System {
            what: what.into(),
            source: source.into(),
        }
    }
}

/// Where the disk is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// vhost-user-blk on a new Unix socket.
    Vhost(PathBuf),
    /// NBD on a new Unix socket.
    NbdSocket(PathBuf),
    /// NBD on an address and port.
    NbdAddress(String),
    /// A file `disk` in a folder, through FUSE.
    Folder(PathBuf),
}

/// How a disk is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServeOptions {
    /// The thread sleeps until so long before an event, and spins for as long after one; nanoseconds.
    pub spin_ns: u64,
}

/// Lateness of completions: from the model's time to the end of the delivery, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Lateness {
    /// Mean.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Most.
    pub max_ns: u64,
}

/// Figures of a server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Model.
    pub model: String,
    /// Bytes of the disk.
    pub bytes: u64,
    /// Requests that the drive takes at a time.
    pub queue_depth: u32,
    /// Time served, nanoseconds.
    pub elapsed_ns: u64,
    /// Clients that have connected; the mount is one.
    pub clients: u64,
    /// Clients that were dropped because they broke the protocol, and the last one's offence.
    pub dropped: u64,
    /// See above.
    pub problem: Option<String>,
    /// Requests done.
    pub counts: Counts,
    /// Lateness of the completions; `None` without one.
    pub lateness: Option<Lateness>,
    /// Memory that the contents take, bytes.
    pub memory_bytes: u64,
}

/// The clients of a front end so far.
#[derive(Debug, Clone, Default)]
struct Clients {
    connected: u64,
    dropped: u64,
    problem: Option<String>,
}

impl Clients {
    fn drop_one(&mut self, problem: impl ToString) {
        self.dropped += 1;
        self.problem = Some(problem.to_string());
    }
}

/// A protocol with its clients and its disk.
trait FrontEnd: Send {
    /// Adds what it waits for.
    fn wait_for<'a>(&'a self, found: &mut Vec<PollFd<'a>>);

    /// Takes some of what has come; false if nothing will come any more.
    fn serve(&mut self, now_ns: u64) -> Result<bool, ServeError>;

    /// When the drive next has something to do.
    fn next_event_ns(&self) -> Option<u64>;

    /// Deals with the event at `now_ns`; the requests that were done.
    fn advance(&mut self, now_ns: u64) -> Result<u64, ServeError>;

    fn clients(&self) -> &Clients;

    fn counts(&self) -> Counts;

    fn memory_bytes(&self) -> u64;
}

/// Ends a server from another thread.
#[derive(Debug)]
pub struct Stopper(UnixStream);

impl Stopper {
    /// Asks the server to end. A server that is gone has ended.
    pub fn stop(&self) {
        let _ = (&self.0).write_all(&[1]);
    }
}

/// A disk that is ready to be served.
pub struct Server {
    front: Box<dyn FrontEnd>,
    options: ServeOptions,
    stop: UnixStream,
    model: String,
    bytes: u64,
    queue_depth: u32,
}

impl Server {
    /// Makes the socket or mount. `contents` is a file as long as the disk; without it they are in memory.
    pub fn new(
        setup: &DriveSetup,
        contents: Option<File>,
        place: &Place,
        options: ServeOptions,
    ) -> Result<(Self, Stopper), ServeError> {
        let contents = contents.map_or_else(Contents::default, Contents::File);
        let queue_depth = spindle_drive::Device::queue_depth(&setup.build()?);
        let front: Box<dyn FrontEnd> = match place {
            Place::Vhost(path) => Box::new(VhostEnd::new(setup, contents, path)?),
            Place::NbdSocket(path) => {
                Box::new(NbdEnd::new(setup, contents, Listener::unix(path)?)?)
            }
            Place::NbdAddress(address) => {
                Box::new(NbdEnd::new(setup, contents, Listener::tcp(address)?)?)
            }
            Place::Folder(folder) => Box::new(FuseEnd::new(setup, contents, folder, queue_depth)?),
        };
        let (near, far) = UnixStream::pair().map_err(|error| ServeError::new("stop", error))?;
        let server = Self {
            front,
            options,
            stop: near,
            model: setup.model.clone(),
            bytes: setup.len,
            queue_depth,
        };
        Ok((server, Stopper(far)))
    }

    /// Serves until it is stopped, or until the mount is gone.
    pub fn run(mut self) -> Result<Summary, ServeError> {
        // Timers of the kernel may otherwise be 50 us late. Without it, they are.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        let started = Instant::now();
        let now = || started.elapsed().as_nanos() as u64;
        let mut late = Histogram::new();
        let mut spin_until_ns = 0;
        loop {
            if self.deliver(&now, &mut late)? > 0 {
                spin_until_ns = now() + self.options.spin_ns;
            }
            let (is_stopped, has_come) = self.wait(now(), spin_until_ns)?;
            if is_stopped {
                break;
            }
            if has_come {
                // Events that are due come first: the model's time never goes back.
                let arrive_ns = now();
                self.deliver_until(arrive_ns, &now, &mut late)?;
                if !self.front.serve(arrive_ns)? {
                    break;
                }
            }
        }
        Ok(self.summary(now(), &late))
    }

    fn deliver(&mut self, now: &impl Fn() -> u64, late: &mut Histogram) -> Result<u64, ServeError> {
        self.deliver_until(now(), now, late)
    }

    /// Deals with each event up to `until_ns` at its own time; the requests that were done.
    fn deliver_until(
        &mut self,
        until_ns: u64,
        now: &impl Fn() -> u64,
        late: &mut Histogram,
    ) -> Result<u64, ServeError> {
        let mut sum = 0;
        while let Some(at) = self.front.next_event_ns()
            && at <= until_ns
        {
            let done = self.front.advance(at)?;
            if done > 0 {
                late.record_n(now().saturating_sub(at), done);
            }
            sum += done;
        }
        Ok(sum)
    }

    /// Waits for a client or the next event: (stop, something has come).
    fn wait(&self, now_ns: u64, spin_until_ns: u64) -> Result<(bool, bool), ServeError> {
        let mut found = vec![PollFd::from_borrowed_fd(self.stop.as_fd(), PollFlags::IN)];
        self.front.wait_for(&mut found);
        let sleep_ns = if now_ns < spin_until_ns {
            Some(0)
        } else {
            let event = self.front.next_event_ns();
            event.map(|at| {
                at.saturating_sub(now_ns)
                    .saturating_sub(self.options.spin_ns)
            })
        };
        let limit = sleep_ns.map(|ns| Timespec {
            tv_sec: (ns / 1_000_000_000) as i64,
            tv_nsec: (ns % 1_000_000_000) as i64,
        });
        match poll(&mut found, limit.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(ServeError::new("poll", error)),
        }
        let is_ready = |each: &PollFd<'_>| !each.revents().is_empty();
        Ok((is_ready(&found[0]), found[1..].iter().any(is_ready)))
    }

    fn summary(&self, elapsed_ns: u64, late: &Histogram) -> Summary {
        let clients = self.front.clients();
        let percentile = |which| late.value_at_percentile(which).unwrap_or(0);
        Summary {
            model: self.model.clone(),
            bytes: self.bytes,
            queue_depth: self.queue_depth,
            elapsed_ns,
            clients: clients.connected,
            dropped: clients.dropped,
            problem: clients.problem.clone(),
            counts: self.front.counts(),
            lateness: (late.count() > 0).then(|| Lateness {
                mean_ns: late.mean_ns(),
                p50_ns: percentile(50.0),
                p99_ns: percentile(99.0),
                max_ns: late.max_ns(),
            }),
            memory_bytes: self.front.memory_bytes(),
        }
    }
}

/// The file behind an open descriptor of this process, opened anew: descriptors come from Python as numbers.
pub fn reopen(descriptor: i32) -> Result<File, ServeError> {
    let path = format!("/proc/self/fd/{descriptor}");
    open(
        Path::new(&path),
        OFlags::RDWR | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map(File::from)
    .map_err(|error| ServeError::new("the file of the contents", error))
}
