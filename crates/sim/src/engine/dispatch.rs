//! Queues that have something to do: elevators hand requests to drives, and drives have finished some.

use spindle_drive::{Device, SubmitError};

use super::events::NEVER;
use super::threads::Readings;
use super::{Engine, Outcome};
use crate::error::SimError;
use crate::request::Id;

impl Engine {
    /// Runs the queues that were touched, and notes their next event.
    #[inline]
    pub(super) fn dispatch(&mut self) -> Outcome {
        match self.touched.is_empty() {
            true => Ok(()),
            false => self.run_queues(),
        }
    }

    /// The part of it that only touched queues need.
    fn run_queues(&mut self) -> Outcome {
        debug_assert!(self.started.is_empty(), "an interrupt does not run queues");
        while let Some(queue) = self.next_starving() {
            self.run_queue(queue as usize)?;
        }
        while let Some(queue) = self.next_touched() {
            self.run_queue(queue as usize)?;
        }
        Ok(())
    }

    #[inline]
    fn run_queue(&mut self, queue: usize) -> Outcome {
        self.is_touched[queue] = false;
        self.is_run[queue] = false;
        if self.queues[queue].has_merged() {
            self.merged.push(queue as u32);
        }
        let event_ns = self.catch_up(queue);
        if self.queues[queue].is_quiet() {
            self.note(queue, event_ns);
            return Ok(());
        }
        if self.rules.reading_ns > 0 && self.queues[queue].begins_flush() {
            self.read_clock(Readings::START)?;
        }
        while !self.queues[queue].is_quiet()
            && let Some(request) = self.queues[queue]
                .next(self.now_ns)
                .map_err(|error| self.refused(queue, error))?
        {
            if self.rules.reading_ns == 0 {
                self.hand_over(queue, request)?;
            } else {
                self.read_clock(Readings::START)?;
                self.started.push(request);
            }
        }
        // The drive hears of them when the last one is ready (`bd->last`), after all that happened before.
        if !self.started.is_empty() {
            self.pass_events();
            self.catch_up(queue);
        }
        for at in 0..self.started.len() {
            self.hand_over(queue, self.started[at])?;
        }
        self.started.clear();
        if self.queues[queue].starves() {
            self.starve(queue);
        }
        self.note_events(queue);
        Ok(())
    }

    /// The adapter takes no command of this queue: it is the last in the line of those that wait for one
    /// (`scsi_request_fn`).
    #[cold]
    fn starve(&mut self, queue: usize) {
        if !self.starving.contains(&(queue as u32)) {
            self.starving.push_back(queue as u32);
        }
    }

    /// The first queue in that line whose adapter takes commands again (`scsi_run_queue`).
    #[inline]
    fn next_starving(&mut self) -> Option<u32> {
        if self.starving.is_empty() {
            return None;
        }
        let queues = &mut self.queues;
        let goes_on = |queue: &u32| queues[*queue as usize].may_go_on();
        let at = self.starving.iter().position(goes_on)?;
        let queue = self.starving.remove(at)?;
        self.touched.retain(|other| *other != queue);
        Some(queue)
    }

    /// Drives do what is due; the interrupts come when the processor looks at the clock.
    pub(super) fn pass_events(&mut self) {
        while let (at_ns, source) = self.events.first()
            && at_ns <= self.now_ns
            && source < self.queues.len()
        {
            self.advance(source);
            self.touch(source);
            self.note_events(source);
        }
    }

    /// False if this queue alone was touched, and has nothing for its drive: then its events can be noted later too.
    #[inline]
    pub(super) fn has_to_dispatch(&self, queue: usize) -> bool {
        self.touched.len() > 1 || !self.queues[queue].is_quiet()
    }

    /// The order counts only where their requests take time.
    #[inline]
    fn next_touched(&mut self) -> Option<u32> {
        if self.rules.reading_ns == 0 || self.touched.len() < 2 {
            return self.touched.pop();
        }
        Some(self.touched.remove(0))
    }

    #[inline(always)]
    pub(super) fn hand_over(&mut self, queue: usize, request: Id) -> Outcome {
        let now_ns = self.now_ns;
        self.queues[queue]
            .hand_over(now_ns, request)
            .map_err(|error| self.refused(queue, error))
    }

    /// Notes the next events of a queue.
    #[inline(always)]
    pub(super) fn note_events(&mut self, queue: usize) {
        self.note(queue, self.queues[queue].drive.next_event_ns());
    }

    /// Notes the next events of a queue; `event_ns` is that of its drive.
    #[inline(always)]
    fn note(&mut self, queue: usize, event_ns: Option<u64>) {
        let timer_ns = self.queues[queue].timer_ns();
        self.events.set(queue, event_ns.unwrap_or(NEVER));
        self.events
            .set(self.queues.len() + queue, timer_ns.unwrap_or(NEVER));
    }

    #[cold]
    pub(super) fn refused(&self, queue: usize, error: SubmitError) -> Box<SimError> {
        Box::new(SimError::Refused {
            name: self.queues[queue].figures.name.clone(),
            error,
        })
    }

    #[inline]
    pub(super) fn touch(&mut self, queue: usize) {
        if !self.is_touched[queue] {
            self.is_touched[queue] = true;
            self.touched.push(queue as u32);
        }
    }

    #[inline]
    pub(super) fn advance(&mut self, queue: usize) {
        let finished = &mut self.finished;
        self.queues[queue]
            .drive
            .advance(self.now_ns, &mut |completion| {
                finished.push((queue, completion));
            });
    }

    /// A drive takes commands only when it has handled all due events. Its next event.
    #[inline]
    pub(super) fn catch_up(&mut self, queue: usize) -> Option<u64> {
        loop {
            match self.queues[queue].drive.next_event_ns() {
                Some(due_ns) if due_ns <= self.now_ns => self.advance(queue),
                next_ns => return next_ns,
            }
        }
    }
}
