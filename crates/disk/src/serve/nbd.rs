//! The NBD protocol (`doc/proto.md` of the NBD project) as a server speaks it: fixed newstyle, simple replies. Bytes in,
//! requests and bytes out; no I/O.

use crate::disk::{Operation, Request};

const MAGIC: u64 = u64::from_be_bytes(*b"NBDMAGIC");
const HAVE_OPTION: u64 = u64::from_be_bytes(*b"IHAVEOPT");
const OPTION_REPLY: u64 = 0x3_e889_0455_65a9;
const REQUEST: u32 = 0x2560_9513;
const SIMPLE_REPLY: u32 = 0x6744_6698;

/// Handshake flags: fixed newstyle, no zeroes behind the answer to `EXPORT_NAME`.
const FIXED_NEWSTYLE: u16 = 1;
const NO_ZEROES: u16 = 2;

const OPTION_EXPORT_NAME: u32 = 1;
const OPTION_ABORT: u32 = 2;
const OPTION_LIST: u32 = 3;
const OPTION_INFO: u32 = 6;
const OPTION_GO: u32 = 7;

const REPLY_ACK: u32 = 1;
const REPLY_SERVER: u32 = 2;
const REPLY_INFO: u32 = 3;
const REPLY_UNSUPPORTED: u32 = 1 << 31 | 1;
const REPLY_INVALID: u32 = 1 << 31 | 3;

const INFO_EXPORT: u16 = 0;
const INFO_BLOCK_SIZE: u16 = 3;

/// Transmission flags.
const HAS_FLAGS: u16 = 1;
const SEND_FLUSH: u16 = 1 << 2;
const SEND_FUA: u16 = 1 << 3;
const ROTATIONAL: u16 = 1 << 4;
const SEND_TRIM: u16 = 1 << 5;
const SEND_WRITE_ZEROES: u16 = 1 << 6;
const CAN_MULTI_CONN: u16 = 1 << 8;

/// Bytes of an option without its data.
const OPTION_LEN: usize = 16;
/// Bytes of a request without its data.
const REQUEST_LEN: usize = 28;
/// Flag of a request: on the medium before it is done.
const FUA: u16 = 1;

/// Longest option of the handshake: names have 4096 bytes at most.
const LONGEST_OPTION: usize = 16 << 10;
/// Longest read or write, as the protocol's text recommends for servers.
pub const LONGEST: u32 = 32 << 20;

/// Errors of replies (`errno` of Linux).
const EIO: u32 = 5;
const EINVAL: u32 = 22;
const ENOSPC: u32 = 28;

/// The disk as clients see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Export {
    /// Bytes.
    pub bytes: u64,
    /// True for a drive with moving heads.
    pub is_rotational: bool,
}

/// A request of a client, with its data if it is a write.
#[derive(Debug, PartialEq, Eq)]
pub struct NbdRequest {
    /// The client's name for it.
    pub cookie: u64,
    /// The request.
    pub request: Request,
    /// Bytes to be written.
    pub data: Vec<u8>,
}

/// The next that a client wants.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// More bytes are needed.
    More,
    /// A request, whose range may be outside of the disk.
    Request(NbdRequest),
    /// The connection ends: the client asked for it, or broke the protocol as it says here.
    End(Option<&'static str>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Flags,
    Options { has_zeroes: bool },
    Transmission,
}

/// One client's connection.
#[derive(Debug)]
pub struct Protocol {
    export: Export,
    state: State,
    incoming: Vec<u8>,
    /// Bytes of `incoming` that were dealt with.
    taken: usize,
    /// Bytes for the client.
    pub outgoing: Vec<u8>,
}

impl Protocol {
    /// A connection that has just been made.
    #[must_use]
    pub fn new(export: Export) -> Self {
        let mut outgoing = MAGIC.to_be_bytes().to_vec();
        outgoing.extend(HAVE_OPTION.to_be_bytes());
        outgoing.extend((FIXED_NEWSTYLE | NO_ZEROES).to_be_bytes());
        Self {
            export,
            state: State::Flags,
            incoming: Vec::new(),
            taken: 0,
            outgoing,
        }
    }

    /// Takes bytes of the client.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.incoming.drain(..self.taken);
        self.taken = 0;
        self.incoming.extend_from_slice(bytes);
    }

    /// Goes on as far as the bytes received allow.
    pub fn step(&mut self) -> Step {
        loop {
            let goes_on = match self.state {
                State::Flags => self.take_flags(),
                State::Options { has_zeroes } => self.take_option(has_zeroes),
                State::Transmission => self.take_request(),
            };
            if let Some(step) = goes_on {
                return step;
            }
        }
    }

    /// The next `len` bytes, if they are there; they stay there.
    fn peek(&self, len: usize) -> Option<&[u8]> {
        self.incoming[self.taken..].get(..len)
    }

    fn take_flags(&mut self) -> Option<Step> {
        let Some(flags) = self.peek(4).map(|bytes| u32_at(bytes, 0)) else {
            return Some(Step::More);
        };
        self.taken += 4;
        let known = u32::from(FIXED_NEWSTYLE | NO_ZEROES);
        self.state = State::Options {
            has_zeroes: flags & u32::from(NO_ZEROES) == 0,
        };
        let is_right = flags & !known == 0 && flags & u32::from(FIXED_NEWSTYLE) != 0;
        (!is_right).then_some(Step::End(Some("flags that are not fixed newstyle")))
    }

    /// `None` if the option was answered.
    fn take_option(&mut self, has_zeroes: bool) -> Option<Step> {
        let Some(head) = self.peek(OPTION_LEN) else {
            return Some(Step::More);
        };
        let (magic, option, len) = (u64_at(head, 0), u32_at(head, 8), u32_at(head, 12) as usize);
        if magic != HAVE_OPTION || len > LONGEST_OPTION {
            return Some(Step::End(Some("an option without its magic, or too long")));
        }
        let Some(whole) = self.peek(OPTION_LEN + len) else {
            return Some(Step::More);
        };
        let data = whole[OPTION_LEN..].to_vec();
        self.taken += OPTION_LEN + len;
        match option {
            // Any name is this disk.
            OPTION_EXPORT_NAME => {
                self.outgoing.extend(self.export_info());
                if has_zeroes {
                    self.outgoing.extend([0; 124]);
                }
                self.state = State::Transmission;
            }
            OPTION_ABORT => {
                self.reply(option, REPLY_ACK, &[]);
                return Some(Step::End(None));
            }
            OPTION_LIST if data.is_empty() => {
                self.reply(option, REPLY_SERVER, &[0; 4]);
                self.reply(option, REPLY_ACK, &[]);
            }
            OPTION_INFO | OPTION_GO if is_info_request(&data) => {
                let export = [&INFO_EXPORT.to_be_bytes()[..], &self.export_info()].concat();
                self.reply(option, REPLY_INFO, &export);
                let mut sizes = INFO_BLOCK_SIZE.to_be_bytes().to_vec();
                for size in [1, 4096, LONGEST] {
                    sizes.extend(size.to_be_bytes());
                }
                self.reply(option, REPLY_INFO, &sizes);
                self.reply(option, REPLY_ACK, &[]);
                if option == OPTION_GO {
                    self.state = State::Transmission;
                }
            }
            OPTION_LIST | OPTION_INFO | OPTION_GO => self.reply(option, REPLY_INVALID, &[]),
            _ => self.reply(option, REPLY_UNSUPPORTED, &[]),
        }
        None
    }

    /// Size and transmission flags.
    fn export_info(&self) -> [u8; 10] {
        let rotational = if self.export.is_rotational {
            ROTATIONAL
        } else {
            0
        };
        let flags = HAS_FLAGS
            | SEND_FLUSH
            | SEND_FUA
            | SEND_TRIM
            | SEND_WRITE_ZEROES
            | CAN_MULTI_CONN
            | rotational;
        let mut info = [0; 10];
        info[..8].copy_from_slice(&self.export.bytes.to_be_bytes());
        info[8..].copy_from_slice(&flags.to_be_bytes());
        info
    }

    fn reply(&mut self, option: u32, kind: u32, data: &[u8]) {
        self.outgoing.extend(OPTION_REPLY.to_be_bytes());
        for word in [option, kind, data.len() as u32] {
            self.outgoing.extend(word.to_be_bytes());
        }
        self.outgoing.extend_from_slice(data);
    }

    /// `None` if a request was answered at once.
    fn take_request(&mut self) -> Option<Step> {
        let Some(head) = self.peek(REQUEST_LEN) else {
            return Some(Step::More);
        };
        let (magic, flags, kind) = (u32_at(head, 0), u16_at(head, 4), u16_at(head, 6));
        let (cookie, offset, len) = (u64_at(head, 8), u64_at(head, 16), u32_at(head, 24));
        let operation = match (magic, kind) {
            (REQUEST, 0) if len <= LONGEST => Operation::Read,
            (REQUEST, 1) if len <= LONGEST => Operation::Write,
            (REQUEST, 3) => Operation::Flush,
            (REQUEST, 4) => Operation::Discard,
            (REQUEST, 6) => Operation::WriteZeroes,
            (REQUEST, 2) => return Some(Step::End(None)),
            // Its bytes cannot be skipped within reason.
            (REQUEST, 1) => return Some(Step::End(Some("a write that is too long"))),
            (REQUEST, _) => {
                self.taken += REQUEST_LEN;
                self.fail(cookie, EINVAL);
                return None;
            }
            _ => return Some(Step::End(Some("a request without its magic"))),
        };
        let data_len = if operation == Operation::Write {
            len as usize
        } else {
            0
        };
        let Some(whole) = self.peek(REQUEST_LEN + data_len) else {
            return Some(Step::More);
        };
        let data = whole[REQUEST_LEN..].to_vec();
        self.taken += REQUEST_LEN + data_len;
        let (offset, len) = match operation {
            Operation::Flush => (0, 0),
            _ => (offset, u64::from(len)),
        };
        Some(Step::Request(NbdRequest {
            cookie,
            request: Request {
                operation,
                offset,
                len,
                force_unit_access: flags & FUA != 0,
            },
            data,
        }))
    }

    fn fail(&mut self, cookie: u64, error: u32) {
        self.outgoing.extend(SIMPLE_REPLY.to_be_bytes());
        self.outgoing.extend(error.to_be_bytes());
        self.outgoing.extend(cookie.to_be_bytes());
    }

    /// Answers a request that was done: bytes of a read.
    pub fn done(&mut self, cookie: u64, data: &[u8]) {
        self.fail(cookie, 0);
        self.outgoing.extend_from_slice(data);
    }

    /// Answers a request whose contents failed.
    pub fn failed(&mut self, cookie: u64) {
        self.fail(cookie, EIO);
    }

    /// Answers a request whose range is not on the disk.
    pub fn outside(&mut self, cookie: u64, operation: Operation) {
        let is_write = matches!(operation, Operation::Write | Operation::WriteZeroes);
        self.fail(cookie, if is_write { ENOSPC } else { EINVAL });
    }
}

/// A name and a list of items of information, all of which must fill the option.
fn is_info_request(data: &[u8]) -> bool {
    let Some(name) = data.first_chunk::<4>() else {
        return false;
    };
    let items_at = 4_usize.saturating_add(u32::from_be_bytes(*name) as usize);
    let Some(items) = data.get(items_at..).filter(|rest| rest.len() >= 2) else {
        return false;
    };
    items.len() == 2 + 2 * usize::from(u16_at(items, 0))
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    (u32::from(u16_at(bytes, at)) << 16) | u32::from(u16_at(bytes, at + 2))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    (u64::from(u32_at(bytes, at)) << 32) | u64::from(u32_at(bytes, at + 4))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EXPORT: Export = Export {
        bytes: 1 << 30,
        is_rotational: true,
    };

    fn option(code: u32, data: &[u8]) -> Vec<u8> {
        let mut bytes = HAVE_OPTION.to_be_bytes().to_vec();
        bytes.extend(code.to_be_bytes());
        bytes.extend((data.len() as u32).to_be_bytes());
        bytes.extend_from_slice(data);
        bytes
    }

    fn request(kind: u16, offset: u64, len: u32, data: &[u8]) -> Vec<u8> {
        let mut bytes = REQUEST.to_be_bytes().to_vec();
        bytes.extend(FUA.to_be_bytes());
        bytes.extend(kind.to_be_bytes());
        bytes.extend(7_u64.to_be_bytes());
        bytes.extend(offset.to_be_bytes());
        bytes.extend(len.to_be_bytes());
        bytes.extend_from_slice(data);
        bytes
    }

    /// A connection that has chosen the disk, with nothing left to send.
    fn chosen() -> Protocol {
        let mut protocol = Protocol::new(EXPORT);
        protocol.receive(&3_u32.to_be_bytes());
        protocol.receive(&option(OPTION_GO, &[0; 6]));
        assert_eq!(protocol.step(), Step::More);
        protocol.outgoing.clear();
        protocol
    }

    #[test]
    fn a_write_is_whole_only_with_its_last_byte() {
        let mut protocol = chosen();
        let bytes = request(1, 512, 4, &[1, 2, 3, 4]);
        for byte in &bytes[..bytes.len() - 1] {
            protocol.receive(&[*byte]);
            assert_eq!(protocol.step(), Step::More);
        }
        protocol.receive(&bytes[bytes.len() - 1..]);
        let Step::Request(found) = protocol.step() else {
            panic!("no request");
        };
        assert_eq!((found.cookie, found.data), (7, vec![1, 2, 3, 4]));
        assert_eq!((found.request.offset, found.request.len), (512, 4));
        assert!(found.request.force_unit_access);
    }

    #[test]
    fn the_old_way_to_choose_an_export_gets_its_124_zeroes() {
        let mut protocol = Protocol::new(EXPORT);
        protocol.outgoing.clear();
        protocol.receive(&1_u32.to_be_bytes());
        protocol.receive(&option(OPTION_EXPORT_NAME, b"any"));
        assert_eq!(protocol.step(), Step::More);
        assert_eq!(protocol.outgoing.len(), 134);
        assert_eq!(protocol.outgoing[..8], EXPORT.bytes.to_be_bytes());
    }

    #[test]
    fn unknown_options_and_requests_get_an_error_and_the_connection_goes_on() {
        let mut protocol = Protocol::new(EXPORT);
        protocol.receive(&3_u32.to_be_bytes());
        protocol.receive(&option(8, &[]));
        protocol.receive(&option(OPTION_GO, &[9; 6]));
        protocol.receive(&option(OPTION_GO, &[0; 6]));
        assert_eq!(protocol.step(), Step::More);
        protocol.outgoing.clear();
        protocol.receive(&request(99, 0, 512, &[]));
        protocol.receive(&request(0, 0, LONGEST + 1, &[]));
        protocol.receive(&request(3, 0, 0, &[]));
        assert!(matches!(protocol.step(), Step::Request(_)));
        assert_eq!(protocol.outgoing.len(), 32);
        assert_eq!(protocol.outgoing[4..8], EINVAL.to_be_bytes());
    }

    #[test]
    fn what_breaks_the_protocol_ends_the_connection() {
        for wrong in [request(1, 0, LONGEST + 1, &[]), vec![0x55; 28]] {
            let mut protocol = chosen();
            protocol.receive(&wrong);
            assert!(matches!(protocol.step(), Step::End(Some(_))));
        }
        let mut protocol = Protocol::new(EXPORT);
        protocol.receive(&0xff_u32.to_be_bytes());
        assert!(matches!(protocol.step(), Step::End(Some(_))));
        let mut protocol = chosen();
        protocol.receive(&request(2, 0, 0, &[]));
        assert_eq!(protocol.step(), Step::End(None));
    }

    proptest! {
        #[test]
        fn random_bytes_never_break_it(
            is_chosen in any::<bool>(),
            pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..80), 0..20),
            kinds in proptest::collection::vec((0_u16..9, any::<u64>(), any::<u32>()), 0..20),
        ) {
            let mut protocol = if is_chosen { chosen() } else { Protocol::new(EXPORT) };
            for (kind, offset, len) in kinds {
                protocol.receive(&request(kind, offset, len, &[]));
                protocol.step();
            }
            for piece in pieces {
                protocol.receive(&piece);
                while matches!(protocol.step(), Step::Request(_)) {}
            }
        }
    }
}
