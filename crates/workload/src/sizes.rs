//! Distributions of request sizes as people write them.

use spindle_config::units::{UnitError, format_size, parse_size};
use spindle_config::{ConfigError, Value, nearest};

use crate::spec::Size;

/// Largest request, bytes.
pub(crate) const MAX_REQUEST: u64 = 1 << 30;
/// Most choices in a weighted list.
const MAX_CHOICES: usize = 256;
/// Spread of a log-normal distribution if none is given: a third of the sizes are beyond a factor e of the
/// median.
const SIGMA: f64 = 1.0;

/// Reads `64KiB`, `4KiB-64KiB[:step=4KiB]`, `4KiB:70,64KiB:30` or
/// `log-normal:mean=26KiB[,sigma=1][,min=512][,max=1MiB][,step=512]`.
pub(crate) fn sizes(value: &Value) -> Result<Size, ConfigError> {
    let text = value.quantity("a size such as \"64KiB\"", |text| {
        Ok(text.trim().to_owned())
    })?;
    let read = Reader { value };
    if let Some(parameters) = text.strip_prefix("log-normal") {
        return read.log_normal(parameters);
    }
    let (first, rest) = match text.split_once(':') {
        Some((first, rest)) => (first, Some(rest)),
        None => (text.as_str(), None),
    };
    match (first.split_once('-'), rest) {
        (Some((min, max)), _) if !min.is_empty() => read.range(min, max, rest),
        (_, None) => Ok(Size::Fixed {
            bytes: read.size(&text)?,
        }),
        (_, Some(_)) => read.list(&text),
    }
}

struct Reader<'a> {
    value: &'a Value,
}

impl Reader<'_> {
    fn range(&self, min: &str, max: &str, rest: Option<&str>) -> Result<Size, ConfigError> {
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
                format_size(step.into()),
                format_size(min.into()),
                format_size(max.into())
            )));
        }
        Ok(Size::Range { min, max, step })
    }

    fn list(&self, text: &str) -> Result<Size, ConfigError> {
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
            *weight /= sum;
        }
        Ok(Size::Weighted { choices })
    }

    fn log_normal(&self, text: &str) -> Result<Size, ConfigError> {
        let usage =
            "write log-normal:mean=26KiB, and if need be sigma=1, min=1KiB, max=512KiB, step=512";
        let Some(text) = text.strip_prefix(':') else {
            return Err(self.value.error(usage));
        };
        let (mut mean, mut sigma, mut min, mut max, mut step) = (None, SIGMA, 512, None, 0);
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
        // Beyond 32 times the mean there is next to nothing for an ordinary spread.
        let ample = u64::from(mean).saturating_mul(32).min(MAX_REQUEST) as u32;
        let max = max.unwrap_or(ample);
        self.check_bounds(min, max, step)?;
        if !(0.01..=5.0).contains(&sigma) {
            return Err(self.value.error("sigma must be from 0.01 to 5"));
        }
        if mean <= min || mean >= max {
            return Err(self.value.error(format!(
                "the mean {} must lie between the smallest size {} and the largest {}",
                format_size(mean.into()),
                format_size(min.into()),
                format_size(max.into())
            )));
        }
        Ok(Size::LogNormal {
            mean: f64::from(mean),
            sigma,
            min,
            max,
            step,
        })
    }

    fn check_bounds(&self, min: u32, max: u32, step: u32) -> Result<(), ConfigError> {
        if min > max {
            return Err(self.value.error(format!(
                "the smallest size {} is above the largest {}",
                format_size(min.into()),
                format_size(max.into())
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

    fn size(&self, text: &str) -> Result<u32, ConfigError> {
        let bytes = self
            .value
            .quantity("", |_| -> Result<u64, UnitError> { parse_size(text) })?;
        if bytes == 0 || bytes > MAX_REQUEST {
            let limit = format_size(MAX_REQUEST);
            let text = spindle_config::clean(text.trim());
            return Err(self.value.error(format!(
                "`{text}` is not a request size from 1 byte to {limit}"
            )));
        }
        Ok(bytes as u32)
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
