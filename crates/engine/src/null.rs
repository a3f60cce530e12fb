//! The target without a system call. With a service time it is one server: requests of a worker are done one
//! after another, in the order they came.

use std::collections::VecDeque;

use spindle_measure::OpKind;

use crate::backend::{Backend, Call, Errno, Wait};
use crate::clock::{Clock, sleep_ns};

/// The back end.
#[derive(Debug)]
pub(crate) struct Null {
    clock: Clock,
    service_ns: u64,
    /// Slot and result of completed requests.
    done: Vec<(u32, i32)>,
    /// Slot, result and time of requests in service.
    served: VecDeque<(u32, i32, u64)>,
    free_at: u64,
}

impl Null {
    pub(crate) fn new(clock: Clock, service_ns: u64, depth: usize) -> Null {
        Null {
            clock,
            service_ns,
            done: Vec::with_capacity(depth),
            served: VecDeque::with_capacity(depth),
            free_at: 0,
        }
    }

    fn wait_for_service(&self, wait: Wait) {
        let Some(&(_, _, done)) = self.served.front() else {
            return;
        };
        let until = match wait {
            Wait::No => return,
            Wait::One => done,
            Wait::Until(until) => until.min(done),
        };
        let now = self.clock.now();
        if until > now {
            // In parts, so that a request to stop is seen.
            sleep_ns((until - now).min(20_000_000));
        }
    }

    /// Moves the requests that have been served.
    fn serve(&mut self) {
        let now = self.clock.now();
        while let Some(&(slot, result, _)) = self.served.front().filter(|served| served.2 <= now) {
            self.served.pop_front();
            self.done.push((slot, result));
        }
    }
}

impl Backend for Null {
    const MAY_HANG: bool = false;

    fn begin(&mut self, clock: Clock) {
        self.clock = clock;
    }

    #[inline(always)]
    fn push(&mut self, slot: u32, call: &Call) {
        let result = match call.kind {
            OpKind::Read | OpKind::Write => (call.len - call.done) as i32,
            _ => 0,
        };
        if self.service_ns == 0 {
            self.done.push((slot, result));
        } else {
            let done = self.free_at.max(self.clock.now()) + self.service_ns;
            self.free_at = done;
            self.served.push_back((slot, result, done));
        }
    }

    #[inline(always)]
    fn enter(&mut self, wait: Wait) -> Result<(), Errno> {
        if self.service_ns == 0 {
            return Ok(());
        }
        self.wait_for_service(wait);
        Ok(())
    }

    #[inline(always)]
    fn reap(&mut self, mut each: impl FnMut(u32, i32)) {
        if self.service_ns > 0 {
            self.serve();
        }
        for &(slot, result) in &self.done {
            each(slot, result);
        }
        self.done.clear();
    }

    fn abandon(self) {}
}
