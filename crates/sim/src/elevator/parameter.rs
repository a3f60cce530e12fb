//! Parameters of elevators under the names that sysfs and machine files have for them.

/// A parameter and the place of its value.
#[derive(Debug)]
pub struct Parameter<'a> {
    /// Key in `[queue.iosched]` of a machine file.
    pub key: &'static str,
    /// File in `queue/iosched`; `None` where its value cannot be carried over.
    pub file: Option<&'static str>,
    /// The value.
    pub value: ParameterValue<'a>,
}

/// The value of a parameter, and the unit that sysfs has for it.
#[derive(Debug)]
pub enum ParameterValue<'a> {
    /// Nanoseconds here, milliseconds in sysfs.
    Milliseconds(&'a mut u64),
    /// Nanoseconds in both.
    Nanoseconds(&'a mut u64),
    /// Blocks here, KiB in sysfs; at least this many.
    Blocks(&'a mut u64, u64),
    /// A count of at least this many.
    Count(&'a mut u32, u32),
    /// A factor from 1 to 1000.
    Factor(&'a mut u64),
    /// 0 or 1 in sysfs.
    Flag(&'a mut bool),
}

impl ParameterValue<'_> {
    /// Unit in sysfs.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        match self {
            ParameterValue::Milliseconds(_) => "ms",
            ParameterValue::Nanoseconds(_) => "ns",
            ParameterValue::Blocks(..) => "KiB",
            ParameterValue::Count(..) | ParameterValue::Factor(_) => "count",
            ParameterValue::Flag(_) => "flag",
        }
    }
}

impl<'a> Parameter<'a> {
    fn of(key: &'static str, value: ParameterValue<'a>) -> Parameter<'a> {
        Parameter {
            key,
            file: Some(key),
            value,
        }
    }

    pub(super) fn time(key: &'static str, ns: &'a mut u64) -> Parameter<'a> {
        Parameter::of(key, ParameterValue::Milliseconds(ns))
    }

    /// A time that sysfs has in nanoseconds, under another name.
    pub(super) fn fine_time(
        key: &'static str,
        file: &'static str,
        ns: &'a mut u64,
    ) -> Parameter<'a> {
        Parameter {
            key,
            file: Some(file),
            value: ParameterValue::Nanoseconds(ns),
        }
    }

    pub(super) fn count(key: &'static str, least: u32, count: &'a mut u32) -> Parameter<'a> {
        Parameter::of(key, ParameterValue::Count(count, least))
    }

    pub(super) fn factor(key: &'static str, factor: &'a mut u64) -> Parameter<'a> {
        Parameter::of(key, ParameterValue::Factor(factor))
    }

    pub(super) fn blocks(key: &'static str, blocks: &'a mut u64) -> Parameter<'a> {
        Parameter::of(key, ParameterValue::Blocks(blocks, 0))
    }

    /// Blocks that the kernel adapts by itself: sysfs shows no fixed value.
    pub(super) fn budget(key: &'static str, least: u64, blocks: &'a mut u64) -> Parameter<'a> {
        Parameter {
            key,
            file: None,
            value: ParameterValue::Blocks(blocks, least),
        }
    }

    pub(super) fn flag(key: &'static str, flag: &'a mut bool) -> Parameter<'a> {
        Parameter::of(key, ParameterValue::Flag(flag))
    }
}
