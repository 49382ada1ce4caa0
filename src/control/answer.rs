//! What an operator is told: one JSON object, which `bellwether resign` and its like read again.

use crate::config::show;
use crate::election::{Epoch, Operation, OperationDone, OperationOutcome, OperationRefusal, Peer};
use crate::telemetry::escape::escaped;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// An answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Answer {
    pub(super) done: bool,
    /// One of [`Operation::NAMES`]; none: the request was not understood.
    pub(super) operation: Option<String>,
    /// Why it is not done, in a word for programs; none: it is done.
    pub(super) reason: Option<String>,
    /// The same for people, or what has been done.
    pub(super) message: String,
    /// The leader that the process knows now.
    pub(super) leader: Option<Leader>,
    /// Its epoch, where it is done.
    pub(super) epoch: Option<u64>,
    /// Whether the process is cordoned now, where it is done.
    pub(super) cordoned: Option<bool>,
    /// For how long the process does not stand, in milliseconds.
    pub(super) stands_aside_ms: Option<u64>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Leader {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) address: String,
    pub(super) priority: u16,
}

impl Leader {
    fn new(peer: &Peer) -> Leader {
        Leader {
            id: peer.id.to_string(),
            name: peer.name.clone(),
            address: peer.address.to_string(),
            priority: peer.priority.0,
        }
    }
}

impl Answer {
    /// What came of an operation.
    pub(super) fn new(operation: &Operation, outcome: &OperationOutcome) -> Answer {
        let answer = match outcome {
            Ok(done) => {
                let OperationDone { leader, candidacy, aside } = done;
                Answer {
                    done: true,
                    reason: None,
                    leader: leader.as_ref().map(|(peer, _)| Leader::new(peer)),
                    epoch: leader.as_ref().map(|(_, Epoch(epoch))| *epoch),
                    cordoned: Some(candidacy.cordoned),
                    stands_aside_ms: aside.map(|aside| u64::try_from(aside.as_millis()).unwrap_or(u64::MAX)),
                    ..Answer::refused("", message(operation, done))
                }
            }
            Err(refusal) => Answer {
                leader: known_leader(refusal).map(Leader::new),
                ..Answer::refused(refusal.name(), refusal.to_string())
            },
        };
        answer.to(operation)
    }

    /// An answer that does not come from the election.
    pub(super) fn refused(reason: &str, message: String) -> Answer {
        Answer {
            done: false,
            operation: None,
            reason: Some(reason.to_owned()),
            message,
            leader: None,
            epoch: None,
            cordoned: None,
            stands_aside_ms: None,
        }
    }

    /// The same as an answer to this operation.
    pub(super) fn to(self, operation: &Operation) -> Answer {
        Answer { operation: Some(operation.name().to_owned()), ..self }
    }

    /// As one line.
    pub(super) fn line(&self) -> Vec<u8> {
        // Texts and numbers are JSON, always.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }

    /// The answer with every text in it made harmless for a terminal.
    pub(super) fn harmless(self) -> Answer {
        let leader = |leader: Leader| Leader {
            id: escaped(&leader.id),
            name: escaped(&leader.name),
            address: escaped(&leader.address),
            ..leader
        };
        Answer {
            operation: self.operation.map(|operation| escaped(&operation)),
            reason: self.reason.map(|reason| escaped(&reason)),
            message: escaped(&self.message),
            leader: self.leader.map(leader),
            ..self
        }
    }

    /// For people: what was done, and how the process stands now.
    pub(super) fn table(&self) -> String {
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let yes = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
        let cells = [
            ("DONE", or_none(self.operation.clone())),
            ("LEADER", or_none(self.leader.as_ref().map(|leader| leader.name.clone()))),
            ("EPOCH", or_none(self.epoch.map(|epoch| epoch.to_string()))),
            ("CORDONED", or_none(self.cordoned.map(yes))),
            ("ASIDE", or_none(self.stands_aside_ms.map(|ms| show(rounded(Duration::from_millis(ms)))))),
        ];
        let (mut head, mut row) = (String::new(), String::new());
        for (title, cell) in &cells {
            let width = title.chars().count().max(cell.chars().count());
            head += &format!("{title:<width$}  ");
            row += &format!("{cell:<width$}  ");
        }
        format!("{}\n\n{}\n{}\n", self.message, head.trim_end(), row.trim_end())
    }
}

/// The leader that a refusal names.
fn known_leader(refusal: &OperationRefusal) -> Option<&Peer> {
    match refusal {
        OperationRefusal::NotLeading { leader } => leader.as_ref(),
        OperationRefusal::AnotherLeads { leader } => Some(leader),
        _ => None,
    }
}

/// What was done, and what a restart forgets of it.
fn message(operation: &Operation, done: &OperationDone) -> String {
    let leader = done.leader.as_ref().map(|(peer, epoch)| format!("{} leads epoch {}", peer.name, epoch.0));
    let leader = leader.unwrap_or_else(|| "this process knows no leader".to_owned());
    match operation {
        Operation::Resign { .. } => {
            let aside = show(rounded(done.aside.unwrap_or_default()));
            format!("{leader}; this process does not stand for {aside}; a restart forgets that")
        }
        Operation::Transfer { .. } => leader,
        Operation::Cordon => format!(
            "{leader}; this process does not lead before `bellwether uncordon`; a restart forgets that"
        ),
        Operation::Uncordon => format!("{leader}; no operator keeps this process from leading"),
    }
}

/// Whole seconds, where there are some.
fn rounded(duration: Duration) -> Duration {
    let seconds = (duration + Duration::from_millis(500)).as_secs();
    if duration < Duration::from_secs(10) { duration } else { Duration::from_secs(seconds) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::election::{Candidacy, Incarnation, Priority, ProcessId, Unfit};

    fn peer(name: &str) -> Peer {
        Peer {
            id: ProcessId(uuid::Uuid::from_u128(1)),
            incarnation: Incarnation(1),
            name: name.to_owned(),
            address: "10.0.0.2:4041".parse().unwrap(),
            priority: Priority(100),
            revision: String::new(),
        }
    }

    fn done(cordoned: bool, aside: Option<Duration>) -> OperationDone {
        OperationDone {
            leader: Some((peer("web-1"), Epoch(8))),
            candidacy: Candidacy { cordoned, ..Candidacy::default() },
            aside,
        }
    }

    #[test]
    fn what_is_done_says_what_a_restart_forgets() {
        let minute = Some(Duration::from_millis(59_998));
        for (operation, done, message) in [
            (
                Operation::Resign { stand_aside: minute },
                done(false, minute),
                "web-1 leads epoch 8; this process does not stand for 60s; a restart forgets that",
            ),
            (Operation::Transfer { to: "web-1".to_owned() }, done(false, minute), "web-1 leads epoch 8"),
            (
                Operation::Cordon,
                done(true, None),
                "web-1 leads epoch 8; this process does not lead before `bellwether uncordon`; a restart \
                 forgets that",
            ),
            (
                Operation::Uncordon,
                OperationDone { leader: None, ..done(false, None) },
                "this process knows no leader; no operator keeps this process from leading",
            ),
        ] {
            let answer = Answer::new(&operation, &Ok(done));
            assert_eq!((answer.done, answer.reason.as_deref()), (true, None));
            assert_eq!(answer.message, message);
            assert_eq!(serde_json::from_slice::<Answer>(&answer.line()).unwrap(), answer);
        }
    }

    #[test]
    fn a_refusal_says_why_and_which_process_leads() {
        let not_leading = OperationRefusal::NotLeading { leader: Some(peer("web-2")) };
        let answer = Answer::new(&Operation::Cordon, &Err(not_leading));
        assert_eq!(answer.leader.map(|leader| leader.name), Some("web-2".to_owned()));
        let unfit = OperationRefusal::UnfitSuccessor { name: "web-1".to_owned(), unfit: Unfit::Failed };
        let answer = Answer::new(&Operation::Transfer { to: "web-1".to_owned() }, &Err(unfit));
        assert_eq!(answer.reason.as_deref(), Some("unfit_successor"));
        assert_eq!((answer.done, answer.cordoned, answer.epoch), (false, None, None));
    }

    #[test]
    fn the_table_is_for_a_terminal() {
        let named = OperationDone { leader: Some((peer("e\u{1b}[2J"), Epoch(8))), ..done(true, None) };
        let table = Answer::new(&Operation::Cordon, &Ok(named)).harmless().table();
        let lines: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(
            lines[0].split_whitespace().collect::<Vec<_>>(),
            ["DONE", "LEADER", "EPOCH", "CORDONED", "ASIDE"]
        );
        assert_eq!(
            lines[1].split_whitespace().collect::<Vec<_>>(),
            ["cordon", r"e\u{1b}[2J", "8", "yes", "-"]
        );
        assert!(!table.contains('\u{1b}'));
    }
}
