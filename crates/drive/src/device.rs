//! The interface between a drive and the event loop that drives it.

use crate::command::{Command, Completion, Op};
use crate::error::SubmitError;

/// A drive in simulated time.
///
/// The host owns the clock. It never goes backwards, and the host stops at every event of the drive:
///
/// 1. [`submit`](Device::submit) hands over a command at the present moment;
/// 2. [`next_event_ns`](Device::next_event_ns) returns the time at which the drive next has something to do;
/// 3. [`advance`](Device::advance) brings the drive to that moment and reports what has finished.
///
/// An event need not be a completion: the drive may only take up the next command. Nothing is allocated per
/// command, there are no global states, and the same calls give the same answers on any machine.
pub trait Device {
    /// Blocks of 512 bytes.
    fn capacity_blocks(&self) -> u64;

    /// Commands that may be outstanding at the same time.
    fn queue_depth(&self) -> u32;

    /// Commands that are outstanding.
    fn outstanding(&self) -> u32;

    /// Hands over a command at `now_ns`. Call [`advance`](Device::advance) first if an event is due at `now_ns`.
    fn submit(&mut self, now_ns: u64, command: Command) -> Result<(), SubmitError>;

    /// When the drive next has something to do; `None` if it waits for a command.
    fn next_event_ns(&self) -> Option<u64>;

    /// Brings the drive to `now_ns`, which must not be past [`next_event_ns`](Device::next_event_ns) by more than the
    /// host is willing to let the drive idle: events between are dealt with at their own times, in order, and
    /// completions are reported in the order of their finish times.
    fn advance(&mut self, now_ns: u64, done: &mut impl FnMut(Completion));
}

/// Returns an error if a drive cannot take a command.
pub fn check(drive: &impl Device, command: &Command) -> Result<(), SubmitError> {
    if drive.outstanding() >= drive.queue_depth() {
        return Err(SubmitError::QueueFull {
            depth: drive.queue_depth(),
        });
    }
    if command.op == Op::Flush {
        return Ok(());
    }
    if command.blocks == 0 {
        return Err(SubmitError::Empty);
    }
    let capacity = drive.capacity_blocks();
    if command
        .lbn
        .checked_add(u64::from(command.blocks))
        .is_none_or(|end| end > capacity)
    {
        return Err(SubmitError::BeyondEnd {
            lbn: command.lbn,
            blocks: command.blocks,
            capacity,
        });
    }
    Ok(())
}
