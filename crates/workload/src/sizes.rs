//! Distributions of sizes, of requests and of files, as people write them.

use spindle_config::units::{UnitError, format_size, parse_size};
use spindle_config::{ConfigError, Value, nearest};

use crate::fileset;
use crate::spec::{FileSize, Size};

/// Largest request, bytes.
pub(crate) const MAX_REQUEST: u64 = 1 << 30;
/// Largest file, bytes.
const MAX_FILE: u64 = 1 << 50;
/// Sizes of files are multiples of this unless a step is given, bytes.
const FILE_STEP: u64 = 512;
/// Most choices in a weighted list.
const MAX_CHOICES: usize = 256;
/// Spread of a log-normal distribution if none is given: a third of the sizes are beyond a factor e of the
/// median.
const SIGMA: f64 = 1.0;
/// Smallest log-normal size if none is given, bytes.
const LEAST_SIZE: u64 = 512;
/// Largest sum of weights that are written as whole numbers.
const MAX_SCALE: u32 = 10_000;

/// A distribution as it is written, bytes; a step of 0: none was given.
enum Sizes {
    Fixed(u64),
    Range {
        min: u64,
        max: u64,
        step: u64,
    },
    Weighted(Vec<(u64, f64)>),
    LogNormal {
        mean: u64,
        sigma: f64,
        min: u64,
        max: u64,
        step: u64,
    },
}

/// Reads `64KiB`, `4KiB-64KiB[:step=4KiB]`, `4KiB:70,64KiB:30` or
/// `log-normal:mean=26KiB[,sigma=1][,min=512][,max=1MiB][,step=512]` as sizes of requests.
pub(crate) fn sizes(value: &Value) -> Result<Size, ConfigError> {
    let read = Reader {
        value,
        what: "a request size from 1 byte",
        least: 1,
        limit: MAX_REQUEST,
    };
    // None is above the limit, which fits.
    Ok(match read.any()? {
        Sizes::Fixed(bytes) => Size::Fixed {
            bytes: bytes as u32,
        },
        Sizes::Range { min, max, step } => Size::Range {
            min: min as u32,
            max: max as u32,
            step: step as u32,
        },
        Sizes::Weighted(choices) => Size::Weighted {
            choices: choices
                .into_iter()
                .map(|(bytes, weight)| (bytes as u32, weight))
                .collect(),
        },
        Sizes::LogNormal {
            mean,
            sigma,
            min,
            max,
            step,
        } => Size::LogNormal {
            mean: mean as f64,
            sigma,
            min: min as u32,
            max: max as u32,
            step: step as u32,
        },
    })
}

/// The same for sizes of files, with `auto`.
pub(crate) fn file_sizes(value: &Value) -> Result<FileSize, ConfigError> {
    if matches!(value.text(), Ok("auto")) {
        return Ok(FileSize::Auto);
    }
    let read = Reader {
        value,
        what: "a file size from 0",
        least: 0,
        limit: MAX_FILE,
    };
    let stepped = |step| if step == 0 { FILE_STEP } else { step };
    let sizes = match read.any()? {
        Sizes::Fixed(bytes) => FileSize::Fixed { bytes },
        Sizes::Range { min, max, step } => FileSize::Range {
            min,
            max,
            step: stepped(step),
        },
        Sizes::Weighted(choices) => FileSize::Weighted { choices },
        Sizes::LogNormal {
            mean,
            sigma,
            min,
            max,
            step,
        } => FileSize::LogNormal {
            mean: mean as f64,
            sigma,
            min,
            max,
            step: stepped(step),
        },
    };
    fileset::check(&sizes).map_err(|error| value.error(error.to_string()))?;
    Ok(sizes)
}

/// Writes a size in the form that [`sizes`] reads.
pub(crate) fn write(size: &Size) -> String {
    text(
        match size {
            Size::Fixed { bytes } => Sizes::Fixed(u64::from(*bytes)),
            Size::Range { min, max, step } => Sizes::Range {
                min: u64::from(*min),
                max: u64::from(*max),
                step: u64::from(*step),
            },
            Size::Weighted { choices } => Sizes::Weighted(
                choices
                    .iter()
                    .map(|(bytes, weight)| (u64::from(*bytes), *weight))
                    .collect(),
            ),
            Size::LogNormal {
                mean,
                sigma,
                min,
                max,
                step,
            } => Sizes::LogNormal {
                mean: *mean as u64,
                sigma: *sigma,
                min: u64::from(*min),
                max: u64::from(*max),
                step: u64::from(*step),
            },
        },
        0,
        MAX_REQUEST,
    )
}

/// Writes a size in the form that [`file_sizes`] reads.
pub(crate) fn write_files(size: &FileSize) -> String {
    let sizes = match size {
        FileSize::Auto => return "auto".to_owned(),
        FileSize::Fixed { bytes } => Sizes::Fixed(*bytes),
        FileSize::Range { min, max, step } => Sizes::Range {
            min: *min,
            max: *max,
            step: *step,
        },
        FileSize::Weighted { choices } => Sizes::Weighted(choices.clone()),
        FileSize::LogNormal {
            mean,
            sigma,
            min,
            max,
            step,
        } => Sizes::LogNormal {
            mean: *mean as u64,
            sigma: *sigma,
            min: *min,
            max: *max,
            step: *step,
        },
    };
    text(sizes, FILE_STEP, MAX_FILE)
}

/// `usual_step`: the step if none is written; `limit`: the largest size.
fn text(sizes: Sizes, usual_step: u64, limit: u64) -> String {
    let step = |step, lead| match step {
        _ if step == usual_step => String::new(),
        step => format!("{lead}step={}", format_size(step)),
    };
    match sizes {
        Sizes::Fixed(bytes) => format_size(bytes),
        Sizes::Range { min, max, step: by } => {
            format!("{}-{}{}", format_size(min), format_size(max), step(by, ":"))
        }
        Sizes::Weighted(choices) => {
            let weights = weight_texts(&choices);
            let items = choices.iter().zip(weights);
            let items =
                items.map(|((bytes, _), weight)| format!("{}:{weight}", format_size(*bytes)));
            items.collect::<Vec<_>>().join(",")
        }
        Sizes::LogNormal {
            mean,
            sigma,
            min,
            max,
            step: by,
        } => {
            let mut text = format!("log-normal:mean={}", format_size(mean));
            if sigma != SIGMA {
                text += &format!(",sigma={sigma}");
            }
            if min != LEAST_SIZE {
                text += &format!(",min={}", format_size(min));
            }
            if max != usual_max(mean, limit) {
                text += &format!(",max={}", format_size(max));
            }
            text + &step(by, ",")
        }
    }
}

/// Percentages, or the smallest whole numbers, that give these weights; the weights themselves if there are none.
fn weight_texts(choices: &[(u64, f64)]) -> Vec<String> {
    let scales = std::iter::once(100).chain(1..=MAX_SCALE).map(f64::from);
    let mut scaled = scales.map(|scale| -> Vec<f64> {
        let whole = choices.iter().map(|(_, weight)| (weight * scale).round());
        whole.collect()
    });
    let whole = scaled.find(|whole| {
        let sum: f64 = whole.iter().sum();
        let mut pairs = whole.iter().zip(choices);
        pairs.all(|(whole, (_, weight))| *whole > 0.0 && normalised(*whole, sum) == *weight)
    });
    let whole = whole.unwrap_or_else(|| choices.iter().map(|(_, weight)| *weight).collect());
    whole.iter().map(f64::to_string).collect()
}

/// A share of the sum; weights whose sum is 1 already are left as they are, so that the written text reads back.
fn normalised(weight: f64, sum: f64) -> f64 {
    if (sum - 1.0).abs() < 1e-12 {
        weight
    } else {
        weight / sum
    }
}

/// The largest log-normal size where none is written: beyond 32 times the mean there is next to nothing for an
/// ordinary spread.
fn usual_max(mean: u64, limit: u64) -> u64 {
    mean.saturating_mul(32).min(limit)
}

struct Reader<'a> {
    value: &'a Value,
    /// Name of the size in messages.
    what: &'static str,
    least: u64,
    limit: u64,
}

impl Reader<'_> {
    fn any(&self) -> Result<Sizes, ConfigError> {
        let text = self.value.quantity("a size such as \"64KiB\"", |text| {
            Ok(text.trim().to_owned())
        })?;
        if let Some(parameters) = text.strip_prefix("log-normal") {
            return self.log_normal(parameters);
        }
        let (first, rest) = match text.split_once(':') {
            Some((first, rest)) => (first, Some(rest)),
            None => (text.as_str(), None),
        };
        match (first.split_once('-'), rest) {
            (Some((min, max)), _) if !min.is_empty() => self.range(min, max, rest),
            (_, None) => Ok(Sizes::Fixed(self.size(&text)?)),
            (_, Some(_)) => self.list(&text),
        }
    }

    fn range(&self, min: &str, max: &str, rest: Option<&str>) -> Result<Sizes, ConfigError> {
        let (min, max) = (self.size(min)?, self.size(max)?);
        let mut step = 0;
        if let Some(rest) = rest {
            for (_, text) in self.parameters(rest, &["step"])? {
                step = self.size(text)?;
            }
        }
        self.check_bounds(min, max, step)?;
        if step != 0 && (max - min) % step != 0 {
            return Err(self.value.error(format!(
                "the step {} does not lead from {} to {}",
                format_size(step),
                format_size(min),
                format_size(max)
            )));
        }
        Ok(Sizes::Range { min, max, step })
    }

    fn list(&self, text: &str) -> Result<Sizes, ConfigError> {
        let mut choices = Vec::new();
        for item in text.split(',') {
            let Some((size, weight)) = item.split_once(':') else {
                return Err(self
                    .value
                    .error("each size of a list needs a weight: 4KiB:70,64KiB:30"));
            };
            choices.push((self.size(size)?, self.positive("weight", weight)?));
        }
        if choices.len() > MAX_CHOICES {
            return Err(self
                .value
                .error(format!("a list has at most {MAX_CHOICES} sizes")));
        }
        // Each weight is at most 10^9 and positive: the sum is finite and positive.
        let sum: f64 = choices.iter().map(|(_, weight)| weight).sum();
        for (_, weight) in &mut choices {
            *weight = normalised(*weight, sum);
        }
        Ok(Sizes::Weighted(choices))
    }

    fn log_normal(&self, text: &str) -> Result<Sizes, ConfigError> {
        let usage =
            "write log-normal:mean=26KiB, and if need be sigma=1, min=1KiB, max=512KiB, step=512";
        let Some(text) = text.strip_prefix(':') else {
            return Err(self.value.error(usage));
        };
        let (mut mean, mut sigma, mut min, mut max, mut step) = (None, SIGMA, LEAST_SIZE, None, 0);
        for (name, text) in self.parameters(text, &["mean", "sigma", "min", "max", "step"])? {
            match name {
                "mean" => mean = Some(self.size(text)?),
                "sigma" => sigma = self.positive("sigma", text)?,
                "min" => min = self.size(text)?,
                "max" => max = Some(self.size(text)?),
                _ => step = self.size(text)?,
            }
        }
        let mean = mean.ok_or_else(|| self.value.error(usage))?;
        let max = max.unwrap_or_else(|| usual_max(mean, self.limit));
        self.check_bounds(min, max, step)?;
        if !(0.01..=5.0).contains(&sigma) {
            return Err(self.value.error("sigma must be from 0.01 to 5"));
        }
        if mean <= min || mean >= max {
            return Err(self.value.error(format!(
                "the mean {} must be between the smallest size {} and the largest {}",
                format_size(mean),
                format_size(min),
                format_size(max)
            )));
        }
        Ok(Sizes::LogNormal {
            mean,
            sigma,
            min,
            max,
            step,
        })
    }

    fn check_bounds(&self, min: u64, max: u64, step: u64) -> Result<(), ConfigError> {
        if min > max {
            return Err(self.value.error(format!(
                "the smallest size {} is above the largest {}",
                format_size(min),
                format_size(max)
            )));
        }
        if step > max {
            return Err(self.value.error("the step is above the largest size"));
        }
        Ok(())
    }

    /// `name=value` pairs.
    fn parameters<'t>(
        &self,
        text: &'t str,
        known: &[&'static str],
    ) -> Result<Vec<(&'static str, &'t str)>, ConfigError> {
        let mut found: Vec<(&'static str, &str)> = Vec::new();
        for item in text.split(',') {
            let (name, text) = item.split_once('=').unwrap_or((item, ""));
            let name = name.trim();
            let Some(&name) = known.iter().find(|known| **known == name) else {
                let meant = nearest(name, known.iter().copied()).map_or_else(
                    || format!("; known: {}", known.join(", ")),
                    |n| format!("; did you mean `{n}`?"),
                );
                let name = spindle_config::clean(name);
                return Err(self
                    .value
                    .error(format!("unknown parameter `{name}`{meant}")));
            };
            if found.iter().any(|(other, _)| *other == name) {
                return Err(self.value.error(format!("`{name}` is given twice")));
            }
            found.push((name, text));
        }
        Ok(found)
    }

    fn size(&self, text: &str) -> Result<u64, ConfigError> {
        let bytes = self
            .value
            .quantity("", |_| -> Result<u64, UnitError> { parse_size(text) })?;
        if bytes < self.least || bytes > self.limit {
            let limit = format_size(self.limit);
            let text = spindle_config::clean(text.trim());
            let what = self.what;
            return Err(self
                .value
                .error(format!("`{text}` is not {what} to {limit}")));
        }
        Ok(bytes)
    }

    fn positive(&self, what: &str, text: &str) -> Result<f64, ConfigError> {
        let number = text
            .trim()
            .parse()
            .ok()
            .filter(|number| (1e-9..=1e9).contains(number));
        number.ok_or_else(|| {
            let text = spindle_config::clean(text.trim());
            self.value
                .error(format!("the {what} `{text}` is not a positive number"))
        })
    }
}
