//! Values of one kind that come and go, without allocation once the largest number has been reached.

/// Values named by numbers that are used again.
#[derive(Debug, Clone)]
pub(crate) struct Slab<T> {
    values: Vec<T>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) fn with_capacity(capacity: usize) -> Slab<T> {
        Slab {
            values: Vec::with_capacity(capacity),
            free: Vec::with_capacity(capacity),
        }
    }

    #[inline]
    pub(crate) fn add(&mut self, value: T) -> u32 {
        match self.free.pop() {
            Some(id) => {
                self.values[id as usize] = value;
                id
            }
            None => {
                self.values.push(value);
                self.values.len() as u32 - 1
            }
        }
    }

    /// The number may be used again; the value stays readable until it is.
    #[inline]
    pub(crate) fn remove(&mut self, id: u32) {
        self.free.push(id);
    }

    #[inline]
    pub(crate) fn get(&self, id: u32) -> &T {
        &self.values[id as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: u32) -> &mut T {
        &mut self.values[id as usize]
    }

    /// All values, also those removed.
    #[inline]
    pub(crate) fn as_slice(&self) -> &[T] {
        &self.values
    }
}
