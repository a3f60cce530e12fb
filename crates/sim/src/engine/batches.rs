//! Threads that take several requests of a queue at a time once they have slept for one, before blk-mq.
//!
//! Linux 2.6.24 `block/ll_rw_blk.c`: `get_request`, `ioc_batching`, `ioc_set_batching`, `__freed_request`.

/// `BLK_BATCH_REQ`.
const MOST: u32 = 32;
/// `BLK_BATCH_TIME`: a fiftieth of a second.
const TIME_NS: u64 = 20_000_000;

/// Who may take requests of a queue's two pools when these are full.
#[derive(Debug, Default)]
pub(crate) struct Batches {
    /// By thread.
    batches: Vec<Batch>,
    /// Threads without a batch have to sleep (`blk_queue_full`).
    is_full: [bool; 2],
}

/// Requests that a thread may take beyond the limit.
#[derive(Debug, Clone, Copy, Default)]
struct Batch {
    left: u32,
    begun_ns: u64,
}

impl Batches {
    /// True if a thread may take a request of a pool of which so many are taken, of `limit`.
    pub(crate) fn takes(
        &mut self,
        now_ns: u64,
        pool: usize,
        thread: u32,
        (taken, limit): (u32, u32),
    ) -> bool {
        if taken + 1 >= limit {
            if !self.is_full[pool] {
                self.is_full[pool] = true;
                self.begin(now_ns, thread);
            } else if !self.has_batch(now_ns, thread) {
                return false;
            }
            if taken >= limit * 3 / 2 {
                return false;
            }
        }
        if self.has_batch(now_ns, thread) {
            self.batches[thread as usize].left -= 1;
        }
        true
    }

    /// A request of a pool is free, and fewer than the limit are taken.
    pub(crate) fn has_room(&mut self, pool: usize) {
        self.is_full[pool] = false;
    }

    /// A thread has slept for a request: it may take a batch.
    pub(crate) fn begin(&mut self, now_ns: u64, thread: u32) {
        if self.has_batch(now_ns, thread) {
            return;
        }
        let thread = thread as usize;
        if self.batches.len() <= thread {
            self.batches.resize(thread + 1, Batch::default());
        }
        self.batches[thread] = Batch {
            left: MOST,
            begun_ns: now_ns,
        };
    }

    #[inline]
    fn has_batch(&self, now_ns: u64, thread: u32) -> bool {
        self.batches
            .get(thread as usize)
            .is_some_and(|of| of.left == MOST || (of.left > 0 && now_ns < of.begun_ns + TIME_NS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_slept_takes_32_requests_within_20_ms_and_half_as_many_again_as_the_limit() {
        let limit = 128;
        let mut batches = Batches::default();
        let mut taken = 0;
        let mut take = |batches: &mut Batches, thread, now_ns| {
            let takes = batches.takes(now_ns, 0, thread, (taken, limit));
            taken += u32::from(takes);
            takes
        };
        // The first that finds it full begins a batch: it takes the last request below the limit and 31 beyond it.
        let first = (0..200).take_while(|_| take(&mut batches, 1, 0)).count();
        assert_eq!(first, 127 + 32);
        assert!(!take(&mut batches, 2, 0));
        // Another one slept: it takes as many.
        batches.begin(0, 2);
        let second = (0..200).take_while(|_| take(&mut batches, 2, 0)).count();
        assert_eq!(second, 32);
        // But no more than half beyond the limit are out.
        batches.begin(0, 3);
        let third = (0..200).take_while(|_| take(&mut batches, 3, 0)).count();
        assert_eq!(third, 192 - 191);
    }

    #[test]
    fn a_batch_that_is_begun_ends_after_20_ms() {
        let mut batches = Batches::default();
        batches.begin(0, 1);
        assert!(batches.takes(0, 0, 9, (127, 128)));
        assert!(batches.takes(0, 0, 1, (128, 128)));
        assert!(batches.takes(TIME_NS - 1, 0, 1, (128, 128)));
        assert!(!batches.takes(TIME_NS, 0, 1, (129, 128)));
        // One that is not begun does not.
        batches.begin(0, 2);
        assert!(batches.takes(10 * TIME_NS, 0, 2, (129, 128)));
    }
}
