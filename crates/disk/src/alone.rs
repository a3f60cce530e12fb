//! A drive alone, without a disk around it: its answer to the requests of a trace.

use spindle_drive::{Command, Device as _, DriveError, Op, SubmitError, open_loop};
use spindle_sim::DriveSetup;
use thiserror::Error;

use crate::disk::{Geometry, Operation};

/// A request of a trace: when it came (nanoseconds), its letter (`Operation::letter`), first sector, sectors.
pub type Arrival = (u64, char, u64, u64);

/// The drive cannot answer.
#[derive(Debug, Error)]
pub enum AloneError {
    /// The drive cannot be built.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// It does not take a request.
    #[error(transparent)]
    Refused(#[from] SubmitError),
    /// A letter that no trace has.
    #[error("a request of kind {0:?}; there are R, W, F, D and Z")]
    Letter(char),
}

/// When the drive of a machine, idle at first, is done with each request, nanoseconds.
pub fn finish_times(setup: &DriveSetup, arrivals: &[Arrival]) -> Result<Vec<u64>, AloneError> {
    let mut drive = setup.build()?;
    let geometry = Geometry::new(setup, drive.queue_depth());
    let commands = arrivals.iter().map(|&(at_ns, letter, sector, sectors)| {
        let operation = Operation::of_letter(letter).ok_or(AloneError::Letter(letter))?;
        Ok((at_ns, geometry.command(0, operation, sector, sectors)))
    });
    let commands: Vec<_> = commands.collect::<Result<_, AloneError>>()?;
    let alone = |command: &Command| geometry.flushes_alone && command.op == Op::Flush;
    Ok(open_loop::finish_times(&mut drive, &commands, alone)?)
}
