//! The state of one device's connection: what was negotiated, memory, rings, and the way back for interrupts.

use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use super::connection::Connection;
use super::error::VhostError;
use super::message::{Header, OUR_PROTOCOL, PROTOCOL_FEATURES, Request, reply, ring_call};
use crate::device::{Device, Rings};
use crate::virtio::{Memory, Ring};

/// Outcome of a message of the front end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upshot {
    /// The message was answered.
    Answered,
    /// A ring was kicked and the device has taken its requests: answer with [`Session::acknowledge`].
    Kicked,
    /// The front end closed the socket.
    Closed,
}

/// One device's connection.
#[derive(Debug)]
pub struct Session {
    name: String,
    connection: Connection,
    memory: Option<Memory>,
    rings: Vec<Ring>,
    back: Option<UnixStream>,
    /// Interrupts whose answers have not been read.
    unanswered: u32,
}

impl Session {
    /// Begins with a connected socket.
    #[must_use]
    pub fn new(name: String, stream: UnixStream, rings: usize) -> Self {
        Self {
            connection: Connection::new(name.clone(), stream),
            name,
            memory: None,
            rings: vec![Ring::default(); rings],
            back: None,
            unanswered: 0,
        }
    }

    /// Receives one message and carries it out at `now_ns`.
    pub fn serve(&mut self, now_ns: u64, device: &mut dyn Device) -> Result<Upshot, VhostError> {
        let Some((header, request)) = self.connection.receive()? else {
            return Ok(Upshot::Closed);
        };
        let is_kick = matches!(request, Request::Kick { .. });
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
            Request::GetProtocolFeatures => return Ok(Some(OUR_PROTOCOL.to_ne_bytes().to_vec())),
            Request::GetQueueCount => {
                return Ok(Some((self.rings.len() as u64).to_ne_bytes().to_vec()));
            }
            Request::GetConfig { offset, size } => {
                return self.config(header, offset, size, device).map(Some);
            }
            Request::GetRingBase { index } => {
                let base = u32::from(self.ring(index)?.base());
                return Ok(Some([index.to_ne_bytes(), base.to_ne_bytes()].concat()));
            }
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
            } => self
                .ring(index)?
                .set_addresses(descriptors, available, used),
            Request::SetRingBase { index, base } => self.ring(index)?.set_base(base as u16),
            Request::SetBackChannel(descriptor) => self.back = Some(UnixStream::from(descriptor)),
            Request::Kick { index } => {
                self.ring(index)?;
                let name = &self.name;
                let Some(memory) = &self.memory else {
                    return Err(VhostError::protocol(name, "a kick before there is memory"));
                };
                let mut rings = Rings::new(memory, &mut self.rings);
                let taken = device.kick(index as usize, now_ns, &mut rings);
                taken.map_err(|error| VhostError::protocol(name, error.to_string()))?;
            }
            Request::SetFeatures(_)
            | Request::SetOwner
            | Request::SetRingDescriptor
            | Request::EnableRing
            | Request::SetProtocolFeatures
            | Request::SetConfig => {}
        }
        Ok(None)
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

impl AsFd for Session {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }
}
