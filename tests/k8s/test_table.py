"""Tests of the verdicts and the table."""

import json
import unittest

from records import Summary
from table import Bounds, Row, as_json, markdown


def summary(leaderless, changes=1, duals=()):
    return Summary(leaderless, changes, duals, (), True)


def row(bounds, *summaries, wanted=0):
    made = Row("what", "where", bounds, wanted)
    for one in summaries:
        made.add(one)
    return made


class Verdicts(unittest.TestCase):
    def test_within_all_bounds(self):
        made = row(Bounds(50, 100, 1, 0), summary(0.01), summary(0.05), summary(0.1), wanted=3)
        self.assertEqual((made.complaints(), made.verdict), ([], "ok"))

    def test_each_bound_can_be_broken(self):
        for bounds, summaries, wanted, word in [
            (Bounds(median=50), [summary(0.01), summary(0.06), summary(0.07)], 0, "half"),
            (Bounds(longest=50), [summary(0.01), summary(0.01), summary(0.07)], 0, "70.0 ms"),
            (Bounds(changes=1), [summary(0.01, 2)], 0, "2 changes"),
            (Bounds(duals=0), [summary(0.01, 1, ((1.0, 1.5, "a", "b"),))], 0, "500.0 ms"),
            (Bounds(), [summary(0.01)], 2, "1 rounds of 2"),
        ]:
            made = row(bounds, *summaries, wanted=wanted)
            self.assertEqual(made.verdict, "FAILED", word)
            self.assertEqual(len(made.complaints()), 1, word)
            self.assertIn(word, made.complaints()[0])

    def test_an_error_fails(self):
        made = row(Bounds(), summary(0.01))
        made.errors.append("the pods did not come back")
        self.assertEqual(made.verdict, "FAILED")

    def test_what_was_skipped_says_so(self):
        made = Row("what", "where", skipped="no command stops the API server", wanted=10)
        self.assertEqual(made.verdict, "SKIPPED")
        self.assertIn("**SKIPPED** what, where: no command stops the API server", markdown([made]))


class Tables(unittest.TestCase):
    def test_markdown(self):
        text = markdown([row(Bounds(median=1), summary(0.0104), summary(0.0204, 2, ((0.0, 0.0005, "a", "b"),)))])
        self.assertIn("| what | where | 2 | 15.4 | 20.4 | 1 to 2 | 1 (up to 0.5 ms) | FAILED |", text)
        self.assertIn("- **FAILED** what, where: half", text)

    def test_json(self):
        made = json.loads(as_json([row(Bounds(), summary(0.01))], [("helm test", "ok", "")]))
        self.assertEqual(made["rows"][0]["leaderless_ms"], [10.0])
        self.assertEqual(made["checks"][0]["verdict"], "ok")


if __name__ == "__main__":
    unittest.main()
