//! The clock of the load: nanoseconds on CLOCK_MONOTONIC's scale.
//!
//! A run reads it at least twice a request, so its cost counts: the time stamp counter takes about 12 ns on
//! the machine of `docs/explanation/engine.md`, `clock_gettime` through the vDSO 24 ns. The counter is used only where it
//! ticks at a constant rate in all power states (CPUID 8000_0007h EDX bit 8, Intel SDM vol. 3B 18.17.1) *and*
//! the kernel keeps its own time by it, which it does only after it found the counters of all CPUs in step
//! (kernel/time/clocksource.c, arch/x86/kernel/tsc_sync.c). Anywhere else: the vDSO.
#![allow(unsafe_code)]

use std::sync::OnceLock;
use std::time::Duration;

/// Reads the time; copied into each worker.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    counter: Option<Counter>,
    /// Offset from the system's clock; the counter's own base contains it already.
    shift_ns: u64,
}

#[derive(Debug, Clone, Copy)]
struct Counter {
    base_ticks: u64,
    base_ns: u64,
    /// ns a tick, times 2^32.
    ns_per_tick: u64,
}

/// How long the counter is compared with CLOCK_MONOTONIC: the readings are good to about 30 ns, so the
/// rate is good to 2 ppm.
const COMPARE: Duration = Duration::from_millis(15);

impl Clock {
    /// The process's clock; the first call takes 15 ms.
    pub(crate) fn get() -> Clock {
        static CLOCK: OnceLock<Clock> = OnceLock::new();
        *CLOCK.get_or_init(|| Clock {
            counter: counter_is_safe().then(Counter::calibrate).flatten(),
            shift_ns: 0,
        })
    }

    /// The same clock with its zero at `start`, a time of this one that must have passed when it is first read.
    pub(crate) fn zeroed_at(mut self, start: u64) -> Clock {
        self.shift_ns = self.shift_ns.wrapping_sub(start);
        if let Some(counter) = &mut self.counter {
            counter.base_ns = counter.base_ns.wrapping_sub(start);
        }
        self
    }

    /// Now, ns.
    #[inline(always)]
    pub(crate) fn now(&self) -> u64 {
        match &self.counter {
            Some(counter) => counter.ns(ticks()),
            None => monotonic_ns().wrapping_add(self.shift_ns),
        }
    }

    /// Name for the record.
    pub(crate) fn name(&self) -> &'static str {
        if self.counter.is_some() {
            "clock_tsc"
        } else {
            "clock_vdso"
        }
    }
}

impl Counter {
    fn calibrate() -> Option<Counter> {
        let (ticks0, ns0) = paired();
        std::thread::sleep(COMPARE);
        let (ticks1, ns1) = paired();
        let ticks = ticks1.checked_sub(ticks0).filter(|&ticks| ticks > 0)?;
        let ns_per_tick = (u128::from(ns1.checked_sub(ns0)?) << 32) / u128::from(ticks);
        Some(Counter {
            base_ticks: ticks0,
            base_ns: ns0,
            ns_per_tick: u64::try_from(ns_per_tick).ok()?,
        })
    }

    #[inline(always)]
    fn ns(&self, ticks: u64) -> u64 {
        let since = u128::from(ticks.wrapping_sub(self.base_ticks));
        self.base_ns
            .wrapping_add(((since * u128::from(self.ns_per_tick)) >> 32) as u64)
    }
}

/// Both clocks at the same moment: of several pairs of readings, the closest.
fn paired() -> (u64, u64) {
    let mut best = (u64::MAX, 0, 0);
    for _ in 0..32 {
        let before = ticks();
        let ns = monotonic_ns();
        let after = ticks();
        let gap = after.wrapping_sub(before);
        if gap < best.0 {
            best = (gap, before + gap / 2, ns);
        }
    }
    (best.1, best.2)
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn ticks() -> u64 {
    // SAFETY: reads a register; every x86-64 has it, and Linux lets processes read it (a process that was
    // forbidden it by PR_SET_TSC would be killed at the first call, in `Clock::get`, not later).
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn ticks() -> u64 {
    0
}

#[cfg(target_arch = "x86_64")]
fn counter_is_safe() -> bool {
    use core::arch::x86_64::__cpuid;
    const POWER: u32 = 0x8000_0007;
    const INVARIANT: u32 = 1 << 8;
    let invariant = __cpuid(0x8000_0000).eax >= POWER && __cpuid(POWER).edx & INVARIANT != 0;
    let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    invariant && std::fs::read_to_string(source).is_ok_and(|name| name.trim() == "tsc")
}

#[cfg(not(target_arch = "x86_64"))]
fn counter_is_safe() -> bool {
    false
}

/// CLOCK_MONOTONIC, ns.
pub(crate) fn monotonic_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid place for the answer; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Sleeps; may wake early on a signal.
pub(crate) fn sleep_ns(ns: u64) {
    let time = libc::timespec {
        tv_sec: (ns / 1_000_000_000) as _, // `time_t`, whose name libc deprecates for musl
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `time` is valid and no remainder is asked for.
    unsafe { libc::nanosleep(&raw const time, std::ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_keeps_pace_with_the_kernel() {
        let clock = Clock::get();
        // The kernel's clock before and after each reading, so that a delay between them does not look like a wrong rate.
        let read = || (monotonic_ns(), clock.now(), monotonic_ns());
        let (before, begin, after) = read();
        std::thread::sleep(Duration::from_millis(50));
        let (before_end, end, after_end) = read();
        let (here, least, most) = (end - begin, before_end - after, after_end - before);
        assert!(
            (least - 100_000..most + 100_000).contains(&here),
            "{here} ns, by the kernel {least} to {most}"
        );
    }

    #[test]
    fn a_clock_can_begin_anywhere() {
        let clock = Clock::get();
        let start = clock.now();
        let begun = clock.zeroed_at(start);
        let (here, there) = (begun.now(), clock.now() - start);
        assert!(here <= there && there - here < 60_000_000_000);
    }

    #[test]
    fn the_clock_never_runs_backwards() {
        let clock = Clock::get();
        let mut last = 0;
        for _ in 0..100_000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
    }
}
