//! The pages in the cache and the state of each.

use std::collections::{BTreeMap, VecDeque};

use super::readahead::Cached;

/// Pages of a group, which are allocated and given up together.
const GROUP: u64 = 512;

/// State of a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PageState(u8);

impl PageState {
    /// It is in the cache.
    pub(crate) const PRESENT: u8 = 1;
    /// It has its content.
    pub(crate) const UPTODATE: u8 = 2;
    /// A reader that gets here makes the kernel read on.
    pub(crate) const MARK: u8 = 4;
    pub(crate) const DIRTY: u8 = 8;
    pub(crate) const WRITEBACK: u8 = 16;
    /// It could not be read.
    pub(crate) const FAILED: u8 = 32;

    #[inline]
    pub(crate) fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }
}

struct Group {
    first: u64,
    states: Box<[u8; GROUP as usize]>,
    present: u32,
    dirty: u32,
    /// Pages that are being read or written, and threads that want one of them next.
    busy: u32,
    /// Used since it was last looked at.
    is_used: bool,
}

/// All pages of a machine's storage that are in memory.
#[derive(Default)]
pub(crate) struct Pages {
    groups: Vec<Group>,
    free: Vec<u32>,
    places: BTreeMap<u64, u32>,
    /// Groups from the oldest on.
    ages: VecDeque<u32>,
    /// The group used last.
    last: Option<u32>,
    pub(crate) cached: u64,
    pub(crate) dirty: u64,
    pub(crate) writeback: u64,
}

impl Pages {
    #[inline]
    fn group(&self, page: u64) -> Option<u32> {
        let first = page - page % GROUP;
        match self.last {
            Some(last) if self.groups[last as usize].first == first => Some(last),
            _ => self.places.get(&first).copied(),
        }
    }

    #[inline]
    pub(crate) fn state(&mut self, page: u64) -> PageState {
        match self.group(page) {
            Some(group) => {
                self.last = Some(group);
                let of = &mut self.groups[group as usize];
                of.is_used = true;
                PageState(of.states[(page % GROUP) as usize])
            }
            None => PageState(0),
        }
    }

    #[inline]
    fn has(&self, page: u64, flag: u8) -> bool {
        self.group(page).is_some_and(|group| {
            self.groups[group as usize].states[(page % GROUP) as usize] & flag != 0
        })
    }

    fn made(&mut self, page: u64) -> &mut Group {
        let group = self
            .group(page)
            .unwrap_or_else(|| self.add(page - page % GROUP));
        self.last = Some(group);
        &mut self.groups[group as usize]
    }

    fn add(&mut self, first: u64) -> u32 {
        let group = Group {
            first,
            states: Box::new([0; GROUP as usize]),
            present: 0,
            dirty: 0,
            busy: 0,
            is_used: false,
        };
        let id = match self.free.pop() {
            Some(id) => {
                self.groups[id as usize] = group;
                id
            }
            None => {
                self.groups.push(group);
                self.groups.len() as u32 - 1
            }
        };
        self.places.insert(first, id);
        self.ages.push_back(id);
        id
    }

    /// The page will be read: it is in the cache, without content.
    pub(crate) fn begin_read(&mut self, page: u64) {
        let group = self.made(page);
        group.states[(page % GROUP) as usize] = PageState::PRESENT;
        group.present += 1;
        group.busy += 1;
        self.cached += 1;
    }

    pub(crate) fn mark(&mut self, page: u64) {
        self.made(page).states[(page % GROUP) as usize] |= PageState::MARK;
    }

    pub(crate) fn clear_mark(&mut self, page: u64) {
        self.made(page).states[(page % GROUP) as usize] &= !PageState::MARK;
    }

    /// The page, which could not be read, is read once more.
    pub(crate) fn retry_read(&mut self, page: u64) {
        let group = self.made(page);
        group.states[(page % GROUP) as usize] &= !PageState::FAILED;
        group.busy += 1;
    }

    pub(crate) fn end_read(&mut self, page: u64, has_failed: bool) {
        let group = self.made(page);
        group.states[(page % GROUP) as usize] |= match has_failed {
            true => PageState::FAILED,
            false => PageState::UPTODATE,
        };
        group.busy -= 1;
    }

    /// A thread waits for the page: it stays until `let_go`.
    pub(crate) fn hold(&mut self, page: u64) {
        self.made(page).busy += 1;
    }

    pub(crate) fn let_go(&mut self, page: u64) {
        self.made(page).busy -= 1;
    }

    /// The page has new content.
    pub(crate) fn make_dirty(&mut self, page: u64) {
        let group = self.made(page);
        let state = &mut group.states[(page % GROUP) as usize];
        let is_new = *state & PageState::PRESENT == 0;
        let was_clean = *state & PageState::DIRTY == 0;
        *state &= !PageState::FAILED;
        *state |= PageState::PRESENT | PageState::UPTODATE | PageState::DIRTY;
        group.present += u32::from(is_new);
        group.dirty += u32::from(was_clean);
        self.cached += u64::from(is_new);
        self.dirty += u64::from(was_clean);
    }

    /// The dirty page is on its way to the device.
    fn begin_write(&mut self, page: u64) {
        let group = self.made(page);
        let state = &mut group.states[(page % GROUP) as usize];
        *state = *state & !PageState::DIRTY | PageState::WRITEBACK;
        group.dirty -= 1;
        group.busy += 1;
        self.dirty -= 1;
        self.writeback += 1;
    }

    pub(crate) fn end_write(&mut self, page: u64) {
        let group = self.made(page);
        group.states[(page % GROUP) as usize] &= !PageState::WRITEBACK;
        group.busy -= 1;
        self.writeback -= 1;
    }

    /// Begins to write the dirty pages from `first` on, `most` at most; their number. A page whose last write is still
    /// under way ends them.
    pub(crate) fn take_dirty(&mut self, first: u64, to: u64, most: u64) -> u64 {
        let mut end = first;
        while end < to
            && end - first < most
            && self.has(end, PageState::DIRTY)
            && !self.has(end, PageState::WRITEBACK)
        {
            self.begin_write(end);
            end += 1;
        }
        end - first
    }

    /// True if there is a dirty page within `from..to`, being written or not.
    pub(crate) fn has_dirty(&self, from: u64, to: u64) -> bool {
        self.find(from, to, |state| state & PageState::DIRTY != 0)
            .is_some()
    }

    /// The first dirty page within `from..to` that is not being written.
    pub(crate) fn first_dirty(&self, from: u64, to: u64) -> Option<u64> {
        let flags = PageState::DIRTY | PageState::WRITEBACK;
        self.find(from, to, |state| state & flags == PageState::DIRTY)
    }

    /// The first page within `from..to`, in a group with dirty pages, whose state is wanted.
    fn find(&self, from: u64, to: u64, is_wanted: impl Fn(u8) -> bool) -> Option<u64> {
        let groups = self.places.range(from - from % GROUP..to);
        for (&first, &id) in groups {
            let group = &self.groups[id as usize];
            if group.dirty == 0 {
                continue;
            }
            let range = from.max(first)..to.min(first + GROUP);
            let state = |page: &u64| group.states[(page - first) as usize];
            if let Some(page) = range.into_iter().find(|page| is_wanted(state(page))) {
                return Some(page);
            }
        }
        None
    }

    /// Gives up clean pages until at most `most` are left, the oldest unused ones first.
    pub(crate) fn shrink(&mut self, most: u64) {
        let mut looks = 2 * self.ages.len();
        while self.cached > most && looks > 0 {
            looks -= 1;
            let Some(id) = self.ages.pop_front() else {
                return;
            };
            let group = &mut self.groups[id as usize];
            let keeps = group.dirty > 0 || group.busy > 0 || self.last == Some(id);
            if keeps || std::mem::take(&mut group.is_used) && looks > self.ages.len() {
                self.ages.push_back(id);
                continue;
            }
            self.cached -= u64::from(group.present);
            let first = group.first;
            self.places.remove(&first);
            self.free.push(id);
        }
    }
}

/// The pages of one file, counted from its first one.
pub(crate) struct FilePages<'a> {
    pub(crate) pages: &'a Pages,
    pub(crate) first: u64,
}

impl Cached for FilePages<'_> {
    fn next_missing(&self, page: u64, most: u64) -> u64 {
        let missing = |page: &u64| !self.pages.has(self.first + page, PageState::PRESENT);
        (page..page + most).find(missing).unwrap_or(page + most)
    }

    fn before(&self, page: u64, most: u64) -> u64 {
        let from = page.saturating_sub(most);
        let there = |page: &u64| self.pages.has(self.first + page, PageState::PRESENT);
        (from..page).rev().take_while(there).count() as u64
    }
}
