"""A key and a certificate of one trial, for one server. Runs by the system's python3, calls openssl, ends.

Leaves ``key.pem``, ``certificate.pem`` and ``spki`` in ``STREAMGAUGE_SHARED``; the last is the digest by
which Chromium trusts it (base64 of SHA-256 of the public key's SubjectPublicKeyInfo, RFC 7469).
"""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
from pathlib import Path


def openssl(*arguments: str) -> bytes:
    """Returns openssl's stdout; exits with its last message if it fails."""
    done = subprocess.run(["openssl", *arguments], capture_output=True, check=False)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        print(f"openssl: {said[-1] if said else done.returncode}", file=sys.stderr)
        sys.exit(1)
    return done.stdout


def main() -> int:
    folder, server = Path(os.environ["STREAMGAUGE_SHARED"]), os.environ["STREAMGAUGE_SERVER"]
    key, certificate = str(folder / "key.pem"), str(folder / "certificate.pem")
    ask = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    ask += ["-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=streamgauge"]
    openssl(*ask, "-addext", f"subjectAltName=IP:{server}")
    public = openssl("pkey", "-in", key, "-pubout", "-outform", "DER")
    part = folder / "spki.part"
    part.write_text(base64.b64encode(hashlib.sha256(public).digest()).decode())
    part.rename(folder / "spki")
    return 0


if __name__ == "__main__":
    sys.exit(main())
