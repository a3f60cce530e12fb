//! HdrHistogram V2, deflated, base64: the form in which histograms are stored and exchanged (`HISTF...`).
//!
//! Layout from the format's reference implementation (HdrHistogram `AbstractHistogram.encodeIntoByteBuffer`,
//! `ZigZagEncoding`). We write three significant digits: each of our slots falls into one of theirs, so writing and
//! reading back loses no count, and the error that any reader adds stays within 0.1 %.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use thiserror::Error;

use crate::histogram::{Histogram, reported};

/// Cookies with the word size nibble that the reference writes (0x10).
const PLAIN: u32 = 0x1c84_9303 | 0x10;
const COMPRESSED: u32 = 0x1c84_9304 | 0x10;
/// The nibble does not matter to a reader.
const COOKIE_MASK: u32 = !0xf0;
/// Cookie, payload length, normalizing index offset, digits, lowest, highest, ratio.
const HEADER: usize = 40;
const DIGITS: u32 = 3;
/// Text that is longer than this when inflated is refused.
const MAX_INFLATED: usize = 16 << 20;
/// Deflate level: histograms are a few KB, and written once.
const LEVEL: u8 = 9;

/// The reason why text is not a histogram.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// Not base64.
    #[error("the histogram is not base64: {0}")]
    Base64(String),
    /// Another format or version.
    #[error(
        "the histogram has cookie {found:#010x}; only HdrHistogram V2, compressed ('HISTF...'), is read"
    )]
    Cookie {
        /// The first four bytes.
        found: u32,
    },
    /// The deflated part is damaged or too long.
    #[error("the histogram cannot be inflated: {0}")]
    Inflate(String),
    /// The text ends too early.
    #[error("the histogram is cut off")]
    Truncated,
    /// Parameters that histograms of latencies do not have.
    #[error("the histogram has {name} = {value}, which is not supported")]
    Parameter {
        /// Field of the header.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// Counts beyond the range or the limits of a counter.
    #[error("the histogram's counts are out of range")]
    Counts,
}

impl Histogram {
    /// The histogram as HdrHistogram V2, deflated, base64. Exact moments are not part of the format.
    #[must_use]
    pub fn encode(&self) -> String {
        let deflated = compress_to_vec_zlib(&self.plain(), LEVEL);
        let mut bytes = Vec::with_capacity(deflated.len() + 8);
        bytes.extend(COMPRESSED.to_be_bytes());
        bytes.extend((deflated.len() as u32).to_be_bytes());
        bytes.extend(deflated);
        STANDARD.encode(bytes)
    }

    /// Reads HdrHistogram V2, deflated, base64, of any precision. Each count is taken at the middle of our slot, which
    /// from which it was written; sum, sum of squares, min and max follow from that, as the format has none of them.
    ///
    /// # Errors
    /// If the text is not such a histogram.
    pub fn decode(text: &str) -> Result<Histogram, DecodeError> {
        let bytes = STANDARD
            .decode(text.trim())
            .map_err(|error| DecodeError::Base64(error.to_string()))?;
        let mut outer = Reader(&bytes);
        let cookie = outer.u32()?;
        if cookie & COOKIE_MASK != COMPRESSED & COOKIE_MASK {
            return Err(DecodeError::Cookie { found: cookie });
        }
        let length = outer.u32()? as usize;
        let plain = decompress_to_vec_zlib_with_limit(outer.take(length)?, MAX_INFLATED)
            .map_err(|error| DecodeError::Inflate(error.to_string()))?;
        Self::from_plain(&plain)
    }

    fn plain(&self) -> Vec<u8> {
        let layout = Layout::new(DIGITS, 1);
        let mut counts = Vec::new();
        let mut next = 0;
        for (middle_ns, count) in self.iter() {
            let index = layout.index_of(middle_ns);
            let gap = index - next;
            if gap > 0 {
                write_zigzag(&mut counts, -(gap as i64));
            }
            // The format counts in i64.
            write_zigzag(&mut counts, i64::try_from(count).unwrap_or(i64::MAX));
            next = index + 1;
        }
        let mut bytes = Vec::with_capacity(HEADER + counts.len());
        bytes.extend(PLAIN.to_be_bytes());
        bytes.extend((counts.len() as u32).to_be_bytes());
        bytes.extend(0u32.to_be_bytes());
        bytes.extend(DIGITS.to_be_bytes());
        bytes.extend(1u64.to_be_bytes());
        bytes.extend(Self::HIGHEST_NS.to_be_bytes());
        bytes.extend(1f64.to_be_bytes());
        bytes.extend(counts);
        bytes
    }

    fn from_plain(bytes: &[u8]) -> Result<Histogram, DecodeError> {
        let mut reader = Reader(bytes);
        let cookie = reader.u32()?;
        if cookie & COOKIE_MASK != PLAIN & COOKIE_MASK {
            return Err(DecodeError::Cookie { found: cookie });
        }
        let length = reader.u32()? as usize;
        let parameter = |name, value: String| Err(DecodeError::Parameter { name, value });
        let offset = reader.u32()?;
        if offset != 0 {
            return parameter("normalizing index offset", offset.to_string());
        }
        let digits = reader.u32()?;
        if digits > 5 {
            return parameter("significant digits", digits.to_string());
        }
        let lowest = reader.u64()?;
        if lowest == 0 || lowest > Self::HIGHEST_NS {
            return parameter("lowest value", lowest.to_string());
        }
        let _highest = reader.u64()?;
        let ratio = f64::from_bits(reader.u64()?);
        if ratio != 1.0 {
            return parameter("integer to double ratio", ratio.to_string());
        }
        let layout = Layout::new(digits, lowest);
        let mut counts = Reader(reader.take(length)?);
        let mut histogram = Histogram::new();
        let mut index: u64 = 0;
        while !counts.0.is_empty() {
            let value = counts.zigzag()?;
            if value < 0 {
                index = index.saturating_add(value.unsigned_abs());
                continue;
            }
            let middle = layout.middle_of(index).ok_or(DecodeError::Counts)?;
            if histogram.count().checked_add(value as u64).is_none() {
                return Err(DecodeError::Counts);
            }
            histogram.record_n(reported(middle), value as u64);
            index += 1;
        }
        Ok(histogram)
    }
}

/// The slots of HdrHistogram.
struct Layout {
    /// log2 of the smallest difference between two values that have slots of their own.
    unit_bits: u32,
    /// log2 of half the number of slots in a bucket.
    half_bits: u32,
}

impl Layout {
    fn new(digits: u32, lowest: u64) -> Self {
        let slots = (2 * 10u64.pow(digits)).next_power_of_two();
        Layout {
            unit_bits: lowest.ilog2(),
            half_bits: slots.ilog2() - 1,
        }
    }

    fn index_of(&self, value: u64) -> u64 {
        let units = value >> self.unit_bits;
        let blur = (units | ((2 << self.half_bits) - 1)).ilog2() - self.half_bits;
        (u64::from(blur) << self.half_bits) + (units >> blur)
    }

    /// Middle of a slot; `None` if it is beyond 64 bits.
    fn middle_of(&self, index: u64) -> Option<u64> {
        let half = 1u64 << self.half_bits;
        let blur = u32::try_from((index >> self.half_bits).saturating_sub(1)).ok()?;
        let units = if blur == 0 && index < half {
            index
        } else {
            (index & (half - 1)) + half
        };
        let shift = blur.saturating_add(self.unit_bits);
        if shift >= units.leading_zeros() {
            return None;
        }
        Some((units << shift) + ((1u64 << shift) >> 1))
    }
}

/// ZigZag, then LEB128 of at most nine bytes, the ninth whole.
fn write_zigzag(bytes: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    for _ in 0..8 {
        if rest < 0x80 {
            break;
        }
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self
            .0
            .split_at_checked(length)
            .ok_or(DecodeError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(DecodeError::Truncated)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_be_bytes)
    }

    fn zigzag(&mut self) -> Result<i64, DecodeError> {
        let mut value = 0;
        for place in 0..9 {
            let [byte] = self.array()?;
            if place == 8 {
                value |= u64::from(byte) << 56;
                break;
            }
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                break;
            }
        }
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }
}
