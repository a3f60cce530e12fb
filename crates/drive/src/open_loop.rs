//! A drive alone under requests that come at given times.

use std::collections::VecDeque;

use crate::command::Command;
use crate::device::Device;
use crate::error::SubmitError;

/// When each command is done, in the order given, if they come at these times (nanoseconds, rising) to an idle drive. A
/// command that the drive has no room for waits in order of arrival; one that is served `alone` waits for those before it,
/// and those behind it wait for it. The commands' numbers are set here.
pub fn finish_times(
    drive: &mut impl Device,
    arrivals: &[(u64, Command)],
    alone: impl Fn(&Command) -> bool,
) -> Result<Vec<u64>, SubmitError> {
    let mut finished = vec![0; arrivals.len()];
    let mut waiting: VecDeque<Command> = VecDeque::new();
    let mut is_alone = false;
    let mut coming = (0..).zip(arrivals).peekable();
    loop {
        let event_ns = drive.next_event_ns();
        let arrival_ns = coming.peek().map(|(_, (at, _))| *at);
        let Some(now_ns) = event_ns.into_iter().chain(arrival_ns).min() else {
            return Ok(finished);
        };
        if event_ns == Some(now_ns) {
            drive.advance(now_ns, &mut |done| {
                finished[done.id as usize] = done.finish_ns
            });
        } else if let Some((id, (_, command))) = coming.next() {
            waiting.push_back(Command { id, ..*command });
        }
        while let Some(command) = waiting.front() {
            let room = if is_alone || alone(command) {
                1
            } else {
                drive.queue_depth()
            };
            if drive.outstanding() >= room {
                break;
            }
            is_alone = alone(command);
            drive.submit(now_ns, *command)?;
            waiting.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Op;
    use crate::{Server, ServerParams, ServiceTime};

    #[test]
    fn what_finds_no_room_waits_in_order_of_arrival() {
        let mut drive = Server::new(ServerParams {
            capacity_blocks: 1000,
            queue_depth: 2,
            service: ServiceTime::Constant(100),
            bytes_per_s: None,
            flush_ns: None,
            servers: 1,
            rotational: false,
            seed: 1,
        })
        .unwrap();
        let read = Command::read(7, 0, 8);
        let arrivals = [(0, read), (10, read), (20, read), (250, read), (1000, read)];
        let found = finish_times(&mut drive, &arrivals, |_| false).unwrap();
        assert_eq!(found, [100, 200, 300, 400, 1100]);
    }

    #[test]
    fn what_is_served_alone_waits_and_is_waited_for() {
        let mut drive = Server::new(ServerParams {
            capacity_blocks: 1000,
            queue_depth: 8,
            service: ServiceTime::Constant(100),
            bytes_per_s: None,
            flush_ns: Some(50),
            servers: 8,
            rotational: false,
            seed: 1,
        })
        .unwrap();
        let (read, flush) = (Command::read(7, 0, 8), Command::flush(7));
        let arrivals = [(0, read), (10, read), (20, flush), (30, read), (40, read)];
        let found = finish_times(&mut drive, &arrivals, |command| command.op == Op::Flush).unwrap();
        assert_eq!(found, [100, 110, 160, 260, 260]);
        let found = finish_times(&mut drive, &[(1000, read), (1020, flush)], |_| false).unwrap();
        assert_eq!(found, [1100, 1070]);
    }

    #[test]
    fn a_command_that_the_drive_refuses_is_an_error() {
        let mut disk = crate::drive("HDS725050KLA360", crate::Settings::default()).unwrap();
        let beyond = Command::read(0, disk.capacity_blocks(), 8);
        assert!(finish_times(&mut disk, &[(0, beyond)], |_| false).is_err());
    }
}
