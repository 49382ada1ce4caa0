//! What a voter says while it has no vote: in its log, and to those that ask whether it is ready.

use crate::election::{Founding, Moment, NotReady};

/// What the voter sees, what may have happened, and how to mend each. `founding` is its `--found`: where that
/// is `No`, it is the reason, else the reason is that `--voters` names this voter alone.
pub fn founding_refused(founding: Founding) -> String {
    let why = match founding {
        Founding::No => "its --found is no",
        Founding::Auto | Founding::Yes => "its --voters names it alone",
    };
    format!(
        "this voter has no record in its state folder, and may not found the election: {why}. A first \
         start takes --found yes, once. (With the chart: helm upgrade with --reuse-values --set \
         founding=true, then delete the pods that started before.) A scale-down or a moved volume may \
         have lost the disk: bring back the volume. Or scale up to the former number of voters, so \
         that it can recover from their records. If half of the records or more are lost, as with the \
         emptyDirs of deleted pods, stop all voters first, also those with a record. Then start them \
         with --found yes: epochs begin anew"
    )
}

/// What keeps a voter from its vote, `now`.
pub fn no_vote_yet(not_ready: &NotReady, now: Moment) -> String {
    match not_ready {
        NotReady::Recovery { missing, differ, records } => format!(
            "this voter has no record of its votes (a first start, or a lost disk). It asks the other voters \
             what it may have forgotten; {}",
            recovery_lacks(missing, differ, *records)
        ),
        NotReady::Founding { missing } => format!(
            "this voter takes part in a first start, and votes once all other voters do; it waits for {}",
            missing.join(", ")
        ),
        NotReady::Grace { until } => format!(
            "this voter was restarted and may have forgotten a promise: it votes for no process for {} ms",
            until.since(now).as_millis()
        ),
    }
}

/// What a voter without a record waits for.
fn recovery_lacks(missing: &[String], differ: &[String], records: Option<(usize, usize)>) -> String {
    if records.is_some_and(|(told, needed)| told >= needed) {
        return "enough have answered from their records, so it votes within --lease".to_owned();
    }
    let waits = match (missing, records) {
        ([], Some((told, _))) if told > 0 => {
            "all of them have answered. If this lasts for more than --lease, half of the voters or more have \
               no record"
                .to_owned()
        }
        ([], _) => {
            "all of them have answered. If this lasts for more than --lease, none of them has a record, or \
               --found forbids a first start (event founding_refused)"
                .to_owned()
        }
        (names, _) => format!("it waits for {}", names.join(", ")),
    };
    match (differ, records) {
        (_, Some((told, needed))) => {
            format!("{waits}; {needed} other voters have to answer from their records, and {told} did")
        }
        ([], None) => waits,
        (names, None) => format!(
            "{waits}; {} {} started with another --voters or --lease; all must be equal at a first start",
            names.join(", "),
            if names.len() == 1 { "was" } else { "were" }
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_why_what_it_may_be_and_how_each_is_mended() {
        let (alone, told) = (founding_refused(Founding::Auto), founding_refused(Founding::No));
        assert!(alone.contains("--voters names it alone") && !alone.contains("--found is no"), "{alone}");
        assert!(told.contains("--found is no") && !told.contains("alone"), "{told}");
        for said in [alone, told] {
            for words in [
                "no record in its state folder",
                "A first start takes --found yes, once",
                "--reuse-values --set founding=true, then delete the pods that started before",
                "lost the disk: bring back the volume. Or scale up to the former number",
                "stop all voters first, also those with a record",
            ] {
                assert!(said.contains(words), "no {words:?} in {said}");
            }
        }
    }
}
