"""Tests of what is read of a proof, of the steps of a change, and of the certificates."""

import os
import subprocess
import tempfile
import types
import unittest

from proof import Authority, Proof, Step, authority_steps, certificate_steps, read, secret_steps

METRICS = """# HELP bellwether_peer_key The keys that this process accepts.
# TYPE bellwether_peer_key gauge
bellwether_peer_key{fingerprint="aa"} 1
bellwether_peer_key{fingerprint="bb"} 0
bellwether_peer_links{channel="clear"} 0
bellwether_peer_links{channel="sealed"} 2
bellwether_peer_links_former 1
bellwether_peer_credentials_unusable 0
bellwether_authentications_failed_total 3
bellwether_members{state="alive"} 3
"""


def proof(sent="aa", accepted=("aa",), former=0, clear=0, sealed=2, unusable=False):
    return Proof(sent, frozenset(accepted), former, clear, sealed, unusable, 0)


class Reading(unittest.TestCase):
    def test_a_members_metrics(self):
        self.assertEqual(read(METRICS), Proof("aa", frozenset(["aa", "bb"]), 1, 0, 2, False, 3))

    def test_files_of_no_use(self):
        self.assertTrue(read(METRICS.replace("unusable 0", "unusable 1")).unusable)


class Steps(unittest.TestCase):
    before = proof().keys
    second = Step("second line", {}, False, 2)

    def test_done_when_all_members_show_it(self):
        both = proof(accepted=["aa", "bb"])
        self.assertEqual(self.second.lacks(self.before, {"web-0": both, "web-1": both}), "")

    def test_each_thing_that_is_missing(self):
        done = proof(accepted=["aa", "bb"])
        for late, words in [
            (proof(), "web-1 sends aa and accepts 1 keys"),
            (proof("bb", ["aa", "bb"]), "web-1 sends bb"),
            (proof(accepted=["aa", "bb"], former=1), "web-1 has 1 former links"),
            (proof(accepted=["aa", "bb"], clear=1), "1 in clear"),
            (proof(accepted=["aa", "bb"], sealed=0), "0 sealed"),
            (proof(accepted=["aa", "bb"], unusable=True), "web-1 cannot use its files"),
            (proof(accepted=["aa", "cc"]), "the members differ"),
        ]:
            self.assertIn(words, self.second.lacks(self.before, {"web-0": done, "web-1": late}))

    def test_another_key_must_be_sent_where_the_step_says_so(self):
        swapped = Step("swapped", {}, True, 2)
        keys = ["aa", "bb"]
        self.assertIn("sends aa", swapped.lacks(self.before, {"web-0": proof("aa", keys)}))
        self.assertEqual(swapped.lacks(self.before, {"web-0": proof("bb", keys)}), "")

    def test_a_secret_goes_from_one_line_to_another_by_both(self):
        election = types.SimpleNamespace(files=lambda: {"secret": "old\n"})
        first, second, third = (step.files["secret"].split() for step in secret_steps(election))
        old, new = first
        self.assertEqual((old, second, third), ("old", [new, "old"], [new]))
        self.assertGreaterEqual(len(new), 32)


class Certificates(unittest.TestCase):
    def verified(self, authorities, certificate):
        """What openssl says of a certificate with these authorities, as of a client and of a server."""
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, name) for name in ("authorities", "certificate")]
            for path, content in zip(paths, (authorities, certificate)):
                with open(path, "w") as file:
                    file.write(content)
            return all(
                subprocess.run(["openssl", "verify", "-purpose", purpose, "-verify_hostname", "cert-1.cert.e2e.svc",
                                "-CAfile", *paths], capture_output=True, timeout=60).returncode == 0
                for purpose in ("sslclient", "sslserver"))

    def election(self):
        return types.SimpleNamespace(
            authority=Authority(), names=lambda: ["cert-0.cert.e2e.svc", "cert-1.cert.e2e.svc"])

    def test_a_renewed_certificate_is_another_one_of_the_same_authority(self):
        election = self.election()
        (one,), (other,) = certificate_steps(election), certificate_steps(election)
        self.assertNotEqual(one.files["tls.crt"], other.files["tls.crt"])
        self.assertTrue(self.verified(election.authority.pem, other.files["tls.crt"]))

    def test_an_authority_goes_from_one_to_another_by_both(self):
        election = self.election()
        (present,), old = certificate_steps(election), election.authority.pem
        both, certificate, alone = (step.files for step in authority_steps(election))
        self.assertTrue(self.verified(both["ca.crt"], present.files["tls.crt"]))
        self.assertTrue(self.verified(both["ca.crt"], certificate["tls.crt"]))
        self.assertTrue(self.verified(alone["ca.crt"], certificate["tls.crt"]))
        self.assertFalse(self.verified(old, certificate["tls.crt"]))
        self.assertEqual(election.authority.pem, alone["ca.crt"])


if __name__ == "__main__":
    unittest.main()
