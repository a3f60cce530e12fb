//! The next event: a tournament over a fixed number of sources.

/// The next event of each source; the earliest is always at hand. Of events at one time those of drives come first, the one
/// that was set first before the others; then those of other sources, by their numbers.
#[derive(Debug, Clone)]
pub(crate) struct Events {
    /// The winners of all matches: the final is at 1, match `n` is between `2 n` and `2 n + 1`, and the sources, padded to a
    /// power of two, are the last half.
    nodes: Vec<Event>,
    /// When they were set, of drives: so many had been set before.
    orders: Vec<u64>,
    drives: usize,
    set: u64,
}

#[derive(Debug, Clone, Copy)]
struct Event {
    time_ns: u64,
    source: u32,
}

/// Never.
pub(crate) const NEVER: u64 = u64::MAX;

impl Events {
    /// The first so many of the sources are `drives`; 0: all go by their numbers.
    pub(crate) fn new(sources: usize, drives: usize) -> Events {
        let leaves = sources.next_power_of_two().max(2);
        let node = |at: usize| Event {
            time_ns: NEVER,
            source: (at % leaves) as u32,
        };
        let mut events = Events {
            nodes: (0..2 * leaves).map(node).collect(),
            orders: vec![u64::MAX; leaves],
            drives,
            set: 0,
        };
        for at in (1..leaves).rev() {
            events.nodes[at] = events.winner(at);
        }
        events
    }

    /// The earliest event and its source.
    #[inline]
    pub(crate) fn first(&self) -> (u64, usize) {
        let Event { time_ns, source } = self.nodes[1];
        (time_ns, source as usize)
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, source: usize, time_ns: u64) {
        let at = self.nodes.len() / 2 + source;
        if self.nodes[at].time_ns != time_ns {
            self.change(at, time_ns);
        }
    }

    #[inline]
    fn change(&mut self, leaf: usize, time_ns: u64) {
        let of = &mut self.nodes[leaf];
        of.time_ns = time_ns;
        let source = of.source;
        if (source as usize) < self.drives {
            self.orders[source as usize] = self.set;
            self.set += 1;
        }
        let mut at = leaf / 2;
        while at > 0 {
            let winner = self.winner(at);
            // Nobody else has another time: what another one won before and wins still, it wins with on the way up.
            if winner.source != source && winner.source == self.nodes[at].source {
                return;
            }
            self.nodes[at] = winner;
            at /= 2;
        }
    }

    #[inline(always)]
    fn winner(&self, at: usize) -> Event {
        let [left, right] = self.nodes[2 * at..][..2] else {
            unreachable!("a match has two players");
        };
        let right_wins = right.time_ns < left.time_ns
            || (right.time_ns == left.time_ns
                && self.drives > 0
                && self.is_older(right.source, left.source));
        if right_wins { right } else { left }
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
