//! A drive alone, without a disk around it: its answer to the requests of a trace.

use spindle_drive::{Command, DriveError, SubmitError, open_loop};
use spindle_sim::DriveSetup;
use thiserror::Error;

use crate::disk::SECTOR;

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
    let commands = arrivals.iter().map(|&(at_ns, letter, sector, sectors)| {
        let (block, blocks) = (setup.start / SECTOR + sector, sectors as u32);
        let command = match letter {
            'R' => Command::read(0, block, blocks),
            'W' | 'Z' => Command::write(0, block, blocks),
            'D' => Command::write(0, block, 1),
            'F' => Command::flush(0),
            other => return Err(AloneError::Letter(other)),
        };
        Ok((at_ns, command))
    });
    let commands: Vec<_> = commands.collect::<Result<_, _>>()?;
    Ok(open_loop::finish_times(&mut setup.build()?, &commands)?)
}
