//! The FUSE protocol (`include/uapi/linux/fuse.h`) for a file system of one file, `disk`. Bytes in, calls and bytes out;
//! no I/O.

use crate::disk::{Operation, Request};

const HEADER: usize = 40;
const ROOT: u64 = 1;
const DISK: u64 = 2;
const NAME: &[u8] = b"disk";

/// Version of the protocol, and the oldest that has all that is used here.
const MAJOR: u32 = 7;
const MINOR: u32 = 31;
const OLDEST_MINOR: u32 = 28;

/// `FUSE_ASYNC_READ`, `FUSE_BIG_WRITES`, `FUSE_ASYNC_DIO`, `FUSE_MAX_PAGES`: requests of up to 1 MiB, many at a time.
const FLAGS: u32 = 1 | 1 << 5 | 1 << 15 | 1 << 22;
/// Longest write.
const LONGEST: u32 = 1 << 20;
const PAGE: u32 = 4096;
/// Bytes of a buffer that every call fits into.
pub const CALL_BYTES: usize = LONGEST as usize + PAGE as usize;

/// `FOPEN_DIRECT_IO`, `FOPEN_PARALLEL_DIRECT_WRITES`: no page cache, and no lock around writes.
const OPEN_FLAGS: u32 = 1 | 1 << 6;

/// `FALLOC_FL_KEEP_SIZE`, `FALLOC_FL_PUNCH_HOLE`, `FALLOC_FL_ZERO_RANGE`.
const KEEP_SIZE: u32 = 1;
const PUNCH_HOLE: u32 = 2;
const ZERO_RANGE: u32 = 16;
/// `FATTR_SIZE`.
const SET_SIZE: u32 = 1 << 3;

const ENOENT: i32 = 2;
const EPERM: i32 = 1;
const EIO: i32 = 5;
const EINVAL: i32 = 22;
const ENOSPC: i32 = 28;
const ENOSYS: i32 = 38;
const EOPNOTSUPP: i32 = 95;
const EPROTO: i32 = 71;

/// The file as the kernel sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Volume {
    /// Bytes.
    pub bytes: u64,
    /// Owner.
    pub user: u32,
    /// Group.
    pub group: u32,
    /// Requests of the drive at a time.
    pub queue_depth: u32,
}

/// The outcome of a call.
#[derive(Debug, PartialEq, Eq)]
pub enum Call {
    /// An answer.
    Answer(Vec<u8>),
    /// Nothing.
    None,
    /// A request for the disk, with its data if it is a write.
    Request {
        /// The kernel's name for it.
        unique: u64,
        /// The request, inside of the disk.
        request: Request,
        /// Bytes to be written.
        data: Vec<u8>,
    },
}

/// Carries out a call. Bytes that are not a call get no answer: the kernel sends none.
#[must_use]
pub fn carry_out(volume: &Volume, bytes: &[u8]) -> Call {
    let call = Bytes(bytes);
    let Some(unique) = call.u64(8) else {
        return Call::None;
    };
    let (Some(code), Some(node), Some(body)) = (call.u32(4), call.u64(16), bytes.get(HEADER..))
    else {
        return Call::None;
    };
    let body = Bytes(body);
    let answer = match code {
        // FORGET, INTERRUPT, BATCH_FORGET
        2 | 36 | 42 => return Call::None,
        1 => lookup(volume, node, body.0),
        3 => attributes(volume, node),
        4 => set_attributes(volume, node, body),
        // OPEN, OPENDIR
        14 if node == DISK => Some(words(&[0, 0, OPEN_FLAGS, 0])),
        14 | 27 => Some(words(&[0; 4])),
        15 | 16 | 20 | 43 if node == DISK => {
            return match disk_request(volume, code, body) {
                Ok((request, _)) if request.operation == Operation::Read && request.len == 0 => {
                    Call::Answer(reply(unique, 0, &[]))
                }
                Ok((request, data)) => Call::Request {
                    unique,
                    request,
                    data,
                },
                Err(error) => Call::Answer(reply(unique, error, &[])),
            };
        }
        17 => Some(file_system(volume)),
        // RELEASE, RELEASEDIR, FSYNCDIR, DESTROY
        18 | 29 | 30 | 38 => Some(Vec::new()),
        26 => return init(volume, unique, body),
        28 => read_folder(body),
        // Among them FLUSH and ACCESS, which the kernel then does without.
        _ => return Call::Answer(reply(unique, ENOSYS, &[])),
    };
    Call::Answer(match answer {
        Some(payload) => reply(unique, 0, &payload),
        None if code == 4 => reply(unique, EPERM, &[]),
        None => reply(unique, ENOENT, &[]),
    })
}

/// The answer to a request that was done: bytes of a read, or `None` if the contents failed.
#[must_use]
pub fn done(unique: u64, request: &Request, data: Option<&[u8]>) -> Vec<u8> {
    match (data, request.operation) {
        (None, _) => reply(unique, EIO, &[]),
        (Some(_), Operation::Write) => reply(unique, 0, &words(&[request.len as u32, 0])),
        (Some(data), _) => reply(unique, 0, data),
    }
}

fn reply(unique: u64, error: i32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(16 + payload.len());
    bytes.extend((16 + payload.len() as u32).to_ne_bytes());
    bytes.extend((-error).to_ne_bytes());
    bytes.extend(unique.to_ne_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

fn init(volume: &Volume, unique: u64, body: Bytes<'_>) -> Call {
    let (Some(major), Some(minor), Some(ahead), Some(flags)) =
        (body.u32(0), body.u32(4), body.u32(8), body.u32(12))
    else {
        return Call::Answer(reply(unique, EPROTO, &[]));
    };
    if major < MAJOR || major == MAJOR && minor < OLDEST_MINOR {
        return Call::Answer(reply(unique, EPROTO, &[]));
    }
    let background = volume.queue_depth.saturating_mul(2).clamp(64, 65_535);
    let mut out = words(&[
        MAJOR,
        MINOR,
        ahead,
        flags & FLAGS,
        // max_background, congestion_threshold: as many requests as the drive takes, and more.
        background | background << 16,
        LONGEST,
        1,
        LONGEST / PAGE,
    ]);
    out.resize(64, 0);
    Call::Answer(reply(unique, 0, &out))
}

/// Reads, writes, flushes, and holes. A range beyond the end is cut for reads, as of any file.
fn disk_request(volume: &Volume, code: u32, body: Bytes<'_>) -> Result<(Request, Vec<u8>), i32> {
    let field = |found: Option<u64>| found.ok_or(EINVAL);
    let mut data = Vec::new();
    let (operation, offset, len) = match code {
        15 => {
            let (offset, size) = (field(body.u64(8))?, field(body.u32(16).map(u64::from))?);
            let left = volume.bytes.saturating_sub(offset);
            (Operation::Read, offset, size.min(left).min(LONGEST.into()))
        }
        16 => {
            let (offset, size) = (field(body.u64(8))?, field(body.u32(16).map(u64::from))?);
            let bytes = body.0.get(40..).unwrap_or_default();
            if bytes.len() as u64 != size {
                return Err(EINVAL);
            }
            data = bytes.to_vec();
            (Operation::Write, offset, size)
        }
        20 => (Operation::Flush, 0, 0),
        _ => {
            let (offset, len) = (field(body.u64(8))?, field(body.u64(16))?);
            let operation = match body.u32(24).ok_or(EINVAL)? & !KEEP_SIZE {
                PUNCH_HOLE => Operation::Discard,
                ZERO_RANGE => Operation::WriteZeroes,
                _ => return Err(EOPNOTSUPP),
            };
            (operation, offset, len)
        }
    };
    let end = offset.checked_add(len);
    if end.is_none_or(|end| end > volume.bytes) && operation != Operation::Read {
        return Err(ENOSPC);
    }
    if len == 0
        && matches!(
            operation,
            Operation::Write | Operation::Discard | Operation::WriteZeroes
        )
    {
        return Err(EINVAL);
    }
    Ok((
        Request {
            operation,
            offset,
            len,
            force_unit_access: false,
        },
        data,
    ))
}

fn lookup(volume: &Volume, parent: u64, name: &[u8]) -> Option<Vec<u8>> {
    if parent != ROOT || name.strip_suffix(b"\0") != Some(NAME) {
        return None;
    }
    let mut entry = longs(&[DISK, 0, VALID_S, VALID_S]);
    entry.extend([0; 8]);
    entry.extend(attribute(volume, DISK));
    Some(entry)
}

/// How long the kernel may keep what it knows: nothing of it changes.
const VALID_S: u64 = 3600;

fn attributes(volume: &Volume, node: u64) -> Option<Vec<u8>> {
    let mut out = longs(&[VALID_S, 0]);
    out.extend(attribute(volume, node));
    Some(out)
}

/// The size is the drive's; times and modes are ignored.
fn set_attributes(volume: &Volume, node: u64, body: Bytes<'_>) -> Option<Vec<u8>> {
    let changes_size = body.u32(0)? & SET_SIZE != 0 && body.u64(16)? != volume.bytes;
    if changes_size {
        return None;
    }
    attributes(volume, node)
}

/// `struct fuse_attr`.
fn attribute(volume: &Volume, node: u64) -> Vec<u8> {
    let (mode, links, bytes) = match node {
        DISK => (0o100_600, 1, volume.bytes),
        _ => (0o040_700, 2, 0),
    };
    let mut out = longs(&[node, bytes, bytes / 512, 0, 0, 0]);
    out.extend(words(&[
        0,
        0,
        0,
        mode,
        links,
        volume.user,
        volume.group,
        0,
        PAGE,
        0,
    ]));
    out
}

/// `struct fuse_kstatfs`.
fn file_system(volume: &Volume) -> Vec<u8> {
    let mut out = longs(&[volume.bytes / u64::from(PAGE), 0, 0, 2, 0]);
    out.extend(words(&[PAGE, 255, PAGE]));
    out.resize(80, 0);
    out
}

fn read_folder(body: Bytes<'_>) -> Option<Vec<u8>> {
    let (offset, size) = (body.u64(8)?, body.u32(16)? as usize);
    let mut out = Vec::new();
    let entries: [(u64, u32, &[u8]); 3] = [(ROOT, 4, b"."), (ROOT, 4, b".."), (DISK, 8, NAME)];
    for (place, (node, kind, name)) in entries.into_iter().enumerate().skip(offset.min(3) as usize)
    {
        let mut entry = longs(&[node, place as u64 + 1]);
        entry.extend(words(&[name.len() as u32, kind]));
        entry.extend_from_slice(name);
        entry.resize(entry.len().next_multiple_of(8), 0);
        if out.len() + entry.len() > size {
            break;
        }
        out.extend(entry);
    }
    Some(out)
}

fn words(values: &[u32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_ne_bytes())
        .collect()
}

fn longs(values: &[u64]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_ne_bytes())
        .collect()
}

/// Numbers of a structure of the kernel.
#[derive(Clone, Copy)]
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn u32(self, at: usize) -> Option<u32> {
        let found = self.0.get(at..)?.first_chunk::<4>()?;
        Some(u32::from_ne_bytes(*found))
    }

    fn u64(self, at: usize) -> Option<u64> {
        let found = self.0.get(at..)?.first_chunk::<8>()?;
        Some(u64::from_ne_bytes(*found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const VOLUME: Volume = Volume {
        bytes: 1 << 20,
        user: 0,
        group: 0,
        queue_depth: 32,
    };

    fn call(code: u32, node: u64, body: &[u8]) -> Vec<u8> {
        let mut bytes = words(&[(HEADER + body.len()) as u32, code]);
        bytes.extend(longs(&[77, node, 0, 0]));
        bytes.truncate(HEADER);
        bytes.extend_from_slice(body);
        bytes
    }

    fn io(offset: u64, size: u32, data: &[u8]) -> Vec<u8> {
        let mut body = longs(&[0, offset]);
        body.extend(words(&[size, 0, 0, 0, 0, 0]));
        body.extend_from_slice(data);
        body
    }

    /// The error of an answer.
    fn error(call: &Call) -> i32 {
        let Call::Answer(bytes) = call else {
            panic!("no answer: {call:?}");
        };
        i32::from_ne_bytes(bytes[4..8].try_into().unwrap())
    }

    #[test]
    fn the_folder_has_one_file_of_the_disks_size() {
        let Call::Answer(found) = carry_out(&VOLUME, &call(1, ROOT, b"disk\0")) else {
            panic!("no answer");
        };
        assert_eq!(found.len(), 16 + 40 + 88);
        assert_eq!(found[16 + 40 + 8..][..8], VOLUME.bytes.to_ne_bytes());
        let other = carry_out(&VOLUME, &call(1, ROOT, b"other\0"));
        assert_eq!(error(&other), -ENOENT);
    }

    #[test]
    fn reads_are_cut_at_the_end_and_writes_beyond_it_are_refused() {
        let Call::Request { request, .. } =
            carry_out(&VOLUME, &call(15, DISK, &io(VOLUME.bytes - 512, 4096, &[])))
        else {
            panic!("no request");
        };
        assert_eq!(request.len, 512);
        let beyond = carry_out(&VOLUME, &call(15, DISK, &io(VOLUME.bytes, 4096, &[])));
        assert_eq!(error(&beyond), 0);
        let write = carry_out(
            &VOLUME,
            &call(16, DISK, &io(VOLUME.bytes - 2, 4, &[1, 2, 3, 4])),
        );
        assert_eq!(error(&write), -ENOSPC);
        let wrong_size = carry_out(&VOLUME, &call(16, DISK, &io(0, 5, &[1, 2, 3, 4])));
        assert_eq!(error(&wrong_size), -EINVAL);
    }

    #[test]
    fn the_size_cannot_change() {
        let body = [longs(&[SET_SIZE.into(), 0, 0]), vec![0; 64]].concat();
        assert_eq!(error(&carry_out(&VOLUME, &call(4, DISK, &body))), -EPERM);
    }

    proptest! {
        #[test]
        fn random_calls_stay_inside_the_disk(
            code in 0_u32..60, node in 0_u64..4, body in proptest::collection::vec(any::<u8>(), 0..120),
            cut in 0_usize..200,
        ) {
            let bytes = call(code, node, &body);
            let found = carry_out(&VOLUME, &bytes[..cut.min(bytes.len())]);
            if let Call::Request { request, .. } = found {
                prop_assert!(request.offset + request.len <= VOLUME.bytes);
            }
        }
    }
}
