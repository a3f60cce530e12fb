//! The messages of vhost-user that the kernel sends.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use crate::virtio::Region;

/// `VHOST_USER_F_PROTOCOL_FEATURES`: there are protocol features.
pub(crate) const PROTOCOL_FEATURES: u64 = 1 << 30;

/// Protocol features of every back end here: MQ, REPLY_ACK, CONFIG.
pub(crate) const OUR_PROTOCOL: u64 = 1 | 1 << 3 | 1 << 9;
/// Those of one that is notified in band: BACKEND_REQ, INBAND_NOTIFICATIONS.
pub(crate) const IN_BAND: u64 = 1 << 5 | 1 << 14;

const VERSION: u32 = 1;
const REPLY: u32 = 1 << 2;
const NEED_REPLY: u32 = 1 << 3;
/// `VHOST_USER_BACKEND_VRING_CALL`.
const RING_CALL: u32 = 4;
/// `VHOST_USER_GET_VRING_BASE`.
pub(crate) const GET_RING_BASE: u32 = 11;
/// Longest payload of a request.
const LONGEST: u32 = 4096;
/// Bits of a ring's index in `SET_VRING_KICK`, `_CALL` and `_ERR`; the other bit says that no descriptor comes along.
const INDEX: u64 = 0xff;
const NO_DESCRIPTOR: u64 = 1 << 8;

/// The head of every message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Number of the request.
    pub request: u32,
    /// Flags.
    pub flags: u32,
    /// Bytes of the payload.
    pub size: u32,
}

impl Header {
    /// Bytes of a header.
    pub const LEN: usize = 12;

    /// Reads a header.
    pub fn parse(bytes: [u8; Self::LEN]) -> Result<Self, String> {
        let header = Self {
            request: word(&bytes, 0),
            flags: word(&bytes, 4),
            size: word(&bytes, 8),
        };
        if header.flags & 3 != VERSION {
            return Err(format!(
                "version {} of vhost-user, not {VERSION}",
                header.flags & 3
            ));
        }
        if header.size > LONGEST {
            return Err(format!("a payload of {} bytes", header.size));
        }
        Ok(header)
    }

    /// True if the front end waits for a status.
    #[must_use]
    pub fn needs_reply(self) -> bool {
        self.flags & NEED_REPLY != 0
    }
}

/// The answer to a request.
pub(crate) fn reply(request: u32, payload: &[u8]) -> Vec<u8> {
    message(request, VERSION | REPLY, payload)
}

/// An interrupt for a ring, to be answered.
pub(crate) fn ring_call(index: u32) -> Vec<u8> {
    let mut payload = [0; 8];
    payload[..4].copy_from_slice(&index.to_ne_bytes());
    message(RING_CALL, VERSION | NEED_REPLY, &payload)
}

fn message(request: u32, flags: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(Header::LEN + payload.len());
    for word in [request, flags, payload.len() as u32] {
        bytes.extend_from_slice(&word.to_ne_bytes());
    }
    bytes.extend_from_slice(payload);
    bytes
}

/// The purpose of a ring's descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The front end has put something into the ring.
    Kick,
    /// The back end has returned something.
    Interrupt,
    /// The back end found the ring broken.
    Error,
}

/// A request of the front end.
#[derive(Debug)]
pub enum Request {
    /// Which features the device has.
    GetFeatures,
    /// The features in use.
    SetFeatures(u64),
    /// The front end is there.
    SetOwner,
    /// The front end's memory.
    SetMemory(Vec<Region>),
    /// Entries of a ring.
    SetRingSize {
        /// Ring.
        index: u32,
        /// Entries.
        size: u32,
    },
    /// Addresses of a ring.
    SetRingAddresses {
        /// Ring.
        index: u32,
        /// Descriptors.
        descriptors: u64,
        /// Used ring.
        used: u64,
        /// Available ring.
        available: u64,
    },
    /// Where a ring begins.
    SetRingBase {
        /// Ring.
        index: u32,
        /// Index of the available ring.
        base: u32,
    },
    /// Stop a ring, and say where it was.
    GetRingBase {
        /// Ring.
        index: u32,
    },
    /// The descriptor for kicks, interrupts or errors of a ring.
    SetRingDescriptor {
        /// Its purpose.
        purpose: Purpose,
        /// Ring.
        index: u32,
        /// The descriptor; without it, the back end polls.
        descriptor: Option<OwnedFd>,
    },
    /// A ring begins or ends to work.
    EnableRing,
    /// Which features of the protocol there are.
    GetProtocolFeatures,
    /// The features of the protocol in use.
    SetProtocolFeatures,
    /// Most rings.
    GetQueueCount,
    /// The socket for the back end's own requests.
    SetBackChannel(OwnedFd),
    /// Reads from the configuration space.
    GetConfig {
        /// First byte.
        offset: u32,
        /// Bytes.
        size: u32,
    },
    /// Writes to the configuration space: ignored, no device has anything to be written.
    SetConfig,
    /// There is something new in a ring.
    Kick {
        /// Ring.
        index: u32,
    },
}

impl Request {
    /// Reads a request; takes the descriptors that belong to it.
    pub fn parse(
        code: u32,
        payload: &[u8],
        descriptors: &mut VecDeque<OwnedFd>,
    ) -> Result<Self, String> {
        Ok(match code {
            1 => Self::GetFeatures,
            2 => Self::SetFeatures(long_at(payload, 0)?),
            // RESET_OWNER is out of date and changes nothing.
            3 | 4 => Self::SetOwner,
            5 => Self::SetMemory(regions(payload, descriptors)?),
            8 => Self::SetRingSize {
                index: word_at(payload, 0)?,
                size: word_at(payload, 4)?,
            },
            9 => Self::SetRingAddresses {
                index: word_at(payload, 0)?,
                descriptors: long_at(payload, 8)?,
                used: long_at(payload, 16)?,
                available: long_at(payload, 24)?,
            },
            10 => Self::SetRingBase {
                index: word_at(payload, 0)?,
                base: word_at(payload, 4)?,
            },
            GET_RING_BASE => Self::GetRingBase {
                index: word_at(payload, 0)?,
            },
            12..=14 => {
                let word = long_at(payload, 0)?;
                let descriptor = match word & NO_DESCRIPTOR {
                    0 => descriptors.pop_front(),
                    _ => None,
                };
                Self::SetRingDescriptor {
                    purpose: match code {
                        12 => Purpose::Kick,
                        13 => Purpose::Interrupt,
                        _ => Purpose::Error,
                    },
                    index: (word & INDEX) as u32,
                    descriptor,
                }
            }
            15 => Self::GetProtocolFeatures,
            16 => Self::SetProtocolFeatures,
            17 => Self::GetQueueCount,
            18 => Self::EnableRing,
            21 => Self::SetBackChannel(
                descriptors
                    .pop_front()
                    .ok_or("a back channel without a descriptor")?,
            ),
            24 => Self::GetConfig {
                offset: word_at(payload, 0)?,
                size: word_at(payload, 4)?,
            },
            25 => Self::SetConfig,
            35 => Self::Kick {
                index: word_at(payload, 0)?,
            },
            _ => return Err(format!("request {code} is unknown")),
        })
    }
}

fn regions(payload: &[u8], descriptors: &mut VecDeque<OwnedFd>) -> Result<Vec<Region>, String> {
    let count = word_at(payload, 0)? as usize;
    (0..count)
        .map(|place| {
            let at = 8 + 32 * place;
            Ok(Region {
                address: long_at(payload, at)?,
                len: long_at(payload, at + 8)?,
                user_address: long_at(payload, at + 16)?,
                file_offset: long_at(payload, at + 24)?,
                file: descriptors
                    .pop_front()
                    .ok_or("a region of memory without a descriptor")?,
            })
        })
        .collect()
}

fn word(bytes: &[u8; Header::LEN], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn word_at(payload: &[u8], at: usize) -> Result<u32, String> {
    number_at(payload, at).map(u32::from_ne_bytes)
}

fn long_at(payload: &[u8], at: usize) -> Result<u64, String> {
    number_at(payload, at).map(u64::from_ne_bytes)
}

fn number_at<const LEN: usize>(payload: &[u8], at: usize) -> Result<[u8; LEN], String> {
    let found = payload
        .get(at..at + LEN)
        .and_then(|bytes| bytes.try_into().ok());
    found.ok_or_else(|| format!("a payload of {} bytes is too short", payload.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_another_version_and_endless_payloads_are_refused() {
        let header = |flags: u32, size: u32| {
            let mut bytes = [0; Header::LEN];
            bytes[4..8].copy_from_slice(&flags.to_ne_bytes());
            bytes[8..].copy_from_slice(&size.to_ne_bytes());
            Header::parse(bytes)
        };
        assert!(header(VERSION | NEED_REPLY, 8).unwrap().needs_reply());
        assert!(header(2, 8).is_err());
        assert!(header(VERSION, 1 << 30).is_err());
    }

    #[test]
    fn a_short_payload_an_unknown_request_and_a_missing_descriptor_are_errors() {
        let mut none = VecDeque::new();
        assert!(Request::parse(9, &[0; 16], &mut none).is_err());
        assert!(Request::parse(99, &[], &mut none).is_err());
        assert!(Request::parse(21, &[], &mut none).is_err());
        let one_region = [&1_u32.to_ne_bytes()[..], &[0; 36]].concat();
        assert!(Request::parse(5, &one_region, &mut none).is_err());
    }

    #[test]
    fn an_interrupt_names_its_ring_and_asks_for_an_answer() {
        let bytes = ring_call(3);
        let header = Header::parse(bytes[..Header::LEN].try_into().unwrap()).unwrap();
        assert_eq!((header.request, header.size), (RING_CALL, 8));
        assert!(header.needs_reply());
        assert_eq!(bytes[Header::LEN..], [3_u32.to_ne_bytes(), [0; 4]].concat());
    }
}
