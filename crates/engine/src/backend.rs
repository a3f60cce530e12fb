//! The interface of a back end: it takes calls of slots, hands them to the kernel together, and returns their results.

use spindle_measure::OpKind;

use crate::clock::Clock;

/// One call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) kind: OpKind,
    /// Number of the file in the stream.
    pub(crate) file: u32,
    /// First byte of the request on the target.
    pub(crate) offset: u64,
    /// Length of the request, bytes.
    pub(crate) len: u32,
    /// Bytes of it that earlier calls moved.
    pub(crate) done: u32,
}

/// How long to wait for completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Not at all.
    No,
    /// Until there is one.
    One,
    /// Until there is one, but not beyond this time, ns.
    Until(u64),
}

/// errno.
pub(crate) type Errno = i32;

/// Makes the system calls of one worker.
pub(crate) trait Backend {
    /// True if `enter` may hang in the kernel.
    const MAY_HANG: bool = true;

    /// Takes the run's clock; `Wait::Until` gives times of it.
    fn begin(&mut self, clock: Clock);

    /// Takes a call of a slot, which has none outstanding.
    fn push(&mut self, slot: u32, call: &Call);

    /// Takes calls as long as there are any.
    #[inline(always)]
    fn push_all(&mut self, mut next: impl FnMut() -> Option<(u32, Call)>) {
        while let Some((slot, call)) = next() {
            self.push(slot, &call);
        }
    }

    /// Hands over everything taken, and waits. May return without a completion.
    fn enter(&mut self, wait: Wait) -> Result<(), Errno>;

    /// Gives each completion once: slot and result (bytes moved, or minus errno).
    fn reap(&mut self, each: impl FnMut(u32, i32));

    /// Does postponed work; false: there was none. Called when the worker has nothing under way.
    fn catch_up(&mut self) -> bool {
        false
    }

    /// Leaves outstanding requests to the kernel, together with the memory they use.
    fn abandon(self);
}
