//! io_uring: one ring a worker, its files and its memory registered, one system call a batch.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use io_uring::types::{Fixed, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};

use spindle_measure::OpKind;

use crate::backend::{Backend, Call, Errno, Wait};
use crate::blocking::{PUNCH, ZERO, sync};
use crate::buffers::{Buffers, Place};
use crate::clock::Clock;
use crate::system;
use crate::verify::{Memory, Ready};

/// `user_data` of the timer that ends a wait, so that the worker looks up at least this often.
const TICK: u64 = u64::MAX;
const TICK_NS: u32 = 20_000_000;
/// Flags of `io_uring_enter(2)` (linux/io_uring.h).
const GETEVENTS: u32 = 1;
const EXT_ARG: u32 = 1 << 3;
const REGISTERED_RING: u32 = 1 << 4;
/// Operation of `io_uring_register(2)`.
const REGISTER_RING_FDS: libc::c_uint = 20;
/// `_IO(0x12, 0)` of linux/blkdev.h, since Linux 6.12.
const BLOCK_URING_CMD_DISCARD: u32 = 0x1200;
/// Time that a worker with a submission poller polls for completions before it sleeps, ns.
const SPIN_NS: u64 = 20_000;
/// The submission poller sleeps after this long without work, ms.
const POLLER_IDLE_MS: u32 = 100;

/// Requirements for a ring.
#[derive(Debug, Clone)]
pub(crate) struct RingNeed {
    /// The stream's files.
    pub(crate) fds: Vec<RawFd>,
    pub(crate) is_device: bool,
    pub(crate) depth: u32,
    pub(crate) sqpoll: bool,
    pub(crate) iopoll: bool,
    /// fsync as fdatasync.
    pub(crate) data_only: bool,
    /// `ioprio` of each submission; 0: none.
    pub(crate) priority: u16,
    /// The kernel sets a flag in memory when it has completions to post.
    pub(crate) announce: bool,
}

/// The back end.
pub(crate) struct Ring {
    ring: IoUring,
    /// The first argument of `io_uring_enter(2)`: the descriptor, or, to save its look-up, its registered number.
    handle: RawFd,
    handle_flag: u32,
    need: RingNeed,
    author: Author,
    clock: Clock,
    tick: Box<Timespec>,
    tick_armed: bool,
    /// fsyncs made by the worker itself, where the ring cannot (IOPOLL): slot and result.
    synced: Vec<(u32, i32)>,
    features: Vec<String>,
}

impl Drop for Ring {
    /// The kernel takes a ring apart some 100 ms after it was closed, and keeps its files that long: their file
    /// system could not be unmounted meanwhile.
    fn drop(&mut self) {
        let _ = self.ring.submitter().unregister_files();
    }
}

/// Writes submissions.
struct Author {
    is_device: bool,
    fsync: FsyncFlags,
    /// `ioprio` of each submission; 0: none.
    priority: u16,
    buffers: Buffers,
    /// Buffers are registered.
    fixed_buffers: bool,
}

/// One step down the stairs of set-up flags.
struct Setup {
    single_issuer: bool,
    defer_taskrun: bool,
    coop_taskrun: bool,
    no_sqarray: bool,
}

/// From the newest kernel to the oldest: 6.6, 6.1, 6.0, 5.19, 5.11.
const SETUPS: [Setup; 5] = [
    Setup {
        single_issuer: true,
        defer_taskrun: true,
        coop_taskrun: false,
        no_sqarray: true,
    },
    Setup {
        single_issuer: true,
        defer_taskrun: true,
        coop_taskrun: false,
        no_sqarray: false,
    },
    Setup {
        single_issuer: true,
        defer_taskrun: false,
        coop_taskrun: true,
        no_sqarray: false,
    },
    Setup {
        single_issuer: false,
        defer_taskrun: false,
        coop_taskrun: true,
        no_sqarray: false,
    },
    Setup {
        single_issuer: false,
        defer_taskrun: false,
        coop_taskrun: false,
        no_sqarray: false,
    },
];

impl Ring {
    /// Sets up the ring; to be called on the worker's own thread, as only that may submit.
    pub(crate) fn new(need: RingNeed, buffers: Buffers, clock: Clock) -> io::Result<Ring> {
        let (ring, mut features) = build(&need)?;
        ring.submitter().register_files(&need.fds)?;
        features.push("registered_file".to_owned());
        let areas = buffers.areas();
        let fixed_buffers = !areas.is_empty()
            // SAFETY: the areas are in the mapping of `buffers`, which lives as long as the ring: both
            // belong to the same value, and `abandon` forgets both.
            && unsafe { ring.submitter().register_buffers(&areas) }.is_ok();
        if fixed_buffers {
            features.push("registered_buffers".to_owned());
        }
        let registered = register_ring(ring.as_raw_fd());
        if registered.is_some() {
            features.push("registered_ring".to_owned());
        }
        Ok(Ring {
            handle: registered.unwrap_or(ring.as_raw_fd()),
            handle_flag: if registered.is_some() {
                REGISTERED_RING
            } else {
                0
            },
            ring,
            author: Author {
                is_device: need.is_device,
                fsync: if need.data_only {
                    FsyncFlags::DATASYNC
                } else {
                    FsyncFlags::empty()
                },
                priority: need.priority,
                buffers,
                fixed_buffers,
            },
            clock,
            tick: Box::new(Timespec::new().nsec(TICK_NS)),
            tick_armed: false,
            synced: Vec::with_capacity(need.depth as usize),
            need,
            features,
        })
    }

    /// Options in force.
    pub(crate) fn features(&self) -> &[String] {
        &self.features
    }

    /// Lets a timer end the next wait without a completion, which costs nothing a request.
    #[inline(always)]
    fn arm_tick(&mut self) {
        if !self.tick_armed {
            self.arm_tick_now();
        }
    }

    #[cold]
    fn arm_tick_now(&mut self) {
        if !self.need.iopoll {
            let timer = opcode::Timeout::new(&raw const *self.tick)
                .build()
                .user_data(TICK);
            // SAFETY: the time lives in a box that belongs to the ring.
            let mut armed = unsafe { self.ring.submission().push(&timer) };
            if armed.is_err() {
                // Every entry is taken by a slot: they go first. Only after a tick, so every 20 ms at most.
                let _ = self.submit(0, None);
                // SAFETY: as above.
                armed = unsafe { self.ring.submission().push(&timer) };
            }
            self.tick_armed = armed.is_ok();
        }
    }

    /// Hands over what was pushed, waits for `want` completions, and runs deferred ones.
    #[inline(always)]
    fn submit(&mut self, want: u32, until: Option<&SubmitArgs<'_, '_>>) -> io::Result<()> {
        if self.need.sqpoll {
            let submitted = match until {
                None => self.ring.submit_and_wait(want as usize),
                Some(arguments) => self
                    .ring
                    .submitter()
                    .submit_with_args(want as usize, arguments),
            };
            return submitted.map(drop);
        }
        let pushed = self.ring.submission().len() as u32;
        let (flag, argument, size) = match until {
            None => (0, std::ptr::null(), 0),
            Some(arguments) => (
                EXT_ARG,
                std::ptr::from_ref(arguments),
                size_of_val(arguments),
            ),
        };
        // SAFETY: the entries were valid when they were pushed; the argument, if any, is the kernel's own structure
        // (`SubmitArgs` is transparent) with its size, and outlives the call.
        let answer = unsafe {
            system::call(
                libc::SYS_io_uring_enter,
                [
                    self.handle as usize,
                    pushed as usize,
                    want as usize,
                    (GETEVENTS | self.handle_flag | flag) as usize,
                    argument.expose_provenance(),
                    size,
                ],
            )
        };
        answer.map(drop).map_err(io::Error::from_raw_os_error)
    }

    fn wait_until(&mut self, until: u64) -> io::Result<()> {
        let left = until.saturating_sub(self.clock.now());
        let time = Timespec::new()
            .sec(left / 1_000_000_000)
            .nsec((left % 1_000_000_000) as u32);
        self.submit(1, Some(&SubmitArgs::new().timespec(&time)))
    }

    /// With a submission poller most waits are over before a system call would be.
    fn spin(&mut self) -> bool {
        let end = self.clock.now() + SPIN_NS;
        loop {
            if !self.ring.completion().is_empty() {
                return true;
            }
            if self.clock.now() >= end {
                return false;
            }
            std::hint::spin_loop();
        }
    }
}

impl Author {
    /// The first call of a read into a registered buffer.
    #[inline(always)]
    fn fixed_read(&self, slot: u32, call: &Call) -> squeue::Entry {
        let place = self.buffers.read_place(slot as usize);
        opcode::ReadFixed::new(Fixed(call.file), place.address, call.len, place.area)
            .offset(call.offset)
            .ioprio(self.priority)
            .build()
            .user_data(u64::from(slot))
    }

    fn entry(&mut self, slot: u32, call: &Call) -> squeue::Entry {
        self.request(slot, call).user_data(u64::from(slot))
    }

    #[inline(always)]
    fn request(&mut self, slot: u32, call: &Call) -> squeue::Entry {
        let offset = call.offset + u64::from(call.done);
        let rest = call.len - call.done;
        let file = Fixed(call.file);
        match call.kind {
            OpKind::Read => {
                let place = self.buffers.read_place(slot as usize);
                let (address, area) = skip(place, call.done);
                if self.fixed_buffers {
                    opcode::ReadFixed::new(file, address, rest, area)
                        .offset(offset)
                        .ioprio(self.priority)
                        .build()
                } else {
                    opcode::Read::new(file, address, rest)
                        .offset(offset)
                        .ioprio(self.priority)
                        .build()
                }
            }
            OpKind::Write => {
                let place =
                    self.buffers
                        .write_place(slot as usize, call.len as usize, call.done == 0);
                let (address, area) = skip(place, call.done);
                if self.fixed_buffers {
                    opcode::WriteFixed::new(file, address, rest, area)
                        .offset(offset)
                        .ioprio(self.priority)
                        .build()
                } else {
                    opcode::Write::new(file, address, rest)
                        .offset(offset)
                        .ioprio(self.priority)
                        .build()
                }
            }
            OpKind::Trim if self.is_device => discard(offset, u64::from(rest)),
            OpKind::Trim => opcode::Fallocate::new(file, u64::from(rest))
                .offset(offset)
                .mode(PUNCH)
                .build(),
            // On a device the kernel takes the same way as BLKZEROOUT (block/fops.c, blkdev_fallocate).
            OpKind::Zero => opcode::Fallocate::new(file, u64::from(rest))
                .offset(offset)
                .mode(ZERO)
                .build(),
            OpKind::Fsync => opcode::Fsync::new(file).flags(self.fsync).build(),
            name => unreachable!("{name:?} is for the back end `Names`"),
        }
    }
}

impl Memory for Ring {
    fn buffers(&mut self) -> &mut Buffers {
        &mut self.author.buffers
    }

    /// Polled completions are found by asking the kernel alone.
    fn works_aside(&self) -> bool {
        !self.need.iopoll
    }

    #[inline]
    fn ready(&mut self) -> Ready {
        if !self.synced.is_empty() || !self.ring.completion().is_empty() {
            Ready::Posted
        } else if self.need.announce && self.ring.submission().taskrun() {
            Ready::Announced
        } else {
            Ready::No
        }
    }
}

impl Backend for Ring {
    fn begin(&mut self, clock: Clock) {
        self.clock = clock;
    }

    #[inline(always)]
    fn push(&mut self, slot: u32, call: &Call) {
        if call.kind == OpKind::Fsync && self.need.iopoll {
            let fd = self.need.fds[call.file as usize];
            self.synced.push((slot, sync(fd, self.need.data_only)));
            return;
        }
        let entry = self.author.entry(slot, call);
        // SAFETY: the memory belongs to the slot, which has no other request outstanding, and lives as long
        // as the ring. The queue has room for every slot (`entries`), so it is never full.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        debug_assert!(pushed.is_ok());
    }

    #[inline(always)]
    fn push_all(&mut self, mut next: impl FnMut() -> Option<(u32, Call)>) {
        // The queue is opened once, not for every entry.
        let mut submissions = self.ring.submission();
        while let Some((slot, call)) = next() {
            // The commonest call apart: its entry is written straight into the queue.
            let pushed = if call.kind == OpKind::Read && self.author.fixed_buffers {
                let entry = self.author.fixed_read(slot, &call);
                // SAFETY: as in `push`.
                unsafe { submissions.push(&entry) }
            } else {
                let entry = self.author.entry(slot, &call);
                // SAFETY: as in `push`; a first call is never an fsync.
                unsafe { submissions.push(&entry) }
            };
            debug_assert!(pushed.is_ok());
        }
    }

    #[inline(always)]
    fn enter(&mut self, wait: Wait) -> Result<(), Errno> {
        if !self.synced.is_empty() {
            return Ok(());
        }
        let answer = match wait {
            Wait::No => self.submit(0, None),
            Wait::Until(until) => self.wait_until(until),
            Wait::One => {
                self.arm_tick();
                if self.need.sqpoll && self.ring.submit().is_ok() && self.spin() {
                    return Ok(());
                }
                self.submit(1, None)
            }
        };
        match answer {
            Ok(_) => Ok(()),
            Err(error) => match error.raw_os_error() {
                // Time over, a signal, or the kernel asks to take completions first.
                Some(libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY) => Ok(()),
                code => Err(code.unwrap_or(libc::EIO)),
            },
        }
    }

    #[inline(always)]
    fn reap(&mut self, mut each: impl FnMut(u32, i32)) {
        let mut completions = self.ring.completion();
        loop {
            let (slot, result) = match self.synced.pop() {
                Some(synced) => synced,
                None => match completions.next() {
                    None => break,
                    Some(completion) if completion.user_data() == TICK => {
                        self.tick_armed = false;
                        continue;
                    }
                    Some(completion) => (completion.user_data() as u32, completion.result()),
                },
            };
            // The only place that calls `each`, so that it is compiled into the loop.
            each(slot, result);
        }
    }

    fn abandon(self) {
        // The kernel may still write into the buffers: they stay mapped, and the ring open, until the
        // process ends.
        std::mem::forget(self);
    }
}

/// Address and area `done` bytes into a place.
#[inline(always)]
fn skip(place: Place, done: u32) -> (*mut u8, u16) {
    // Within the place, as `done` is less than the length of the request.
    (place.address.wrapping_add(done as usize), place.area)
}

/// Discard on a device: start in `addr`, length in `addr3`, the first word of the command
/// (block/ioctl.c, blkdev_uring_cmd). On a thread of the kernel's: issued at once it is marked as one that must not wait, and
/// devices that are not queues of requests (zram, some of dm) refuse such with EOPNOTSUPP (block/blk-core.c,
/// `submit_bio_noacct`), for which nobody tries again.
fn discard(offset: u64, len: u64) -> squeue::Entry {
    let mut command = [0; 16];
    command[..8].copy_from_slice(&len.to_ne_bytes());
    opcode::UringCmd16::new(Fixed(0), BLOCK_URING_CMD_DISCARD)
        .addr(Some(offset))
        .cmd(command)
        .build()
        .flags(squeue::Flags::ASYNC)
}

/// Entries of the submission queue: as few as can be, as they take turns and all of them pass through the cache.
///
/// A submission poller gives the entries of a batch back only after the whole batch, when some of its requests may
/// have completed already and come again (io_uring/io_uring.c, `io_submit_sqes`): there every slot, and the timer,
/// may be in the queue twice.
fn entries(need: &RingNeed) -> u32 {
    if need.sqpoll {
        (2 * (need.depth + 1)).next_power_of_two()
    } else {
        need.depth.next_power_of_two().max(2)
    }
}

/// Builds with the newest flags that the kernel takes.
fn build(need: &RingNeed) -> io::Result<(IoUring, Vec<String>)> {
    let entries = entries(need);
    let mut refusal = io::Error::from_raw_os_error(libc::EINVAL);
    for setup in &SETUPS {
        let mut builder = IoUring::builder();
        let mut features = Vec::new();
        let mut ask = |wanted: bool, name: &str| {
            if wanted {
                features.push(name.to_owned());
            }
            wanted
        };
        if ask(setup.single_issuer, "single_issuer") {
            builder.setup_single_issuer();
        }
        // A submission poller runs completions itself; the kernel refuses these flags with it.
        if ask(setup.defer_taskrun && !need.sqpoll, "defer_taskrun") {
            builder.setup_defer_taskrun();
        }
        if ask(setup.coop_taskrun && !need.sqpoll, "coop_taskrun") {
            builder.setup_coop_taskrun();
        }
        if need.announce && (setup.defer_taskrun || setup.coop_taskrun) && !need.sqpoll {
            builder.setup_taskrun_flag();
        }
        if ask(setup.no_sqarray, "no_sqarray") {
            builder.setup_no_sqarray();
        }
        if ask(need.sqpoll, "sqpoll") {
            builder.setup_sqpoll(POLLER_IDLE_MS);
        }
        if ask(need.iopoll, "iopoll") {
            builder.setup_iopoll();
        }
        match builder.build(entries) {
            Ok(ring) if !ring.params().is_feature_ext_arg() => {
                return Err(io::Error::new(
                    io::ErrorKind::Unsupported,
                    "the kernel is older than 5.11",
                ));
            }
            Ok(ring) => return Ok((ring, features)),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => refusal = error,
            Err(error) => return Err(error),
        }
    }
    Err(refusal)
}

/// Registers the ring with the calling thread; returns its number.
fn register_ring(fd: RawFd) -> Option<RawFd> {
    /// `struct io_uring_rsrc_update` of linux/io_uring.h.
    #[repr(C)]
    struct Update {
        offset: u32,
        reserved: u32,
        data: u64,
    }
    let mut update = Update {
        offset: u32::MAX,
        reserved: 0,
        data: fd as u64,
    };
    // SAFETY: one update is passed and written back.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_io_uring_register,
            fd,
            REGISTER_RING_FDS,
            &raw mut update,
            1,
        )
    };
    (answer == 1).then_some(update.offset as RawFd)
}

/// The reason why io_uring cannot be used in this process, if there is one.
pub(crate) fn refusal() -> Option<String> {
    match IoUring::new(2) {
        Ok(ring) if ring.params().is_feature_ext_arg() => None,
        Ok(_) => Some("the kernel is older than 5.11".to_owned()),
        Err(error) => Some(match error.raw_os_error() {
            Some(libc::ENOSYS) => "the kernel has no io_uring".to_owned(),
            Some(libc::EPERM | libc::EACCES) => {
                "forbidden by /proc/sys/kernel/io_uring_disabled or a seccomp filter".to_owned()
            }
            _ => error.to_string(),
        }),
    }
}

/// True if the ring can discard on this device: an empty range is refused as such (EINVAL), an unknown
/// command as EOPNOTSUPP.
pub(crate) fn discards(fd: RawFd) -> bool {
    let probe = || -> io::Result<i32> {
        let mut ring = IoUring::new(2)?;
        ring.submitter().register_files(&[fd])?;
        // SAFETY: the command carries no address of memory.
        unsafe { ring.submission().push(&discard(0, 0)) }
            .map_err(|_| libc::EBUSY)
            .ok();
        ring.submit_and_wait(1)?;
        ring.submitter().unregister_files()?;
        Ok(ring.completion().next().map_or(0, |entry| entry.result()))
    };
    matches!(probe(), Ok(result) if result == -libc::EINVAL)
}
