//! A disk over vhost-user-blk: one front end at a time; others wait until it leaves.

use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::event::{PollFd, PollFlags};
use spindle_sim::DriveSetup;

use super::{Clients, FrontEnd, ServeError};
use crate::contents::Contents;
use crate::device::{BlockDevice, Device};
use crate::disk::Counts;
use crate::vhost::{Session, Upshot, VhostError};

const NAME: &str = "vhost-user-blk";

pub(super) struct VhostEnd {
    device: BlockDevice,
    listener: UnixListener,
    session: Option<Session>,
    /// A ring that the front end has stopped: it waits until no request is under way.
    stopping: Option<u32>,
    clients: Clients,
}

impl VhostEnd {
    pub(super) fn new(
        setup: &DriveSetup,
        contents: Contents,
        path: &Path,
    ) -> Result<Self, ServeError> {
        let device = BlockDevice::new(setup, contents, "spindle0".to_owned(), false)?;
        let listener = UnixListener::bind(path)
            .map_err(|error| ServeError::new(path.display().to_string(), error))?;
        Ok(Self {
            device,
            listener,
            session: None,
            stopping: None,
            clients: Clients::default(),
        })
    }

    fn accept(&mut self) {
        let Ok((stream, _)) = self.listener.accept() else {
            return;
        };
        self.clients.connected += 1;
        match Session::with_descriptors(NAME.to_owned(), stream, self.device.rings()) {
            Ok(session) => self.session = Some(session),
            Err(problem) => self.clients.drop_one(problem),
        }
    }

    fn hear(&mut self, session: &mut Session, now_ns: u64) -> Result<bool, VhostError> {
        session.take_kicks(now_ns, &mut self.device)?;
        self.take_messages(session, now_ns)
    }

    /// Carries out all messages that have come, up to one that must wait; false if the front end is gone.
    fn take_messages(&mut self, session: &mut Session, now_ns: u64) -> Result<bool, VhostError> {
        while self.stopping.is_none() {
            match session.serve(now_ns, &mut self.device)? {
                Upshot::Nothing => break,
                Upshot::Closed => return Ok(false),
                Upshot::Kicked => session.acknowledge(Session::KICK)?,
                Upshot::Stopped(ring) => {
                    self.stopping = Some(ring);
                    self.end_stop(session)?;
                }
                Upshot::Answered => {}
            }
        }
        Ok(true)
    }

    /// Answers a front end that has stopped a ring, once all requests were returned.
    fn end_stop(&mut self, session: &mut Session) -> Result<(), VhostError> {
        if let Some(ring) = self.stopping
            && self.device.is_idle()
        {
            self.stopping = None;
            session.answer_base(ring)?;
        }
        Ok(())
    }

    fn advance_with(&mut self, session: &mut Session, now_ns: u64) -> Result<bool, VhostError> {
        session.advance_and_call(now_ns, &mut self.device)?;
        if self.stopping.is_none() {
            return Ok(true);
        }
        self.end_stop(session)?;
        self.take_messages(session, now_ns)
    }

    /// Keeps a session that goes on, or forgets it.
    fn keep(&mut self, session: Session, outcome: Result<bool, VhostError>) {
        match outcome {
            Ok(true) => {
                self.session = Some(session);
                return;
            }
            Ok(false) => {}
            Err(problem) => self.clients.drop_one(problem),
        }
        self.stopping = None;
        self.device.forget_driver();
    }
}

impl FrontEnd for VhostEnd {
    fn wait_for<'a>(&'a self, found: &mut Vec<PollFd<'a>>) {
        let mut add = |each| found.push(PollFd::from_borrowed_fd(each, PollFlags::IN));
        match &self.session {
            None => add(self.listener.as_fd()),
            Some(session) => {
                if self.stopping.is_none() {
                    add(session.as_fd());
                }
                session.kicks().for_each(add);
            }
        }
    }

    fn serve(&mut self, now_ns: u64) -> Result<bool, ServeError> {
        match self.session.take() {
            None => self.accept(),
            Some(mut session) => {
                let outcome = self.hear(&mut session, now_ns);
                self.keep(session, outcome);
            }
        }
        Ok(true)
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.device.next_event_ns()
    }

    fn advance(&mut self, now_ns: u64) -> Result<u64, ServeError> {
        let before = self.device.counts().requests();
        match self.session.take() {
            None => self.device.advance_alone(now_ns),
            Some(mut session) => {
                let outcome = self.advance_with(&mut session, now_ns);
                self.keep(session, outcome);
            }
        }
        Ok(self.device.counts().requests() - before)
    }

    fn clients(&self) -> &Clients {
        &self.clients
    }

    fn counts(&self) -> Counts {
        self.device.counts()
    }

    fn memory_bytes(&self) -> u64 {
        self.device.memory_bytes()
    }
}
