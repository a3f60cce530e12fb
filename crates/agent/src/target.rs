//! The guard in small: may the target be opened, and for what? The only place that opens one.
//!
//! A path is looked up once (O_PATH); the checks, the claim and the descriptors of the streams all use that descriptor, so
//! that nothing can be put in its place meanwhile. Where `spindle` asks libblkid what is on a device, the agent looks at both
//! ends, and takes everything that is not empty for something.
#![allow(clippy::disallowed_methods)] // This is the guard.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use spindle_engine::{NullTarget, StreamFile, kernel};
use spindle_workload::{Content, ContentFiller, Stream};

use crate::devices::{self, Device, Mount, Number};
use crate::failure::{Failure, reason};
use crate::options::{Consent, Options, WriterOptions, size_of};
use crate::stopping::StopSignal;
use crate::usage::use_of;

/// The null target is named with its size: `null:1GiB`.
const NULL: &str = "null:";
/// Signatures are at the ends (libblkid looks no further in than this).
const END_BYTES: u64 = 1 << 20;
/// A page: enough for every driver.
const DIRECT_MEMORY_ALIGN: u32 = 4096;
const BUFFERED_MEMORY_ALIGN: u32 = 512;
/// Written at once into a test file, bytes.
const PIECE: usize = 8 << 20;
/// Share of a file system that a test file leaves free, as `spindle run --create` does: one part in so many.
const KEEP_FREE: u64 = 20;

/// A target that may be used.
#[derive(Debug)]
pub(crate) enum Target {
    Null(NullTarget),
    Open(OpenedTarget),
}

/// A device or a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Device,
    File,
}

/// A device or file.
#[derive(Debug)]
pub(crate) struct OpenedTarget {
    /// As it was asked for.
    path: String,
    pub(crate) kind: Kind,
    pub(crate) size_bytes: u64,
    pub(crate) created: bool,
    /// The device under test, or the one under the file.
    pub(crate) device: Option<Device>,
    /// The mount that a file is on.
    pub(crate) mount: Option<Mount>,
    /// The descriptors of the streams are opened from it; for a device that is written to, it is the claim.
    source: File,
}

/// The open files of a load; they must outlive it.
#[derive(Debug)]
pub(crate) struct StreamFiles {
    files: Vec<File>,
    pub(crate) described: Vec<Vec<StreamFile>>,
}

impl StreamFiles {
    pub(crate) fn drop_cache(&self) {
        for file in &self.files {
            kernel::drop_cache(file.as_raw_fd());
        }
    }
}

/// Opens the target for these streams, as far as there is consent.
pub(crate) fn open(
    options: &Options,
    streams: &[&Stream],
    stopping: &StopSignal,
) -> Result<Target, Failure> {
    let path = options.target.as_str();
    let writes = streams.iter().any(|stream| stream.mix.changes() > 0.0);
    if let Some(size) = path.strip_prefix(NULL) {
        let needless = options.create.is_some() || options.consent.erase.is_some();
        if needless {
            return Err(Failure::usage(format!(
                "{path}: keeps nothing; leave --create and --erase out"
            )));
        }
        let size_bytes = size_of(&format!("--target {path}"), size)?;
        return Ok(Target::Null(NullTarget {
            size_bytes,
            service_ns: 0,
        }));
    }
    let opened = match options.create {
        Some(size) => {
            no_device_named(path, &options.consent)?;
            test_file(path, size, stopping)?
        }
        None => existing(path, writes, &options.consent)?,
    };
    Ok(Target::Open(opened))
}

/// Opens the target of a durability test.
pub(crate) fn open_kept(
    options: &WriterOptions,
    stopping: &StopSignal,
) -> Result<OpenedTarget, Failure> {
    let path = options.target.as_str();
    match options.create {
        Some(size) => {
            no_device_named(path, &options.consent)?;
            kept_file(path, size, stopping)
        }
        None => existing(path, true, &options.consent),
    }
}

/// Opens a target that is only read.
pub(crate) fn open_read(path: &str) -> Result<OpenedTarget, Failure> {
    existing(path, false, &Consent::default())
}

fn existing(path: &str, writes: bool, consent: &Consent) -> Result<OpenedTarget, Failure> {
    let found = looked_up(path)?;
    let status = status_of(path, &found)?;
    if status.file_type().is_block_device() {
        return device(path, &found, &status, writes, consent);
    }
    if !status.is_file() {
        let what = if status.is_dir() {
            "a folder"
        } else {
            "no file"
        };
        return Err(Failure::usage(format!(
            "{path}: is {what}; a target is a block device or a file, or --create makes one"
        )));
    }
    no_device_named(path, consent)?;
    if writes {
        return Err(Failure::refused(format!(
            "{path}: is not a file that spindle-agent made, and is not written; give a new name and --create SIZE, or only read"
        )));
    }
    if status.len() == 0 {
        return Err(Failure::usage(format!(
            "{path}: is empty; there is nothing to read"
        )));
    }
    Ok(regular(path, found, status.len(), false))
}

fn regular(path: &str, source: File, size_bytes: u64, created: bool) -> OpenedTarget {
    let place = own_path(&source);
    OpenedTarget {
        path: path.to_owned(),
        kind: Kind::File,
        size_bytes,
        created,
        device: devices::under(&place),
        mount: mount_of(&source),
        source,
    }
}

/// A magic link to the open file itself, whatever its name leads to by now.
fn own_path(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

fn mount_of(file: &File) -> Option<Mount> {
    let info = devices::text_of(Path::new(&format!(
        "/proc/self/fdinfo/{}",
        file.as_raw_fd()
    )))?;
    let id = info
        .lines()
        .find_map(|line| line.strip_prefix("mnt_id:"))?
        .trim();
    devices::mounts().into_iter().find(|mount| mount.id == id)
}

/// The path, once. O_PATH neither waits for a pipe's other end nor wakes a driver.
fn looked_up(path: &str) -> Result<File, Failure> {
    let found = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH)
        .open(path);
    found.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Failure::usage(format!(
            "{path}: does not exist; check the name, or let --create SIZE make a test file"
        )),
        _ => Failure::usage(format!("{path}: {}", reason(&error))),
    })
}

fn status_of(path: &str, file: &File) -> Result<Metadata, Failure> {
    file.metadata()
        .map_err(|error| Failure::failed(format!("{path}: {}", reason(&error))))
}

fn no_device_named(path: &str, consent: &Consent) -> Result<(), Failure> {
    match &consent.erase {
        Some(erase) => Err(Failure::refused(format!(
            "{path}: is not a device, but --erase names {}; is it the right target? leave --erase out",
            erase.display()
        ))),
        None => Ok(()),
    }
}

// --- test files ------------------------------------------------------------------------------------------------------

/// A new file that stays; its name and data are on the medium.
fn kept_file(path: &str, size_bytes: u64, stopping: &StopSignal) -> Result<OpenedTarget, Failure> {
    let cannot = |error: io::Error| {
        Failure::usage(format!("{path}: no file can be made: {}", reason(&error)))
    };
    let mut options = OpenOptions::new();
    let made = options.read(true).write(true).create_new(true).mode(0o600);
    let mut file = made.open(path).map_err(cannot)?;
    fill(&mut file, size_bytes, stopping)?.map_err(cannot)?;
    let folder = match Path::new(path).parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(cannot)?;
    Ok(regular(path, file, size_bytes, true))
}

/// A new file without a name: it is gone when the agent ends, however it ends.
fn test_file(path: &str, size_bytes: u64, stopping: &StopSignal) -> Result<OpenedTarget, Failure> {
    let place = Path::new(path);
    let folder = match place.metadata() {
        Ok(status) if status.is_dir() => place,
        Ok(_) => {
            return Err(Failure::usage(format!(
                "{path}: exists already; --create makes a new file: give a new name or a folder"
            )));
        }
        Err(_) => match place.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        },
    };
    let cannot = |error: &io::Error| {
        Failure::usage(format!(
            "{path}: no file can be made in {}: {}",
            folder.display(),
            reason(error)
        ))
    };
    if folder.starts_with("/dev") && !folder.starts_with("/dev/shm") {
        return Err(Failure::usage(format!(
            "{path}: no such device; no file is ever made under /dev"
        )));
    }
    let mut file = unnamed(folder).map_err(|error| cannot(&error))?;
    let space = kernel::space(file.as_fd()).map_err(|error| cannot(&error))?;
    if size_bytes > space.available.saturating_sub(space.total / KEEP_FREE) {
        return Err(Failure::usage(format!(
            "{path}: only {} bytes are free in {}, a twentieth of the file system stays free; make it smaller",
            space.available,
            folder.display()
        )));
    }
    fill(&mut file, size_bytes, stopping)?.map_err(|error| {
        Failure::failed(format!(
            "{path}: the test file cannot be written: {}",
            reason(&error)
        ))
    })?;
    Ok(regular(path, file, size_bytes, true))
}

fn unnamed(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    let made = options.clone().custom_flags(libc::O_TMPFILE).open(folder);
    match made {
        Err(error)
            if matches!(
                error.raw_os_error(),
                Some(libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL)
            ) =>
        {
            // A file system without unnamed files: the name is taken away at once.
            let name = folder.join(format!("spindle-test-{}", std::process::id()));
            let file = options.create_new(true).open(&name)?;
            std::fs::remove_file(&name)?;
            Ok(file)
        }
        made => made,
    }
}

/// With data that neither compress nor repeat. The outer error: a signal came.
fn fill(
    file: &mut File,
    size_bytes: u64,
    stopping: &StopSignal,
) -> Result<io::Result<()>, Failure> {
    let mut content = ContentFiller::new(Content::Random, 0, 0, 0);
    let mut piece = vec![0; PIECE];
    let mut left = size_bytes;
    while left > 0 {
        stopping.check()?;
        let length = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        content.fill(&mut piece[..length]);
        if let Err(error) = file.write_all(&piece[..length]) {
            return Ok(Err(error));
        }
        left -= length as u64;
    }
    Ok(file.sync_all())
}

// --- block devices ---------------------------------------------------------------------------------------------------

fn device(
    path: &str,
    found: &File,
    status: &Metadata,
    writes: bool,
    consent: &Consent,
) -> Result<OpenedTarget, Failure> {
    let number = Number::of(status.rdev());
    let device = Device::of(number).ok_or_else(|| {
        Failure::usage(format!(
            "{path}: the kernel knows no such device (any more)"
        ))
    })?;
    if let Some(erase) = &consent.erase
        && Number::at(erase) != Some(number)
    {
        return Err(Failure::refused(format!(
            "{path}: --erase names {}, which is another device; name the target itself",
            erase.display()
        )));
    }
    let source = if writes {
        claimed(path, found, &device, consent)?
    } else {
        reopened(path, found, OpenOptions::new().read(true), libc::O_NONBLOCK)?
    };
    let size_bytes = size_of_device(path, &source)?;
    if writes {
        check_content(path, &source, size_bytes, consent)?;
    }
    Ok(OpenedTarget {
        path: path.to_owned(),
        kind: Kind::Device,
        size_bytes,
        created: false,
        device: Some(device),
        mount: None,
        source,
    })
}

/// The device for this program alone; nobody can mount it until the descriptor is closed.
fn claimed(path: &str, found: &File, device: &Device, consent: &Consent) -> Result<File, Failure> {
    let refused =
        |why: String| Failure::refused(format!("{path}: {why}; nothing is written to it"));
    if consent.erase.is_none() {
        return Err(Failure::refused(format!(
            "{path}: writing destroys its data; --erase {path} agrees to that"
        )));
    }
    if device.text("ro").as_deref() == Some("1") {
        return Err(Failure::usage(format!("{path}: is read-only")));
    }
    let claim = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_EXCL | libc::O_NONBLOCK)
        .open(own_path(found))
        .map_err(|error| match error.raw_os_error() {
            Some(libc::EBUSY) => refused(
                use_of(device)
                    .unwrap_or_else(|| "is held exclusively by another program".to_owned()),
            ),
            _ => Failure::usage(format!("{path}: {}", reason(&error))),
        })?;
    if let Some(used) = use_of(device) {
        return Err(refused(used));
    }
    // udev and partitioning tools respect this lock (systemd: Locking Block Device Access).
    claim
        .try_lock()
        .map_err(|_| refused("another program has locked it (flock)".to_owned()))?;
    let disk = device.whole();
    if disk
        .backing()
        .is_some_and(|file| Number::at(&file).is_some())
    {
        return Err(refused(
            "is a loop device over a block device, which spindle-agent does not check".to_owned(),
        ));
    }
    let parts: Vec<String> = disk.slaves().iter().map(Device::name).collect();
    if !parts.is_empty() && !consent.stacked {
        return Err(Failure::refused(format!(
            "{path}: is built of {}; --erase-stacked agrees to overwrite their data",
            parts.join(", ")
        )));
    }
    Ok(claim)
}

fn size_of_device(path: &str, source: &File) -> Result<u64, Failure> {
    let mut source = source;
    match source.seek(SeekFrom::End(0)) {
        Ok(0) => Err(Failure::usage(format!(
            "{path}: has no size: it has no medium or no storage behind it"
        ))),
        Ok(size) => Ok(size),
        Err(error) => Err(Failure::failed(format!("{path}: {}", reason(&error)))),
    }
}

/// Refuses a device that is not empty at both ends without a second consent.
fn check_content(
    path: &str,
    claim: &File,
    size_bytes: u64,
    consent: &Consent,
) -> Result<(), Failure> {
    // The begin comes last, so that the heads of a disk are there when a load begins.
    for place in [size_bytes.saturating_sub(END_BYTES), 0] {
        let length = usize::try_from(END_BYTES.min(size_bytes)).unwrap_or(0);
        let mut end = vec![0_u8; length];
        claim.read_exact_at(&mut end, place).map_err(|error| {
            Failure::refused(format!(
                "{path}: its content cannot be read: {}; nothing is written to it",
                reason(&error)
            ))
        })?;
        if !consent.content && end.iter().any(|&byte| byte != 0) {
            return Err(Failure::refused(format!(
                "{path}: is not empty at both ends; --erase-content agrees to lose what is on it"
            )));
        }
    }
    Ok(())
}

// --- descriptors of the streams --------------------------------------------------------------------------------------

impl OpenedTarget {
    /// A descriptor for each stream, with the access that it needs.
    pub(crate) fn files_of(&self, streams: &[Stream]) -> Result<StreamFiles, Failure> {
        let mut files = Vec::new();
        let mut described = Vec::new();
        for stream in streams {
            let file = self.file_of(stream)?;
            described.push(vec![self.described(&file, stream.direct)?]);
            files.push(file);
        }
        Ok(StreamFiles { files, described })
    }

    fn file_of(&self, stream: &Stream) -> Result<File, Failure> {
        let synced = match (stream.sync.osync, stream.sync.dsync) {
            (true, _) => libc::O_SYNC,
            (false, true) => libc::O_DSYNC,
            (false, false) => 0,
        };
        self.opened_for(stream.mix.changes() > 0.0, stream.direct, synced)
    }

    fn opened_for(&self, writes: bool, direct: bool, flags: libc::c_int) -> Result<File, Failure> {
        let direct = if direct { libc::O_DIRECT } else { 0 };
        let mut access = OpenOptions::new();
        access.read(true).write(writes);
        reopened(&self.path, &self.source, &mut access, flags | direct)
    }

    /// Descriptors for the workers of a durability test: `writes` with O_DSYNC or without.
    pub(crate) fn files_for(
        &self,
        workers: usize,
        writes: bool,
        direct: bool,
        dsync: bool,
    ) -> Result<StreamFiles, Failure> {
        let mut found = StreamFiles {
            files: Vec::new(),
            described: Vec::new(),
        };
        for _ in 0..workers {
            let flags = if dsync { libc::O_DSYNC } else { 0 };
            let file = self.opened_for(writes, direct, flags)?;
            found.described.push(vec![self.described(&file, direct)?]);
            found.files.push(file);
        }
        Ok(found)
    }

    fn described(&self, file: &File, direct: bool) -> Result<StreamFile, Failure> {
        let (block_bytes, memory_align) = self.alignment(file, direct)?;
        Ok(StreamFile {
            fd: file.as_raw_fd(),
            size_bytes: self.size_bytes,
            block_bytes,
            memory_align,
        })
    }

    /// Alignment of offsets and lengths, and of memory, bytes.
    fn alignment(&self, file: &File, direct: bool) -> Result<(u32, u32), Failure> {
        let block = self.block_bytes();
        if !direct {
            return Ok((block.unwrap_or(1), BUFFERED_MEMORY_ALIGN));
        }
        match kernel::direct_alignment(file.as_fd()) {
            Some(kernel::Alignment { offset: 0, .. }) => Err(no_direct(&self.path)),
            Some(found) => Ok((found.offset.max(block.unwrap_or(1)), found.memory.max(1))),
            None => {
                let cannot = |error| Failure::failed(format!("{}: {}", self.path, reason(&error)));
                let offset = match block {
                    Some(block) => block,
                    None => kernel::space(file.as_fd()).map_err(cannot)?.block,
                };
                Ok((offset, DIRECT_MEMORY_ALIGN))
            }
        }
    }

    /// The logical block of a device.
    fn block_bytes(&self) -> Option<u32> {
        let device = self.device.as_ref().filter(|_| self.kind == Kind::Device)?;
        let text = device.whole().text("queue/logical_block_size");
        Some(text.and_then(|text| text.parse().ok()).unwrap_or(512))
    }

    /// The device under test, and all below it, nearest first.
    pub(crate) fn below(&self) -> Vec<Device> {
        self.device.as_ref().map(Device::below).unwrap_or_default()
    }
}

/// The very file that was looked up, with this access.
fn reopened(
    path: &str,
    found: &File,
    access: &mut OpenOptions,
    flags: libc::c_int,
) -> Result<File, Failure> {
    let opened = access.custom_flags(flags).open(own_path(found));
    opened.map_err(|error| match error.raw_os_error() {
        Some(libc::EINVAL) if flags & libc::O_DIRECT != 0 => no_direct(path),
        Some(libc::EACCES | libc::EPERM) => Failure::usage(format!(
            "{path}: no permission to open it; run as its owner or as root"
        )),
        Some(libc::ENOENT) => Failure::failed(format!(
            "{path}: cannot be opened through /proc/self/fd; mount /proc first"
        )),
        _ => Failure::usage(format!("{path}: {}", reason(&error))),
    })
}

fn no_direct(path: &str) -> Failure {
    Failure::usage(format!(
        "{path}: direct I/O is not possible on this file; use --set direct=false"
    ))
}
