//! Every command of every drive as a line of CSV.

use std::io::{self, Write};

use spindle_drive::{Completion, Op, ServedFrom};

use super::queue::Done;

/// First line of a trace. Times in ns.
const HEADER: &str = "finish_ns,drive,op,lbn,blocks,thread,arrive_ns,host_queue_ns,drive_queue_ns,queue_ns,overhead_ns,seek_ns,rotation_ns,transfer_ns,total_ns,served_from";

pub(crate) struct Trace {
    out: Box<dyn Write + Send>,
    failed: Option<io::Error>,
}

impl Trace {
    pub(crate) fn new(out: Box<dyn Write + Send>) -> Trace {
        let mut trace = Trace { out, failed: None };
        let written = writeln!(trace.out, "{HEADER}");
        trace.keep(written);
        trace
    }

    fn keep(&mut self, written: io::Result<()>) {
        if let Err(error) = written {
            self.failed.get_or_insert(error);
        }
    }

    /// A read or write; its times add up to the last one exactly.
    pub(crate) fn request(&mut self, drive: usize, done: &Done, completion: &Completion) {
        let Done {
            request,
            arrived_ns,
            dispatched_ns,
            ..
        } = *done;
        let thread = request.context.to_string();
        self.line(
            drive,
            (request.lbn, request.blocks),
            &thread,
            arrived_ns,
            dispatched_ns,
            completion,
        );
    }

    pub(crate) fn flush(&mut self, drive: usize, completion: &Completion) {
        self.line(
            drive,
            (0, 0),
            "",
            completion.submit_ns,
            completion.submit_ns,
            completion,
        );
    }

    fn line(
        &mut self,
        drive: usize,
        (lbn, blocks): (u64, u32),
        thread: &str,
        arrived_ns: u64,
        dispatched_ns: u64,
        completion: &Completion,
    ) {
        if self.failed.is_some() {
            return;
        }
        let op = match completion.op {
            Op::Read => "read",
            Op::Write => "write",
            Op::Flush => "flush",
            Op::Discard => "discard",
        };
        let served = match completion.served_from {
            ServedFrom::Medium => "medium",
            ServedFrom::Buffer => "buffer",
            ServedFrom::PartlyBuffer => "partly-buffer",
            ServedFrom::WriteCache => "write-cache",
        };
        let phases = &completion.phases;
        let host_ns = dispatched_ns - arrived_ns;
        let written = writeln!(
            self.out,
            "{},drive{drive},{op},{lbn},{blocks},{thread},{arrived_ns},{host_ns},{},{},{},{},{},{},{},{served}",
            completion.finish_ns,
            phases.queue_ns,
            host_ns + phases.queue_ns,
            phases.overhead_ns,
            phases.seek_ns,
            phases.rotation_ns,
            phases.transfer_ns,
            completion.finish_ns - arrived_ns,
        );
        self.keep(written);
    }

    pub(crate) fn close(mut self) -> io::Result<()> {
        match self.failed {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }
}
