//! A mount of FUSE: by the kernel itself for root, by `fusermount3` for others.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl, open};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{getegid, geteuid};

use super::ServeError;

const HELPER: &str = "fusermount3";
/// Name of the file system in `/proc/mounts`: `fuse.spindle`, from `spindle`.
const NAME: &str = "spindle";

/// A mounted file system; dropping it unmounts it.
#[derive(Debug)]
pub(crate) struct Mount {
    folder: PathBuf,
}

impl Mount {
    /// Mounts, and returns the descriptor that calls are read from.
    pub(crate) fn new(folder: &Path) -> Result<(Self, File), ServeError> {
        let mounted = if geteuid().is_root() {
            mount_as_root(folder)
        } else {
            mount_by_helper(folder)
        };
        let device = mounted
            .and_then(|device| {
                let flags = fcntl_getfl(&device)?;
                fcntl_setfl(&device, flags | OFlags::NONBLOCK)?;
                Ok(device)
            })
            .map_err(|error| ServeError::new(format!("{}: mount", folder.display()), error))?;
        let folder = folder.to_owned();
        Ok((Self { folder }, File::from(device)))
    }
}

impl Drop for Mount {
    /// Lazily: whoever has the disk open gets errors, as of a disk that was pulled.
    fn drop(&mut self) {
        if geteuid().is_root() {
            // It may be unmounted already, which is why the server ends.
            let _ = unmount(&self.folder, UnmountFlags::DETACH);
        } else {
            let mut helper = Command::new(HELPER);
            let helper = helper.args(["-u", "-z", "-q", "--"]).arg(&self.folder);
            let _ = helper.stderr(Stdio::null()).status();
        }
    }
}

fn mount_as_root(folder: &Path) -> io::Result<OwnedFd> {
    let device = open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let options = format!(
        "fd={},rootmode=40000,user_id={},group_id={},default_permissions",
        device.as_raw_fd(),
        geteuid().as_raw(),
        getegid().as_raw()
    );
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let kind = format!("fuse.{NAME}");
    let options = CString::new(options)?;
    mount(NAME, folder, kind.as_str(), flags, options.as_c_str())?;
    Ok(device)
}

/// `fusermount3` mounts and sends the descriptor over a socket.
fn mount_by_helper(folder: &Path) -> io::Result<OwnedFd> {
    let (near, far) = UnixStream::pair()?;
    fcntl_setfd(&far, FdFlags::empty())?;
    let status = Command::new(HELPER)
        .arg("-o")
        .arg(format!("fsname={NAME},subtype={NAME},default_permissions"))
        .arg("--")
        .arg(folder)
        .env("_FUSE_COMMFD", far.as_fd().as_raw_fd().to_string())
        .status()
        .map_err(|error| {
            io::Error::new(error.kind(), format!("{HELPER}: {error}; install fuse3"))
        })?;
    drop(far);
    if !status.success() {
        return Err(io::Error::other(format!("{HELPER} refused: {status}")));
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(
        &near,
        &mut [IoSliceMut::new(&mut byte)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    control
        .drain()
        .find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut found) => found.next(),
            _ => None,
        })
        .ok_or_else(|| io::Error::other(format!("{HELPER} sent no descriptor")))
}
