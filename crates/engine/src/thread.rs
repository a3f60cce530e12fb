//! Settings that a worker thread makes for itself - a CPU, an I/O priority, prompt timers - and its CPU
//! usage.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::RawFd;

use spindle_workload::{Priority, PriorityClass};

/// Keeps the calling thread on these CPUs.
pub(crate) fn pin(cpus: &[usize]) -> io::Result<()> {
    if cpus.iter().any(|&cpu| cpu >= libc::CPU_SETSIZE as usize) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: a set of zeroes is empty, and each CPU is within its size.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for &cpu in cpus {
            libc::CPU_SET(cpu, &mut set);
        }
        set
    };
    // SAFETY: `set` is valid and its size is given; 0 is the calling thread.
    match unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Value of `ioprio_set(2)` and of a submission's `ioprio`: class in the upper bits (linux/ioprio.h).
pub(crate) fn priority_value(priority: Priority) -> u16 {
    const CLASS_SHIFT: u16 = 13;
    let class = match priority.class {
        PriorityClass::Realtime => 1,
        PriorityClass::BestEffort => 2,
        PriorityClass::Idle => 3,
    };
    class << CLASS_SHIFT | u16::from(priority.level & 7)
}

/// Name of a class, as users write it.
pub(crate) fn class_name(class: PriorityClass) -> &'static str {
    match class {
        PriorityClass::Realtime => "realtime",
        PriorityClass::BestEffort => "best-effort",
        PriorityClass::Idle => "idle",
    }
}

/// Sets the I/O priority of the calling thread.
pub(crate) fn set_priority(priority: Priority) -> io::Result<()> {
    const WHO_PROCESS: libc::c_int = 1;
    let value = libc::c_int::from(priority_value(priority));
    // SAFETY: no pointer is passed; 0 is the calling thread.
    match unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, value) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes the calling thread's timers fire within `slack_ns` instead of 50 us (the default timer slack).
pub(crate) fn prompt_timers(slack_ns: u64) {
    // SAFETY: no pointer is passed; a refusal changes nothing.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack_ns as libc::c_ulong) };
}

/// Gives the calling thread a table of open files of its own, with nothing in it but the standard streams and `fds`;
/// true if it could.
///
/// A call on a descriptor of a table that threads share takes and drops a reference to the file, two atomic operations
/// that cost about 10 ns; on a private table it does not (fs/file.c, `__fget_light`).
pub(crate) fn private_files(fds: &[RawFd]) -> bool {
    const FIRST: libc::c_uint = 3;
    let mut kept: Vec<libc::c_uint> = fds.iter().map(|&fd| fd as libc::c_uint).collect();
    kept.sort_unstable();
    let close = |first: libc::c_uint, last: libc::c_uint| {
        // SAFETY: closes descriptors of the table that this very call makes private to this thread (the flag), so
        // nobody else loses a file.
        unsafe {
            libc::syscall(
                libc::SYS_close_range,
                first,
                last,
                libc::CLOSE_RANGE_UNSHARE,
            ) == 0
        }
    };
    // SAFETY: no pointer is passed; on failure nothing has changed.
    let unshared = unsafe { libc::unshare(libc::CLONE_FILES) } == 0;
    // A kernel before 5.9 cannot close them: then the others merely stay open until the thread ends.
    if unshared {
        let mut from = FIRST;
        for fd in kept {
            if fd > from && !close(from, fd - 1) {
                return true;
            }
            from = from.max(fd + 1);
        }
        close(from, libc::c_uint::MAX);
    }
    unshared
}

/// Closes `fds` in the calling thread's own table.
pub(crate) fn close_private(fds: &[RawFd]) {
    for &fd in fds {
        // SAFETY: only called after `private_files` succeeded on this thread, so that the caller's descriptor of the
        // same number stays open.
        unsafe { libc::close(fd) };
    }
}

/// CPU use of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// User time, ns.
    pub(crate) user_ns: u64,
    /// System time, ns.
    pub(crate) system_ns: u64,
    /// Voluntary context switches.
    pub(crate) voluntary: u64,
    /// Involuntary context switches.
    pub(crate) involuntary: u64,
}

impl Usage {
    /// Usage of the calling thread, since it began.
    pub(crate) fn of_this_thread() -> Usage {
        // SAFETY: `rusage` is plain old data for which all zeroes are valid.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `usage` is a valid place for the answer.
        unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
        let ns =
            |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
        Usage {
            user_ns: ns(usage.ru_utime),
            system_ns: ns(usage.ru_stime),
            voluntary: usage.ru_nvcsw as u64,
            involuntary: usage.ru_nivcsw as u64,
        }
    }

    /// Usage since `earlier`.
    pub(crate) fn since(&self, earlier: &Usage) -> Usage {
        Usage {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
            voluntary: self.voluntary.saturating_sub(earlier.voluntary),
            involuntary: self.involuntary.saturating_sub(earlier.involuntary),
        }
    }

    /// CPU time, ns.
    pub(crate) fn cpu_ns(&self) -> u64 {
        self.user_ns + self.system_ns
    }
}

/// Number of the calling thread.
pub(crate) fn id() -> i32 {
    // SAFETY: no argument.
    unsafe { libc::gettid() }
}

/// Full barrier on every running thread of this process (`membarrier(2)`); true if the kernel made it.
pub(crate) fn barrier_everywhere() -> bool {
    const REGISTER: libc::c_int = 1 << 4;
    const EXPEDITED: libc::c_int = 1 << 3;
    // SAFETY: no pointer is passed.
    unsafe {
        libc::syscall(libc::SYS_membarrier, REGISTER, 0, 0) == 0
            && libc::syscall(libc::SYS_membarrier, EXPEDITED, 0, 0) == 0
    }
}
