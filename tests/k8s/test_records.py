"""Tests of what is computed from records, with records made by hand."""

import json
import unittest

from records import agreed, current, kills, parse, strangers, summarise, watched


def line(stream, run, state, first, last, leader="", id="", epoch=0, observer="watch", target="10.0.0.1", boot="b",
         offset=0, answers=9):
    """A record from `first` to `last` in milliseconds; an answer takes one."""
    record = dict(stream=stream, run=run, observer=observer, target=target, boot=boot, offset=offset, state=state,
                  first_sent=int(first * 1e6), first_received=int((first + 1) * 1e6),
                  last_sent=int((last - 1) * 1e6), last_received=int(last * 1e6), answers=answers)
    if leader:
        record.update(leader=leader, id=id or leader, epoch=epoch)
    return json.dumps(record)


def runs(*lines):
    return parse("\n".join(lines))


def leads(stream, run, name, epoch, first, last, **more):
    return line(stream, run, "leads", first, last, name, more.pop("id", name), epoch, **more)


class Parsing(unittest.TestCase):
    def test_the_last_report_of_a_run_counts(self):
        (run,) = runs(leads("s", 1, "web-0", 1, 0, 10), leads("s", 1, "web-0", 1, 0, 500))
        self.assertAlmostEqual(run.last_received, 0.5)

    def test_what_is_no_record_is_left_out(self):
        self.assertEqual(len(runs("hello", "7", '{"stream": "cut', leads("s", 1, "web-0", 1, 0, 10))), 1)

    def test_records_of_several_machines_are_put_on_the_real_time_clock(self):
        first, second = runs(leads("s", 1, "web-0", 1, 0, 10, boot="a", offset=10**9),
                             leads("t", 1, "web-1", 2, 0, 10, boot="b", offset=3 * 10**9))
        self.assertAlmostEqual(second.first_sent - first.first_sent, 2.0)

    def test_records_of_one_machine_stay_on_its_monotonic_clock(self):
        first, second = runs(leads("s", 1, "web-0", 1, 0, 10, offset=1), leads("t", 1, "web-1", 2, 0, 10, offset=10**9))
        self.assertAlmostEqual(second.first_sent, first.first_sent)

    def test_kills_are_told(self):
        found = runs(line("kill", 7, "killed", 5, 5, target="web-1"), leads("s", 1, "web-0", 1, 0, 10))
        self.assertEqual([(round(at, 3), pod) for at, pod in kills(found)], [(0.005, "web-1")])


class Summaries(unittest.TestCase):
    def test_the_time_without_a_leader_is_from_the_last_yes_sent_to_the_first_yes_received(self):
        summary = summarise(runs(leads("s", 1, "web-0", 1, 0, 100), leads("t", 1, "web-1", 2, 130, 300)), 0.05, 0.29)
        self.assertAlmostEqual(summary.leaderless, 0.131 - 0.099)
        self.assertEqual(summary.changes, 1)
        self.assertEqual(summary.duals, ())
        self.assertEqual(summary.leaders, (("web-0", 1), ("web-1", 2)))

    def test_several_gaps_add_up(self):
        summary = summarise(runs(leads("s", 1, "web-0", 1, 0, 100), leads("t", 1, "web-1", 2, 119, 200),
                                 leads("u", 1, "web-2", 3, 239, 400)), 0.05, 0.39)
        self.assertAlmostEqual(summary.leaderless, 0.021 + 0.041)
        self.assertEqual(summary.changes, 2)

    def test_a_gap_in_one_leadership_counts_although_no_other_led(self):
        summary = summarise(runs(leads("s", 1, "web-0", 1, 0, 100), line("s", 2, "none", 101, 149),
                                 leads("s", 3, "web-0", 1, 150, 300)), 0.05, 0.29)
        self.assertAlmostEqual(summary.leaderless, 0.151 - 0.099)
        self.assertEqual(summary.changes, 0)

    def test_what_one_observer_missed_another_one_saw(self):
        summary = summarise(runs(leads("s", 1, "web-0", 1, 0, 100), leads("t", 1, "web-0", 1, 0, 200, target="own"),
                                 leads("u", 1, "web-1", 2, 203, 300)), 0.05, 0.29)
        self.assertAlmostEqual(summary.leaderless, 0.204 - 0.199)
        self.assertEqual(summary.changes, 1)

    def test_a_shorter_sight_within_a_longer_one_takes_nothing_away(self):
        summary = summarise(runs(leads("s", 1, "web-0", 1, 0, 300), leads("t", 1, "web-0", 1, 100, 150, target="own")),
                            0.05, 0.29)
        self.assertEqual(summary.leaderless, 0.0)

    def test_no_leader_up_to_the_end_counts(self):
        summary = summarise(runs(leads("s", 1, "web-0", 1, 0, 100)), 0.05, 0.4)
        self.assertAlmostEqual(summary.leaderless, 0.4 - 0.099)

    def test_what_was_before_and_after_does_not_count(self):
        summary = summarise(runs(leads("r", 1, "web-9", 1, 0, 10), leads("s", 1, "web-0", 2, 20, 500),
                                 leads("t", 1, "web-1", 3, 600, 700)), 0.1, 0.4)
        self.assertEqual((summary.leaderless, summary.changes, summary.leaders), (0.0, 0, (("web-0", 2),)))

    def test_a_process_that_leads_again_in_a_new_epoch_is_a_change(self):
        summary = summarise(runs(leads("s", 1, "web-0", 1, 0, 100), leads("s", 2, "web-0", 2, 110, 300)), 0.05, 0.29)
        self.assertEqual(summary.changes, 1)

    def test_an_epoch_that_goes_back_is_seen(self):
        back = runs(leads("s", 1, "web-0", 5, 0, 100), leads("t", 1, "web-1", 4, 130, 300))
        self.assertFalse(summarise(back, 0.05, 0.29).epochs_rise)
        rising = runs(leads("s", 1, "web-0", 5, 0, 100), leads("t", 1, "web-1", 6, 130, 300))
        self.assertTrue(summarise(rising, 0.05, 0.29).epochs_rise)
        shared = runs(leads("s", 1, "web-0", 5, 0, 100), leads("t", 1, "web-1", 5, 130, 300))
        self.assertFalse(summarise(shared, 0.05, 0.29).epochs_rise)


class Duals(unittest.TestCase):
    def test_two_proven_at_once_are_found(self):
        summary = summarise(runs(leads("s", 1, "web-0", 1, 0, 200), leads("t", 1, "web-1", 2, 150, 300)), 0.0, 0.3)
        ((start, end, one, other),) = summary.duals
        self.assertAlmostEqual(start, 0.151)
        self.assertAlmostEqual(end, 0.199)
        self.assertEqual((one, other), ("web-0", "web-1"))

    def test_a_doubt_is_no_proof(self):
        # The last yes may have been given before the first one: sent at 199, received at 200; the other at 198 and 199.5.
        summary = summarise(runs(leads("s", 1, "web-0", 1, 0, 200), leads("t", 1, "web-1", 2, 198, 300)), 0.0, 0.3)
        self.assertEqual(summary.duals, ())

    def test_two_observers_of_one_leader_are_no_two_leaders(self):
        summary = summarise(runs(leads("s", 1, "web-0", 1, 0, 200), leads("t", 1, "web-0", 1, 0, 300)), 0.0, 0.3)
        self.assertEqual(summary.duals, ())

    def test_two_lives_of_one_pod_are_two_processes(self):
        summary = summarise(runs(leads("s", 1, "web-0", 1, 0, 200, id="a"), leads("t", 1, "web-0", 2, 50, 300, id="b")),
                            0.0, 0.3)
        self.assertEqual(len(summary.duals), 1)

    def test_two_processes_with_one_record_are_two_leaders(self):
        summary = summarise(runs(leads("s", 1, "web-0", 1, 0, 200), leads("t", 1, "web-0", 2, 50, 300)), 0.0, 0.3)
        self.assertEqual(len(summary.duals), 1)

    def test_a_pair_counts_once_however_many_saw_it(self):
        summary = summarise(runs(leads("s", 1, "web-0", 1, 0, 200), leads("u", 1, "web-1", 2, 140, 300),
                                 leads("t", 1, "web-1", 2, 150, 300)), 0.0, 0.3)
        self.assertEqual(len(summary.duals), 1)
        self.assertAlmostEqual(summary.duals[0][0], 0.141)


class Now(unittest.TestCase):
    def own(self, pod, state, leader, epoch, last=2000):
        return line(pod, 1, state, 0, last, leader, leader, epoch, observer=pod, target="own")

    def test_all_agree(self):
        leader, why = agreed(runs(self.own("web-0", "leads", "web-0", 3), self.own("web-1", "follows", "web-0", 3)),
                             ["web-0", "web-1"])
        self.assertEqual((leader.leader, why), ("web-0", ""))

    def test_a_pod_that_is_gone_is_not_asked(self):
        leader, _ = agreed(runs(self.own("web-0", "leads", "web-0", 3), self.own("web-9", "leads", "web-9", 2)), ["web-0"])
        self.assertEqual(leader.leader, "web-0")

    def test_disagreements_are_told(self):
        lead = self.own("web-0", "leads", "web-0", 3)
        for others, pods in [
            ([], ["web-0", "web-1"]),  # web-1 says nothing
            ([self.own("web-1", "follows", "web-0", 3, last=100)], ["web-0", "web-1"]),  # or not any more
            ([self.own("web-1", "leads", "web-1", 4)], ["web-0", "web-1"]),
            ([self.own("web-1", "follows", "web-2", 3)], ["web-0", "web-1"]),
            ([self.own("web-1", "follows", "web-0", 2)], ["web-0", "web-1"]),
            ([line("web-1", 1, "follows", 0, 2000, "web-0", "another life", 3, observer="web-1", target="own")],
             ["web-0", "web-1"]),
            ([line("web-1", 1, "follows", 0, 2000, "web-7", "web-0", 3, observer="web-1", target="own")],
             ["web-0", "web-1"]),
            ([line("web-1", 1, "none", 0, 2000, observer="web-1", target="own")], ["web-0", "web-1"]),
            ([], ["web-1"]),  # the leader is none of the pods
        ]:
            leader, why = agreed(runs(lead, *others), pods)
            self.assertIsNone(leader)
            self.assertTrue(why)

    def test_a_leader_under_another_pods_name_is_told(self):
        leader, why = agreed(runs(self.own("web-0", "leads", "web-7", 3)), ["web-0"])
        self.assertIsNone(leader)
        self.assertIn("web-7", why)

    def test_epochs_count_only_where_they_are_asked_for(self):
        found = runs(self.own("web-0", "leads", "web-0", 3), self.own("web-1", "follows", "web-0", 0))
        self.assertIsNone(agreed(found, ["web-0", "web-1"])[0])
        self.assertIsNotNone(agreed(found, ["web-0", "web-1"], epochs=False)[0])

    def test_only_the_last_run_of_a_stream_is_current(self):
        found = current(runs(leads("s", 1, "web-0", 1, 0, 1900), line("s", 2, "silent", 1901, 2000)))
        self.assertEqual([run.state for run in found], ["silent"])

    def test_the_watcher_wants_exactly_one_leader_and_all_pods(self):
        lead = leads("s", 1, "web-0", 1, 0, 2000)
        follow = line("t", 1, "follows", 0, 2000, "web-0", "web-0", 1)
        pods = ["web-0", "web-1"]
        self.assertEqual(watched(runs(lead, follow), pods)[0].leader, "web-0")
        self.assertEqual(watched(runs(lead, follow, line("u", 1, "silent", 0, 2000)), pods)[0].leader, "web-0")
        self.assertEqual(watched(runs(lead, follow, line("kill", 1, "killed", 0, 2000)), pods)[0].leader, "web-0")
        for wrong in [(lead,), (lead, leads("t", 1, "web-1", 2, 0, 2000)),
                      (lead, line("t", 1, "follows", 0, 2000, "web-1", "web-1", 1))]:
            self.assertIsNone(watched(runs(*wrong), pods)[0])
        self.assertIsNone(watched(runs(lead, follow), ["web-1", "web-2"])[0])

    def test_strangers(self):
        found = runs(leads("s", 1, "web-0", 1, 0, 10), line("t", 1, "follows", 0, 10, "shop-0", "x", 1),
                     line("u", 1, "silent", 0, 10))
        self.assertEqual(strangers(found, ["web-"]), ["shop-0"])
        self.assertEqual(strangers(found, ["web-", "shop-"]), [])


if __name__ == "__main__":
    unittest.main()
