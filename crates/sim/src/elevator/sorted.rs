//! Requests in the order of their addresses: what the kernel keeps in red-black trees.
//!
//! Zip trees (Tarjan, Levy, Timmel, "Zip Trees", ACM Trans. Algorithms 17 (2021)) whose nodes are in one array by
//! request id, with links to the neighbours. A request is in one tree of a queue at a time, so all trees of an
//! elevator share the array, and nothing is allocated once the array has grown to the largest id.

use crate::request::{Id, NONE};

/// Nodes of all trees of one elevator.
#[derive(Debug, Clone, Default)]
pub(crate) struct Nodes {
    nodes: Vec<Node>,
    inserted: u64,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    /// Address, then order of insertion: of equal addresses the later is the higher, as in `elv_rb_add`.
    key: (u64, u64),
    left: Id,
    right: Id,
    previous: Id,
    next: Id,
    rank: u8,
}

const UNUSED: Node = Node {
    key: (0, 0),
    left: NONE,
    right: NONE,
    previous: NONE,
    next: NONE,
    rank: 0,
};

/// One tree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sorted {
    root: Id,
    first: Id,
    last: Id,
}

impl Default for Sorted {
    fn default() -> Self {
        Sorted {
            root: NONE,
            first: NONE,
            last: NONE,
        }
    }
}

fn some(id: Id) -> Option<Id> {
    (id != NONE).then_some(id)
}

impl Sorted {
    pub(crate) fn is_empty(&self) -> bool {
        self.root == NONE
    }

    /// The lowest.
    pub(crate) fn first(&self) -> Option<Id> {
        some(self.first)
    }

    /// The highest.
    pub(crate) fn last(&self) -> Option<Id> {
        some(self.last)
    }
}

impl Nodes {
    fn node(&self, id: Id) -> &Node {
        &self.nodes[id as usize]
    }

    fn node_mut(&mut self, id: Id) -> &mut Node {
        &mut self.nodes[id as usize]
    }

    /// The one after (`rb_next`).
    pub(crate) fn next(&self, id: Id) -> Option<Id> {
        some(self.node(id).next)
    }

    /// The one before (`rb_prev`).
    pub(crate) fn previous(&self, id: Id) -> Option<Id> {
        some(self.node(id).previous)
    }

    /// True if `a` is above `b`: higher rank, or the same and the lower key.
    fn above(&self, a: Id, b: Id) -> bool {
        let (a, b) = (self.node(a), self.node(b));
        (a.rank, std::cmp::Reverse(a.key)) > (b.rank, std::cmp::Reverse(b.key))
    }

    pub(crate) fn insert(&mut self, tree: &mut Sorted, id: Id, address: u64) {
        if self.nodes.len() <= id as usize {
            self.nodes.resize(id as usize + 1, UNUSED);
        }
        self.inserted += 1;
        let key = (address, self.inserted);
        // Geometric ranks, from a hash so that every run is the same.
        let rank = (mix(self.inserted) | 1 << 62).trailing_zeros() as u8;
        *self.node_mut(id) = Node {
            key,
            rank,
            ..UNUSED
        };

        // Down to the first node below the new one; the new one takes its place.
        let (mut below, mut above) = (NONE, NONE);
        let mut at = tree.root;
        let (mut parent, mut went_right) = (NONE, false);
        while at != NONE && self.above(at, id) {
            parent = at;
            went_right = self.node(at).key < key;
            if went_right {
                below = at;
                at = self.node(at).right;
            } else {
                above = at;
                at = self.node(at).left;
            }
        }
        match parent {
            NONE => tree.root = id,
            parent if went_right => self.node_mut(parent).right = id,
            parent => self.node_mut(parent).left = id,
        }
        // Unzip the rest of the path to both sides of it.
        let (mut left_end, mut right_end) = (id, id);
        while at != NONE {
            if self.node(at).key < key {
                below = at;
                match left_end == id {
                    true => self.node_mut(id).left = at,
                    false => self.node_mut(left_end).right = at,
                }
                left_end = at;
                at = self.node(at).right;
            } else {
                above = at;
                match right_end == id {
                    true => self.node_mut(id).right = at,
                    false => self.node_mut(right_end).left = at,
                }
                right_end = at;
                at = self.node(at).left;
            }
        }
        if left_end != id {
            self.node_mut(left_end).right = NONE;
        }
        if right_end != id {
            self.node_mut(right_end).left = NONE;
        }

        let node = self.node_mut(id);
        node.previous = below;
        node.next = above;
        match below {
            NONE => tree.first = id,
            below => self.node_mut(below).next = id,
        }
        match above {
            NONE => tree.last = id,
            above => self.node_mut(above).previous = id,
        }
    }

    pub(crate) fn remove(&mut self, tree: &mut Sorted, id: Id) {
        let node = *self.node(id);
        let (mut parent, mut went_right) = (NONE, false);
        let mut at = tree.root;
        while at != id {
            parent = at;
            went_right = self.node(at).key < node.key;
            at = if went_right {
                self.node(at).right
            } else {
                self.node(at).left
            };
        }
        // Zip its two sides together where it was.
        let (mut left, mut right) = (node.left, node.right);
        loop {
            let take_left = match (left, right) {
                (NONE, _) => false,
                (_, NONE) => true,
                (left, right) => self.above(left, right),
            };
            let taken = if take_left { left } else { right };
            match parent {
                NONE => tree.root = taken,
                parent if went_right => self.node_mut(parent).right = taken,
                parent => self.node_mut(parent).left = taken,
            }
            if left == NONE || right == NONE {
                break;
            }
            parent = taken;
            went_right = take_left;
            if take_left {
                left = self.node(taken).right;
            } else {
                right = self.node(taken).left;
            }
        }

        match node.previous {
            NONE => tree.first = node.next,
            previous => self.node_mut(previous).next = node.next,
        }
        match node.next {
            NONE => tree.last = node.previous,
            next => self.node_mut(next).previous = node.previous,
        }
    }

    /// The lowest at or after an address.
    pub(crate) fn at_or_after(&self, tree: &Sorted, address: u64) -> Option<Id> {
        let mut found = NONE;
        let mut at = tree.root;
        while at != NONE {
            let node = self.node(at);
            if node.key.0 >= address {
                found = at;
                at = node.left;
            } else {
                at = node.right;
            }
        }
        some(found)
    }

    /// The one that came there last.
    pub(crate) fn latest_at(&self, tree: &Sorted, address: u64) -> Option<Id> {
        let (mut found, mut at) = (NONE, tree.root);
        while at != NONE {
            let node = self.node(at);
            if node.key.0 <= address {
                found = at;
                at = node.right;
            } else {
                at = node.left;
            }
        }
        some(found).filter(|&id| self.node(id).key.0 == address)
    }

    /// One that begins exactly there (`elv_rb_find`).
    pub(crate) fn exactly_at(&self, tree: &Sorted, address: u64) -> Option<Id> {
        self.at_or_after(tree, address)
            .filter(|&id| self.node(id).key.0 == address)
    }
}

/// SplitMix64's finaliser (Steele, Lea, Flood 2014).
fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn it_is_what_an_ordered_map_is() {
        let mut nodes = Nodes::default();
        let mut tree = Sorted::default();
        let mut map: BTreeMap<(u64, u64), Id> = BTreeMap::new();
        let mut keys = [None; 200];
        for round in 1..50_000_u64 {
            let id = (mix(round) % 200) as Id;
            match keys[id as usize].take() {
                Some(key) => {
                    map.remove(&key);
                    nodes.remove(&mut tree, id);
                }
                None => {
                    let key = (mix(round ^ 77) % 100, round);
                    keys[id as usize] = Some(key);
                    map.insert(key, id);
                    nodes.insert(&mut tree, id, key.0);
                }
            }
            assert_eq!(tree.first(), map.first_key_value().map(|(_, &id)| id));
            assert_eq!(tree.last(), map.last_key_value().map(|(_, &id)| id));
            let address = mix(round ^ 5) % 110;
            let found = map.range((address, 0)..).next().map(|(_, &id)| id);
            assert_eq!(nodes.at_or_after(&tree, address), found);
            let there = map.range((address, 0)..(address + 1, 0));
            assert_eq!(
                nodes.latest_at(&tree, address),
                there.last().map(|(_, &id)| id)
            );
        }
        let walked: Vec<Id> = std::iter::successors(tree.first(), |&id| nodes.next(id)).collect();
        assert_eq!(walked, map.values().copied().collect::<Vec<_>>());
        let back: Vec<Id> = std::iter::successors(tree.last(), |&id| nodes.previous(id)).collect();
        assert_eq!(back, map.values().rev().copied().collect::<Vec<_>>());
    }
}
