//! The next event: a tournament over a fixed number of sources.

/// The next event of each source; the earliest is always at hand. Ties go to the lower-numbered source.
#[derive(Debug, Clone)]
pub(crate) struct Events {
    /// Times of the sources, padded to a power of two.
    times: Vec<u64>,
    /// Winners of each match; the final is at 1.
    winners: Vec<u32>,
}

/// Never.
pub(crate) const NEVER: u64 = u64::MAX;

impl Events {
    pub(crate) fn new(sources: usize) -> Events {
        let leaves = sources.next_power_of_two().max(2);
        let mut events = Events {
            times: vec![NEVER; leaves],
            winners: vec![0; leaves],
        };
        for at in (1..leaves).rev() {
            events.play(at);
        }
        events
    }

    /// The earliest event and its source.
    #[inline]
    pub(crate) fn first(&self) -> (u64, usize) {
        let source = self.winners[1] as usize;
        (self.times[source], source)
    }

    #[inline]
    pub(crate) fn set(&mut self, source: usize, time_ns: u64) {
        if self.times[source] == time_ns {
            return;
        }
        self.times[source] = time_ns;
        let mut at = (source + self.times.len()) / 2;
        while at > 0 {
            let before = self.winners[at];
            self.play(at);
            // Nobody else has another time: what another one won before and wins still, it wins with on the way up.
            if self.winners[at] == before && before as usize != source {
                return;
            }
            at /= 2;
        }
    }

    #[inline]
    fn play(&mut self, at: usize) {
        let leaves = self.times.len();
        let player = |at: usize| {
            if at >= leaves {
                (at - leaves) as u32
            } else {
                self.winners[at]
            }
        };
        let (left, right) = (player(2 * at), player(2 * at + 1));
        self.winners[at] = if self.times[right as usize] < self.times[left as usize] {
            right
        } else {
            left
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_is_first_and_ties_go_to_the_first_source() {
        for sources in 1..20 {
            let mut events = Events::new(sources);
            let mut times = vec![NEVER; sources];
            let mut state = 12345_u64;
            for _ in 0..2000 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let source = (state >> 33) as usize % sources;
                let time = (state >> 40) % 50;
                times[source] = time;
                events.set(source, time);
                let expected = (0..sources).map(|source| (times[source], source)).min();
                assert_eq!(Some(events.first()), expected);
            }
        }
    }
}
