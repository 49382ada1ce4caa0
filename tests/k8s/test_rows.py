"""Tests of the rounds, with an election that is only made up."""

import types
import unittest
from unittest import mock

import rows
from records import parse
from table import MORE_ROUNDS, Bounds, Row
from test_records import leads, line


class MadeUp:
    """Leads as its records say; each `settled` returns the next of `leaders` with a time."""

    where, name, kind, safety, has_epochs, replicas = "made up", "web", "StatefulSet", "majority", True, 3

    def __init__(self, leaders, *lines):
        self.leaders, self.lines, self.renewed, self.waited = list(leaders), lines, 0, []

    def settled(self, **expected):
        self.waited.append(expected)
        name, at = self.leaders.pop(0)
        if name is None:
            raise TimeoutError("no settled election")
        return types.SimpleNamespace(leader=name, leadership=(name, 1)), at

    def runs(self, seconds):
        return parse("\n".join(self.lines))

    def restart_all(self):
        self.renewed += 1


TRANSFER = (leads("s", 1, "web-0", 1, 0, 1000), leads("t", 1, "web-1", 2, 1010, 3000))


@mock.patch("rows.say", mock.Mock())
class Rounds(unittest.TestCase):
    def lab(self, rounds=1, wanted=()):
        return rows.Lab(None, rounds, wanted)

    def test_a_round_waits_for_what_the_act_says_and_adds_what_happened(self):
        election = MadeUp([("web-0", 0.5), ("web-1", 2.5)], *TRANSFER)
        row = self.lab().row("deleted", election)
        rows.repeat(row, election, lambda election, leader: dict(other_than=leader.leadership))
        self.assertEqual((row.changes, row.errors), ([1], []))
        self.assertAlmostEqual(row.leaderless[0], 12.0)
        self.assertEqual(election.waited, [{}, {"other_than": ("web-0", 1)}])

    def test_no_release_is_ever_allowed_two_leaders(self):
        self.assertEqual(self.lab().row("deleted", MadeUp([]), Bounds(median=50)).bounds, Bounds(median=50, duals=0))

    def test_a_leader_of_another_release_fails_the_row(self):
        election = MadeUp([("web-0", 0.5), ("web-1", 2.5)], *TRANSFER, line("u", 1, "follows", 0, 900, "shop-0", "x", 1))
        row = self.lab().row("deleted", election)
        rows.repeat(row, election, lambda election, leader: {})
        self.assertIn("shop-0", row.errors[0])

    def test_an_epoch_that_goes_back_fails_the_row(self):
        election = MadeUp([("web-0", 0.5), ("web-1", 2.5)],
                          leads("s", 1, "web-0", 7, 0, 1000), leads("t", 1, "web-1", 2, 1010, 3000))
        row = self.lab().row("deleted", election)
        rows.repeat(row, election, lambda election, leader: {})
        self.assertIn("epoch went back", row.errors[0])

    def test_a_round_that_does_not_settle_fails_the_row_and_the_next_one_is_run(self):
        election = MadeUp([("web-0", 0.5), (None, 0), ("web-0", 0.5), ("web-1", 2.5)], *TRANSFER)
        row = self.lab(2).row("deleted", election)
        rows.repeat(row, election, lambda election, leader: {})
        self.assertEqual((len(row.leaderless), len(row.errors), election.renewed, row.verdict), (1, 1, 1, "FAILED"))

    def test_a_median_over_its_bound_gets_more_rounds_and_not_for_ever(self):
        for bound, rounds in (12.5, 1), (-1, 1 + MORE_ROUNDS):  # None passes the second bound.
            election = MadeUp([("web-0", 0.5), ("web-1", 2.5)] * 9, *TRANSFER)
            row = self.lab().row("deleted", election, Bounds(median=bound))
            rows.repeat(row, election, lambda election, leader: {})
            self.assertEqual((len(row.leaderless), row.verdict), (rounds, "ok" if rounds == 1 else "FAILED"))

    def test_one_slow_round_of_two_is_no_median(self):
        row = Row("deleted", "made up", Bounds(median=50), 2, leaderless=[90, 20])
        self.assertTrue(row.wants_more(2))
        row.leaderless.append(20)
        self.assertFalse(row.wants_more(3))

    def test_pods_are_made_anew_after_some_kills(self):
        election = MadeUp([("web-0", 0.5), ("web-1", 2.5)] * 4, *TRANSFER)
        rows.repeat(self.lab(4).row("killed", election), election, lambda election, leader: {}, renew=3)
        self.assertEqual(election.renewed, 1)

    def test_only_what_is_asked_for(self):
        lab = self.lab(wanted=["killed"])
        self.assertIsNone(lab.row("deleted", MadeUp([])))
        self.assertIsNotNone(lab.row("killed", MadeUp([])))

    def test_rounds_in_which_the_first_pod_to_go_leads_are_a_row_of_their_own(self):
        lab = self.lab(1)
        election = MadeUp([("web-2", 0.1), ("web-2", 0.5), ("web-1", 2.5), ("web-0", 0.1), ("web-0", 0.5), ("web-1", 2.5)],
                          *TRANSFER)
        rows.rolling(lab, election, "rolled", lambda election, leader: {}, 50)
        self.assertEqual([(row.what, len(row.leaderless), row.bounds.changes) for row in lab.rows],
                         [("rolled", 1, 1), ("rolled, the first pod to go leads", 1, 2)])

    def test_they_get_more_rounds_after_the_others_are_done_and_not_for_ever(self):
        lab = self.lab(1)
        rounds = [("web-2", 0.1), ("web-2", 0.5), ("web-1", 2.5), ("web-0", 0.1), ("web-0", 0.5), ("web-1", 2.5)]
        slow = -1  # None passes it.
        election = MadeUp(rounds[:3] * MORE_ROUNDS + rounds[3:] * (1 + MORE_ROUNDS), *TRANSFER)
        rows.rolling(lab, election, "rolled", lambda election, leader: {}, slow)
        self.assertEqual([(len(row.leaderless), row.verdict) for row in lab.rows],
                         [(1 + MORE_ROUNDS, "FAILED"), (MORE_ROUNDS, "FAILED")])
        lab = self.lab(1)
        election = MadeUp([("web-0", 0.1), ("web-0", 0.5), ("web-1", 2.5)] * 40, *TRANSFER)
        rows.rolling(lab, election, "rolled", lambda election, leader: {}, slow)
        self.assertEqual([len(row.leaderless) for row in lab.rows], [1 + MORE_ROUNDS])


class Rotated(MadeUp):
    """Its leader stays, and a step takes three seconds."""

    def __init__(self, restarts=(0, 0), refused=(0, 0)):
        super().__init__([("web-0", 0.5), ("web-0", 2.5)], leads("s", 1, "web-0", 1, 0, 3000))
        self.restarts, self.refused, self.taken = iter(restarts), iter(refused), []

    def pods(self):
        return [{"metadata": {"uid": "u"}, "status": {"containerStatuses": [{"restartCount": next(self.restarts)}]}}]

    def proofs(self):
        return {"web-0": types.SimpleNamespace(refused=next(self.refused))}

    def take(self, step):
        self.taken.append(step.what)
        return 3.0


@mock.patch("rows.say", mock.Mock())
class Rotations(unittest.TestCase):
    def rotated(self, election, rounds=3):
        lab = rows.Lab(None, rounds, ())
        steps = [types.SimpleNamespace(what=what) for what in ("add", "swap", "remove")]
        rows.rotated(lab, election, "rotated", lambda election: steps)
        return lab.rows[0]

    def test_the_steps_are_one_round_that_costs_nothing(self):
        election = Rotated()
        row = self.rotated(election)
        self.assertEqual((row.verdict, row.leaderless, row.changes, row.wanted), ("ok", [0.0], [0], 1))
        self.assertEqual(election.taken, ["add", "swap", "remove"])
        self.assertIn("3.0 s (median)", row.notes[0])

    def test_any_time_without_a_leader_fails_the_row(self):
        election = Rotated()
        election.lines = TRANSFER
        row = self.rotated(election)
        self.assertEqual(row.verdict, "FAILED")
        self.assertEqual(len(row.complaints()), 2, row.complaints())

    def test_a_restart_fails_the_row(self):
        self.assertIn("restarted", self.rotated(Rotated(restarts=(0, 1))).errors[0])

    def test_a_refused_member_fails_the_row(self):
        self.assertIn("failed 2 authentications", self.rotated(Rotated(refused=(1, 3, 3))).errors[0])


class Working(MadeUp):
    """Gives its leadership up once; the command of the first pod ends and that of the second begins at these times."""

    def __init__(self, ends, begins, restarts=0):
        commands = (leads("c", 1, "web-0", 1, 0, ends, observer="web-0", target="own"),
                    leads("d", 1, "web-1", 2, begins, 3000, observer="web-1", target="own"))
        super().__init__([("web-0", 0.5), ("web-1", 2.5)], *TRANSFER, *commands)
        self.restarts, self.inside = restarts, mock.Mock()

    def pods(self):
        return [{"metadata": {"uid": "u"}, "status": {"containerStatuses": [{"restartCount": self.restarts}]}}]

    def announced(self):
        pass


@mock.patch("rows.say", mock.Mock())
class Commands(unittest.TestCase):
    def commanded(self, election):
        lab = rows.Lab(None, 1, ["given up"])
        rows.commanded(lab, election, 50, 100, 1)
        return lab.rows[0]

    def test_a_command_that_follows_soon_passes(self):
        row = self.commanded(Working(990, 1050))
        self.assertEqual(row.errors, [])
        self.assertIn("50.0 ms (median) later", row.notes[0])

    def test_a_command_that_follows_late_fails_the_row(self):
        self.assertIn("at most 100", self.commanded(Working(990, 1150)).errors[0])

    def test_two_commands_at_once_fail_the_row(self):
        self.assertIn("ran in web-0 and web-1 at once", self.commanded(Working(1100, 1050)).errors[0])

    def test_a_restart_of_a_container_fails_the_row(self):
        self.assertIn("restarted", self.commanded(Working(990, 1050, restarts=2)).errors[0])


@mock.patch("rows.say", mock.Mock())
class Outages(unittest.TestCase):
    def killed(self, at, pod):
        return line("kill", at, "killed", at, at, target=pod)

    def accounted(self, *lines, kills=2):
        election = MadeUp([], *lines)
        row = rows.Lab(None, 2, ()).row("stopped", election)
        rows.account(row, election, election.runs(10), 0.2, 5.9, kills)
        return row

    def test_each_kill_is_a_round(self):
        row = self.accounted(leads("s", 1, "web-0", 1, 0, 1000), leads("t", 1, "web-1", 2, 1010, 3000),
                             leads("u", 1, "web-2", 3, 3020, 6000), self.killed(1000, "web-0"), self.killed(3000, "web-1"))
        self.assertEqual((row.changes, row.errors), ([1, 1], []))
        self.assertAlmostEqual(row.leaderless[0], 12.0)
        self.assertAlmostEqual(row.leaderless[1], 22.0)

    def test_a_change_before_the_first_kill_is_an_error(self):
        row = self.accounted(leads("s", 1, "web-0", 1, 0, 400), leads("t", 1, "web-1", 2, 410, 1000),
                             leads("u", 1, "web-2", 3, 1010, 6000), self.killed(1000, "web-1"), kills=1)
        self.assertEqual(len(row.errors), 1)
        self.assertIn("before the first kill: 1 changes", row.errors[0])

    def test_a_kill_without_a_record_is_an_error(self):
        row = self.accounted(leads("s", 1, "web-0", 1, 0, 1000), leads("t", 1, "web-1", 2, 1010, 6000),
                             self.killed(1000, "web-0"))
        self.assertIn("1 kills of 2", row.errors[0])

    def test_what_cannot_be_stopped_is_skipped_and_says_so(self):
        service = types.SimpleNamespace(what="the API server", missing=lambda: "no command")
        lab, election = rows.Lab(None, 1, ()), MadeUp([])
        rows.outage(lab, service, [election], [], 1, 1, 50)
        self.assertEqual([(row.verdict, row.skipped) for row in lab.rows], [("SKIPPED", "no command")])


if __name__ == "__main__":
    unittest.main()
