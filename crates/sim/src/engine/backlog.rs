//! Values that wait to be handled at the same moment, first in, first out: it is empty again at the end of each moment.
//!
//! Unlike `VecDeque` it takes a value in place. The copy of one that was built elsewhere just before costs some 4 ns, as it
//! waits until each part has left the store buffer.

use std::ops::Index;

#[derive(Debug, Clone)]
pub(crate) struct Backlog<T> {
    values: Vec<T>,
    /// So many of them have left.
    gone: usize,
}

impl<T: Copy> Backlog<T> {
    pub(crate) fn with_capacity(capacity: usize) -> Backlog<T> {
        Backlog {
            values: Vec::with_capacity(capacity),
            gone: 0,
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, value: T) {
        self.values.push(value);
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.values.len() - self.gone
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The one that came first.
    #[inline]
    pub(crate) fn first(&self) -> Option<&T> {
        self.values.get(self.gone)
    }

    /// The one that came first leaves.
    #[inline]
    pub(crate) fn drop_first(&mut self) {
        self.gone += 1;
        if self.gone >= self.values.len() {
            self.values.clear();
            self.gone = 0;
        }
    }

    /// The one at this place leaves. Panics without one.
    pub(crate) fn remove(&mut self, at: usize) -> T {
        let value = self.values.remove(self.gone + at);
        if self.is_empty() {
            self.values.clear();
            self.gone = 0;
        }
        value
    }
}

impl<T: Copy> Index<usize> for Backlog<T> {
    type Output = T;

    #[inline]
    fn index(&self, at: usize) -> &T {
        &self.values[self.gone + at]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    #[test]
    fn it_is_a_line() {
        let mut line = Backlog::with_capacity(1);
        let mut expected = VecDeque::new();
        for step in 0..10_000_u32 {
            match step * 7919 % 11 {
                0..=5 => {
                    line.push(step);
                    expected.push_back(step);
                }
                6 | 7 if !expected.is_empty() => {
                    let at = step as usize % expected.len();
                    assert_eq!(Some(line.remove(at)), expected.remove(at));
                }
                8 => {
                    while expected.pop_front().is_some() {
                        line.drop_first();
                    }
                }
                _ if line.first().is_some() => {
                    line.drop_first();
                    expected.pop_front();
                }
                _ => {}
            }
            assert_eq!(line.first(), expected.front());
            assert_eq!(line.len(), expected.len());
            assert!((0..line.len()).all(|at| line[at] == expected[at]));
        }
        assert!(line.values.len() < 200, "what has left is forgotten");
    }
}
