//! The Darwin server against clients that are broken or mean it ill: each fault gets its RTSP status, nothing
//! panics or spins, and what the server keeps stays within the bound that it states.

mod anything;
mod client;
mod floods;
mod heap;
mod requests;
mod silence;
