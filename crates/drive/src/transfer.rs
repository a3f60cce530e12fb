//! The host bus: the time at which the last block of a read has been sent.

use crate::mechanics::Run;

/// The transfer of a read's blocks to the host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostTransfer {
    /// Blocks of the command.
    pub(crate) blocks: u64,
    /// First block of the command.
    pub(crate) first: u64,
    /// Nanoseconds per block on the bus, times 2^16.
    pub(crate) block_q16: u64,
    /// Blocks that must be there before the drive takes the bus again.
    pub(crate) watermark: u64,
    /// The drive keeps the bus once it has it.
    pub(crate) hold: bool,
    /// Leaving the bus.
    pub(crate) disconnect_ns: u64,
    /// Taking the bus again, up to the first block.
    pub(crate) reconnect_ns: u64,
}

impl HostTransfer {
    fn time(&self, blocks: u64) -> u64 {
        (blocks * self.block_q16 + 0xFFFF) >> 16
    }

    /// Time at which all has been sent, if sending starts at `start_ns` and the blocks that are not in the buffer yet come in with
    /// `runs`.
    ///
    /// The bus works whenever there is something to send, so the last block is out at the latest of "all from the start
    /// on", and, for each block, "this one came in and all behind it followed". Within a run only its first and last
    /// block matter.
    pub(crate) fn finish_ns(&self, start_ns: u64, runs: &[Run]) -> u64 {
        if !self.hold
            && (self.disconnect_ns > 0 || self.reconnect_ns > 0 || self.watermark > 1)
            && !runs.is_empty()
        {
            return self.finish_in_pieces_ns(start_ns, runs);
        }
        let end = self.first + self.blocks;
        let mut finish = start_ns + self.time(self.blocks);
        for run in runs {
            finish = finish.max(run.passed_ns(1) + self.time(end - run.first));
            finish = finish.max(run.end_ns() + self.time(end - run.end() + 1));
        }
        finish
    }

    /// The same for a drive that leaves the bus whenever it has nothing to send.
    fn finish_in_pieces_ns(&self, start_ns: u64, runs: &[Run]) -> u64 {
        let mut now = start_ns;
        let mut sent = 0;
        loop {
            let there = self.there_by(now, runs);
            if there > sent {
                now += self.time(there - sent);
                sent = there;
                if sent >= self.blocks {
                    return now;
                }
            } else {
                let wanted = (sent + self.watermark.max(1)).min(self.blocks);
                now =
                    (now + self.disconnect_ns).max(self.there_ns(wanted, runs)) + self.reconnect_ns;
            }
        }
    }

    /// Blocks of the command in the buffer at `now_ns`.
    fn there_by(&self, now_ns: u64, runs: &[Run]) -> u64 {
        let mut there = runs
            .first()
            .map_or(self.blocks, |run| run.first - self.first);
        for run in runs {
            let passed = run.passed_by(now_ns);
            there += passed;
            if passed < u64::from(run.blocks) {
                break;
            }
        }
        there
    }

    /// Time at which the first `blocks` blocks of the command are in the buffer.
    pub(crate) fn there_ns(&self, blocks: u64, runs: &[Run]) -> u64 {
        let lbn = self.first + blocks;
        match runs.iter().find(|run| lbn <= run.end()) {
            Some(run) if lbn > run.first => run.passed_ns(lbn - run.first),
            Some(_) => 0,
            None => runs.last().map_or(0, Run::end_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanics::Arm;

    fn run(first: u64, blocks: u32, start_ns: u64, block_ns: u64) -> Run {
        let arm = Arm {
            cylinder: 0,
            surface: 0,
        };
        Run {
            first,
            blocks,
            arm,
            start_ns,
            block_q16: block_ns << 16,
            on_track_ns: start_ns,
        }
    }

    fn sending(blocks: u64, block_ns: u64) -> HostTransfer {
        HostTransfer {
            blocks,
            first: 100,
            block_q16: block_ns << 16,
            watermark: 1,
            hold: false,
            disconnect_ns: 0,
            reconnect_ns: 0,
        }
    }

    #[test]
    fn a_fast_bus_ends_one_block_after_the_medium() {
        assert_eq!(
            sending(10, 3).finish_ns(1010, &[run(100, 10, 1000, 10)]),
            1103
        );
    }

    #[test]
    fn a_slow_bus_works_without_a_pause_from_the_first_block_on() {
        assert_eq!(
            sending(10, 30).finish_ns(1010, &[run(100, 10, 1000, 10)]),
            1310
        );
    }

    #[test]
    fn a_gap_between_tracks_is_waited_for() {
        let runs = [run(100, 5, 1000, 10), run(105, 5, 2000, 10)];
        assert_eq!(sending(10, 3).finish_ns(1010, &runs), 2053);
    }

    #[test]
    fn what_is_in_the_buffer_goes_at_the_speed_of_the_bus() {
        assert_eq!(sending(10, 3).finish_ns(500, &[]), 530);
    }

    #[test]
    fn leaving_and_taking_the_bus_again_costs_what_it_says() {
        let pieces = HostTransfer {
            watermark: 5,
            disconnect_ns: 7,
            reconnect_ns: 20,
            ..sending(10, 3)
        };
        // Five blocks at 1050 and the sixth by 1065; the rest in one piece when all are there.
        assert_eq!(pieces.finish_ns(1050, &[run(100, 10, 1000, 10)]), 1132);
        let held = HostTransfer {
            hold: true,
            ..pieces
        };
        assert_eq!(held.finish_ns(1050, &[run(100, 10, 1000, 10)]), 1103);
    }
}
