"""Tests of the picture, with records made by hand."""

import unittest
from xml.etree import ElementTree

import picture
from records import Run


def run(number, state, leader, since, until, target="own"):
    return Run(f"s{number}", number, "web-0", target, state, leader, leader, number, since, since, until, until, 10)


def failover(gap):
    return [run(1, "leads", "web-2", 90, 100), run(1, "leads", "web-2", 95, 99, "198.18.0.9"),
            run(2, "leads", "web-1", 100 + gap, 130), run(2, "follows", "web-1", 100 + gap, 130)]


class Picture(unittest.TestCase):
    def test_a_band_has_the_gap_and_a_lane_for_each_pod(self):
        found = picture.band("majority", failover(1.5), 90, 130)
        self.assertEqual([name for name, _ in found.lanes], ["web-0", "web-1", "web-2"])
        self.assertEqual((found.gap, found.end), (1.5, 30))

    def test_without_a_change_of_leader_there_is_no_band(self):
        self.assertIsNone(picture.band("majority", failover(1.5), 101, 130))
        self.assertIsNone(picture.band("majority", failover(1.5)[:2], 90, 130))

    def test_the_picture_is_xml_and_says_each_gap(self):
        bands = [picture.band(title, failover(gap), 90, 130) for title, gap in [("a < b", 0.004), ("client-go", 15.8)]]
        text = picture.svg(bands)
        found = " ".join(ElementTree.fromstring(text).itertext())
        for words in ["a < b", "no leader for 4.0 ms", "no leader for 15.8 s", "15 s"]:
            self.assertIn(words, found)
        self.assertIn("prefers-color-scheme: dark", text)


if __name__ == "__main__":
    unittest.main()
