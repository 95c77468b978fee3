//! Content codings of bodies (RFC 9110 section 8.4): gzip and deflate are undone, others are named.

use std::io::{ErrorKind, Write};

use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use super::head::HttpHeaders;

/// Bytes that are inflated at once, which bounds the output: deflate expands up to 1032 times.
const STEP: usize = 1 << 10;

/// A decoded body may be this many times as large as the encoded one, above [`FREE`].
const MOST_RATIO: u64 = 200;

/// Bytes that any body may have.
const FREE: u64 = 4 << 20;

/// A body that cannot be read, and why.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CodingFault {
    /// A coding that nothing here undoes.
    #[error("Content-Encoding: {0} is not read; serve it as gzip, as deflate or as it is")]
    Unread(String),
    /// It is not in the declared coding.
    #[error("Content-Encoding: {0}, and the body is not that")]
    Broken(&'static str),
    /// It ends before its coding does.
    #[error("Content-Encoding: {0}, and the body ends before its coding does")]
    Cut(&'static str),
    /// It inflates beyond all proportion.
    #[error("the body inflates to more than {MOST_RATIO} times its size")]
    Bomb,
}

/// Undoes a body's content coding, piece by piece.
#[derive(Debug)]
pub struct Decoder {
    form: Form,
    /// Bytes received, and bytes decoded from them.
    came: u64,
    made: u64,
    /// The coding has ended.
    is_over: bool,
}

#[derive(Debug)]
enum Form {
    Gzip(MultiGzDecoder<Vec<u8>>),
    /// Its first byte shows whether it is in zlib's format: servers send both by the name of deflate.
    Deflate,
    Zlib(ZlibDecoder<Vec<u8>>),
    Raw(DeflateDecoder<Vec<u8>>),
}

impl Form {
    fn name(&self) -> &'static str {
        if matches!(self, Form::Gzip(_)) { "gzip" } else { "deflate" }
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Form::Gzip(decoder) => decoder.write(bytes),
            Form::Zlib(decoder) => decoder.write(bytes),
            Form::Raw(decoder) => decoder.write(bytes),
            Form::Deflate => Ok(0),
        }
    }

    /// Returns the bytes decoded since the last call.
    fn made(&mut self) -> std::io::Result<Vec<u8>> {
        let made = match self {
            Form::Gzip(decoder) => decoder.flush().map(|()| decoder.get_mut()),
            Form::Zlib(decoder) => decoder.flush().map(|()| decoder.get_mut()),
            Form::Raw(decoder) => decoder.flush().map(|()| decoder.get_mut()),
            Form::Deflate => return Ok(Vec::new()),
        };
        made.map(std::mem::take)
    }
}

impl Decoder {
    /// Returns the decoder for the body of an answer with these headers; `None` if it is not coded.
    ///
    /// # Errors
    ///
    /// A coding that nothing here undoes, or several.
    pub fn of(headers: &HttpHeaders) -> Result<Option<Self>, CodingFault> {
        let Some(named) = headers.list("Content-Encoding") else { return Ok(None) };
        let codings = named.split(',').map(|one| one.trim().to_ascii_lowercase());
        let mut codings = codings.filter(|one| !matches!(one.as_str(), "" | "identity"));
        let form = match (codings.next().as_deref(), codings.next()) {
            (None, _) => return Ok(None),
            (Some("gzip" | "x-gzip"), None) => Form::Gzip(MultiGzDecoder::new(Vec::new())),
            (Some("deflate"), None) => Form::Deflate,
            _ => return Err(CodingFault::Unread(named.chars().take(40).collect())),
        };
        Ok(Some(Decoder { form, came: 0, made: 0, is_over: false }))
    }

    /// Decodes the body's next bytes and passes the output to `out`, in pieces of bounded size.
    ///
    /// # Errors
    ///
    /// The fault in it; nothing more of it can be read.
    pub fn push(&mut self, bytes: &[u8], mut out: impl FnMut(Vec<u8>)) -> Result<(), CodingFault> {
        for step in bytes.chunks(STEP) {
            if matches!(self.form, Form::Deflate) {
                // RFC 1950 section 2.2: the method is 8, and the window at most 7.
                let is_zlib = step[0] & 0x0f == 8 && step[0] >> 4 <= 7;
                self.form = match is_zlib {
                    true => Form::Zlib(ZlibDecoder::new(Vec::new())),
                    false => Form::Raw(DeflateDecoder::new(Vec::new())),
                };
            }
            let broken = CodingFault::Broken(self.form.name());
            let mut left = step;
            while !left.is_empty() && !self.is_over {
                match self.form.write(left) {
                    // Bytes behind the end are no part of it.
                    Ok(0) => self.is_over = true,
                    Ok(taken) => left = &left[taken..],
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(_) => return Err(broken),
                }
            }
            let made = self.form.made().map_err(|_| broken)?;
            self.came += step.len() as u64;
            self.made += made.len() as u64;
            if self.made > FREE.max(self.came.saturating_mul(MOST_RATIO)) {
                return Err(CodingFault::Bomb);
            }
            if !made.is_empty() {
                out(made);
            }
        }
        Ok(())
    }

    /// Notes that the body has ended.
    ///
    /// # Errors
    ///
    /// If its coding has not.
    pub fn finish(&mut self) -> Result<(), CodingFault> {
        // Some servers code nothing as nothing.
        if self.is_over || self.came == 0 {
            return Ok(());
        }
        let cut = CodingFault::Cut(self.form.name());
        match &mut self.form {
            Form::Gzip(decoder) => decoder.try_finish().map_err(|_| cut),
            // One that has ended takes nothing more.
            form => {
                if matches!(form.write(&[0]), Ok(0)) {
                    Ok(())
                } else {
                    Err(cut)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use proptest::prelude::*;

    use super::*;

    fn headers(coding: &str) -> HttpHeaders {
        let mut headers = HttpHeaders::default();
        headers.add("content-encoding", coding);
        headers
    }

    fn coded(form: &str, bytes: &[u8]) -> Vec<u8> {
        match form {
            "gzip" => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            "zlib" => {
                let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            _ => {
                let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
        }
    }

    fn decoded(coding: &str, bytes: &[u8], piece: usize) -> Result<Vec<u8>, CodingFault> {
        let mut decoder = Decoder::of(&headers(coding))?.expect("it is coded");
        let mut made = Vec::new();
        for piece in bytes.chunks(piece) {
            decoder.push(piece, |part| made.extend(part))?;
        }
        decoder.finish().map(|()| made)
    }

    const FORMS: [(&str, &str); 3] = [("gzip", "gzip"), ("zlib", "deflate"), ("raw", "deflate")];

    #[test]
    fn both_forms_are_undone_however_they_are_cut() {
        let text: Vec<u8> = (0..40_000u32).flat_map(|number| number.to_string().into_bytes()).collect();
        for (form, coding) in FORMS {
            let bytes = coded(form, &text);
            for piece in [1, 100, 100_000] {
                assert_eq!(decoded(coding, &bytes, piece).as_deref(), Ok(&text[..]), "{form}");
            }
        }
        // Members follow each other.
        let two = [coded("gzip", b"one, "), coded("gzip", b"two")].concat();
        assert_eq!(decoded("x-gzip", &two, 3).as_deref(), Ok(&b"one, two"[..]));
        assert_eq!(decoded("gzip", b"", 1).as_deref(), Ok(&b""[..]));
    }

    #[test]
    fn what_is_cut_broken_or_of_another_coding_is_refused() {
        let text = [7; 5_000];
        for (form, coding) in FORMS {
            let bytes = coded(form, &text);
            for end in [1, bytes.len() / 2, bytes.len() - 1] {
                let given = decoded(coding, &bytes[..end], 9);
                assert!(matches!(given, Err(CodingFault::Cut(_))), "{form} {end}: {given:?}");
            }
        }
        let mut wrong = coded("gzip", &text);
        let checksum = wrong.len() - 6;
        wrong[checksum] ^= 1;
        for (coding, bytes) in [("gzip", &wrong[..]), ("gzip", b"<html>"), ("deflate", b"\xff\xff\xff\xff")] {
            assert!(matches!(decoded(coding, bytes, 9), Err(CodingFault::Broken(_) | CodingFault::Cut(_))));
        }
        for coding in ["br", "zstd", "gzip, gzip", "compress"] {
            let fault = Decoder::of(&headers(coding)).unwrap_err().to_string();
            assert!(fault.contains(coding) && fault.contains("is not read"), "{fault}");
        }
        for coding in ["identity", "", "Identity, "] {
            let mut headers = HttpHeaders::default();
            headers.add("Content-Encoding", coding.trim());
            assert!(Decoder::of(&headers).unwrap().is_none());
        }
    }

    #[test]
    fn a_bomb_is_given_up_early() {
        for (form, coding) in FORMS {
            let bytes = coded(form, &vec![0; 16 << 20]);
            let mut decoder = Decoder::of(&headers(coding)).unwrap().unwrap();
            let (mut made, mut largest) = (0, 0);
            let given =
                decoder.push(&bytes, |part| (made, largest) = (made + part.len(), largest.max(part.len())));
            assert_eq!(given, Err(CodingFault::Bomb));
            assert!(made <= 6 << 20 && largest <= 2 << 20, "{form}: {made} {largest}");
        }
    }

    proptest! {
        #[test]
        fn anything_is_undone_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..500), piece in 1usize..100) {
            for coding in ["gzip", "deflate"] {
                let _ = decoded(coding, &bytes, piece);
                let _ = decoded(coding, &[&[0x1f, 0x8b, 8][..], &bytes].concat(), piece);
            }
        }
    }
}
