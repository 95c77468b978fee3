//! RTCP packets of Apple's Reliable UDP: acknowledgements, client reports, the server's hints.
