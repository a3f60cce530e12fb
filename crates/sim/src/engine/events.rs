//! The next event: a tournament over a fixed number of sources.

/// The next event of each source; the earliest is always at hand. Of events at one time those of drives come first, the one
/// that was set first before the others; then those of other sources, by their numbers.
#[derive(Debug, Clone)]
pub(crate) struct Events {
    /// Times of the sources, padded to a power of two.
    times: Vec<u64>,
    /// When they were set, of drives: so many had been set before.
    orders: Vec<u64>,
    drives: usize,
    set: u64,
    /// Winners of each match; the final is at 1.
    winners: Vec<u32>,
}

/// Never.
pub(crate) const NEVER: u64 = u64::MAX;

impl Events {
    /// The first so many of the sources are `drives`; 0: all go by their numbers.
    pub(crate) fn new(sources: usize, drives: usize) -> Events {
        let leaves = sources.next_power_of_two().max(2);
        let mut events = Events {
            times: vec![NEVER; leaves],
            orders: vec![u64::MAX; leaves],
            drives,
            set: 0,
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

    #[inline(always)]
    pub(crate) fn set(&mut self, source: usize, time_ns: u64) {
        if self.times[source] != time_ns {
            self.change(source, time_ns);
        }
    }

    #[inline]
    fn change(&mut self, source: usize, time_ns: u64) {
        self.times[source] = time_ns;
        if source < self.drives {
            self.orders[source] = self.set;
            self.set += 1;
        }
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

    #[inline(always)]
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
        let (left_ns, right_ns) = (self.times[left as usize], self.times[right as usize]);
        let right_wins = right_ns < left_ns
            || (right_ns == left_ns && self.drives > 0 && self.is_older(right, left));
        self.winners[at] = if right_wins { right } else { left };
    }

    #[inline]
    fn is_older(&self, one: u32, other: u32) -> bool {
        self.orders[one as usize] < self.orders[other as usize]
    }
}

/// A time in which only alarms ring that repeat themselves. They would hide a standstill.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    rings: u64,
    /// Other events, and the time since when there were no more.
    others: u64,
    since_ns: u64,
}

impl Silence {
    /// Longer than dirty pages grow old, and than a drive works for itself.
    const LONG_NS: u64 = 24 * 3600 * 1_000_000_000;

    /// Such alarms ring, the last of so many `events`. True if there has been nothing else for long.
    pub(crate) fn lasts(&mut self, now_ns: u64, events: u64) -> bool {
        self.rings += 1;
        let others = events - self.rings;
        if std::mem::replace(&mut self.others, others) != others {
            self.since_ns = now_ns;
        }
        now_ns - self.since_ns > Self::LONG_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_is_first_and_ties_go_to_the_oldest_of_a_drive_then_to_the_first_source() {
        for (sources, drives) in (1..20).flat_map(|sources| [(sources, 0), (sources, sources / 2)])
        {
            let mut events = Events::new(sources, drives);
            let mut times = vec![(NEVER, u64::MAX); sources];
            let mut state = 12345_u64;
            for order in 0..2000 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let source = (state >> 33) as usize % sources;
                let time = (state >> 40) % 50;
                if times[source].0 != time {
                    times[source] = (time, if source < drives { order } else { u64::MAX });
                }
                events.set(source, time);
                let expected = (0..sources).map(|source| (times[source], source)).min();
                assert_eq!(
                    Some(events.first()),
                    expected.map(|((time, _), source)| (time, source))
                );
            }
        }
    }
    #[test]
    fn silence_lasts_a_day_without_other_events() {
        let (ring_ns, mut silence) = (5_000_000_000, Silence::default());
        let rings = Silence::LONG_NS / ring_ns;
        let mut events = 0;
        for ring in 1..=2 * rings {
            // Half way something else happens.
            events += 1 + u64::from(ring == rings / 2);
            let lasts = silence.lasts(ring * ring_ns, events);
            assert_eq!(lasts, ring > rings / 2 + rings, "{ring}");
        }
    }
}
