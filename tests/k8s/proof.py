"""What members prove themselves with: how it is changed step by step, and how far a change has come by their metrics."""

import os
import re
import secrets
import tempfile
from dataclasses import dataclass

from cluster import run

SERIES = re.compile(r'^(bellwether_(?:peer|authentications)_\w+)(?:\{\w+="([^"]*)"\})? (\S+)$', re.MULTILINE)
EC_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
EXTENSIONS = """
[req]
distinguished_name = nothing
[nothing]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
subjectKeyIdentifier = hash
[member]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth, clientAuth
"""


@dataclass(frozen=True)
class Proof:
    """What one member has read, and with what its links were made."""

    sent: str  # the fingerprint of its key
    accepted: frozenset  # all fingerprints, that one among them
    former: int  # links that were made with what it had before
    clear: int
    sealed: int
    unusable: bool
    refused: int  # failed authentications since its start

    @property
    def keys(self):
        return self.sent, self.accepted


def read(metrics):
    """The proof in the text of /metrics."""
    found = {}
    for name, label, value in SERIES.findall(metrics):
        found.setdefault(name.removeprefix("bellwether_"), {})[label] = float(value)
    keys = found["peer_key"]
    (sent,) = (fingerprint for fingerprint, value in keys.items() if value == 1)
    return Proof(sent, frozenset(keys), int(found["peer_links_former"][""]), int(found["peer_links"]["clear"]),
                 int(found["peer_links"]["sealed"]), bool(found["peer_credentials_unusable"][""]),
                 int(found["authentications_failed_total"][""]))


@dataclass(frozen=True)
class Step:
    """One change of the files, and what all members must show before the next one."""

    what: str
    files: dict
    sends_another: bool  # another key than before
    accepts: int  # keys; with certificates the own one and the authorities

    def lacks(self, before, proofs):
        """Why the step is not done yet, or nothing. `before`: the keys of all; `proofs`: by the names of the pods."""
        for pod, now in sorted(proofs.items()):
            if now.unusable:
                return f"{pod} cannot use its files"
            if (now.sent != before[0]) != self.sends_another or len(now.accepted) != self.accepts:
                return f"{pod} sends {now.sent} and accepts {len(now.accepted)} keys"
            if now.former or now.clear or not now.sealed:
                return f"{pod} has {now.former} former links, {now.clear} in clear, {now.sealed} sealed"
        if len({now.keys for now in proofs.values()}) != 1:
            return f"the members differ: {proofs}"
        return ""


def secret_steps(election):
    """A second line, the lines swapped, the old line removed."""
    old, new = election.files()["secret"].split()[0], secrets.token_urlsafe(32)
    yield Step("second line in the secret", {"secret": f"{old}\n{new}\n"}, False, 2)
    yield Step("swapped lines of the secret", {"secret": f"{new}\n{old}\n"}, True, 2)
    yield Step("secret without the old line", {"secret": f"{new}\n"}, False, 1)


def certificate_steps(election):
    """Another certificate of the same authority."""
    yield Step("new certificate", election.authority.certificate(election.names()), True, 2)


def authority_steps(election):
    """Both authorities, a certificate of the new one, the new one alone."""
    old, new = election.authority, Authority()
    yield Step("second authority", {"ca.crt": old.pem + new.pem}, False, 3)
    yield Step("certificate of the new authority", new.certificate(election.names()), True, 3)
    yield Step("file without the old authority", {"ca.crt": new.pem}, False, 2)
    election.authority = new


class Authority:
    """Signs certificates for members, with openssl."""

    def __init__(self):
        self.pem, self.key = _openssl(["certificate", "key"], [
            "req", "-config", "extensions", "-x509", "-extensions", "authority", *EC_KEY, "-days", "2",
            "-subj", f"/CN=bellwether-e2e {secrets.token_hex(4)}", "-keyout", "key", "-out", "certificate"])

    def certificate(self, names):
        """A certificate with these DNS names, and its key, as the files of a Secret."""
        names = ",".join(f"DNS:{name}" for name in names)
        certificate, key = _openssl(
            ["certificate", "key"],
            ["req", "-config", "extensions", "-new", *EC_KEY, "-subj", "/CN=member", "-keyout", "key", "-out", "request"],
            ["x509", "-req", "-in", "request", "-CA", "authority", "-CAkey", "authority-key", "-days", "2",
             "-set_serial", str(secrets.randbits(63)), "-extfile", "extensions", "-extensions", "member",
             "-out", "certificate"],
            **{"extensions": f"{EXTENSIONS}subjectAltName = {names}\n", "authority": self.pem, "authority-key": self.key})
        return {"tls.crt": certificate, "tls.key": key}


def _openssl(wanted, *commands, **files):
    """Runs openssl in a folder with these files; returns those that are wanted of what is there then."""
    with tempfile.TemporaryDirectory(prefix="bellwether-e2e-") as folder:
        for name, content in {"extensions": EXTENSIONS, **files}.items():
            with open(os.path.join(folder, name), "w") as file:
                file.write(content)
        for command in commands:
            run("openssl", *command, folder=folder)
        found = []
        for name in wanted:
            with open(os.path.join(folder, name)) as file:
                found.append(file.read())
        return found
