//! Quantities as people write them: sizes, durations, rates, fractions, places. The one place for units.
//!
//! KiB, MiB ... are powers of 1024; kB, MB ... powers of 1000. A bare `k` or `M` is refused, as half of all
//! tools mean one and half the other. Arithmetic is exact: what does not come out as whole bytes or
//! nanoseconds is an error.

use std::fmt;

use crate::error::clean;

/// The reason why a quantity cannot be read. Each message quotes the text and names the allowed form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnitError {
    /// Not a number with a unit at all.
    #[error("`{}` is not {expected}", clean(text))]
    Form {
        /// The text as written.
        text: String,
        /// The allowed form.
        expected: &'static str,
    },
    /// A unit that does not exist here.
    #[error(
        "`{}` has the unknown unit `{}`; use {allowed}",
        clean(text),
        clean(unit)
    )]
    Unit {
        /// The text as written.
        text: String,
        /// Its unit.
        unit: String,
        /// Units that exist.
        allowed: &'static str,
    },
    /// A unit that could be a power of 1000 or of 1024.
    #[error(
        "`{}` could mean powers of 1000 or 1024; write {decimal} or {binary}",
        clean(text)
    )]
    Ambiguous {
        /// The text as written.
        text: String,
        /// Decimal unit.
        decimal: &'static str,
        /// Binary unit.
        binary: &'static str,
    },
    /// A duration without unit.
    #[error("`{}` lacks a unit; use {allowed}", clean(text))]
    Bare {
        /// The text as written.
        text: String,
        /// Units that exist.
        allowed: &'static str,
    },
    /// Below zero.
    #[error("`{}` is negative", clean(text))]
    Negative {
        /// The text as written.
        text: String,
    },
    /// Larger than the type can represent.
    #[error("`{}` is too large", clean(text))]
    Large {
        /// The text as written.
        text: String,
    },
    /// Not a whole number of bytes or nanoseconds.
    #[error("`{}` is not a whole number of {unit}", clean(text))]
    Broken {
        /// The text as written.
        text: String,
        /// Smallest unit.
        unit: &'static str,
    },
    /// Outside 0..=1.
    #[error("`{}` is outside 0% to 100%; write 20% or 0.2", clean(text))]
    Fraction {
        /// The text as written.
        text: String,
    },
    /// A range whose end is not after its start.
    #[error("`{}` is empty: its end must be after its start", clean(text))]
    Empty {
        /// The text as written.
        text: String,
    },
}

/// Largest rate, requests or bytes a second.
pub const MAX_RATE: f64 = 1e15;

const SIZE_FORM: &str = "a size such as 512, 64KiB or 1.5MB";
const SIZE_UNITS: &str = "B, kB, KiB, MB, MiB, GB, GiB, TB, TiB, PB or PiB";
const DURATION_FORM: &str = "a duration such as 150us, 2s or 1h30m";
const DURATION_UNITS: &str = "ns, us, ms, s, m, h or d";
const RATE_FORM: &str = "a rate such as 10 MB/s or 500 IOPS";
const FRACTION_FORM: &str = "a fraction such as 20% or 0.2";
const RANGE_FORM: &str = "a range such as 0%-10% or 1GiB-2GiB";

const SIZES: [(&str, u64); 11] = [
    ("B", 1),
    ("kB", 1000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
    ("TB", 1_000_000_000_000),
    ("TiB", 1 << 40),
    ("PB", 1_000_000_000_000_000),
    ("PiB", 1 << 50),
];

const DURATIONS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Bytes of `64KiB`, `1 MB`, `1.5GiB` or `512`.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let trimmed = text.trim();
    let (number, unit) = split(text, trimmed, SIZE_FORM)?;
    let factor = if unit.is_empty() {
        1
    } else {
        factor(&SIZES, unit).ok_or_else(|| unknown_size_unit(text, unit))?
    };
    scale(text, number, factor, "bytes", SIZE_FORM)
}

/// Nanoseconds of `2s`, `150us`, `1.5 ms` or `1h30m`.
pub fn parse_duration(text: &str) -> Result<u64, UnitError> {
    let mut rest = text.trim();
    let mut total: u64 = 0;
    loop {
        let (number, tail) = split(text, rest, DURATION_FORM)?;
        // The unit ends where the next number begins.
        let end = tail
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(tail.len());
        let unit = tail[..end].trim_end();
        if unit.is_empty() {
            return Err(UnitError::Bare {
                text: text.to_owned(),
                allowed: DURATION_UNITS,
            });
        }
        let factor = factor(&DURATIONS, unit).ok_or_else(|| UnitError::Unit {
            text: text.to_owned(),
            unit: unit.to_owned(),
            allowed: DURATION_UNITS,
        })?;
        let part = scale(text, number, factor, "nanoseconds", DURATION_FORM)?;
        total = total.checked_add(part).ok_or_else(|| UnitError::Large {
            text: text.to_owned(),
        })?;
        rest = &tail[end..];
        if rest.is_empty() {
            return Ok(total);
        }
    }
}

/// Nanoseconds of a plain number of seconds, or of a duration.
pub fn parse_seconds(text: &str) -> Result<u64, UnitError> {
    let trimmed = text.trim();
    if !trimmed.is_empty()
        && trimmed
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
    {
        return scale(text, trimmed, 1_000_000_000, "nanoseconds", DURATION_FORM);
    }
    parse_duration(text)
}

/// A rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// Bytes per second.
    Bytes(f64),
    /// Requests per second.
    Iops(f64),
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Rate::Bytes(bytes) => write!(f, "{}/s", format_size(bytes as u64)),
            Rate::Iops(iops) => write!(f, "{iops} IOPS"),
        }
    }
}

/// A rate of `10 MB/s` or `500 IOPS`; never 0.
pub fn parse_rate(text: &str) -> Result<Rate, UnitError> {
    let form = || UnitError::Form {
        text: text.to_owned(),
        expected: RATE_FORM,
    };
    let trimmed = text.trim();
    let rate = if let Some(size) = trimmed.strip_suffix("/s") {
        // "500/s" could be either.
        if size.trim_end().ends_with(|c: char| c.is_ascii_digit()) {
            return Err(form());
        }
        Rate::Bytes(parse_size(size)? as f64)
    } else {
        let (number, unit) = split(text, trimmed, RATE_FORM)?;
        if !unit.eq_ignore_ascii_case("iops") {
            return Err(form());
        }
        // `split` left digits and a point: no sign, exponent, infinity or NaN.
        Rate::Iops(number.parse().map_err(|_| form())?)
    };
    let (Rate::Bytes(value) | Rate::Iops(value)) = rate;
    if value > MAX_RATE {
        return Err(UnitError::Large {
            text: text.to_owned(),
        });
    }
    if value > 0.0 { Ok(rate) } else { Err(form()) }
}

/// 0..=1 of `20%` or `0.2`.
pub fn parse_fraction(text: &str) -> Result<f64, UnitError> {
    let form = || UnitError::Form {
        text: text.to_owned(),
        expected: FRACTION_FORM,
    };
    let trimmed = text.trim();
    let (number, divisor) = match trimmed.strip_suffix('%') {
        Some(percent) => (percent.trim_end(), 100.0),
        None => (trimmed, 1.0),
    };
    let value: f64 = number.parse().map_err(|_| form())?;
    if !value.is_finite() {
        return Err(form());
    }
    let value = value / divisor;
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else {
        Err(UnitError::Fraction {
            text: text.to_owned(),
        })
    }
}

/// `20%`.
#[must_use]
pub fn format_fraction(fraction: f64) -> String {
    // Rounding to 12 digits hides that 0.07 * 100 is 7.000000000000001.
    let percent = (fraction * 100.0 * 1e10).round() / 1e10;
    format!("{percent}%")
}

/// A fraction that reads back as the same number, in percent if that can be.
#[must_use]
pub fn exact_fraction(fraction: f64) -> String {
    percent(fraction).unwrap_or_else(|| fraction.to_string())
}

/// The percentage that reads back as this fraction, if one does: any that was read from a percentage.
#[must_use]
pub fn exact_percent(fraction: f64) -> String {
    percent(fraction).unwrap_or_else(|| format_fraction(fraction))
}

fn percent(fraction: f64) -> Option<String> {
    let near = fraction * 100.0;
    let (below, above) = (near.next_down(), near.next_up());
    let exact = [near, below, above, below.next_down(), above.next_up()];
    let texts = exact.iter().map(|percent| format!("{percent}%"));
    std::iter::once(format_fraction(fraction))
        .chain(texts)
        .find(|text| parse_fraction(text) == Ok(fraction))
}

/// A place on a target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Place {
    /// Bytes from the start.
    Bytes(u64),
    /// Share of the target's size, 0..=1.
    Fraction(f64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Place::Bytes(bytes) => f.write_str(&format_size(bytes)),
            Place::Fraction(fraction) => f.write_str(&format_fraction(fraction)),
        }
    }
}

/// A place of `10%` or `4GiB`.
pub fn parse_place(text: &str) -> Result<Place, UnitError> {
    if text.trim_end().ends_with('%') {
        parse_fraction(text).map(Place::Fraction)
    } else {
        parse_size(text).map(Place::Bytes)
    }
}

/// Start and end of `0%-10%` or `1GiB-2GiB`. Both in bytes or both in percent must not be empty; a mixed
/// range can only be judged once the target is known.
pub fn parse_range(text: &str) -> Result<(Place, Place), UnitError> {
    let form = || UnitError::Form {
        text: text.to_owned(),
        expected: RANGE_FORM,
    };
    let (start, end) = text.split_once('-').ok_or_else(form)?;
    if start.trim().is_empty() || end.trim().is_empty() {
        return Err(form());
    }
    let (start, end) = (parse_place(start)?, parse_place(end)?);
    let empty = match (start, end) {
        (Place::Bytes(start), Place::Bytes(end)) => start >= end,
        (Place::Fraction(start), Place::Fraction(end)) => start >= end,
        (Place::Bytes(_), Place::Fraction(end)) => end <= 0.0,
        (Place::Fraction(start), Place::Bytes(end)) => end == 0 || start >= 1.0,
    };
    if empty {
        Err(UnitError::Empty {
            text: text.to_owned(),
        })
    } else {
        Ok((start, end))
    }
}

/// A size that reads back as the same number: in the largest unit that divides it, binary before decimal
/// when both are as short.
#[must_use]
pub fn format_size(bytes: u64) -> String {
    let whole = SIZES
        .iter()
        .filter(|(_, factor)| bytes > 0 && bytes.is_multiple_of(*factor));
    let shortest = whole
        .map(|(unit, factor)| (bytes / factor, *factor, *unit))
        .min_by_key(|(count, factor, _)| (count.ilog10(), !factor.is_power_of_two(), *count));
    shortest.map_or_else(
        || format!("{bytes}B"),
        |(count, _, unit)| format!("{count}{unit}"),
    )
}

/// A duration that reads back as the same number, in the largest unit that divides it.
#[must_use]
pub fn format_duration(ns: u64) -> String {
    let whole = DURATIONS
        .iter()
        .rev()
        .find(|(_, factor)| ns > 0 && ns.is_multiple_of(*factor));
    match whole {
        Some((unit, factor)) => {
            format!("{}{}", ns / factor, if *unit == "µs" { "us" } else { unit })
        }
        None => "0s".to_owned(),
    }
}

fn factor(units: &[(&str, u64)], unit: &str) -> Option<u64> {
    units
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|(_, factor)| *factor)
}

fn unknown_size_unit(text: &str, unit: &str) -> UnitError {
    let text = text.to_owned();
    let ambiguous = |decimal, binary| UnitError::Ambiguous {
        text: text.clone(),
        decimal,
        binary,
    };
    match unit.to_ascii_lowercase().as_str() {
        "k" | "kb" => ambiguous("kB", "KiB"),
        "m" | "mb" => ambiguous("MB", "MiB"),
        "g" | "gb" => ambiguous("GB", "GiB"),
        "t" | "tb" => ambiguous("TB", "TiB"),
        "p" | "pb" => ambiguous("PB", "PiB"),
        _ => UnitError::Unit {
            unit: unit.to_owned(),
            text,
            allowed: SIZE_UNITS,
        },
    }
}

/// Splits the number off the front: digits, perhaps a point and more digits.
fn split<'a>(
    whole: &str,
    rest: &'a str,
    expected: &'static str,
) -> Result<(&'a str, &'a str), UnitError> {
    if rest.starts_with(['-', '−']) {
        return Err(UnitError::Negative {
            text: whole.to_owned(),
        });
    }
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(rest.len());
    if end == 0 {
        return Err(UnitError::Form {
            text: whole.to_owned(),
            expected,
        });
    }
    Ok((&rest[..end], rest[end..].trim_start()))
}

/// Exactly `number * factor`, where `number` is digits with at most one point.
fn scale(
    whole: &str,
    number: &str,
    factor: u64,
    unit: &'static str,
    expected: &'static str,
) -> Result<u64, UnitError> {
    let form = || UnitError::Form {
        text: whole.to_owned(),
        expected,
    };
    let large = || UnitError::Large {
        text: whole.to_owned(),
    };
    let (before, after) = match number.split_once('.') {
        Some((before, after)) if !after.is_empty() && !after.contains('.') => (before, after),
        Some(_) => return Err(form()),
        None => (number, ""),
    };
    if before.is_empty() {
        return Err(form());
    }
    let after = after.trim_end_matches('0');
    // 19 digits behind the point cannot make a whole number of anything here.
    if after.len() > 18 {
        return Err(UnitError::Broken {
            text: whole.to_owned(),
            unit,
        });
    }
    let before: u128 = before.parse().map_err(|_| large())?;
    let parts = 10_u128.pow(after.len() as u32);
    let after: u128 = if after.is_empty() {
        0
    } else {
        after.parse().map_err(|_| form())?
    };
    let scaled = before
        .checked_mul(parts)
        .and_then(|number| number.checked_add(after))
        .and_then(|number| number.checked_mul(u128::from(factor)))
        .ok_or_else(large)?;
    if scaled % parts != 0 {
        return Err(UnitError::Broken {
            text: whole.to_owned(),
            unit,
        });
    }
    u64::try_from(scaled / parts).map_err(|_| large())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_exactly() {
        for (text, bytes) in [
            ("512", 512),
            ("0", 0),
            ("64KiB", 65_536),
            ("64 KiB", 65_536),
            ("1 MB", 1_000_000),
            ("1.5GiB", 1_610_612_736),
            ("0.5kB", 500),
            ("2B", 2),
            ("16PiB", 16 << 50),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn sizes_that_cannot_be_meant_say_why() {
        for (text, message) in [
            (
                "64k",
                "`64k` could mean powers of 1000 or 1024; write kB or KiB",
            ),
            (
                "1M",
                "`1M` could mean powers of 1000 or 1024; write MB or MiB",
            ),
            (
                "64kb",
                "`64kb` could mean powers of 1000 or 1024; write kB or KiB",
            ),
            ("-1MB", "`-1MB` is negative"),
            ("", "`` is not a size such as 512, 64KiB or 1.5MB"),
            ("NaN", "`NaN` is not a size such as 512, 64KiB or 1.5MB"),
            (
                "1e3",
                "`1e3` has the unknown unit `e3`; use B, kB, KiB, MB, MiB, GB, GiB, TB, TiB, PB or PiB",
            ),
            ("20000PiB", "`20000PiB` is too large"),
            (
                "99999999999999999999999999999999999999999999",
                "`99999999999999999999999999999999999999999999` is too large",
            ),
            ("0.3KiB", "`0.3KiB` is not a whole number of bytes"),
            (
                "1.2.3MB",
                "`1.2.3MB` is not a size such as 512, 64KiB or 1.5MB",
            ),
            (".5MB", "`.5MB` is not a size such as 512, 64KiB or 1.5MB"),
        ] {
            assert_eq!(parse_size(text).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn durations_are_read_exactly() {
        for (text, ns) in [
            ("2s", 2_000_000_000),
            ("150us", 150_000),
            ("150 µs", 150_000),
            ("1.5 ms", 1_500_000),
            ("1h30m", 5_400_000_000_000),
            ("1 h 30 m", 5_400_000_000_000),
            ("7ns", 7),
        ] {
            assert_eq!(parse_duration(text), Ok(ns), "{text}");
        }
        assert_eq!(parse_seconds("60"), Ok(60_000_000_000));
        assert_eq!(parse_seconds("0.25"), Ok(250_000_000));
        assert_eq!(parse_seconds("1m"), Ok(60_000_000_000));
    }

    #[test]
    fn durations_that_cannot_be_meant_say_why() {
        for (text, message) in [
            ("5", "`5` lacks a unit; use ns, us, ms, s, m, h or d"),
            (
                "5 parsecs",
                "`5 parsecs` has the unknown unit `parsecs`; use ns, us, ms, s, m, h or d",
            ),
            ("-1s", "`-1s` is negative"),
            ("0.5ns", "`0.5ns` is not a whole number of nanoseconds"),
            ("900000d", "`900000d` is too large"),
            ("s", "`s` is not a duration such as 150us, 2s or 1h30m"),
        ] {
            assert_eq!(parse_duration(text).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn rates_fractions_and_ranges_are_read() {
        assert_eq!(parse_rate("10 MB/s"), Ok(Rate::Bytes(1e7)));
        assert_eq!(parse_rate("500 IOPS"), Ok(Rate::Iops(500.0)));
        assert_eq!(parse_rate("0.5iops"), Ok(Rate::Iops(0.5)));
        assert_eq!(parse_fraction("20%"), Ok(0.2));
        assert_eq!(parse_fraction("0.2"), Ok(0.2));
        assert_eq!(parse_fraction("1"), Ok(1.0));
        assert_eq!(
            parse_range("0%-10%"),
            Ok((Place::Fraction(0.0), Place::Fraction(0.1)))
        );
        assert_eq!(
            parse_range("1GiB-2GiB"),
            Ok((Place::Bytes(1 << 30), Place::Bytes(1 << 31)))
        );
        assert_eq!(
            parse_range("4KiB - 100%"),
            Ok((Place::Bytes(4096), Place::Fraction(1.0)))
        );
    }

    #[test]
    fn nonsense_rates_fractions_and_ranges_are_errors() {
        for text in [
            "0 IOPS",
            "0MB/s",
            "500",
            "500/s",
            "MB/s",
            "-5 IOPS",
            "inf IOPS",
            "NaN IOPS",
            "9e99 IOPS",
        ] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
        for text in ["20", "-0.1", "101%", "NaN", "inf", "%", "", "nan%"] {
            assert!(parse_fraction(text).is_err(), "{text}");
        }
        for text in [
            "10%",
            "10%-",
            "-10%",
            "10%-10%",
            "2GiB-1GiB",
            "0%-0B",
            "100%-1GiB",
            "a-b",
            "1GiB-0%",
        ] {
            assert!(parse_range(text).is_err(), "{text}");
        }
    }

    #[test]
    fn formatted_quantities_read_back_as_themselves() {
        let mut value: u64 = 1;
        for step in 0..2000_u64 {
            assert_eq!(
                parse_size(&format_size(value)),
                Ok(value),
                "{}",
                format_size(value)
            );
            assert_eq!(parse_duration(&format_duration(value)), Ok(value));
            value = value
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(step)
                >> (step % 60);
        }
        for (bytes, text) in [
            (0, "0B"),
            (65_536, "64KiB"),
            (1_000_000, "1MB"),
            (1000, "1kB"),
            (512, "512B"),
            (1 << 40, "1TiB"),
        ] {
            assert_eq!(format_size(bytes), text);
        }
        for percent in 0..=1000 {
            let fraction = f64::from(percent) / 1000.0;
            let read = parse_fraction(&format_fraction(fraction)).unwrap();
            assert!((read - fraction).abs() < 1e-15);
        }
        assert_eq!(format_fraction(0.07), "7%");
        assert_eq!(
            parse_rate(&Rate::Bytes(1e7).to_string()),
            Ok(Rate::Bytes(1e7))
        );
    }
}
