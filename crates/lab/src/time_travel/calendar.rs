//! The calendar: who runs next, and at what virtual time. It does no I/O.

use super::message::{Message, Operation};

/// The kernel's "never" (`S64_MAX`).
pub const FOREVER: u64 = i64::MAX as u64;

/// Time of day at the start of every lab, seconds since 1970: equal in all runs.
const TIME_OF_DAY_S: u64 = 1_700_000_000;

/// The next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The kernel is running: listen to it.
    Listen,
    /// A device has an event at this time, not after any of the kernel's.
    Device(u64),
    /// The kernel may run at this time.
    Run(u64),
    /// Nothing will ever happen.
    Standstill,
}

/// The clock that kernel and devices share.
#[derive(Debug, Default)]
pub struct Calendar {
    now_ns: u64,
    request_ns: Option<u64>,
    is_waiting: bool,
    free_until_ns: u64,
    sequence: u32,
}

impl Calendar {
    /// The present virtual time, nanoseconds.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// When the kernel next wants to run; `None` if never.
    #[must_use]
    pub fn request_ns(&self) -> Option<u64> {
        self.request_ns.filter(|&at| at < FOREVER)
    }

    /// True if the kernel waits for permission to run.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// Takes a message of the kernel and returns the answer; an answer of the kernel needs none.
    pub fn receive(&mut self, message: Message) -> Option<Message> {
        let mut time_ns = 0;
        match message.operation {
            Operation::Ack => return None,
            Operation::Request => self.request_ns = Some(message.time_ns),
            Operation::Wait => self.is_waiting = true,
            Operation::Get => time_ns = self.now_ns,
            Operation::Update => self.now_ns = self.now_ns.max(message.time_ns),
            Operation::TimeOfDay => time_ns = TIME_OF_DAY_S * 1_000_000_000,
            Operation::Start | Operation::Run | Operation::FreeUntil => {}
        }
        Some(Message {
            operation: Operation::Ack,
            sequence: message.sequence,
            time_ns,
        })
    }

    /// Decides what comes next, given the time of the first event of a device. At equal times devices come first.
    #[must_use]
    pub fn next(&self, device_ns: Option<u64>) -> Step {
        if !self.is_waiting {
            return Step::Listen;
        }
        match (device_ns, self.request_ns()) {
            (Some(device), request) if request.is_none_or(|at| device <= at) => {
                Step::Device(device.max(self.now_ns))
            }
            (_, Some(request)) => Step::Run(request.max(self.now_ns)),
            (None, None) => Step::Standstill,
            (Some(_), None) => {
                unreachable!("the first arm takes every event of a device without a request")
            }
        }
    }

    /// Moves the clock to an event of a device.
    pub fn advance(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
    }

    /// Lets the kernel run at `now_ns`: the limit of its free run, then the permission.
    pub fn run(&mut self, now_ns: u64, device_ns: Option<u64>) -> [Message; 2] {
        self.advance(now_ns);
        self.is_waiting = false;
        self.request_ns = None;
        let limit = device_ns.unwrap_or(FOREVER);
        self.free_until_ns = limit;
        [
            self.message(Operation::FreeUntil, limit),
            self.message(Operation::Run, self.now_ns),
        ]
    }

    /// The message that shortens the kernel's free run, if a device has an event before its end. While the kernel waits
    /// it has no free run.
    pub fn limit(&mut self, device_ns: Option<u64>) -> Option<Message> {
        let limit = device_ns.filter(|&at| !self.is_waiting && at < self.free_until_ns)?;
        self.free_until_ns = limit;
        Some(self.message(Operation::FreeUntil, limit))
    }

    fn message(&mut self, operation: Operation, time_ns: u64) -> Message {
        self.sequence = self.sequence.wrapping_add(1);
        Message {
            operation,
            sequence: self.sequence,
            time_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(calendar: &mut Calendar, operation: Operation, time_ns: u64) -> Message {
        let sequence = 40;
        let answer = calendar.receive(Message {
            operation,
            sequence,
            time_ns,
        });
        let answer = answer.unwrap();
        assert_eq!(
            (answer.operation, answer.sequence),
            (Operation::Ack, sequence)
        );
        answer
    }

    fn waiting(request_ns: u64) -> Calendar {
        let mut calendar = Calendar::default();
        answered(&mut calendar, Operation::Request, request_ns);
        answered(&mut calendar, Operation::Wait, 0);
        calendar
    }

    #[test]
    fn a_running_kernel_is_listened_to() {
        let mut calendar = Calendar::default();
        answered(&mut calendar, Operation::Request, 10);
        assert_eq!(calendar.next(Some(5)), Step::Listen);
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
        let calendar = waiting(FOREVER);
        assert_eq!(calendar.next(Some(7)), Step::Device(7));
        assert_eq!(calendar.next(None), Step::Standstill);
    }

    #[test]
    fn the_kernel_runs_freely_up_to_the_next_event_of_a_device() {
        let mut calendar = waiting(10);
        let [free, run] = calendar.run(10, Some(25));
        assert_eq!((free.operation, free.time_ns), (Operation::FreeUntil, 25));
        assert_eq!((run.operation, run.time_ns), (Operation::Run, 10));
        assert_eq!(calendar.limit(Some(25)), None);
        assert_eq!(calendar.limit(Some(20)).unwrap().time_ns, 20);
        assert_eq!(calendar.limit(Some(22)), None);
        assert!(!calendar.is_waiting());
        assert_eq!(answered(&mut calendar, Operation::Get, 0).time_ns, 10);
    }

    #[test]
    fn the_kernels_clock_never_goes_back() {
        let mut calendar = Calendar::default();
        answered(&mut calendar, Operation::Update, 100);
        answered(&mut calendar, Operation::Update, 90);
        assert_eq!(calendar.now_ns(), 100);
        answered(&mut calendar, Operation::Request, 50);
        answered(&mut calendar, Operation::Wait, 0);
        assert_eq!(calendar.next(None), Step::Run(100));
        assert_eq!(calendar.next(Some(60)), Step::Run(100));
    }
}
