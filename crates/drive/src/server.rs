//! A drive reduced to a service time: one command after the other, each as long as it is drawn; or several at once, whose
//! data share a link.
//!
//! It does not model a real drive, but gives the event loop a case for which queueing theory has formulas.

use std::collections::VecDeque;

use crate::command::{Command, Completion, Op, Phases, ServedFrom};
use crate::device::{Device, check};
use crate::error::{DriveError, SubmitError};
use crate::random::SplitMix;

const BLOCK_BYTES: u128 = 512;

/// The distribution of service times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ServiceTime {
    /// Always the same, nanoseconds (M/D/1).
    Constant(u64),
    /// Uniform between two times, nanoseconds.
    Uniform(u64, u64),
    /// Exponential with this mean, nanoseconds (M/M/1).
    Exponential(u64),
}

/// The parameters of a [`Server`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServerParams {
    /// Blocks of 512 bytes.
    pub capacity_blocks: u64,
    /// Commands that may be outstanding.
    pub queue_depth: u32,
    /// Service time of a read or write, without the transfer.
    pub service: ServiceTime,
    /// Bytes per second of the transfer, which comes on top; `None` if it takes no time.
    pub bytes_per_s: Option<u64>,
    /// Service time of a flush, nanoseconds; `None` if the drive has no write cache that a host would flush.
    pub flush_ns: Option<u64>,
    /// Commands that are served at once; more than one then transfer their data one after the other.
    pub servers: u32,
    /// The host takes it for a drive with moving heads.
    pub rotational: bool,
    /// Seed of the times drawn.
    pub seed: u64,
}

/// One server or several with a queue, first come first served.
#[derive(Debug, Clone)]
pub struct Server {
    params: ServerParams,
    random: SplitMix,
    /// When each server is free.
    free_ns: Vec<u64>,
    link_free_ns: u64,
    finished: VecDeque<Completion>,
}

impl Server {
    /// Builds an idle server.
    pub fn new(params: ServerParams) -> Result<Self, DriveError> {
        if params.queue_depth == 0 || params.capacity_blocks == 0 {
            return Err(DriveError::parameter(
                "server",
                "queue depth and capacity must be at least 1",
            ));
        }
        if params.servers == 0 || params.servers > 4096 {
            return Err(DriveError::parameter(
                "server",
                "from 1 to 4096 commands are served at once",
            ));
        }
        if params.bytes_per_s == Some(0) {
            return Err(DriveError::parameter(
                "server",
                "the transfer rate must be above 0",
            ));
        }
        if let ServiceTime::Uniform(least, most) = params.service
            && least > most
        {
            return Err(DriveError::parameter(
                "server",
                "the least service time is more than the most",
            ));
        }
        Ok(Self {
            random: SplitMix::new(params.seed),
            free_ns: vec![0; params.servers as usize],
            link_free_ns: 0,
            params,
            finished: VecDeque::new(),
        })
    }

    pub(crate) fn least_latency_ns(&self) -> u64 {
        let service = match self.params.service {
            ServiceTime::Constant(ns) | ServiceTime::Uniform(ns, _) => ns,
            ServiceTime::Exponential(_) => 0,
        };
        service.min(self.params.flush_ns.unwrap_or(service))
    }

    /// Service time and transfer time.
    fn command_ns(&mut self, command: &Command) -> (u64, u64) {
        match command.op {
            Op::Flush => (self.params.flush_ns.unwrap_or(0), 0),
            // No data move.
            Op::Discard => (self.service_ns(), 0),
            Op::Read | Op::Write => (self.service_ns(), self.transfer_ns(command.blocks)),
        }
    }

    /// Takes the server that is free first, then the link: when the command starts and when it is done.
    fn serve(&mut self, now_ns: u64, command: &Command) -> (u64, u64) {
        let (service_ns, transfer_ns) = self.command_ns(command);
        let first = (0..self.free_ns.len()).min_by_key(|&server| self.free_ns[server]);
        let server = first.unwrap_or(0);
        let start_ns = now_ns.max(self.free_ns[server]);
        let served_ns = start_ns + service_ns;
        let finish_ns = if transfer_ns == 0 {
            served_ns
        } else {
            self.link_free_ns = served_ns.max(self.link_free_ns) + transfer_ns;
            self.link_free_ns
        };
        self.free_ns[server] = finish_ns;
        (start_ns, finish_ns)
    }

    /// Rounded to the nearest nanosecond.
    fn transfer_ns(&self, blocks: u32) -> u64 {
        let Some(rate) = self.params.bytes_per_s else {
            return 0;
        };
        let scaled = u128::from(blocks) * BLOCK_BYTES * 1_000_000_000;
        ((scaled + u128::from(rate) / 2) / u128::from(rate)) as u64
    }

    fn service_ns(&mut self) -> u64 {
        match self.params.service {
            ServiceTime::Constant(ns) => ns,
            ServiceTime::Uniform(least, most) => {
                let share = u128::from(self.random.next()) * u128::from(most - least + 1);
                least + (share >> 64) as u64
            }
            ServiceTime::Exponential(mean) => {
                let share = ((self.random.next() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
                (-share.ln() * mean as f64).round() as u64
            }
        }
    }
}

impl Device for Server {
    fn capacity_blocks(&self) -> u64 {
        self.params.capacity_blocks
    }

    fn queue_depth(&self) -> u32 {
        self.params.queue_depth
    }

    fn outstanding(&self) -> u32 {
        self.finished.len() as u32
    }

    fn submit(&mut self, now_ns: u64, command: Command) -> Result<(), SubmitError> {
        check(self, &command)?;
        let (start_ns, finish_ns) = self.serve(now_ns, &command);
        let completion = Completion {
            id: command.id,
            op: command.op,
            served_from: ServedFrom::Medium,
            submit_ns: now_ns,
            finish_ns,
            phases: Phases {
                queue_ns: start_ns - now_ns,
                transfer_ns: finish_ns - start_ns,
                ..Phases::default()
            },
        };
        let later = |other: &Completion| other.finish_ns <= finish_ns;
        let place = self.finished.partition_point(later);
        self.finished.insert(place, completion);
        Ok(())
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.finished.front().map(|completion| completion.finish_ns)
    }

    fn advance(&mut self, now_ns: u64, done: &mut impl FnMut(Completion)) {
        while let Some(completion) = self.finished.front().copied()
            && completion.finish_ns <= now_ns
        {
            self.finished.pop_front();
            done(completion);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::complete;

    #[test]
    fn a_transfer_takes_time_for_each_byte_and_a_flush_its_own() {
        let mut server = Server::new(ServerParams {
            capacity_blocks: 1000,
            queue_depth: 2,
            service: ServiceTime::Constant(100_000),
            bytes_per_s: Some(200_000_000),
            flush_ns: Some(70_000),
            servers: 1,
            rotational: true,
            seed: 1,
        })
        .unwrap();
        server.submit(5, Command::write(1, 0, 8)).unwrap();
        server.submit(6, Command::flush(2)).unwrap();
        assert_eq!(complete(&mut server).finish_ns, 5 + 100_000 + 4096 * 5);
        assert_eq!(
            complete(&mut server).finish_ns,
            5 + 100_000 + 4096 * 5 + 70_000
        );
    }

    #[test]
    fn several_servers_work_at_once_and_share_the_link() {
        let mut server = Server::new(ServerParams {
            capacity_blocks: 1000,
            queue_depth: 4,
            service: ServiceTime::Constant(100_000),
            bytes_per_s: Some(200_000_000),
            flush_ns: None,
            servers: 2,
            rotational: true,
            seed: 1,
        })
        .unwrap();
        for id in 0..3 {
            server.submit(0, Command::read(id, 0, 8)).unwrap();
        }
        let transfer = 4096 * 5;
        let done: Vec<u64> = (0..3).map(|_| complete(&mut server).finish_ns).collect();
        let first = 100_000 + transfer;
        assert_eq!(done, [first, first + transfer, first + 100_000 + transfer]);
    }

    /// Mean wait of a queue with Poisson arrivals at `load` of the server's capacity.
    fn mean_wait(service: ServiceTime, mean_ns: f64, load: f64) -> f64 {
        let params = ServerParams {
            capacity_blocks: 1,
            queue_depth: u32::MAX,
            service,
            bytes_per_s: None,
            flush_ns: None,
            servers: 1,
            rotational: true,
            seed: 7,
        };
        let mut server = Server::new(params).unwrap();
        let mut arrivals = Server::new(ServerParams {
            service: ServiceTime::Exponential((mean_ns / load) as u64),
            seed: 8,
            ..params
        })
        .unwrap();
        let (mut now, mut wait, mut count) = (0, 0, 0_u64);
        for id in 0..400_000 {
            now += arrivals.service_ns();
            server.advance(now, &mut |completion| {
                wait += completion.phases.queue_ns;
                count += 1;
            });
            server.submit(now, Command::read(id, 0, 1)).unwrap();
        }
        wait as f64 / count as f64
    }

    #[test]
    fn waits_are_those_of_pollaczek_and_khinchine() {
        let mean = 1e6;
        for (service, spread) in [
            (ServiceTime::Constant(1_000_000), 0.0),
            (ServiceTime::Uniform(0, 2_000_000), 1.0 / 3.0),
            (ServiceTime::Exponential(1_000_000), 1.0),
        ] {
            let load = 0.7;
            let expected = load / (1.0 - load) * (1.0 + spread) / 2.0 * mean;
            let wait = mean_wait(service, mean, load);
            assert!(
                (wait / expected - 1.0).abs() < 0.03,
                "{service:?}: {wait} instead of {expected}"
            );
        }
    }
}
