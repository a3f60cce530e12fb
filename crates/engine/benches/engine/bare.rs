//! Loops that read and do nothing else: what the kernel alone allows. The ring has the engine's own set-up: registered
//! file, buffers and ring, deferred completions, no submission array.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::time::{Duration, Instant};

use io_uring::types::Fixed;
use io_uring::{IoUring, opcode};

use crate::Round;
use crate::system;
use crate::target::{BenchTarget, SIZE};

const BLOCK: usize = 4096;
/// Requests between two looks at the clock.
const LOOK: u64 = 512;

pub(crate) fn pread_loop(
    target: BenchTarget<'_>,
    seconds: f64,
    cpu: usize,
) -> Result<Round, String> {
    pinned(cpu, move || {
        let buffer = Memory::new(BLOCK);
        let mut offsets = Offsets(1);
        timed(seconds, || {
            for _ in 0..LOOK {
                // SAFETY: the buffer holds a block.
                let moved = unsafe {
                    system::call(
                        libc::SYS_pread64,
                        [
                            target.fd as usize,
                            buffer.start.expose_provenance(),
                            BLOCK,
                            offsets.next() as usize,
                        ],
                    )
                };
                if moved != Ok(BLOCK) {
                    return Err(format!("a read gave {moved:?}"));
                }
            }
            Ok(LOOK)
        })
    })
}

pub(crate) fn ring_loop(
    target: BenchTarget<'_>,
    depth: u32,
    seconds: f64,
    cpu: usize,
) -> Result<Round, String> {
    pinned(cpu, move || {
        let text = |error: std::io::Error| error.to_string();
        let mut ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_no_sqarray()
            .build(depth.next_power_of_two())
            .map_err(text)?;
        ring.submitter()
            .register_files(&[target.fd])
            .map_err(text)?;
        let buffers = Memory::new(BLOCK * depth as usize);
        let area = libc::iovec {
            iov_base: buffers.start.cast(),
            iov_len: buffers.layout.size(),
        };
        // SAFETY: the memory outlives the ring, which is dropped first.
        unsafe { ring.submitter().register_buffers(&[area]) }.map_err(text)?;
        let handle = register(std::os::fd::AsRawFd::as_raw_fd(&ring))?;
        let mut offsets = Offsets(1);
        let push = |ring: &mut IoUring, slot: u64, offset: u64| {
            let address = buffers.start.wrapping_add(slot as usize * BLOCK);
            let entry = opcode::ReadFixed::new(Fixed(0), address, BLOCK as u32, 0)
                .offset(offset)
                .build()
                .user_data(slot);
            // SAFETY: the slot's block is used by no other request; the queue has room for every slot.
            let _ = unsafe { ring.submission().push(&entry) };
        };
        for slot in 0..u64::from(depth) {
            push(&mut ring, slot, offsets.next());
        }
        let mut free = Vec::with_capacity(depth as usize);
        timed(seconds, || {
            let mut done = 0;
            while done < LOOK {
                let pushed = ring.submission().len();
                enter(handle, pushed as u32)?;
                for completion in ring.completion() {
                    if completion.result() != BLOCK as i32 {
                        return Err(format!("a read gave {}", completion.result()));
                    }
                    free.push(completion.user_data());
                }
                done += free.len() as u64;
                while let Some(slot) = free.pop() {
                    push(&mut ring, slot, offsets.next());
                }
            }
            Ok(done)
        })
    })
}

fn enter(handle: i32, pushed: u32) -> Result<(), String> {
    const GETEVENTS: usize = 1;
    const REGISTERED_RING: usize = 1 << 4;
    let flags = GETEVENTS | REGISTERED_RING;
    // SAFETY: no argument is passed.
    let answer = unsafe {
        system::call(
            libc::SYS_io_uring_enter,
            [handle as usize, pushed as usize, 1, flags, 0, 0],
        )
    };
    answer
        .map(drop)
        .map_err(|errno| std::io::Error::from_raw_os_error(errno).to_string())
}

fn register(fd: i32) -> Result<i32, String> {
    let mut update = [u32::MAX, 0, fd as u32, 0];
    // SAFETY: `struct io_uring_rsrc_update`: offset, reserved, 64 bits of data.
    let answer =
        unsafe { libc::syscall(libc::SYS_io_uring_register, fd, 20, update.as_mut_ptr(), 1) };
    if answer != 1 {
        return Err(std::io::Error::last_os_error().to_string());
    }
    Ok(update[0] as i32)
}

/// Runs on a thread of its own, pinned.
fn pinned(
    cpu: usize,
    work: impl FnOnce() -> Result<Round, String> + Send,
) -> Result<Round, String> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            // SAFETY: the set is valid; `cpu` is checked by the call.
            unsafe {
                let mut set: libc::cpu_set_t = std::mem::zeroed();
                libc::CPU_SET(cpu, &mut set);
                if libc::sched_setaffinity(0, size_of_val(&set), &set) != 0 {
                    return Err(format!("CPU {cpu}: {}", std::io::Error::last_os_error()));
                }
            }
            work()
        });
        thread
            .join()
            .unwrap_or_else(|_| Err("the loop broke down".to_owned()))
    })
}

/// Repeats `batch`, which returns the number of its requests.
fn timed(seconds: f64, mut batch: impl FnMut() -> Result<u64, String>) -> Result<Round, String> {
    let warm = Instant::now() + Duration::from_millis(20);
    while Instant::now() < warm {
        batch()?;
    }
    let (user, system) = usage();
    let begin = Instant::now();
    let end = begin + Duration::from_secs_f64(seconds);
    let mut requests = 0;
    while Instant::now() < end {
        requests += batch()?;
    }
    let elapsed = begin.elapsed().as_secs_f64();
    let (user_end, system_end) = usage();
    let requests = requests as f64;
    Ok(Round {
        iops: requests / elapsed,
        user_ns_per_io: (user_end - user) / requests,
        system_ns_per_io: (system_end - system) / requests,
    })
}

/// User and system time of this thread, ns.
fn usage() -> (f64, f64) {
    // SAFETY: the structure is plain data and the call fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage
    };
    let ns = |time: libc::timeval| time.tv_sec as f64 * 1e9 + time.tv_usec as f64 * 1e3;
    (ns(usage.ru_utime), ns(usage.ru_stime))
}

/// Uniform block offsets: one multiplication each.
struct Offsets(u64);

impl Offsets {
    #[inline(always)]
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let blocks = SIZE / BLOCK as u64;
        ((u128::from(self.0) * u128::from(blocks)) >> 64) as u64 * BLOCK as u64
    }
}

struct Memory {
    start: *mut u8,
    layout: Layout,
}

// SAFETY: used by one thread at a time.
unsafe impl Sync for Memory {}

impl Memory {
    fn new(bytes: usize) -> Memory {
        let layout = Layout::from_size_align(bytes, BLOCK).expect("a sensible size");
        // SAFETY: the size is not 0.
        let start = unsafe { alloc_zeroed(layout) };
        assert!(!start.is_null(), "out of memory");
        Memory { start, layout }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.start, self.layout) };
    }
}
