//! Requests in the order of their arrival: the kernel's linked lists.

use crate::request::{Id, NONE};

/// Links of all lists of one elevator; a request is in one list at a time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Links {
    links: Vec<Link>,
}

#[derive(Debug, Clone, Copy)]
struct Link {
    previous: Id,
    next: Id,
    /// When the request expires, ns (`fifo_time`).
    expires_ns: u64,
}

const UNUSED: Link = Link {
    previous: NONE,
    next: NONE,
    expires_ns: 0,
};

/// One list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fifo {
    first: Id,
    last: Id,
}

impl Default for Fifo {
    fn default() -> Self {
        Fifo {
            first: NONE,
            last: NONE,
        }
    }
}

impl Fifo {
    pub(crate) fn is_empty(&self) -> bool {
        self.first == NONE
    }

    pub(crate) fn first(&self) -> Option<Id> {
        (self.first != NONE).then_some(self.first)
    }
}

impl Links {
    pub(crate) fn expires_ns(&self, id: Id) -> u64 {
        self.links[id as usize].expires_ns
    }

    pub(crate) fn push_back(&mut self, fifo: &mut Fifo, id: Id, expires_ns: u64) {
        if self.links.len() <= id as usize {
            self.links.resize(id as usize + 1, UNUSED);
        }
        self.links[id as usize] = Link {
            previous: fifo.last,
            next: NONE,
            expires_ns,
        };
        match fifo.last {
            NONE => fifo.first = id,
            last => self.links[last as usize].next = id,
        }
        fifo.last = id;
    }

    pub(crate) fn remove(&mut self, fifo: &mut Fifo, id: Id) {
        let link = self.links[id as usize];
        match link.previous {
            NONE => fifo.first = link.next,
            previous => self.links[previous as usize].next = link.next,
        }
        match link.next {
            NONE => fifo.last = link.previous,
            next => self.links[next as usize].previous = link.previous,
        }
    }

    /// The newest first.
    pub(crate) fn newest_first(&self, fifo: &Fifo) -> impl Iterator<Item = Id> {
        let some = |id: Id| (id != NONE).then_some(id);
        std::iter::successors(some(fifo.last), move |&id| {
            some(self.links[id as usize].previous)
        })
    }

    pub(crate) fn pop_front(&mut self, fifo: &mut Fifo) -> Option<Id> {
        let id = fifo.first()?;
        self.remove(fifo, id);
        Some(id)
    }

    /// `gone` was merged into `kept`: if it expires sooner, `kept` takes its time and its place
    /// (`deadline_merged_requests` and its likes).
    pub(crate) fn inherit(&mut self, fifo: &mut Fifo, kept: Id, gone: Id) {
        let expires_ns = self.expires_ns(gone);
        if expires_ns < self.expires_ns(kept) {
            self.remove(fifo, kept);
            let link = self.links[gone as usize];
            self.links[kept as usize] = Link {
                previous: link.previous,
                next: gone,
                expires_ns,
            };
            match link.previous {
                NONE => fifo.first = kept,
                previous => self.links[previous as usize].next = kept,
            }
            self.links[gone as usize].previous = kept;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merged_request_takes_the_place_of_the_one_that_expires_sooner() {
        let (mut links, mut fifo) = (Links::default(), Fifo::default());
        for id in 0..4 {
            links.push_back(&mut fifo, id, 10 * u64::from(id));
        }
        links.inherit(&mut fifo, 3, 1);
        links.remove(&mut fifo, 1);
        assert_eq!(links.expires_ns(3), 10);
        let order: Vec<Id> = std::iter::from_fn(|| links.pop_front(&mut fifo)).collect();
        assert_eq!(order, [0, 3, 2]);
        assert!(fifo.is_empty());
    }
}
