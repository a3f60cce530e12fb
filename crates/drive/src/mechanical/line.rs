//! Commands that wait for the mechanism, and what the choice among them looks at, side by side in memory.

use std::ops::Deref;

use super::Waiting;
use crate::command::Op;
use crate::rotation::Angle;

/// The part of a command that the choice looks at: it looks at all of them each time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spot {
    pub(super) lbn: u64,
    pub(super) ready_ns: u64,
    pub(super) submit_ns: u64,
    pub(super) angle: Angle,
    pub(super) cylinder: u32,
    pub(super) surface: u32,
    pub(super) blocks: u32,
    pub(super) op: Op,
}

/// The commands, in no order.
#[derive(Debug, Clone)]
pub(super) struct Line {
    commands: Vec<Waiting>,
    spots: Vec<Spot>,
}

impl Line {
    pub(super) fn with_capacity(depth: usize) -> Line {
        Line {
            commands: Vec::with_capacity(depth),
            spots: Vec::with_capacity(depth),
        }
    }

    pub(super) fn push(&mut self, wait: Waiting) {
        self.spots.push(Spot {
            lbn: wait.command.lbn,
            ready_ns: wait.ready_ns,
            submit_ns: wait.submit_ns,
            angle: wait.place.angle,
            cylinder: wait.place.cylinder,
            surface: wait.place.surface,
            blocks: wait.command.blocks,
            op: wait.command.op,
        });
        self.commands.push(wait);
    }

    pub(super) fn swap_remove(&mut self, index: usize) -> Waiting {
        self.spots.swap_remove(index);
        self.commands.swap_remove(index)
    }

    pub(super) fn spots(&self) -> &[Spot] {
        &self.spots
    }
}

impl Deref for Line {
    type Target = [Waiting];

    fn deref(&self) -> &[Waiting] {
        &self.commands
    }
}
