//! The state of one device's connection: what was negotiated, memory, rings, and the way back for interrupts.

use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::connection::Connection;
use super::connection::Incoming;
use super::error::VhostError;
use super::message::{
    GET_RING_BASE, Header, IN_BAND, OUR_PROTOCOL, PROTOCOL_FEATURES, Purpose, Request, reply,
    ring_call,
};
use crate::device::{Device, Rings};
use crate::virtio::{Memory, MemoryError, Ring};

/// Outcome of a message of the front end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upshot {
    /// The message was answered.
    Answered,
    /// A ring was kicked and the device has taken its requests: answer with [`Session::acknowledge`].
    Kicked,
    /// A ring was stopped: answer with [`Session::answer_base`] when its requests were returned.
    Stopped(u32),
    /// No whole message has come.
    Nothing,
    /// The front end closed the socket.
    Closed,
}

/// The event descriptors of a ring.
#[derive(Debug, Default)]
struct Signals {
    kick: Option<OwnedFd>,
    interrupt: Option<OwnedFd>,
}

/// One device's connection.
#[derive(Debug)]
pub struct Session {
    name: String,
    connection: Connection,
    memory: Option<Memory>,
    rings: Vec<Ring>,
    /// The descriptors of each ring; none if notifications are in band.
    signals: Vec<Signals>,
    back: Option<UnixStream>,
    /// Interrupts whose answers have not been read.
    unanswered: u32,
}

impl Session {
    /// Begins with a connected socket. Notifications are in band.
    #[must_use]
    pub fn new(name: String, stream: UnixStream, rings: usize) -> Self {
        Self {
            connection: Connection::new(name.clone(), stream),
            name,
            memory: None,
            rings: vec![Ring::default(); rings],
            signals: Vec::new(),
            back: None,
            unanswered: 0,
        }
    }

    /// Begins with a connected socket, which is not waited for. Notifications are event descriptors.
    pub fn with_descriptors(
        name: String,
        stream: UnixStream,
        rings: usize,
    ) -> Result<Self, VhostError> {
        let unblocked = stream.set_nonblocking(true);
        unblocked.map_err(|error| VhostError::socket(&name, error))?;
        Ok(Self {
            signals: (0..rings).map(|_| Signals::default()).collect(),
            ..Self::new(name, stream, rings)
        })
    }

    /// Receives one message and carries it out at `now_ns`.
    pub fn serve(&mut self, now_ns: u64, device: &mut dyn Device) -> Result<Upshot, VhostError> {
        let (header, request) = match self.connection.receive()? {
            Incoming::Message(header, request) => (header, request),
            Incoming::Nothing => return Ok(Upshot::Nothing),
            Incoming::End => return Ok(Upshot::Closed),
        };
        let is_kick = matches!(request, Request::Kick { .. });
        if let Request::GetRingBase { index } = request
            && let Some(signals) = self.signals.get_mut(index as usize)
        {
            signals.kick = None;
            return Ok(Upshot::Stopped(index));
        }
        match self.carry_out(now_ns, header, request, device)? {
            Some(payload) => self.connection.send(&reply(header.request, &payload))?,
            None if is_kick => return Ok(Upshot::Kicked),
            None if header.needs_reply() => self.acknowledge(header.request)?,
            None => {}
        }
        Ok(Upshot::Answered)
    }

    /// Number of the request that a kick is.
    pub const KICK: u32 = 35;

    /// Answers a request with "done".
    pub fn acknowledge(&mut self, request: u32) -> Result<(), VhostError> {
        self.connection.send(&reply(request, &0_u64.to_ne_bytes()))
    }

    /// True if a message has been read that was not carried out yet.
    #[must_use]
    pub fn has_bytes(&self) -> bool {
        self.connection.has_bytes()
    }

    fn carry_out(
        &mut self,
        now_ns: u64,
        header: Header,
        request: Request,
        device: &mut dyn Device,
    ) -> Result<Option<Vec<u8>>, VhostError> {
        match request {
            Request::GetFeatures => {
                return Ok(Some(
                    (device.features() | PROTOCOL_FEATURES)
                        .to_ne_bytes()
                        .to_vec(),
                ));
            }
            Request::GetProtocolFeatures => {
                let in_band = if self.is_in_band() { IN_BAND } else { 0 };
                return Ok(Some((OUR_PROTOCOL | in_band).to_ne_bytes().to_vec()));
            }
            Request::GetQueueCount => {
                return Ok(Some((self.rings.len() as u64).to_ne_bytes().to_vec()));
            }
            Request::GetConfig { offset, size } => {
                return self.config(header, offset, size, device).map(Some);
            }
            Request::GetRingBase { index } => return self.base(index).map(Some),
            Request::SetMemory(regions) => {
                let memory = Memory::map(regions).map_err(|error| self.broken(error))?;
                self.memory = Some(memory);
            }
            Request::SetRingSize { index, size } => {
                let set = self.ring(index)?.set_size(size);
                set.map_err(|error| self.broken(error))?;
            }
            Request::SetRingAddresses {
                index,
                descriptors,
                used,
                available,
            } => {
                let Some(memory) = &self.memory else {
                    return Err(self.broken("a ring before there is memory"));
                };
                let [descriptors, available, used] =
                    [descriptors, available, used].map(|user| memory.guest_address(user));
                let places = || Ok((descriptors?, available?, used?));
                let (descriptors, available, used) =
                    places().map_err(|error: MemoryError| self.broken(error))?;
                self.ring(index)?
                    .set_addresses(descriptors, available, used);
            }
            Request::SetRingBase { index, base } => self.ring(index)?.set_base(base as u16),
            Request::SetBackChannel(descriptor) => self.back = Some(UnixStream::from(descriptor)),
            Request::Kick { index } => self.kick(now_ns, index, None, device)?,
            Request::SetRingDescriptor {
                purpose,
                index,
                descriptor,
            } => {
                self.ring(index)?;
                match (purpose, self.signals.get_mut(index as usize)) {
                    (Purpose::Kick, Some(signals)) => signals.kick = descriptor,
                    (Purpose::Interrupt, Some(signals)) => signals.interrupt = descriptor,
                    _ => {}
                }
            }
            Request::SetFeatures(_)
            | Request::SetOwner
            | Request::EnableRing
            | Request::SetProtocolFeatures
            | Request::SetConfig => {}
        }
        Ok(None)
    }

    fn is_in_band(&self) -> bool {
        self.signals.is_empty()
    }

    fn base(&mut self, index: u32) -> Result<Vec<u8>, VhostError> {
        let base = u32::from(self.ring(index)?.base());
        Ok([index.to_ne_bytes(), base.to_ne_bytes()].concat())
    }

    /// Answers the front end that has stopped a ring.
    pub fn answer_base(&mut self, index: u32) -> Result<(), VhostError> {
        let base = self.base(index)?;
        self.connection.send(&reply(GET_RING_BASE, &base))
    }

    /// The event descriptors that kicks come from.
    pub fn kicks(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let kicks = self.signals.iter().filter_map(|ring| ring.kick.as_ref());
        kicks.map(AsFd::as_fd)
    }

    /// Takes the requests of rings whose event descriptor was signalled.
    pub fn take_kicks(&mut self, now_ns: u64, device: &mut dyn Device) -> Result<(), VhostError> {
        for index in 0..self.signals.len() {
            let is_kicked = match &self.signals[index].kick {
                Some(kick) => read_event(kick).map_err(|error| self.broken(error))?,
                None => false,
            };
            if is_kicked {
                self.kick(now_ns, index as u32, None, device)?;
            }
        }
        Ok(())
    }

    /// Lets the device deal with its events up to `now_ns`, and signals the rings that want an interrupt.
    pub fn advance_and_call(
        &mut self,
        now_ns: u64,
        device: &mut dyn Device,
    ) -> Result<(), VhostError> {
        for ring in self.advance(now_ns, device)? {
            if let Some(interrupt) = &self.signals[ring as usize].interrupt {
                // A counter that is full, or that nobody reads, is the front end's affair.
                let _ = rustix::io::write(interrupt, &1_u64.to_ne_bytes());
            }
        }
        Ok(())
    }

    /// A piece of the configuration space, after the three words that the request began with; zeros after its end.
    fn config(
        &self,
        header: Header,
        offset: u32,
        size: u32,
        device: &dyn Device,
    ) -> Result<Vec<u8>, VhostError> {
        if size.checked_add(Header::LEN as u32) != Some(header.size) {
            return Err(self.broken(format!(
                "{size} bytes of configuration in a payload of {}",
                header.size
            )));
        }
        let config = device.config();
        let mut payload: Vec<u8> = [offset, size, 0]
            .into_iter()
            .flat_map(u32::to_ne_bytes)
            .collect();
        payload.extend((0..size).map(|place| {
            let at = offset.saturating_add(place) as usize;
            config.get(at).copied().unwrap_or(0)
        }));
        Ok(payload)
    }

    fn ring(&mut self, index: u32) -> Result<&mut Ring, VhostError> {
        let count = self.rings.len();
        let name = &self.name;
        self.rings
            .get_mut(index as usize)
            .ok_or_else(|| VhostError::protocol(name, format!("ring {index} of {count}")))
    }

    fn broken(&self, problem: impl std::fmt::Display) -> VhostError {
        VhostError::protocol(&self.name, problem.to_string())
    }

    /// The front end's memory.
    #[must_use]
    pub fn memory(&self) -> Option<&Memory> {
        self.memory.as_ref()
    }

    /// Lets the device take the new requests of a ring, up to an index of the available ring if there is one: what the
    /// driver adds after a kick is then for its next.
    pub fn kick(
        &mut self,
        now_ns: u64,
        ring: u32,
        until: Option<u16>,
        device: &mut dyn Device,
    ) -> Result<(), VhostError> {
        self.ring(ring)?.set_limit(until);
        let name = &self.name;
        let Some(memory) = &self.memory else {
            return Err(VhostError::protocol(name, "a kick before there is memory"));
        };
        let mut rings = Rings::new(memory, &mut self.rings);
        let taken = device.kick(ring as usize, now_ns, &mut rings);
        taken.map_err(|error| VhostError::protocol(name, error.to_string()))
    }

    /// Lets the device deal with its events up to `now_ns`; the rings that want an interrupt.
    pub fn advance(
        &mut self,
        now_ns: u64,
        device: &mut dyn Device,
    ) -> Result<Vec<u32>, VhostError> {
        let Some(memory) = &self.memory else {
            return Ok(Vec::new());
        };
        let mut rings = Rings::new(memory, &mut self.rings);
        device
            .advance(now_ns, &mut rings)
            .map_err(|error| VhostError::protocol(&self.name, error.to_string()))?;
        Ok(rings.interrupts())
    }

    /// Sends an interrupt; the kernel answers it on [`back_channel`](Session::back_channel).
    pub fn interrupt(&mut self, ring: u32) -> Result<(), VhostError> {
        while self.unanswered > 0 {
            self.take_answer()?;
        }
        let Some(back) = &mut self.back else {
            return Err(VhostError::protocol(
                &self.name,
                "a request before there is a way back",
            ));
        };
        match back.write_all(&ring_call(ring)) {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                return Err(VhostError::socket(&self.name, error));
            }
            _ => self.unanswered += 1,
        }
        Ok(())
    }

    /// Where answers to interrupts arrive.
    #[must_use]
    pub fn back_channel(&self) -> Option<BorrowedFd<'_>> {
        self.back.as_ref().map(AsFd::as_fd)
    }

    /// Reads the answer to an interrupt; a kernel that is gone answers none.
    pub fn take_answer(&mut self) -> Result<(), VhostError> {
        self.unanswered = self.unanswered.saturating_sub(1);
        let Some(back) = &mut self.back else {
            return Ok(());
        };
        match back.read_exact(&mut [0; Header::LEN + 8]) {
            Err(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => {
                Err(VhostError::socket(&self.name, error))
            }
            _ => Ok(()),
        }
    }
}

/// Reads an event descriptor, without waiting; true if it was signalled. What is no event descriptor would wait.
fn read_event(event: &OwnedFd) -> Result<bool, Errno> {
    let mut found = [PollFd::new(event, PollFlags::IN)];
    if poll(&mut found, Some(&Timespec::default()))? == 0 {
        return Ok(false);
    }
    match rustix::io::read(event, &mut [0; 8]) {
        Ok(8) => Ok(true),
        Ok(_) => Err(Errno::INVAL),
        Err(Errno::AGAIN) => Ok(false),
        Err(error) => Err(error),
    }
}

impl AsFd for Session {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }
}
