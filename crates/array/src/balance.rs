//! Which copy of a mirror md reads (`drivers/md/raid1.c` and `raid10.c`, `read_balance`).
//!
//! Pure functions over what the caller knows of each member: pending requests and the head's last
//! known position, which md sets to the end of each request when it completes. With a resync running
//! beyond the place read, md takes the first copy in any case: pass only that one.

use serde::Serialize;

/// Kernel whose rule is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum BalanceRule {
    /// Up to 2.6.24: RAID10 far and offset read the copy with the nearest head.
    #[serde(rename = "2.6.20")]
    Linux2_6_20,
    /// 2.6.25 to 3.x, as in 2.6.32: RAID10 far and offset read the lowest address (commit
    /// 8ed3a19563b6, "don't attempt read-balancing for raid10 'far' layouts").
    #[serde(rename = "2.6.32")]
    Linux2_6_32,
    /// 6.1: flash members are chosen by pending requests.
    #[serde(rename = "6.1")]
    Linux6_1,
}

/// A copy that may be read, with what is known of its member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Member's slot.
    pub member: u32,
    /// Address of the copy on the member, bytes.
    pub offset: u64,
    /// Requests sent to the member and not completed (`nr_pending`).
    pub pending: u32,
    /// End of the last request completed on the member, bytes (`head_position`).
    pub head: u64,
    /// True if the member has no moving head.
    pub flash: bool,
}

impl Candidate {
    fn distance(&self) -> u64 {
        self.offset.abs_diff(self.head)
    }
}

/// RAID10: index, among the candidates, of the copy to read; `None` if there is none. Candidates come in
/// md's order, as from [`Array::places`](crate::Array::places), without members that are missing.
pub fn raid10(
    rule: BalanceRule,
    near_copies: u32,
    far_copies: u32,
    candidates: impl IntoIterator<Item = Candidate>,
) -> Option<usize> {
    let lowest = far_copies > 1 && rule != BalanceRule::Linux2_6_20;
    let mut nearest: Option<(usize, u64)> = None;
    let mut least: Option<(usize, u32)> = None;
    for (index, candidate) in candidates.into_iter().enumerate() {
        let idle = near_copies > 1 && candidate.pending == 0;
        if rule == BalanceRule::Linux6_1 {
            if candidate.flash && least.is_none_or(|(_, pending)| candidate.pending < pending) {
                least = Some((index, candidate.pending));
            }
        } else if idle {
            return Some(index);
        }
        // Up to 3.x the search starts with the distance of the first copy, also where addresses are
        // compared after that.
        let first = nearest.get_or_insert_with(|| match rule {
            BalanceRule::Linux6_1 => (index, u64::MAX),
            _ => (index, candidate.distance()),
        });
        let distance = match (idle, lowest) {
            (true, _) => 0,
            (false, true) => candidate.offset,
            (false, false) => candidate.distance(),
        };
        if distance < first.1 {
            *first = (index, distance);
        }
    }
    least
        .map(|(index, _)| index)
        .or(nearest.map(|(index, _)| index))
}

/// RAID1's memory between reads (`last_used`, `next_seq_sect`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raid1State {
    /// Member read last.
    last_used: u32,
    /// End of the last read, bytes: where a sequential reader goes on.
    next: u64,
    /// The same for each member, as 6.1 keeps it.
    next_of: Vec<u64>,
}

impl Raid1State {
    /// A fresh array.
    pub fn new(members: u32) -> Raid1State {
        Raid1State {
            last_used: 0,
            next: 0,
            next_of: vec![0; members as usize],
        }
    }

    /// Index, among the candidates, of the member to read, and remembers it. Candidates are the
    /// members present, in slot order; `len` is the length of the read, bytes.
    pub fn choose(
        &mut self,
        rule: BalanceRule,
        len: u64,
        candidates: &[Candidate],
    ) -> Option<usize> {
        let index = match rule {
            BalanceRule::Linux6_1 => self.sequential_idle_nearest(candidates),
            _ => self.downwards_from_last(candidates),
        }?;
        let chosen = candidates.get(index)?;
        self.last_used = chosen.member;
        self.next = chosen.offset + len;
        if let Some(next) = self.next_of.get_mut(chosen.member as usize) {
            *next = self.next;
        }
        Some(index)
    }

    /// Up to 3.x: stay for a sequential reader; else, from the last one used downwards, the first idle
    /// member, or the one with the nearest head.
    fn downwards_from_last(&self, candidates: &[Candidate]) -> Option<usize> {
        // The one used last, or the next one below that is there.
        let start = candidates
            .iter()
            .rposition(|candidate| candidate.member <= self.last_used)
            .or_else(|| candidates.len().checked_sub(1))?;
        let first = candidates[start];
        if self.next == first.offset || first.head == first.offset {
            return Some(start);
        }
        // The loop ends at the member used last: only if that is the one it began with does it come
        // back to it.
        let steps = candidates.len() - usize::from(first.member != self.last_used);
        let (mut best, mut best_distance) = (start, first.distance());
        for step in 1..=steps {
            let at = (start + candidates.len() - step) % candidates.len();
            let candidate = candidates[at];
            if candidate.pending == 0 {
                return Some(at);
            }
            if candidate.distance() < best_distance {
                (best, best_distance) = (at, candidate.distance());
            }
        }
        Some(best)
    }

    /// 6.1: the first member on which the read is sequential; else an idle one; else, with flash among
    /// them, the one with the fewest requests, without, the one with the nearest head. (6.1 also means
    /// to leave flash for an idle member after a long sequential run, but never does; mended in 6.9.)
    fn sequential_idle_nearest(&self, candidates: &[Candidate]) -> Option<usize> {
        let goes_on = |candidate: &Candidate| {
            candidate.distance() == 0
                || self.next_of.get(candidate.member as usize) == Some(&candidate.offset)
        };
        if let Some(sequential) = candidates.iter().position(goes_on) {
            return Some(sequential);
        }
        let (least, fewest) = (0..)
            .zip(candidates)
            .min_by_key(|(_, candidate)| candidate.pending)?;
        if fewest.pending == 0 || candidates.iter().any(|candidate| candidate.flash) {
            return Some(least);
        }
        (0..)
            .zip(candidates)
            .min_by_key(|(_, candidate)| candidate.distance())
            .map(|(index, _)| index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn disk(member: u32, offset: u64, pending: u32, head: u64) -> Candidate {
        Candidate {
            member,
            offset,
            pending,
            head,
            flash: false,
        }
    }

    #[test]
    fn raid10_near_takes_the_first_idle_mirror_and_else_the_nearest_head() {
        for rule in [
            BalanceRule::Linux2_6_20,
            BalanceRule::Linux2_6_32,
            BalanceRule::Linux6_1,
        ] {
            let busy = [disk(0, 100, 1, 0), disk(1, 100, 1, 90)];
            assert_eq!(raid10(rule, 2, 1, busy), Some(1));
            let idle = [disk(0, 100, 1, 99), disk(1, 100, 0, 0)];
            assert_eq!(raid10(rule, 2, 1, idle), Some(1));
            assert_eq!(raid10(rule, 2, 1, []), None);
        }
    }

    #[test]
    fn raid10_far_reads_the_lowest_address_since_2_6_25_and_the_nearest_head_before() {
        let copies = [disk(0, MIB, 3, 900 * MIB), disk(1, 500 * MIB, 0, 500 * MIB)];
        assert_eq!(raid10(BalanceRule::Linux2_6_20, 1, 2, copies), Some(1));
        assert_eq!(raid10(BalanceRule::Linux2_6_32, 1, 2, copies), Some(0));
        assert_eq!(raid10(BalanceRule::Linux6_1, 1, 2, copies), Some(0));
    }

    #[test]
    fn raid10_of_flash_takes_the_fewest_pending_requests_in_6_1() {
        let flash = |member, pending| Candidate {
            flash: true,
            ..disk(member, MIB, pending, 0)
        };
        assert_eq!(
            raid10(BalanceRule::Linux6_1, 1, 2, [flash(0, 4), flash(1, 2)]),
            Some(1)
        );
        assert_eq!(
            raid10(BalanceRule::Linux2_6_32, 1, 2, [flash(0, 4), flash(1, 2)]),
            Some(0)
        );
    }

    #[test]
    fn raid1_stays_on_its_member_for_a_sequential_reader() {
        for rule in [BalanceRule::Linux2_6_32, BalanceRule::Linux6_1] {
            let mut state = Raid1State::new(2);
            let first = state.choose(rule, MIB, &[disk(0, MIB, 1, 0), disk(1, MIB, 0, 0)]);
            assert_eq!(first, Some(1), "{rule:?} takes the idle one");
            let on = state.choose(
                rule,
                MIB,
                &[disk(0, 2 * MIB, 0, 0), disk(1, 2 * MIB, 1, MIB)],
            );
            assert_eq!(on, Some(1), "{rule:?} stays");
        }
    }

    #[test]
    fn raid1_takes_the_nearest_head_when_all_are_busy() {
        for rule in [BalanceRule::Linux2_6_32, BalanceRule::Linux6_1] {
            let busy = [
                disk(0, 50 * MIB, 1, 0),
                disk(1, 50 * MIB, 2, 40 * MIB),
                disk(2, 50 * MIB, 1, 90 * MIB),
            ];
            assert_eq!(Raid1State::new(3).choose(rule, MIB, &busy), Some(1));
        }
    }

    #[test]
    fn raid1_with_one_member_left_reads_that_one() {
        for rule in [BalanceRule::Linux2_6_32, BalanceRule::Linux6_1] {
            assert_eq!(
                Raid1State::new(2).choose(rule, MIB, &[disk(1, MIB, 5, 0)]),
                Some(0)
            );
            assert_eq!(Raid1State::new(2).choose(rule, MIB, &[]), None);
        }
    }

    #[test]
    fn raid1_of_2_6_32_searches_downwards_from_the_last_used() {
        let idle = [
            disk(0, 9 * MIB, 0, 0),
            disk(1, 9 * MIB, 0, 0),
            disk(2, 9 * MIB, 0, 0),
        ];
        let mut state = Raid1State::new(3);
        assert_eq!(state.choose(BalanceRule::Linux2_6_32, MIB, &idle), Some(2));
        let idle = idle.map(|candidate| Candidate {
            offset: 20 * MIB,
            ..candidate
        });
        assert_eq!(state.choose(BalanceRule::Linux2_6_32, MIB, &idle), Some(1));
    }
}
