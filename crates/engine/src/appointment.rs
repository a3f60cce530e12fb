//! A start at a time that the caller sets when the load is ready: loads on several hosts begin together.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::shared::lock;

/// The load waits, ready, until its time is set.
#[derive(Debug, Default)]
pub struct Appointment {
    state: Mutex<State>,
    moved: Condvar,
}

#[derive(Debug, Default, Clone, Copy)]
struct State {
    is_ready: bool,
    /// As set, ns of CLOCK_MONOTONIC.
    wanted_ns: Option<u64>,
    /// The start that the load took.
    started_ns: Option<u64>,
}

/// How often a waiting load looks whether it was stopped.
const LOOK: Duration = Duration::from_millis(20);

impl Appointment {
    /// Sets the time of the start, ns of CLOCK_MONOTONIC ([`crate::kernel::monotonic_ns`]). A time that has passed
    /// means at once.
    pub fn set(&self, start_ns: u64) {
        lock(&self.state).wanted_ns = Some(start_ns);
        self.moved.notify_all();
    }

    /// True if the load is ready: back ends are chosen, threads wait. Waits at most `timeout` for that.
    #[must_use]
    pub fn is_ready(&self, timeout: Duration) -> bool {
        self.wait(timeout, |state| state.is_ready)
    }

    /// The time of the first request, ns of CLOCK_MONOTONIC; `None` if the load has not begun within `timeout`.
    #[must_use]
    pub fn started_ns(&self, timeout: Duration) -> Option<u64> {
        self.wait(timeout, |state| state.started_ns.is_some());
        lock(&self.state).started_ns
    }

    /// Waits for the time; the start to take. `earliest` is the first start that is possible now; a load that is
    /// stopped takes that.
    pub(crate) fn keep(&self, earliest: impl Fn() -> u64, stopped: impl Fn() -> bool) -> u64 {
        lock(&self.state).is_ready = true;
        self.moved.notify_all();
        let mut wanted = None;
        while wanted.is_none() && !stopped() {
            self.wait(LOOK, |state| state.wanted_ns.is_some());
            wanted = lock(&self.state).wanted_ns;
        }
        // The last of the wait is the workers'; before it, a stop is seen.
        while !stopped() && wanted.is_some_and(|at| at > earliest() + LOOK.as_nanos() as u64) {
            std::thread::sleep(LOOK / 2);
        }
        let start = match wanted {
            Some(at) if !stopped() => at.max(earliest()),
            _ => earliest(),
        };
        lock(&self.state).started_ns = Some(start);
        self.moved.notify_all();
        start
    }

    fn wait(&self, timeout: Duration, done: impl Fn(&State) -> bool) -> bool {
        let deadline = Instant::now() + timeout;
        let mut state = lock(&self.state);
        while !done(&state) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.moved.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

impl PartialEq for Appointment {
    /// Each is another one.
    fn eq(&self, other: &Appointment) -> bool {
        std::ptr::eq(self, other)
    }
}
