//! The calendar: who runs next, and at what virtual time. It does no I/O.

/// The kernel's "never" (`S64_MAX`).
pub const FOREVER: u64 = i64::MAX as u64;

/// Time of day at the start of every lab, nanoseconds since 1970: equal in all runs.
pub const TIME_OF_DAY_NS: u64 = 1_700_000_000_000_000_000;

/// The next thing to do while the kernel waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A device has an event at this time, not after any of the kernel's.
    Device(u64),
    /// The kernel may run at this time.
    Run(u64),
    /// Nothing will ever happen.
    Standstill,
}

impl Step {
    /// When it comes; `None` if never.
    #[must_use]
    pub fn at_ns(self) -> Option<u64> {
        match self {
            Self::Device(at) | Self::Run(at) => Some(at),
            Self::Standstill => None,
        }
    }
}

/// The clock that kernel and devices share.
#[derive(Debug, Default)]
pub struct Calendar {
    now_ns: u64,
    request_ns: u64,
}

impl Calendar {
    /// The present virtual time, nanoseconds.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// The kernel waits, at most until `request_ns`.
    pub fn wait(&mut self, request_ns: u64) {
        self.request_ns = request_ns;
    }

    /// The kernel wants to run at once: a device has interrupted it.
    pub fn interrupt(&mut self) {
        self.request_ns = self.now_ns;
    }

    /// Decides what comes next, given the time of the first event of a device. At equal times devices come first.
    #[must_use]
    pub fn next(&self, device_ns: Option<u64>) -> Step {
        match device_ns {
            Some(device) if device <= self.request_ns => Step::Device(device.max(self.now_ns)),
            _ if self.request_ns < FOREVER => Step::Run(self.request_ns.max(self.now_ns)),
            _ => Step::Standstill,
        }
    }

    /// Moves the clock, which never goes back.
    pub fn advance(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(request_ns: u64) -> Calendar {
        let mut calendar = Calendar::default();
        calendar.wait(request_ns);
        calendar
    }

    #[test]
    fn the_earlier_event_is_next_and_devices_win_ties() {
        let calendar = waiting(10);
        assert_eq!(calendar.next(None), Step::Run(10));
        assert_eq!(calendar.next(Some(11)), Step::Run(10));
        assert_eq!(calendar.next(Some(10)), Step::Device(10));
    }

    #[test]
    fn a_kernel_that_sleeps_for_ever_waits_for_devices_only() {
        let mut calendar = waiting(FOREVER);
        assert_eq!(calendar.next(Some(7)), Step::Device(7));
        assert_eq!(calendar.next(None), Step::Standstill);
        calendar.advance(7);
        calendar.interrupt();
        assert_eq!(calendar.next(Some(8)), Step::Run(7));
    }

    #[test]
    fn the_clock_never_goes_back() {
        let mut calendar = waiting(50);
        calendar.advance(100);
        calendar.advance(90);
        assert_eq!(calendar.now_ns(), 100);
        assert_eq!(calendar.next(None), Step::Run(100));
        assert_eq!(calendar.next(Some(40)), Step::Device(100));
    }
}
