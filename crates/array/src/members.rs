//! A set of members, without allocation.

use crate::config::MAX_MEMBERS;

const WORDS: usize = MAX_MEMBERS / 64;

/// A set of members' slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct MemberSet([u64; WORDS]);

impl MemberSet {
    /// No member.
    pub const EMPTY: MemberSet = MemberSet([0; WORDS]);

    /// The first `count` members.
    pub fn first(count: u32) -> MemberSet {
        (0..count).collect()
    }

    /// Adds a member; slots beyond md's limit of members are ignored.
    #[inline]
    pub fn insert(&mut self, member: u32) {
        if let Some(word) = self.0.get_mut(member as usize / 64) {
            *word |= 1 << (member % 64);
        }
    }

    /// Takes a member out.
    #[inline]
    pub fn remove(&mut self, member: u32) {
        if let Some(word) = self.0.get_mut(member as usize / 64) {
            *word &= !(1 << (member % 64));
        }
    }

    /// True if the member is in the set.
    #[inline]
    pub fn contains(&self, member: u32) -> bool {
        self.0
            .get(member as usize / 64)
            .is_some_and(|word| word >> (member % 64) & 1 == 1)
    }

    /// Number of members.
    #[inline]
    pub fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// True if the set is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        *self == MemberSet::EMPTY
    }

    /// Members of either set.
    #[inline]
    pub fn with(&self, other: &MemberSet) -> MemberSet {
        MemberSet(std::array::from_fn(|at| self.0[at] | other.0[at]))
    }

    /// Members of this set that are not in the other.
    #[inline]
    pub fn without(&self, other: &MemberSet) -> MemberSet {
        MemberSet(std::array::from_fn(|at| self.0[at] & !other.0[at]))
    }

    /// Members of both sets.
    #[inline]
    pub fn common(&self, other: &MemberSet) -> MemberSet {
        MemberSet(std::array::from_fn(|at| self.0[at] & other.0[at]))
    }

    /// Members in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + use<> {
        (0u32..).zip(self.0).flat_map(|(at, mut word)| {
            std::iter::from_fn(move || {
                let bit = (word != 0).then(|| word.trailing_zeros())?;
                word &= word - 1;
                Some(at * 64 + bit)
            })
        })
    }
}

impl FromIterator<u32> for MemberSet {
    fn from_iter<I: IntoIterator<Item = u32>>(members: I) -> MemberSet {
        let mut set = MemberSet::EMPTY;
        for member in members {
            set.insert(member);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_back_in_order() {
        let set: MemberSet = [383, 0, 64, 63, 5].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 5, 63, 64, 383]);
        assert_eq!(set.len(), 5);
        assert!(!set.contains(384) && !set.contains(1));
    }
}
