//! The better of two requests by distance, as anticipatory, CFQ and BFQ have it (`as_choose_req`, `cfq_choose_req`,
//! `bfq_choose_req`).

use crate::request::{BlockRequest, Id};

/// A one-way elevator that allows short seeks backwards, at a penalty.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OneWay {
    /// Longest seek backwards, blocks.
    pub(crate) back_max: u64,
    /// How much farther a block behind counts than one ahead.
    pub(crate) back_penalty: u64,
}

impl OneWay {
    /// The one that is served sooner with the head at `last`.
    pub(crate) fn choose(
        &self,
        last: u64,
        a: Option<Id>,
        b: Option<Id>,
        requests: &[BlockRequest],
    ) -> Option<Id> {
        let (Some(first), Some(second)) = (a, b) else {
            return a.or(b);
        };
        if first == second {
            return b;
        }
        let (s1, s2) = (requests[first as usize].lbn, requests[second as usize].lbn);
        let take_first = match (self.distance(last, s1), self.distance(last, s2)) {
            (Some(d1), Some(d2)) if d1 != d2 => d1 < d2,
            (Some(_), Some(_)) => s1 >= s2,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            // Both too far behind: the one further behind, so that only one seek back is needed.
            (None, None) => s1 <= s2,
        };
        Some(if take_first { first } else { second })
    }

    /// `None`: it is behind, beyond what is allowed.
    fn distance(&self, last: u64, at: u64) -> Option<u64> {
        if at >= last {
            Some(at - last)
        } else if at + self.back_max >= last {
            Some((last - at) * self.back_penalty)
        } else {
            None
        }
    }
}
