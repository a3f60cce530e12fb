//! virtio-console with one port: output leaves at once and takes no virtual time, input comes when there is some.

use std::collections::VecDeque;

use super::{Device, INDIRECT, Rings, VERSION_1};
use crate::virtio::{Chain, RingError};

/// Number of virtio-console.
const KIND: u32 = 3;

const INPUT: usize = 0;
const OUTPUT: usize = 1;

/// A console.
#[derive(Debug, Default)]
pub struct Console {
    /// Bytes for the kernel.
    input: VecDeque<u8>,
    /// Bytes of the kernel.
    output: Vec<u8>,
    /// Buffers of the kernel for input.
    room: VecDeque<Chain>,
    /// True if the kernel wants an interrupt for output that was taken.
    has_sent: bool,
    /// When something is to be done.
    due_ns: Option<u64>,
}

impl Console {
    /// Gives the kernel bytes to read.
    pub fn write(&mut self, now_ns: u64, bytes: &[u8]) {
        self.input.extend(bytes);
        if !self.room.is_empty() && !self.input.is_empty() {
            self.due_ns = Some(now_ns);
        }
    }

    /// Takes what the kernel has written.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    fn collect(&mut self, chain: &Chain, rings: &mut Rings<'_>) -> Result<(), RingError> {
        for buffer in chain.buffers.iter().filter(|buffer| !buffer.is_writable) {
            let start = self.output.len();
            self.output.resize(start + buffer.len as usize, 0);
            rings
                .memory()
                .read(buffer.address, &mut self.output[start..])?;
        }
        rings.push(OUTPUT, chain.head, 0)
    }

    fn fill(&mut self, chain: &Chain, rings: &mut Rings<'_>) -> Result<(), RingError> {
        let mut written = 0;
        for buffer in chain.buffers.iter().filter(|buffer| buffer.is_writable) {
            let count = self.input.len().min(buffer.len as usize);
            let bytes: Vec<u8> = self.input.drain(..count).collect();
            rings.memory().write(buffer.address, &bytes)?;
            written += count as u32;
        }
        rings.push(INPUT, chain.head, written)
    }
}

impl Device for Console {
    fn kind(&self) -> u32 {
        KIND
    }

    fn rings(&self) -> usize {
        2
    }

    fn features(&self) -> u64 {
        VERSION_1 | INDIRECT
    }

    fn config(&self) -> &[u8] {
        &[]
    }

    fn kick(&mut self, ring: usize, now_ns: u64, rings: &mut Rings<'_>) -> Result<(), RingError> {
        while let Some(chain) = rings.pop(ring)? {
            match ring {
                OUTPUT => self.collect(&chain, rings)?,
                _ => self.room.push_back(chain),
            }
        }
        self.has_sent |= !rings.interrupts().is_empty();
        if self.has_sent || (!self.input.is_empty() && !self.room.is_empty()) {
            self.due_ns = Some(now_ns);
        }
        Ok(())
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.due_ns
    }

    fn advance(&mut self, now_ns: u64, rings: &mut Rings<'_>) -> Result<(), RingError> {
        if self.due_ns.is_none_or(|due| due > now_ns) {
            return Ok(());
        }
        self.due_ns = None;
        if std::mem::take(&mut self.has_sent) {
            rings.interrupt(OUTPUT);
        }
        while !self.input.is_empty() {
            let Some(chain) = self.room.pop_front() else {
                break;
            };
            self.fill(&chain, rings)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::virtio::Ring;
    use crate::virtio::tests::{Driver, memory, readable, writable};

    const DATA: u64 = 0x1_0000;

    #[test]
    fn output_leaves_at_once_and_input_waits_for_room() {
        let (memory, _) = memory(0x4000, 0x2_0000);
        let mut input = Driver::new(memory.clone(), 0x4000, 8);
        let mut output = Driver::new(memory.clone(), 0x8000, 8);
        let mut rings: [Ring; 2] = [input.ring(), output.ring()];
        let mut console = Console::default();

        memory.write(DATA, b"hello").unwrap();
        output.add(&[readable(DATA, 5)]);
        console
            .kick(OUTPUT, 10, &mut Rings::new(&memory, &mut rings))
            .unwrap();
        assert_eq!(console.take_output(), b"hello");
        assert_eq!(output.returned().len(), 1);

        console.write(20, b"abc");
        input.add(&[writable(DATA, 2)]);
        input.add(&[writable(DATA + 16, 8)]);
        console
            .kick(INPUT, 30, &mut Rings::new(&memory, &mut rings))
            .unwrap();
        assert_eq!(console.next_event_ns(), Some(30));
        let mut of_input = Rings::new(&memory, &mut rings);
        console.advance(30, &mut of_input).unwrap();
        assert_eq!(of_input.interrupts()[0], INPUT as u32);
        let lengths: Vec<u32> = input
            .returned()
            .into_iter()
            .map(|(_, written)| written)
            .collect();
        assert_eq!(lengths, [2, 1]);
        let mut bytes = [0; 2];
        memory.read(DATA, &mut bytes).unwrap();
        assert_eq!(&bytes, b"ab");
        assert_eq!(console.next_event_ns(), None);
    }
}
