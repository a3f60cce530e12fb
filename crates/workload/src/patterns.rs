//! Patterns as people write them: `pattern` and the keys of its parameters.

use spindle_config::units::{self, parse_place};
use spindle_config::{ConfigError, Value, clean};

use crate::key_texts::{self, KeyTexts};
use crate::keys::{self, Key, PatternKind};
use crate::settings::Settings;
use crate::spec::{Pattern, Peak, Place, Size, Stream, Zone};

/// Most zones of a pattern.
const MAX_ZONES: usize = 256;
/// Most characters of a weight.
const MAX_WEIGHT: usize = 40;

/// The pattern of requests of this size and alignment; its zones are those of the key `zones`.
pub(crate) fn pattern(
    settings: &Settings,
    size: &Size,
    align: u64,
    zones: &Key,
) -> Result<Pattern, ConfigError> {
    let kind = settings.value(&keys::PATTERN).choice(keys::PATTERNS)?;
    Ok(match kind {
        PatternKind::Sequential => Pattern::Sequential,
        PatternKind::Backward => Pattern::Backward,
        PatternKind::Uniform => Pattern::Uniform,
        PatternKind::Shuffled => Pattern::Shuffled,
        PatternKind::Zipf => Pattern::Zipf {
            theta: settings.number(&keys::ZIPF_THETA)?,
            peak: peak(settings)?,
        },
        PatternKind::Pareto => Pattern::Pareto {
            share: share(settings, &keys::PARETO_SHARE)?,
            peak: peak(settings)?,
        },
        PatternKind::Normal => {
            let value = settings.value(&keys::DEVIATION);
            let deviation = value.fraction()?;
            if deviation <= 0.0 {
                return Err(value.error("must be above 0%"));
            }
            Pattern::Normal {
                deviation,
                peak: peak(settings)?,
            }
        }
        PatternKind::HotSet => Pattern::HotSet {
            space: share(settings, &keys::HOT_SPACE)?,
            access: share(settings, &keys::HOT_ACCESS)?,
        },
        PatternKind::Zoned => Pattern::Zoned {
            zones: zones_of(&settings.value(zones))?,
        },
        PatternKind::Strided => strided(settings, size, align)?,
        PatternKind::Runs => runs(settings)?,
    })
}

/// The pattern of a stream with its parameters.
pub(crate) fn write(stream: &Stream, said: &mut KeyTexts) {
    let kind = kind_of(&stream.pattern);
    said.choice(&keys::PATTERN, keys::PATTERNS, &kind);
    match &stream.pattern {
        Pattern::Sequential | Pattern::Backward | Pattern::Uniform | Pattern::Shuffled => {}
        Pattern::Zipf { theta, peak } => {
            said.put(&keys::ZIPF_THETA, theta);
            write_peak(*peak, said);
        }
        Pattern::Pareto { share, peak } => {
            said.fraction(&keys::PARETO_SHARE, *share);
            write_peak(*peak, said);
        }
        Pattern::Normal { deviation, peak } => {
            said.fraction(&keys::DEVIATION, *deviation);
            write_peak(*peak, said);
        }
        Pattern::HotSet { space, access } => {
            said.fraction(&keys::HOT_SPACE, *space);
            said.fraction(&keys::HOT_ACCESS, *access);
        }
        Pattern::Zoned { zones } => said.put(&keys::ZONES, zones_text(zones)),
        Pattern::Strided { stride_bytes } => {
            said.put(&keys::STRIDE, stride_text(*stride_bytes, stream))
        }
        Pattern::Runs {
            mean_requests,
            fixed,
            repeat,
        } => {
            said.put(&keys::RUN_LENGTH, mean_requests);
            said.put(&keys::RUN_FIXED, fixed);
            said.put(&keys::RUN_REPEAT, repeat);
        }
    }
}

fn kind_of(pattern: &Pattern) -> PatternKind {
    match pattern {
        Pattern::Sequential => PatternKind::Sequential,
        Pattern::Backward => PatternKind::Backward,
        Pattern::Uniform => PatternKind::Uniform,
        Pattern::Shuffled => PatternKind::Shuffled,
        Pattern::Zipf { .. } => PatternKind::Zipf,
        Pattern::Pareto { .. } => PatternKind::Pareto,
        Pattern::Normal { .. } => PatternKind::Normal,
        Pattern::HotSet { .. } => PatternKind::HotSet,
        Pattern::Zoned { .. } => PatternKind::Zoned,
        Pattern::Strided { .. } => PatternKind::Strided,
        Pattern::Runs { .. } => PatternKind::Runs,
    }
}

/// Adds the zones of writes with places of their own; true if they must be written.
pub(crate) fn write_zones_apart(stream: &Stream, said: &mut KeyTexts) -> bool {
    if !matches!(stream.pattern, Pattern::Zoned { .. }) {
        return false;
    }
    let own = stream.separate_writes.as_ref().map(|own| &own.pattern);
    let zones = match own.filter(|own| **own != stream.pattern) {
        Some(Pattern::Zoned { zones }) => Some(zones_text(zones)),
        _ => None,
    };
    let needed = zones.is_some();
    said.optional(&keys::WRITE_ZONES, zones);
    needed
}

/// A share that leaves something on both sides.
fn share(settings: &Settings, key: &Key) -> Result<f64, ConfigError> {
    let value = settings.value(key);
    match value.fraction()? {
        fraction if fraction > 0.0 && fraction < 1.0 => Ok(fraction),
        _ => Err(value.error("must be above 0% and below 100%")),
    }
}

fn peak(settings: &Settings) -> Result<Peak, ConfigError> {
    let center = settings.optional(&keys::CENTER);
    Ok(Peak {
        center: center.map(|value| value.fraction()).transpose()?,
        scattered: settings.value(&keys::SCATTERED).flag()?,
    })
}

fn write_peak(peak: Peak, said: &mut KeyTexts) {
    said.optional(&keys::CENTER, peak.center.map(units::exact_fraction));
    said.put(&keys::SCATTERED, peak.scattered);
}

fn strided(settings: &Settings, size: &Size, align: u64) -> Result<Pattern, ConfigError> {
    let value = settings.value(&keys::STRIDE);
    let stride_bytes = stride_bytes(&value, size)?;
    let align = match *size {
        Size::Fixed { bytes } if align == 0 => u64::from(bytes),
        _ => align.max(1),
    };
    if stride_bytes == 0 || !stride_bytes.is_multiple_of(align) {
        let align = units::format_size(align);
        return Err(value.error(format!(
            "must be a positive multiple of the alignment, {align}"
        )));
    }
    Ok(Pattern::Strided { stride_bytes })
}

/// `1MiB`, or `17x` for 17 requests.
fn stride_bytes(value: &Value, size: &Size) -> Result<u64, ConfigError> {
    let times = value.text().ok().and_then(|text| text.strip_suffix('x'));
    let Some(times) = times.and_then(|times| times.parse::<u32>().ok()) else {
        return value.size();
    };
    match *size {
        Size::Fixed { bytes } => Ok(u64::from(times) * u64::from(bytes)),
        _ => Err(value.error("counts requests, whose sizes vary; give it in bytes")),
    }
}

/// In requests where writes of another size have a stride of their own.
fn stride_text(stride_bytes: u64, stream: &Stream) -> String {
    let own = stream.separate_writes.as_ref().map(|own| &own.pattern);
    match stream.size {
        Size::Fixed { bytes } if own.is_some_and(|own| *own != stream.pattern) => {
            format!("{}x", stride_bytes / u64::from(bytes))
        }
        _ => units::format_size(stride_bytes),
    }
}

fn runs(settings: &Settings) -> Result<Pattern, ConfigError> {
    let mean_requests = settings.number(&keys::RUN_LENGTH)?;
    let fixed = settings.value(&keys::RUN_FIXED).flag()?;
    if fixed && mean_requests.fract() != 0.0 {
        let value = settings.value(&keys::RUN_LENGTH);
        return Err(value.error("must be a whole number with run_fixed"));
    }
    Ok(Pattern::Runs {
        mean_requests,
        fixed,
        repeat: settings.value(&keys::RUN_REPEAT).flag()?,
    })
}

/// Reads `10%:60,20%:30` or `1GiB:60,4GiB:40`.
fn zones_of(value: &Value) -> Result<Vec<Zone>, ConfigError> {
    let text = value.text()?;
    let mut zones = Vec::new();
    for part in text.split(',') {
        let form = || {
            let part = clean(part);
            value.error(format!(
                "`{part}` is not a length and a weight such as 10%:60"
            ))
        };
        let (length, weight) = part.split_once(':').ok_or_else(form)?;
        let length = match parse_place(length.trim()) {
            Ok(units::Place::Bytes(bytes)) => Place::Bytes { bytes },
            Ok(units::Place::Fraction(fraction)) => Place::Fraction { fraction },
            Err(error) => return Err(value.error(error.to_string())),
        };
        let weight = weight.trim();
        let plain = |byte: u8| byte.is_ascii_digit() || byte == b'.';
        let weight = Some(weight)
            .filter(|text| text.len() <= MAX_WEIGHT && text.bytes().all(plain))
            .and_then(|text| text.parse::<f64>().ok())
            .ok_or_else(form)?;
        zones.push(Zone { length, weight });
    }
    if zones.len() > MAX_ZONES {
        return Err(value.error(format!("has more than {MAX_ZONES} zones")));
    }
    if zones.iter().all(|zone| zone.weight == 0.0) {
        return Err(value.error("gives no zone a request; one weight must be above 0"));
    }
    let whole: f64 = zones
        .iter()
        .map(|zone| match zone.length {
            Place::Fraction { fraction } => fraction,
            Place::Bytes { .. } => 0.0,
        })
        .sum();
    if whole > 1.0 + 1e-9 {
        let whole = units::format_fraction(whole);
        return Err(value.error(format!("its zones come to {whole}, above 100%")));
    }
    Ok(zones)
}

fn zones_text(zones: &[Zone]) -> String {
    let zones = zones
        .iter()
        .map(|zone| format!("{}:{}", key_texts::place(zone.length), zone.weight));
    zones.collect::<Vec<_>>().join(",")
}
