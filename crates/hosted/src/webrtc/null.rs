//! Cryptography that encrypts nothing: the messages, sizes and times of DTLS-SRTP, without its keys.
//!
//! The bytes of a call are then the same in every run, and no library of cryptography is built. Tags have the 16
//! bytes of AEAD_AES_128_GCM (RFC 7714). The handshake has the four flights of DTLS 1.2 (RFC 6347 section 4.2.4)
//! without the cookie's; their sizes are roughly those with ECDSA certificates.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use str0m::crypto::dtls::{
    DtlsCert, DtlsImplError, DtlsInstance, DtlsOutput, DtlsProvider, DtlsVersion, KeyingMaterial,
    ProtocolVersion, SrtpProfile,
};
use str0m::crypto::{CryptoError, CryptoProvider};
use str0m_proto::crypto::{
    AeadAes128Gcm, AeadAes128GcmCipher, AeadAes256GcmCipher, Aes128CmSha1_80Cipher, Sha1HmacProvider,
    Sha1Provider, Sha256Provider, SrtpProvider, SupportedAeadAes128Gcm, SupportedAeadAes256Gcm,
    SupportedAes128CmSha1_80,
};

/// DTLS's content types (RFC 6347 section 4.1), and its version 1.2.
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const VERSION: [u8; 2] = [0xfe, 0xfd];
/// Bytes of the flights, the first at place 1.
const FLIGHT_BYTES: [usize; 5] = [0, 170, 700, 640, 80];
/// Bytes of an encrypted alert.
const ALERT_BYTES: usize = 39;
const CERTIFICATE_BYTES: usize = 300;
/// The first wait for an answer, doubled each time, and the longest (RFC 6347 section 4.2.4.1).
const WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// A timer that is never due.
const NEVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Returns the provider.
pub(super) fn provider() -> CryptoProvider {
    CryptoProvider {
        srtp_provider: &Null,
        sha1_hmac_provider: &Null,
        sha1_provider: &Null,
        sha256_provider: &Null,
        dtls_provider: &Null,
    }
}

#[derive(Debug)]
struct Null;

impl Sha1HmacProvider for Null {
    fn sha1_hmac(&self, _: &[u8], _: &[&[u8]]) -> [u8; 20] {
        [0; 20]
    }
}
impl Sha1Provider for Null {
    fn sha1(&self, _: &[u8]) -> [u8; 20] {
        [0; 20]
    }
}
impl Sha256Provider for Null {
    fn sha256(&self, _: &[u8]) -> [u8; 32] {
        [0; 32]
    }
}

impl SrtpProvider for Null {
    fn aes_128_cm_sha1_80(&self) -> &'static dyn SupportedAes128CmSha1_80 {
        &Null
    }
    fn aead_aes_128_gcm(&self) -> &'static dyn SupportedAeadAes128Gcm {
        &Null
    }
    fn aead_aes_256_gcm(&self) -> &'static dyn SupportedAeadAes256Gcm {
        &Null
    }
    fn srtp_aes_128_ecb_round(&self, _: &[u8], _: &[u8], output: &mut [u8]) {
        output.fill(0);
    }
    fn srtp_aes_256_ecb_round(&self, _: &[u8], _: &[u8], output: &mut [u8]) {
        output.fill(0);
    }
}

// The handshake chooses AEAD_AES_128_GCM; the other two are never asked for a cipher.
impl SupportedAeadAes128Gcm for Null {
    fn create_cipher(&self, _: [u8; 16], _: bool) -> Box<dyn AeadAes128GcmCipher> {
        Box::new(Null)
    }
}
impl SupportedAeadAes256Gcm for Null {
    fn create_cipher(&self, _: [u8; 32], _: bool) -> Box<dyn AeadAes256GcmCipher> {
        unreachable!("the handshake chooses AEAD_AES_128_GCM")
    }
}
impl SupportedAes128CmSha1_80 for Null {
    fn create_cipher(&self, _: [u8; 16], _: bool) -> Box<dyn Aes128CmSha1_80Cipher> {
        unreachable!("the handshake chooses AEAD_AES_128_GCM")
    }
}

impl AeadAes128GcmCipher for Null {
    fn encrypt(
        &mut self,
        _: &[u8; 12],
        _: &[u8],
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), CryptoError> {
        let (text, tag) = output.split_at_mut(input.len());
        text.copy_from_slice(input);
        tag.fill(0);
        Ok(())
    }
    fn decrypt(
        &mut self,
        _: &[u8; 12],
        _: &[&[u8]],
        input: &[u8],
        output: &mut [u8],
    ) -> Result<usize, CryptoError> {
        let length = input.len().saturating_sub(AeadAes128Gcm::TAG_LEN);
        output[..length].copy_from_slice(&input[..length]);
        Ok(length)
    }
}

impl DtlsProvider for Null {
    fn generate_certificate(&self) -> Option<DtlsCert> {
        Some(DtlsCert { certificate: vec![0; CERTIFICATE_BYTES], private_key: Vec::new() })
    }
    fn new_dtls(
        &self,
        _: &DtlsCert,
        now: Instant,
        _: DtlsVersion,
        _: Option<usize>,
    ) -> Result<Box<dyn DtlsInstance>, CryptoError> {
        Ok(Box::new(NullDtls::at(now)))
    }
}

/// An output that waits to be polled.
#[derive(Debug)]
enum Pending {
    Flight(u8),
    Alert,
    PeerCert,
    Keys,
    Connected,
    Closed,
}

/// One end of the handshake.
#[derive(Debug)]
struct NullDtls {
    now: Instant,
    active: bool,
    /// The last flight sent; 0 before the first.
    sent: u8,
    is_connected: bool,
    is_closing: bool,
    /// When the client sends its flight again, and its wait.
    again: Option<Instant>,
    wait: Duration,
    pending: VecDeque<Pending>,
}

impl NullDtls {
    fn at(now: Instant) -> Self {
        NullDtls {
            now,
            active: false,
            sent: 0,
            is_connected: false,
            is_closing: false,
            again: None,
            wait: WAIT,
            pending: VecDeque::new(),
        }
    }

    fn send(&mut self, flight: u8) {
        if flight != self.sent {
            self.wait = WAIT;
        }
        self.sent = flight;
        self.pending.push_back(Pending::Flight(flight));
        // Only the client repeats by a timer: an answer that is lost is asked for again.
        self.again = self.active.then_some(self.now + self.wait);
    }

    fn connect(&mut self) {
        if !std::mem::replace(&mut self.is_connected, true) {
            self.pending.extend([Pending::PeerCert, Pending::Keys, Pending::Connected]);
        }
    }

    fn flight(&mut self, flight: u8) {
        match (self.active, flight) {
            (false, 1) => self.send(2),
            (true, 2) if self.sent == 1 => self.send(3),
            (false, 3) => {
                self.connect();
                self.send(4);
            }
            (true, 4) if self.sent == 3 => {
                self.again = None;
                self.connect();
            }
            _ => {}
        }
    }
}

impl DtlsInstance for NullDtls {
    fn set_active(&mut self, active: bool) {
        self.active = active;
    }

    fn handle_packet(&mut self, packet: &[u8]) -> Result<(), DtlsImplError> {
        match packet {
            // An empty packet begins a client's handshake.
            [] if self.active && self.sent == 0 => self.send(1),
            [HANDSHAKE, high, low, flight, ..] if [*high, *low] == VERSION => self.flight(*flight),
            [ALERT, high, low, ..]
                if [*high, *low] == VERSION && packet.len() == ALERT_BYTES && self.is_connected =>
            {
                self.pending.push_back(Pending::Closed);
            }
            _ => {}
        }
        Ok(())
    }

    fn poll_output<'a>(&mut self, buf: &'a mut [u8]) -> DtlsOutput<'a> {
        let mut zeros = |length: usize, head: &[u8]| {
            buf[..length].fill(0);
            buf[..head.len()].copy_from_slice(head);
            length
        };
        match self.pending.pop_front() {
            Some(Pending::Flight(flight)) => {
                let head = [HANDSHAKE, VERSION[0], VERSION[1], flight];
                let length = zeros(FLIGHT_BYTES[usize::from(flight)], &head);
                DtlsOutput::Packet(&buf[..length])
            }
            Some(Pending::Alert) => {
                let length = zeros(ALERT_BYTES, &[ALERT, VERSION[0], VERSION[1]]);
                DtlsOutput::Packet(&buf[..length])
            }
            Some(Pending::PeerCert) => {
                let length = zeros(CERTIFICATE_BYTES, &[]);
                DtlsOutput::PeerCert(&buf[..length])
            }
            Some(Pending::Keys) => {
                let profile = SrtpProfile::AEAD_AES_128_GCM;
                let keys = vec![0; profile.keying_material_len()];
                DtlsOutput::KeyingMaterial(KeyingMaterial::new(&keys), profile)
            }
            Some(Pending::Connected) => DtlsOutput::Connected,
            Some(Pending::Closed) => DtlsOutput::CloseNotify,
            None => DtlsOutput::Timeout(self.again.unwrap_or(self.now + NEVER)),
        }
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), DtlsImplError> {
        self.now = self.now.max(now);
        if self.again.is_some_and(|again| again <= self.now) {
            self.wait = (self.wait * 2).min(LONGEST_WAIT);
            self.send(self.sent);
        }
        Ok(())
    }

    fn send_application_data(&mut self, _: &[u8]) -> Result<usize, DtlsImplError> {
        // Data channels are not hosted.
        Ok(0)
    }

    fn is_active(&self) -> bool {
        self.active
    }

    fn protocol_version(&self) -> Option<ProtocolVersion> {
        self.is_connected.then_some(ProtocolVersion::DTLS1_2)
    }

    fn is_closing(&self) -> bool {
        self.is_closing
    }

    fn is_closed(&self) -> bool {
        self.is_closing && self.pending.is_empty()
    }

    fn close(&mut self) -> Result<(), DtlsImplError> {
        if !std::mem::replace(&mut self.is_closing, true) && self.is_connected {
            self.pending.push_back(Pending::Alert);
        }
        (self.again, self.is_closing) = (None, true);
        Ok(())
    }
}
