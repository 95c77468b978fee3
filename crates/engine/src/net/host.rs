//! A host of a URL, and a connection to it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::fd::AsRawFd;

use nix::libc;
use nix::sys::signalfd::SignalFd;
use streamgauge_wire::rtsp::Url;

use super::stream::{News, TcpSocket};
use crate::error::{EngineError, Result};
use crate::sys::monotonic_ns;

/// The remedy where no server answers.
pub const NOBODY: &str = "is a server there? streamgauge serve starts one";

/// How long a server may take to accept, ns.
const CONNECT_WITHIN_NS: i64 = 10_000_000_000;

/// A host by its name or address, and a port of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    name: String,
    port: u16,
}

impl Host {
    /// Returns that of a URL, with the port that one has which names none.
    ///
    /// # Errors
    ///
    /// The fault of the URL, to be printed behind it.
    pub fn of(url: &Url, port: u16) -> std::result::Result<Host, &'static str> {
        if !url.username().is_empty() || url.password().is_some() {
            return Err("has a user name, and nobody here can log in");
        }
        let name = url.host_str().filter(|name| !name.is_empty()).ok_or("has no host")?;
        let name = name.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Host { name, port: url.port().unwrap_or(port) })
    }

    /// Returns one of that name or address, with no port of its own.
    pub fn named(name: &str) -> Host {
        Host { name: name.trim_start_matches('[').trim_end_matches(']').to_owned(), port: 0 }
    }

    /// Returns where that is; several addresses if the name has several.
    pub fn resolve(&self) -> Result<Vec<SocketAddr>> {
        let what = format!("find host {}", self.name);
        let found = (self.name.as_str(), self.port).to_socket_addrs();
        let found: Vec<_> = found.map_err(|e| EngineError::io(what.as_str(), &e).code(4))?.collect();
        if found.is_empty() { Err(EngineError::new(what, "it has no address").code(4)) } else { Ok(found) }
    }

    /// Returns a connection to the first of its addresses that takes one. A signal ends the attempt.
    pub fn reach(&self, signals: &SignalFd) -> Result<TcpSocket> {
        let mut why = EngineError::new("connect", "no address");
        for address in self.resolve()? {
            match connect(address, signals) {
                Ok(stream) => return Ok(stream),
                Err(error) => why = error,
            }
        }
        Err(why.remedy(NOBODY).code(4))
    }

    /// Returns our address and its, where there is nothing to connect. Among several, the one that answers is
    /// unknown: IPv4 is first, where `serve` listens by default.
    pub fn look(&self) -> Result<(IpAddr, IpAddr)> {
        let mut found = self.resolve()?;
        found.sort_by_key(SocketAddr::is_ipv6);
        let mut why = EngineError::new("look for a way", "no address");
        for peer in found {
            // A connected socket has the source of its datagrams; none has been sent yet.
            let any = SocketAddr::new(unspecified(peer), 0);
            let own = UdpSocket::bind(any).and_then(|socket| {
                socket.connect(peer)?;
                socket.local_addr()
            });
            match own {
                Ok(own) => return Ok((own.ip(), peer.ip())),
                Err(e) => why = EngineError::io(format!("look for a way to {peer}"), &e),
            }
        }
        Err(why.code(4))
    }
}

fn unspecified(peer: SocketAddr) -> IpAddr {
    if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }
}

fn connect(address: SocketAddr, signals: &SignalFd) -> Result<TcpSocket> {
    let mut stream = TcpSocket::connecting(address)?;
    let until = monotonic_ns() + CONNECT_WITHIN_NS;
    let failed = |why: &str| EngineError::new(format!("connect to {address}"), why);
    loop {
        match stream.news() {
            Some(News::Opened) => {
                stream.tell_again();
                return Ok(stream);
            }
            Some(_) => return Err(failed("refused or out of reach")),
            None => {}
        }
        let left_ms = (until - monotonic_ns()) / 1_000_000;
        let Some((fd, events)) = stream.interest().filter(|_| left_ms > 0) else {
            return Err(failed("no answer"));
        };
        let mut fds = [
            libc::pollfd { fd, events, revents: 0 },
            libc::pollfd { fd: signals.as_raw_fd(), events: libc::POLLIN, revents: 0 },
        ];
        // SAFETY: two valid entries. A failed call only makes the loop look again.
        unsafe { libc::poll(fds.as_mut_ptr(), 2, left_ms as i32) };
        if fds[1].revents != 0 {
            return Err(failed("interrupted"));
        }
    }
}
