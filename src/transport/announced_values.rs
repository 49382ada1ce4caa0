//! What the processes of this election announce to applications: this one, and those that have been
//! connected.

use crate::election::{AnnouncedValues, ProcessId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What each process announces. A process that announces nothing is not in it.
pub type Announced = BTreeMap<ProcessId, AnnouncedValues>;

/// Keeps what a process has said in its latest Hello, for as long as it is linked or counts as a live member.
/// So there is an entry for each member, link and this process at most.
pub(super) struct Announcements {
    own: ProcessId,
    all: Arc<Announced>,
}

impl Announcements {
    pub(super) fn new(own: ProcessId, announce: AnnouncedValues) -> Announcements {
        let mut announcements = Announcements { own, all: Arc::default() };
        announcements.said(own, announce);
        announcements
    }

    /// A process has said what it announces.
    pub(super) fn said(&mut self, id: ProcessId, announce: AnnouncedValues) {
        if announce.is_empty() {
            self.keep(|known| *known != id);
        } else if self.all.get(&id) != Some(&announce) {
            Arc::make_mut(&mut self.all).insert(id, announce);
        }
    }

    /// Forgets all processes but this one and those.
    pub(super) fn keep(&mut self, kept: impl Fn(&ProcessId) -> bool) {
        let own = self.own;
        if !self.all.keys().all(|id| *id == own || kept(id)) {
            Arc::make_mut(&mut self.all).retain(|id, _| *id == own || kept(id));
        }
    }

    /// All of it, as it is now.
    pub(super) fn all(&self) -> Arc<Announced> {
        Arc::clone(&self.all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn url(text: &str) -> AnnouncedValues {
        AnnouncedValues([("url".to_owned(), text.to_owned())].into())
    }

    #[test]
    fn the_latest_word_of_each_process_is_kept_while_it_is_there() {
        let [me, a, b] = [1, 2, 3].map(|number| ProcessId(Uuid::from_u128(number)));
        let mut announcements = Announcements::new(me, url("http://me"));
        announcements.said(a, url("http://a"));
        announcements.said(b, url("http://b"));
        announcements.said(a, url("http://new"));
        assert_eq!(
            *announcements.all(),
            Announced::from([(me, url("http://me")), (a, url("http://new")), (b, url("http://b"))])
        );
        let before = announcements.all();
        announcements.said(b, url("http://b"));
        assert!(Arc::ptr_eq(&before, &announcements.all()), "nothing is new");
        announcements.said(b, AnnouncedValues::default());
        assert_eq!(*announcements.all(), Announced::from([(me, url("http://me")), (a, url("http://new"))]));
        announcements.keep(|id| *id == b);
        assert_eq!(*announcements.all(), Announced::from([(me, url("http://me"))]), "its own stays");
        let before = announcements.all();
        announcements.keep(|id| *id == b);
        assert!(Arc::ptr_eq(&before, &announcements.all()), "nothing is forgotten");
        assert!(Announcements::new(me, AnnouncedValues::default()).all().is_empty());
    }
}
