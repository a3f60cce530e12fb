//! Arm, heads and platters: the times at which blocks can be under the head.

use crate::error::DriveError;
use crate::geometry::{Geometry, Place};
use crate::params::{AccessTime, DriveParams};
use crate::rotation::Rotation;
use crate::seek::SeekTable;

/// Position of the heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Arm {
    pub(crate) cylinder: u32,
    pub(crate) surface: u32,
}

/// The way of the heads to a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Approach {
    /// Arm, head switch and settling.
    pub(crate) seek_ns: u64,
    /// From there until the block comes round.
    pub(crate) wait_ns: u64,
}

/// Blocks that pass the head one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) first: u64,
    pub(crate) blocks: u32,
    pub(crate) arm: Arm,
    /// Time at which the first block begins to pass.
    pub(crate) start_ns: u64,
    /// Nanoseconds per block, times 2^16.
    pub(crate) block_q16: u64,
    /// Time at which the heads were on the track.
    pub(crate) on_track_ns: u64,
}

impl Run {
    /// The block after the last.
    #[inline]
    pub(crate) const fn end(&self) -> u64 {
        self.first + self.blocks as u64
    }

    /// Time at which the first `blocks` blocks have passed.
    #[inline]
    pub(crate) const fn passed_ns(&self, blocks: u64) -> u64 {
        self.start_ns + ((blocks * self.block_q16 + 0xFFFF) >> 16)
    }

    /// Time at which all have passed.
    #[inline]
    pub(crate) const fn end_ns(&self) -> u64 {
        self.passed_ns(self.blocks as u64)
    }

    /// Blocks that have passed whole at `now_ns`.
    #[inline]
    pub(crate) fn passed_by(&self, now_ns: u64) -> u64 {
        if now_ns <= self.start_ns {
            return 0;
        }
        if now_ns >= self.end_ns() {
            return u64::from(self.blocks);
        }
        ((now_ns - self.start_ns) << 16) / self.block_q16.max(1)
    }
}

/// The mechanism of a drive. It has no state of its own.
#[derive(Debug, Clone)]
pub(crate) struct Mechanics {
    pub(crate) geometry: Geometry,
    pub(crate) rotation: Rotation,
    seeks: SeekTable,
    head_switch_ns: u64,
    head_switch_settles: bool,
    write_settle_ns: i64,
    access: AccessTime,
    block_q16: Vec<u64>,
}

impl Mechanics {
    pub(crate) fn new(params: &DriveParams) -> Result<Self, DriveError> {
        let geometry = Geometry::new(&params.geometry)?;
        let rotation = Rotation::from_rpm(params.rpm).ok_or_else(|| {
            DriveError::parameter(
                "rotation speed",
                format!("{} rpm; allowed are 1 to 1000000", params.rpm),
            )
        })?;
        let seeks = SeekTable::new(&params.seek, geometry.cylinders())?;
        let block_q16 = geometry
            .zones()
            .map(|(_, _, per_track)| rotation.block_q16(per_track))
            .collect();
        Ok(Self {
            geometry,
            rotation,
            seeks,
            head_switch_ns: params.head_switch_ns,
            head_switch_settles: params.head_switch_settles,
            write_settle_ns: params.write_settle_ns,
            access: params.access_time,
            block_q16,
        })
    }

    /// Nanoseconds per block at a place, times 2^16.
    #[inline]
    pub(crate) fn block_q16(&self, place: &Place) -> u64 {
        self.block_q16[place.zone as usize]
    }

    /// Moving the heads from `arm` to a track: max(seek, head switch), and settling before a write if anything moved
    /// (a change of heads alone may include it).
    #[inline]
    pub(crate) fn seek_ns(&self, arm: Arm, cylinder: u32, surface: u32, write: bool) -> u64 {
        let seek_ns = self.seeks.time_ns(arm.cylinder.abs_diff(cylinder));
        let mut ns = seek_ns;
        if arm.surface != surface {
            ns = ns.max(self.head_switch_ns);
        }
        let settled = seek_ns == 0 && self.head_switch_settles;
        if write && ns > 0 && !settled {
            ns.saturating_add_signed(self.write_settle_ns)
        } else {
            ns
        }
    }

    /// Getting from `arm` at `now_ns` to a block, on its track no sooner than `least_ns` from now.
    #[inline]
    pub(crate) fn approach(
        &self,
        arm: Arm,
        now_ns: u64,
        place: &Place,
        write: bool,
        least_ns: u64,
    ) -> Approach {
        let seek_ns = self
            .seek_ns(arm, place.cylinder, place.surface, write)
            .max(least_ns);
        match self.access {
            AccessTime::TrueRotation => Approach {
                seek_ns,
                wait_ns: self.rotation.wait_ns(now_ns + seek_ns, place.angle),
            },
            AccessTime::MeanRotation => {
                let same_track =
                    seek_ns == 0 && arm.cylinder == place.cylinder && arm.surface == place.surface;
                Approach {
                    seek_ns,
                    wait_ns: if same_track {
                        0
                    } else {
                        self.rotation.turn_ns() / 2
                    },
                }
            }
            AccessTime::Constant(ns) => Approach {
                seek_ns: ns,
                wait_ns: 0,
            },
        }
    }

    /// The run of blocks that starts at `place`, cut off before block `end`.
    #[inline]
    pub(crate) fn run(
        &self,
        lbn: u64,
        end: u64,
        place: &Place,
        now_ns: u64,
        approach: Approach,
    ) -> Run {
        let on_track_ns = now_ns + approach.seek_ns;
        Run {
            first: lbn,
            blocks: u64::from(place.run).min(end - lbn) as u32,
            arm: Arm {
                cylinder: place.cylinder,
                surface: place.surface,
            },
            start_ns: on_track_ns + approach.wait_ns,
            block_q16: self.block_q16(place),
            on_track_ns,
        }
    }

    /// Reading or writing on arrival: where the heads land in the middle of `run`, what is behind them goes first and what
    /// is before them when it comes round. The two parts, the second done as soon as the first is, and when the heads
    /// began; `None` if they land outside.
    ///
    /// `wait_ns` is what waiting for the first block would take.
    pub(crate) fn on_arrival(&self, run: &Run, wait_ns: u64) -> Option<(Run, Run, u64)> {
        let turn_ns = self.rotation.turn_ns();
        let passed_ns = turn_ns.saturating_sub(wait_ns);
        let missed = ((passed_ns << 16).div_ceil(run.block_q16.max(1))) as u32;
        if wait_ns == 0 || missed == 0 || missed >= run.blocks {
            return None;
        }
        let front = Run {
            blocks: missed,
            ..*run
        };
        let end_ns = front.end_ns();
        let rest = Run {
            first: run.first + u64::from(missed),
            blocks: run.blocks - missed,
            start_ns: end_ns,
            block_q16: 0,
            on_track_ns: end_ns,
            ..*run
        };
        Some((
            front,
            rest,
            run.passed_ns(u64::from(missed)).saturating_sub(turn_ns),
        ))
    }
}
