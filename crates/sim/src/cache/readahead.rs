//! Read-ahead: which pages a reader of a file makes the kernel read, and when.
//!
//! Linux 6.1 `mm/readahead.c`: `page_cache_sync_ra`, `page_cache_async_ra`, `ondemand_readahead`, `get_init_ra_size`,
//! `get_next_ra_size`, `try_context_readahead`. Pages are counted from the first one of the file.

/// Pages that are to be read: those that are in the cache already are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) start: u64,
    pub(crate) pages: u64,
    /// Pages at its end whose first one, once it is reached, makes the kernel read on.
    pub(crate) lookahead: u64,
}

impl Window {
    /// Pages that are wanted, and none ahead.
    pub(crate) fn alone(start: u64, pages: u64) -> Window {
        Window {
            start,
            pages,
            lookahead: 0,
        }
    }
}

impl Window {
    /// The part before `page`, and the rest, with the mark where it was.
    pub(crate) fn split_at(self, page: u64) -> (Window, Window) {
        let end = self.start + self.pages;
        let mark = end - self.lookahead;
        let part = |start: u64, end: u64| Window {
            start,
            pages: end - start,
            lookahead: if (start..end).contains(&mark) {
                end - mark
            } else {
                0
            },
        };
        (part(self.start, page), part(page, end))
    }
}

/// The read-ahead of one open file (`struct file_ra_state`).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReadAhead {
    start: u64,
    size: u64,
    async_size: u64,
    /// End of the last read, as a page.
    pub(crate) previous: Option<u64>,
}

/// The rules of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadAheadRule {
    /// Two windows; the next one is read once the second page of the window ahead is wanted, so after its first one has
    /// arrived.
    Linux2_6_5,
    /// Two windows; the next one is read once the first page of the window ahead is wanted.
    Linux2_6_18,
    /// Marks.
    OnDemand,
}

/// Read-ahead with two windows (2.6.5 and 2.6.18 `mm/readahead.c`: `page_cache_readahead`), which is asked at each page.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TwoWindows {
    start: u64,
    size: u64,
    ahead_start: u64,
    ahead_size: u64,
    /// The last page that was asked for, and one.
    next: u64,
    /// Sequential reads have not begun: the end of the last random one.
    is_off: bool,
    end: u64,
}

impl TwoWindows {
    /// The reader wants `wanted` pages from `page` on, `begins`: as a new request. Windows to read now, at most two.
    pub(crate) fn at_page(
        &mut self,
        page: u64,
        wanted: u64,
        begins: bool,
        most: u64,
        rule: ReadAheadRule,
    ) -> [Option<Window>; 2] {
        if most == 0 || self.is_off && !begins && page < self.end {
            return [None, None];
        }
        let follows = page == self.next || page + 1 == self.next;
        self.next = page + 1;
        if !follows && begins || self.size == 0 {
            return self.begin(page, wanted, follows || page == 0, most, rule);
        }
        let ahead = self.start + self.size;
        let is_due = match rule {
            // The first page of the window ahead makes it the current one; the second asks for the next.
            ReadAheadRule::Linux2_6_5 => self.ahead_size == 0 && page < ahead,
            _ => self.ahead_size == 0,
        };
        if self.ahead_size > 0 && page >= self.ahead_start {
            self.start = self.ahead_start;
            self.size = self.ahead_size;
            self.ahead_size = 0;
            if rule == ReadAheadRule::Linux2_6_5 {
                return [None, None];
            }
            return [Some(self.make_ahead(most)), None];
        }
        if is_due && !self.is_off {
            return [Some(self.make_ahead(most)), None];
        }
        [None, None]
    }

    fn begin(
        &mut self,
        page: u64,
        wanted: u64,
        is_sequential: bool,
        most: u64,
        rule: ReadAheadRule,
    ) -> [Option<Window>; 2] {
        self.ahead_size = 0;
        self.start = page;
        self.is_off = !is_sequential;
        if self.is_off {
            self.size = 0;
            self.end = page + wanted;
            self.next = self.end;
            return [Some(Window::alone(page, wanted.min(most))), None];
        }
        self.size = match rule {
            ReadAheadRule::Linux2_6_5 => (most / 2).max(1),
            _ => ReadAhead::first_size(wanted.min(most), most),
        };
        let first = Window::alone(page, self.size);
        let second = (wanted >= most).then(|| self.make_ahead(most));
        [Some(first), second]
    }

    fn make_ahead(&mut self, most: u64) -> Window {
        self.ahead_start = self.start + self.size;
        // `get_next_ra_size`; 2.6.5 adds two pages at each hit, which comes to the same.
        self.ahead_size = if self.size < most / 16 {
            4 * self.size
        } else {
            (2 * self.size).min(most)
        };
        Window::alone(self.ahead_start, self.ahead_size)
    }
}

/// The limits of a device, pages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadAheadLimits {
    /// `read_ahead_kb`.
    pub(crate) most: u64,
    /// `max_sectors_kb`.
    pub(crate) longest_io: u64,
}

/// Which pages of a file are in the cache.
pub(crate) trait Cached {
    /// The first page that is absent, from `page` on; at least `page + most` if `most` pages are there.
    fn next_missing(&self, page: u64, most: u64) -> u64;

    /// Number of pages that are there without a gap before `page`, `most` at most.
    fn before(&self, page: u64, most: u64) -> u64;
}

impl ReadAhead {
    /// The reader wants `wanted` pages from `page` on, which is absent.
    pub(crate) fn at_missing(
        &mut self,
        page: u64,
        wanted: u64,
        limits: ReadAheadLimits,
        cached: &impl Cached,
    ) -> Window {
        if limits.most == 0 {
            return Window::alone(page, 1);
        }
        let most = Self::most(wanted, limits);
        if page == 0 {
            return self.begin(page, wanted, most);
        }
        if self.is_expected(page) {
            return self.advance(page, most);
        }
        let follows = self
            .previous
            .is_some_and(|previous| page.wrapping_sub(previous) <= 1);
        if wanted > most || follows {
            return self.begin(page, wanted, most);
        }
        // Traces of a sequential reader that the state does not know (`try_context_readahead`).
        let history = cached.before(page, most);
        if history > wanted {
            let history = if history >= page {
                2 * history
            } else {
                history
            };
            self.start = page;
            self.size = (history + wanted).min(most);
            self.async_size = 1;
            return self.window(page, most);
        }
        Window::alone(page, wanted)
    }

    /// The reader has reached a page with a mark, and wants `wanted` pages from there on.
    pub(crate) fn at_mark(
        &mut self,
        page: u64,
        wanted: u64,
        limits: ReadAheadLimits,
        cached: &impl Cached,
    ) -> Option<Window> {
        if limits.most == 0 {
            return None;
        }
        let most = Self::most(wanted, limits);
        if page == 0 {
            return Some(self.begin(page, wanted, most));
        }
        if self.is_expected(page) {
            return Some(self.advance(page, most));
        }
        let start = cached.next_missing(page + 1, most);
        if start - page > most {
            return None;
        }
        self.start = start;
        self.size = start - page + wanted;
        self.size = self.next_size(most);
        self.async_size = self.size;
        Some(self.window(page, most))
    }

    /// A request may exceed the window, up to the longest I/O.
    fn most(wanted: u64, limits: ReadAheadLimits) -> u64 {
        if wanted > limits.most && limits.longest_io > limits.most {
            wanted.min(limits.longest_io)
        } else {
            limits.most
        }
    }

    fn is_expected(&self, page: u64) -> bool {
        page == (self.start + self.size).wrapping_sub(self.async_size)
            || page == self.start + self.size
    }

    fn begin(&mut self, page: u64, wanted: u64, most: u64) -> Window {
        self.start = page;
        self.size = Self::first_size(wanted, most);
        self.async_size = if self.size > wanted {
            self.size - wanted
        } else {
            self.size
        };
        self.window(page, most)
    }

    fn advance(&mut self, page: u64, most: u64) -> Window {
        self.start += self.size;
        self.size = self.size.max(self.next_size(most));
        self.async_size = self.size;
        self.window(page, most)
    }

    /// The window, joined with the next one if the reader is at its mark already.
    fn window(&mut self, page: u64, most: u64) -> Window {
        if page == self.start && self.size == self.async_size {
            let added = self.next_size(most);
            if self.size + added <= most {
                self.async_size = added;
                self.size += added;
            } else {
                self.size = most;
                self.async_size = most / 2;
            }
        }
        Window {
            start: self.start,
            pages: self.size,
            lookahead: self.async_size,
        }
    }

    /// `get_init_ra_size`.
    fn first_size(wanted: u64, most: u64) -> u64 {
        let size = wanted.next_power_of_two();
        if size <= most / 32 {
            size * 4
        } else if size <= most / 4 {
            size * 2
        } else {
            most
        }
    }

    /// `get_next_ra_size`.
    fn next_size(&self, most: u64) -> u64 {
        if self.size < most / 16 {
            4 * self.size
        } else if self.size <= most / 2 {
            2 * self.size
        } else {
            most
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct None;

    impl Cached for None {
        fn next_missing(&self, page: u64, _most: u64) -> u64 {
            page
        }

        fn before(&self, _page: u64, _most: u64) -> u64 {
            0
        }
    }

    const LIMITS: ReadAheadLimits = ReadAheadLimits {
        most: 32,
        longest_io: 320,
    };

    #[test]
    fn a_sequential_reader_of_pages_gets_windows_that_double() {
        let mut state = ReadAhead::default();
        let first = state.at_missing(0, 1, LIMITS, &None);
        assert_eq!(
            first,
            Window {
                start: 0,
                pages: 4,
                lookahead: 3
            }
        );
        let at = |window: Window| window.start + window.pages - window.lookahead;
        let mut windows = vec![first];
        for _ in 0..4 {
            let mark = at(windows[windows.len() - 1]);
            windows.extend(state.at_mark(mark, 1, LIMITS, &None));
        }
        let sizes: Vec<_> = windows
            .iter()
            .map(|window| (window.start, window.pages))
            .collect();
        assert_eq!(sizes, [(0, 4), (4, 8), (12, 16), (28, 32), (60, 32)]);
    }

    #[test]
    fn a_read_longer_than_the_window_is_read_as_a_whole() {
        let mut state = ReadAhead::default();
        let window = state.at_missing(0, 256, LIMITS, &None);
        assert_eq!((window.start, window.pages), (0, 256));
    }

    #[test]
    fn a_random_read_takes_its_own_pages_alone() {
        let mut state = ReadAhead::default();
        let window = state.at_missing(1000, 4, LIMITS, &None);
        assert_eq!(
            window,
            Window {
                start: 1000,
                pages: 4,
                lookahead: 0
            }
        );
    }

    #[test]
    fn without_read_ahead_each_page_is_read_alone() {
        let limits = ReadAheadLimits { most: 0, ..LIMITS };
        let window = ReadAhead::default().at_missing(0, 256, limits, &None);
        assert_eq!(
            window,
            Window {
                start: 0,
                pages: 1,
                lookahead: 0
            }
        );
    }
}
