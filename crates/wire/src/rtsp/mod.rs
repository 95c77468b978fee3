//! RTSP 1.0 (RFC 2326): messages and interleaved frames out of a stream of bytes, and the headers that we use.
