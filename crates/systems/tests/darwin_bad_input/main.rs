//! The Darwin server against broken or malicious clients: each fault gets its RTSP status, nothing panics or
//! spins, and the server's memory stays within its stated bound.

mod anything;
mod client;
mod floods;
mod heap;
mod requests;
mod silence;
