//! The server among strangers of a real network.

use std::sync::Arc;

use streamgauge_base::Duration;

use super::file::Files;
use super::server::{Preset, RealServer, ServerSettings};
use super::{RTSP, RTSP_PORT};
use crate::app::App;
use crate::media::Library;
use crate::rtsp::no_room;
use crate::standalone::{Clients, ContentFault, Served, Service, TurnAway, names};

/// The names of [`Preset::NAMED`].
const PRESETS: [&str; 2] = names(&Preset::NAMED);

impl Clients for ServerSettings {
    fn machine(&self, library: Arc<dyn Library>, name: &str, seed: u64) -> Box<dyn Served> {
        Box::new(RealServer::new(Arc::new(Files(library)), self.clone(), name, seed))
    }

    fn turn_away(&self) -> Box<dyn App> {
        Box::new(TurnAway::on(RTSP, no_room()))
    }
}

impl Service for ServerSettings {
    const SCHEME: &'static str = "rtsp";
    const PORTS: [u16; 2] = [RTSP_PORT, 8554];
    const PRESETS: &'static [&'static str] = &PRESETS;

    fn preset(name: &str) -> Option<Self> {
        Preset::NAMED.iter().find(|(known, _)| *known == name).map(|&(_, preset)| ServerSettings::of(preset))
    }

    fn check(&self) -> Result<(), ContentFault> {
        ServerSettings::check(self)
    }

    fn give_up_after(&mut self, silence: Duration) {
        self.timeout = silence;
    }
}

impl Served for RealServer {
    fn plays_over(&self) -> Option<&'static str> {
        let sent = self.sent();
        (sent.packets > 0).then_some(if sent.interleaved > 0 { "tcp" } else { "udp" })
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let sent = self.sent();
        vec![
            ("rdt_packets_sent", sent.packets),
            ("rdt_bytes_sent", sent.bytes),
            ("rdt_packets_resent", sent.again),
        ]
    }

    fn in_words(&self) -> String {
        let sent = self.sent();
        format!("{} RDT packets, {} bytes", sent.packets, sent.bytes)
    }

    fn has_lost_its_client(&self) -> bool {
        RealServer::has_lost_its_client(self)
    }
}
