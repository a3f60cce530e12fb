//! The messages between the lab's kernel and the calendar, in the byte order of the machine. They are those of the
//! kernel's changes (`python/spindle/lab/image/lab_clock.h`), not of `um_timetravel.h`: one question and one answer
//! replace the seven exchanges that a request takes there.

use crate::error::LabError;

/// Kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Operation {
    /// The kernel introduces itself. The answer has the time of day and the lookahead.
    Start = 1,
    /// Rings were kicked, and the kernel goes on.
    Kick = 2,
    /// The kernel waits until it may run. The answer comes then, with the interrupts.
    Wait = 3,
    /// The kernel has a message for a device, which it sends after the answer.
    Device = 4,
}

/// New entries in a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kick {
    /// When they were made, nanoseconds.
    pub time_ns: u64,
    /// Place of the device.
    pub device: u16,
    /// Ring of the device.
    pub ring: u16,
    /// Index of the available ring at that time.
    pub available: u16,
}

impl Kick {
    const LEN: usize = 16;

    fn parse(bytes: &[u8]) -> Self {
        Self {
            time_ns: u64_at(bytes, 0),
            device: u16_at(bytes, 8),
            ring: u16_at(bytes, 10),
            available: u16_at(bytes, 12),
        }
    }
}

/// A message of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Kind.
    pub operation: Operation,
    /// The kernel's time, nanoseconds.
    pub now_ns: u64,
    /// When a kernel that waits wants to run at the latest; of [`Operation::Device`], the place of the device.
    pub request: u64,
    /// The kicks since the last message, in the order in which they were made.
    pub kicks: Vec<Kick>,
}

impl Message {
    const HEADER: usize = 24;
    /// Most kicks of one message.
    pub const MOST_KICKS: usize = 64;
    /// Bytes of the longest message.
    pub const LONGEST: usize = Self::HEADER + Self::MOST_KICKS * Kick::LEN;

    /// Reads the message at the start of `bytes` and its length; `None` if it is not complete.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, LabError> {
        let Some(header) = bytes.first_chunk::<{ Self::HEADER }>() else {
            return Ok(None);
        };
        let operation = match u32_at(header, 0) {
            1 => Operation::Start,
            2 => Operation::Kick,
            3 => Operation::Wait,
            4 => Operation::Device,
            code => return Err(broken(format!("operation {code} is unknown"))),
        };
        let count = u32_at(header, 4) as usize;
        if count > Self::MOST_KICKS {
            return Err(broken(format!("{count} kicks in a message")));
        }
        let len = Self::HEADER + count * Kick::LEN;
        Ok(bytes.get(Self::HEADER..len).map(|kicks| {
            let message = Self {
                operation,
                now_ns: u64_at(header, 8),
                request: u64_at(header, 16),
                kicks: kicks.chunks_exact(Kick::LEN).map(Kick::parse).collect(),
            };
            (message, len)
        }))
    }

    /// The message as it is sent.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::HEADER + self.kicks.len() * Kick::LEN);
        bytes.extend((self.operation as u32).to_ne_bytes());
        bytes.extend((self.kicks.len() as u32).to_ne_bytes());
        bytes.extend(self.now_ns.to_ne_bytes());
        bytes.extend(self.request.to_ne_bytes());
        for kick in &self.kicks {
            bytes.extend(kick.time_ns.to_ne_bytes());
            for word in [kick.device, kick.ring, kick.available, 0] {
                bytes.extend(word.to_ne_bytes());
            }
        }
        bytes
    }
}

/// Requests that a device has returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupt {
    /// Place of the device.
    pub device: u16,
    /// Ring of the device.
    pub ring: u16,
}

/// The answer to every message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// When the kernel runs; at the start, the time of day. Nanoseconds.
    pub time_ns: u64,
    /// Up to but not including this time the kernel may advance its clock alone; at the start, the lookahead: for so
    /// long after a kick no device returns a request. Nanoseconds.
    pub free_until_ns: u64,
    /// The interrupts for a kernel that waited.
    pub interrupts: Vec<Interrupt>,
}

impl Answer {
    const HEADER: usize = 24;
    /// Most interrupts of one answer.
    pub const MOST_INTERRUPTS: usize = 256;

    /// The answer as it is sent.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::HEADER + 4 * self.interrupts.len());
        bytes.extend((self.interrupts.len() as u32).to_ne_bytes());
        bytes.extend(0_u32.to_ne_bytes());
        bytes.extend(self.time_ns.to_ne_bytes());
        bytes.extend(self.free_until_ns.to_ne_bytes());
        for interrupt in &self.interrupts {
            bytes.extend(interrupt.device.to_ne_bytes());
            bytes.extend(interrupt.ring.to_ne_bytes());
        }
        bytes
    }

    /// Reads an answer.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let header = bytes.first_chunk::<{ Self::HEADER }>()?;
        let end = Self::HEADER + 4 * u32_at(header, 0) as usize;
        let interrupts = bytes.get(Self::HEADER..end)?.chunks_exact(4);
        Some(Self {
            time_ns: u64_at(header, 8),
            free_until_ns: u64_at(header, 16),
            interrupts: interrupts
                .map(|bytes| Interrupt {
                    device: u16_at(bytes, 0),
                    ring: u16_at(bytes, 2),
                })
                .collect(),
        })
    }
}

fn broken(problem: String) -> LabError {
    LabError::protocol("time travel", problem)
}

fn number_at<const LEN: usize>(bytes: &[u8], at: usize) -> [u8; LEN] {
    let mut number = [0; LEN];
    number.copy_from_slice(&bytes[at..at + LEN]);
    number
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes(number_at(bytes, at))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(number_at(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(number_at(bytes, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kick(device: u16) -> Kick {
        Kick {
            time_ns: u64::MAX - 3,
            device,
            ring: 2,
            available: 0xfffe,
        }
    }

    #[test]
    fn a_message_survives_the_wire() {
        for operation in [
            Operation::Start,
            Operation::Kick,
            Operation::Wait,
            Operation::Device,
        ] {
            let message = Message {
                operation,
                now_ns: 77,
                request: u64::MAX,
                kicks: vec![kick(1), kick(300)],
            };
            let mut bytes = message.to_bytes();
            let len = bytes.len();
            bytes.push(9);
            assert_eq!(Message::parse(&bytes).unwrap(), Some((message, len)));
            assert_eq!(Message::parse(&bytes[..len - 1]).unwrap(), None);
        }
    }

    #[test]
    fn an_answer_survives_the_wire() {
        let answer = Answer {
            time_ns: 5,
            free_until_ns: 6,
            interrupts: vec![Interrupt { device: 7, ring: 1 }],
        };
        assert_eq!(Answer::parse(&answer.to_bytes()), Some(answer));
        assert_eq!(Answer::parse(&[0; 23]), None);
    }

    #[test]
    fn an_unknown_operation_and_endless_kicks_are_errors() {
        let mut bytes = [0; 24];
        bytes[0] = 9;
        assert!(Message::parse(&bytes).is_err());
        bytes[0] = 3;
        bytes[4] = 65;
        assert!(Message::parse(&bytes).is_err());
    }
}
