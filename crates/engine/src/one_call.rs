//! Back ends of one slot: one blocking call at a time, so one thread for each outstanding request.

use crate::backend::{Backend, Call, Errno, Wait};
use crate::buffers::Buffers;
use crate::clock::Clock;
use crate::verify::{Memory, Ready};

/// Makes a call and waits for its end.
pub(crate) trait Caller {
    /// Bytes moved, or minus errno.
    fn call(&mut self, call: &Call) -> i32;
}

/// A caller that moves data.
pub(crate) trait Mover: Caller {
    fn buffers(&mut self) -> &mut Buffers;
}

/// The back end that a caller makes.
#[derive(Debug)]
pub(crate) struct OneCall<C> {
    caller: C,
    asked: Option<(u32, Call)>,
    result: Option<(u32, i32)>,
}

impl<C: Caller> OneCall<C> {
    pub(crate) fn of(caller: C) -> OneCall<C> {
        OneCall {
            caller,
            asked: None,
            result: None,
        }
    }
}

impl<C: Caller> Backend for OneCall<C> {
    fn begin(&mut self, _clock: Clock) {}

    #[inline(always)]
    fn push(&mut self, slot: u32, call: &Call) {
        self.asked = Some((slot, *call));
    }

    #[inline(always)]
    fn enter(&mut self, _wait: Wait) -> Result<(), Errno> {
        if let Some((slot, call)) = self.asked.take() {
            self.result = Some((slot, self.caller.call(&call)));
        }
        Ok(())
    }

    #[inline(always)]
    fn reap(&mut self, mut each: impl FnMut(u32, i32)) {
        if let Some((slot, result)) = self.result.take() {
            each(slot, result);
        }
    }

    fn abandon(self) {
        std::mem::forget(self);
    }
}

impl<C: Mover> Memory for OneCall<C> {
    fn buffers(&mut self) -> &mut Buffers {
        self.caller.buffers()
    }

    fn works_aside(&self) -> bool {
        false
    }

    fn ready(&mut self) -> Ready {
        Ready::No
    }
}
