//! What a voter without a record says when it may not found the cluster.

use crate::election::Founding;

/// What the voter sees, what may have happened, and how to mend each. `founding` is its `--found`: where that
/// is `No`, it is the reason, else the reason is that `--voters` names this voter alone.
pub fn founding_refused(founding: Founding) -> String {
    let why = match founding {
        Founding::No => "its --found is no",
        Founding::Auto | Founding::Yes => "its --voters names it alone",
    };
    format!(
        "this voter has no record in its state folder, and may not found the election: {why}. It may be a \
         first start: then start it once with --found yes. (With the chart: helm upgrade with --set \
         founding=true, then delete its pods, which read that at their start.) It may also be a scale-down \
         or a moved volume that lost the disk: then bring back the volume. Or scale up to the former number \
         of voters, so that it can recover from their records"
    )
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
                "first start: then start it once with --found yes",
                "--set founding=true, then delete its pods",
                "lost the disk: then bring back the volume. Or scale up to the former number",
            ] {
                assert!(said.contains(words), "no {words:?} in {said}");
            }
        }
    }
}
