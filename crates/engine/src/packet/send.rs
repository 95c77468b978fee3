//! Sending in batches with sendmmsg.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::libc;

/// Frames of one system call.
pub const MAX_BATCH: usize = 32;

/// Buffers of one system call, reused.
pub struct Sender {
    vectors: Box<[libc::iovec; MAX_BATCH]>,
    messages: Box<[libc::mmsghdr; MAX_BATCH]>,
}

// SAFETY: the pointers inside are only used during `send`, which sets them anew.
unsafe impl Send for Sender {}

impl Sender {
    /// An empty one.
    pub fn new() -> Self {
        // SAFETY: both are plain C data for which zero is a value.
        unsafe { Sender { vectors: Box::new(std::mem::zeroed()), messages: Box::new(std::mem::zeroed()) } }
    }

    /// Sends `frames` (at most [`MAX_BATCH`]) in order and reports each as it is done: its index, and whether the
    /// kernel took it. Never blocks.
    pub fn send<'a>(
        &mut self,
        socket: BorrowedFd<'_>,
        frames: impl Iterator<Item = &'a [u8]>,
        mut done: impl FnMut(usize, io::Result<()>),
    ) {
        let mut count = 0;
        for (frame, vector) in frames.zip(self.vectors.iter_mut()) {
            *vector = libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
            count += 1;
        }
        for (message, vector) in self.messages.iter_mut().zip(self.vectors.iter_mut()).take(count) {
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
        }
        let mut first = 0;
        let mut retries = 3;
        while first < count {
            // SAFETY: the messages point to vectors, and those to frames, that live for the call; the kernel only
            // reads the frames.
            let sent = unsafe {
                libc::sendmmsg(
                    socket.as_raw_fd(),
                    self.messages[first..].as_mut_ptr(),
                    (count - first) as u32,
                    libc::MSG_DONTWAIT,
                )
            };
            if sent > 0 {
                for index in first..first + sent as usize {
                    done(index, Ok(()));
                }
                first += sent as usize;
                continue;
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EAGAIN | libc::ENOBUFS) if retries > 0 => retries -= 1,
                _ => {
                    done(first, Err(error));
                    first += 1;
                }
            }
        }
    }
}
