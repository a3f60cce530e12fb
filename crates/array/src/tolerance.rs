//! The number of members that may be lost.

use serde::Serialize;

use crate::array::{Array, Map};
use crate::members::MemberSet;

/// Members that may fail without losing data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Tolerance {
    /// Number of members of which any set may fail.
    pub guaranteed: u32,
    /// Number of members that may fail if they are the right ones.
    pub best_case: u32,
}

impl Array {
    /// Number of members that may be lost, at worst and at best.
    pub fn tolerance(&self) -> Tolerance {
        let both = |count| Tolerance {
            guaranteed: count,
            best_case: count,
        };
        match &self.map {
            Map::Linear(_) | Map::Zones(_) => both(0),
            Map::Parity(_) => both(self.level().parities()),
            Map::Nested(map) => Tolerance {
                guaranteed: self.level().parities(),
                best_case: self.level().parities() * map.groups().len() as u32,
            },
            Map::Mirror(_) => {
                let sets = self.copy_sets();
                let fewest = sets.iter().map(MemberSet::len).min().unwrap_or(1);
                Tolerance {
                    guaranteed: fewest - 1,
                    best_case: self.members() - smallest_cover(sets, 0, u32::MAX),
                }
            }
        }
    }

    /// The sets of members that hold the copies of one chunk; they repeat after as many chunks as there
    /// are members.
    fn copy_sets(&self) -> Vec<MemberSet> {
        let chunk = self.chunk().unwrap_or(u64::MAX);
        (0..u64::from(self.members()))
            .map_while(|index| {
                index
                    .checked_mul(chunk)
                    .filter(|logical| *logical < self.capacity())
            })
            .map(|logical| self.places(logical).map(|place| place.member).collect())
            .collect()
    }
}

/// Number of the fewest members that have a copy of everything: the smallest set that meets all `sets`.
///
/// Sets that contain another and members that another member outdoes are dropped; what is left is tried
/// member by member. Copies are in arcs of a ring, which the dropping alone solves once one member is
/// chosen. `taken` members are chosen already; results of `limit` or more are of no interest.
fn smallest_cover(mut sets: Vec<MemberSet>, mut taken: u32, limit: u32) -> u32 {
    loop {
        if taken >= limit {
            return limit;
        }
        let before = sets.clone();
        let all = std::mem::take(&mut sets);
        for (at, set) in all.iter().enumerate() {
            let outdone = all.iter().enumerate().any(|(other_at, other)| {
                other.without(set).is_empty() && (other != set || other_at < at)
            });
            if !outdone {
                sets.push(*set);
            }
        }
        if let Some(only) = sets
            .iter()
            .find(|set| set.len() == 1)
            .and_then(|set| set.iter().next())
        {
            sets.retain(|set| !set.contains(only));
            taken += 1;
            continue;
        }
        drop_outdone_members(&mut sets);
        if sets == before {
            break;
        }
    }
    let Some(tried) = sets.iter().min_by_key(|set| set.len()).copied() else {
        return taken;
    };
    tried.iter().fold(limit, |best, member| {
        let rest = sets
            .iter()
            .filter(|set| !set.contains(member))
            .copied()
            .collect();
        best.min(smallest_cover(rest, taken + 1, best))
    })
}

/// Takes out members whose sets another member meets as well.
fn drop_outdone_members(sets: &mut [MemberSet]) {
    let members = sets.iter().fold(MemberSet::EMPTY, |all, set| all.with(set));
    let met_by = |member: u32| -> MemberSet {
        (0..)
            .zip(sets.iter())
            .filter(|(_, set)| set.contains(member))
            .map(|(at, _)| at)
            .collect()
    };
    let met: Vec<(u32, MemberSet)> = members
        .iter()
        .map(|member| (member, met_by(member)))
        .collect();
    let outdone: MemberSet = met
        .iter()
        .filter(|(member, own)| {
            met.iter().any(|(other, theirs)| {
                other != member
                    && own.without(theirs).is_empty()
                    && (own != theirs || other < member)
            })
        })
        .map(|(member, _)| *member)
        .collect();
    for set in sets {
        *set = set.without(&outdone);
    }
}

#[cfg(test)]
mod tests {
    use crate::{Array, ArrayConfig, Layout, Level};

    fn tolerance(level: Level, layout: &str, members: usize) -> (u32, u32) {
        let layout = Layout::parse(level, layout).unwrap();
        let config = ArrayConfig::new(level, vec![64 << 20; members]).layout(layout);
        let tolerance = Array::new(config).unwrap().tolerance();
        (tolerance.guaranteed, tolerance.best_case)
    }

    #[test]
    fn near_copies_bear_one_loss_per_pair() {
        assert_eq!(tolerance(Level::Raid10, "n2", 6), (1, 3));
        assert_eq!(tolerance(Level::Raid10, "n3", 6), (2, 4));
    }

    #[test]
    fn far_copies_bear_every_other_member() {
        assert_eq!(tolerance(Level::Raid10, "f2", 6), (1, 3));
        assert_eq!(tolerance(Level::Raid10, "o2", 7), (1, 3));
        assert_eq!(tolerance(Level::Raid10, "f3", 9), (2, 6));
        assert_eq!(tolerance(Level::Raid10, "n2", 5), (1, 2));
        assert_eq!(tolerance(Level::Raid10, "f2", 50), (1, 25));
    }

    #[test]
    fn the_old_rings_may_keep_all_copies_on_one_member() {
        assert_eq!(tolerance(Level::Raid10, "f3s17", 4).0, 0);
    }

    #[test]
    fn groups_each_bear_their_own_loss() {
        assert_eq!(tolerance(Level::Raid60, "default", 8), (2, 4));
        assert_eq!(tolerance(Level::Raid1, "default", 3), (2, 2));
        assert_eq!(tolerance(Level::Raid0, "default", 3), (0, 0));
    }
}
