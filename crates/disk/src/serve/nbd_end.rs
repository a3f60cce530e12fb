//! A disk over NBD: a listener, and up to sixteen clients that share the disk.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use rustix::event::{PollFd, PollFlags};
use spindle_sim::DriveSetup;

use super::nbd::{Export, Protocol, Step};
use super::transfer::{Payload, transfer};
use super::{Clients, FrontEnd, ServeError};
use crate::contents::Contents;
use crate::disk::{Counts, Disk, Operation, Request};

/// Most clients at a time; more wait until one leaves.
const MOST_CLIENTS: usize = 16;
/// Bytes read from a client at a time.
const PIECE: usize = 256 << 10;
/// A client with so many requests under way, or bytes of answers that it does not take, is not listened to.
const MOST_REQUESTS: usize = 1024;
const MOST_BYTES: usize = 64 << 20;

/// A socket that clients connect to.
#[derive(Debug)]
pub(super) enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Listener {
    pub(super) fn unix(path: &Path) -> Result<Self, ServeError> {
        let bound = UnixListener::bind(path).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        let failed = |error| ServeError::new(path.display().to_string(), error);
        bound.map(Self::Unix).map_err(failed)
    }

    pub(super) fn tcp(address: &str) -> Result<Self, ServeError> {
        let bound = TcpListener::bind(address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        bound
            .map(Self::Tcp)
            .map_err(|error| ServeError::new(address, error))
    }

    /// The next client, if one waits.
    fn accept(&self) -> Option<Stream> {
        match self {
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().ok()?;
                stream.set_nonblocking(true).ok()?;
                Some(Stream::Unix(stream))
            }
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().ok()?;
                stream.set_nonblocking(true).ok()?;
                stream.set_nodelay(true).ok()?;
                Some(Stream::Tcp(stream))
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(listener) => listener.as_fd(),
            Self::Tcp(listener) => listener.as_fd(),
        }
    }
}

#[derive(Debug)]
enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(bytes),
            Self::Tcp(stream) => stream.read(bytes),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}

#[derive(Debug)]
struct Client {
    number: u64,
    stream: Stream,
    protocol: Protocol,
    /// Bytes of the answers that were sent.
    sent: usize,
    /// Requests under way, and the bytes of their answers and data.
    requests: usize,
    bytes: usize,
    is_gone: bool,
}

impl Client {
    fn listens(&self) -> bool {
        let waiting = self.protocol.outgoing.len() - self.sent + self.bytes;
        !self.is_gone && self.requests < MOST_REQUESTS && waiting < MOST_BYTES
    }

    /// Sends as much as the socket takes.
    fn send(&mut self) {
        while self.sent < self.protocol.outgoing.len() {
            match self.stream.write(&self.protocol.outgoing[self.sent..]) {
                Ok(count) if count > 0 => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => {
                    self.is_gone = true;
                    return;
                }
            }
        }
        self.protocol.outgoing.clear();
        self.sent = 0;
    }
}

/// Who waits for a request.
#[derive(Debug)]
struct Origin {
    client: u64,
    cookie: u64,
}

pub(super) struct NbdEnd {
    disk: Disk<Payload<Origin>>,
    export: Export,
    listener: Listener,
    open: Vec<Client>,
    clients: Clients,
    piece: Vec<u8>,
}

impl NbdEnd {
    pub(super) fn new(
        setup: &DriveSetup,
        contents: Contents,
        listener: Listener,
    ) -> Result<Self, ServeError> {
        let disk = Disk::of(setup, contents, false)?;
        Ok(Self {
            export: Export {
                bytes: disk.capacity_bytes(),
                is_rotational: !setup.is_flash(),
            },
            disk,
            listener,
            open: Vec::new(),
            clients: Clients::default(),
            piece: vec![0; PIECE],
        })
    }

    fn accept(&mut self) {
        while self.open.len() < MOST_CLIENTS
            && let Some(stream) = self.listener.accept()
        {
            self.clients.connected += 1;
            let mut client = Client {
                number: self.clients.connected,
                stream,
                protocol: Protocol::new(self.export),
                sent: 0,
                requests: 0,
                bytes: 0,
                is_gone: false,
            };
            client.send();
            self.open.push(client);
        }
    }

    /// Takes what one client has sent.
    fn hear(&mut self, place: usize, now_ns: u64) {
        let client = &mut self.open[place];
        client.send();
        if !client.listens() {
            return;
        }
        match client.stream.read(&mut self.piece) {
            Ok(0) => client.is_gone = true,
            Ok(count) => client.protocol.receive(&self.piece[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => client.is_gone = true,
        }
        self.take_requests(place, now_ns);
    }

    /// Takes the requests that were received, as many as may be under way.
    fn take_requests(&mut self, place: usize, now_ns: u64) {
        let client = &mut self.open[place];
        while client.listens() {
            match client.protocol.step() {
                Step::More => break,
                Step::Request(found) if self.disk.is_inside(&found.request) => {
                    let origin = Origin {
                        client: client.number,
                        cookie: found.cookie,
                    };
                    client.requests += 1;
                    client.bytes += bytes_of(&found.request);
                    let payload = Payload {
                        tag: origin,
                        data: found.data,
                    };
                    self.disk.take(now_ns, found.request, payload);
                }
                Step::Request(found) => {
                    let operation = found.request.operation;
                    client.protocol.outside(found.cookie, operation);
                }
                Step::End(problem) => {
                    client.send();
                    client.is_gone = true;
                    if let Some(problem) = problem {
                        self.clients.drop_one(problem);
                    }
                }
            }
        }
        client.send();
    }
}

/// Memory that a request needs until it is answered, bytes.
fn bytes_of(request: &Request) -> usize {
    match request.operation {
        Operation::Read | Operation::Write => request.len as usize,
        _ => 0,
    }
}

impl FrontEnd for NbdEnd {
    fn wait_for<'a>(&'a self, found: &mut Vec<PollFd<'a>>) {
        if self.open.len() < MOST_CLIENTS {
            found.push(PollFd::from_borrowed_fd(
                self.listener.as_fd(),
                PollFlags::IN,
            ));
        }
        for client in &self.open {
            let mut events = PollFlags::empty();
            if client.listens() {
                events |= PollFlags::IN;
            }
            if client.sent < client.protocol.outgoing.len() {
                events |= PollFlags::OUT;
            }
            found.push(PollFd::from_borrowed_fd(client.stream.as_fd(), events));
        }
    }

    fn serve(&mut self, now_ns: u64) -> Result<bool, ServeError> {
        self.accept();
        for place in 0..self.open.len() {
            self.hear(place, now_ns);
        }
        self.open.retain(|client| !client.is_gone);
        Ok(true)
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.disk.next_event_ns()
    }

    fn advance(&mut self, now_ns: u64) -> Result<u64, ServeError> {
        let mut finished = Vec::new();
        self.disk.advance(now_ns, &mut finished);
        for one in &finished {
            let data = transfer(&mut self.disk.contents, one);
            let Origin { client, cookie } = one.tag.tag;
            let mut open = self.open.iter_mut();
            // A client that is gone misses the answer only.
            if let Some(client) = open.find(|open| open.number == client) {
                client.requests -= 1;
                client.bytes -= bytes_of(&one.request);
                match data {
                    Some(data) => client.protocol.done(cookie, &data),
                    None => client.protocol.failed(cookie),
                }
                client.send();
            }
        }
        for place in 0..self.open.len() {
            self.take_requests(place, now_ns);
        }
        Ok(finished.len() as u64)
    }

    fn clients(&self) -> &Clients {
        &self.clients
    }

    fn counts(&self) -> Counts {
        self.disk.counts()
    }

    fn memory_bytes(&self) -> u64 {
        self.disk.contents.memory_bytes()
    }
}
