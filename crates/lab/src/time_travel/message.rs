//! The messages of `um_timetravel.h`: 16 bytes in the byte order of the machine.

/// Kind of a message (`enum um_timetravel_ops`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Operation {
    /// Answer to any other message.
    Ack = 0,
    /// The kernel introduces itself.
    Start = 1,
    /// The kernel asks to run at a time; replaces its earlier request.
    Request = 2,
    /// The kernel waits until it may run.
    Wait = 3,
    /// The kernel asks for the time, which the answer carries.
    Get = 4,
    /// The kernel reports its own time.
    Update = 5,
    /// The calendar lets the kernel run.
    Run = 6,
    /// The calendar lets the kernel advance its clock alone, up to but not including a time.
    FreeUntil = 7,
    /// The kernel asks for the time of day, which the answer carries.
    TimeOfDay = 8,
}

impl Operation {
    fn parse(code: u32) -> Option<Self> {
        [
            Self::Ack,
            Self::Start,
            Self::Request,
            Self::Wait,
            Self::Get,
            Self::Update,
            Self::Run,
            Self::FreeUntil,
            Self::TimeOfDay,
        ]
        .into_iter()
        .find(|operation| *operation as u32 == code)
    }
}

/// One message (`struct um_timetravel_msg`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Kind.
    pub operation: Operation,
    /// Number that the answer repeats.
    pub sequence: u32,
    /// Time, nanoseconds.
    pub time_ns: u64,
}

impl Message {
    /// Bytes of a message.
    pub const LEN: usize = 16;

    /// Reads a message; the code of the operation if it is unknown.
    pub fn from_bytes(bytes: [u8; Self::LEN]) -> Result<Self, u32> {
        let word = |at: usize| {
            u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let mut time = [0; 8];
        time.copy_from_slice(&bytes[8..]);
        Ok(Self {
            operation: Operation::parse(word(0)).ok_or(word(0))?,
            sequence: word(4),
            time_ns: u64::from_ne_bytes(time),
        })
    }

    /// The message as it is sent.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..4].copy_from_slice(&(self.operation as u32).to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.sequence.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.time_ns.to_ne_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_survives_the_wire() {
        for code in 0..=8 {
            let message = Message {
                operation: Operation::parse(code).unwrap(),
                sequence: 7 + code,
                time_ns: u64::MAX - 3,
            };
            assert_eq!(Message::from_bytes(message.to_bytes()), Ok(message));
        }
    }

    #[test]
    fn an_unknown_operation_is_an_error() {
        let mut bytes = [0; Message::LEN];
        bytes[..4].copy_from_slice(&9_u32.to_ne_bytes());
        assert_eq!(Message::from_bytes(bytes), Err(9));
    }
}
