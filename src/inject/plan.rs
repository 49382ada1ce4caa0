//! Decides what becomes of each object of a stream, before anything is written.

use super::exec;
use super::rules::{self, WorkloadError};
use super::sidecar::{self, COMPANIONS, Companion, Facts};
use super::stream::Document;
use super::tree::Node;
use crate::config::{InjectArgs, Workload};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Where an object is: the document, and in a List the item; both from 0.
pub type Place = (usize, Option<usize>);

/// What becomes of an object. It holds what was decided; [`Change::outcome`] makes the objects, one after the
/// other, so that they are never all in memory.
#[derive(Debug)]
pub enum Change {
    /// A sidecar is in this workload, which is written anew or has it already. The companions follow it that
    /// the stream does not have.
    Injected { facts: Facts, anew: bool, following: Vec<&'static Companion> },
    /// The sidecar is taken out of this workload.
    Bare,
    /// This is put in its place.
    Replaced(Node),
    /// It is taken out.
    Gone,
}

impl Change {
    /// What stands in the object's place; borrowed: it stays as it is.
    pub fn outcome<'a>(&self, object: &'a Node, args: &InjectArgs) -> Vec<Cow<'a, Node>> {
        match self {
            Change::Injected { facts, anew, following } => {
                let workload = match anew {
                    true => Cow::Owned(without_servers(injected(object, facts, args))),
                    false => Cow::Borrowed(object),
                };
                let following = following.iter().map(|companion| Cow::Owned((companion.make)(facts)));
                std::iter::once(workload).chain(following).collect()
            }
            Change::Bare => vec![Cow::Owned(without_servers(bare(object).into_owned()))],
            Change::Replaced(node) => vec![Cow::Owned(node.clone())],
            Change::Gone => Vec::new(),
        }
    }
}

/// A workload out of which all of ours is taken.
fn bare(workload: &Node) -> Cow<'_, Node> {
    if !sidecar::is_injected(workload) {
        return Cow::Borrowed(workload);
    }
    let mut bare = workload.clone();
    exec::take_out(&mut bare);
    sidecar::take_out(&mut bare);
    Cow::Owned(bare)
}

/// A workload with the sidecar in it.
fn injected(workload: &Node, facts: &Facts, args: &InjectArgs) -> Node {
    let mut injected = bare(workload).into_owned();
    exec::put_in(&mut injected, args);
    sidecar::put_in(&mut injected, facts, args);
    injected
}

fn without_servers(mut object: Node) -> Node {
    sidecar::take_out_servers(&mut object);
    object
}

/// Something to say about an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Remark {
    /// It is left as it is.
    Refused {
        /// Where it is, in words.
        what: String,
        /// Why.
        why: WorkloadError,
    },
    /// `--only` names something that is not there.
    Missing(String),
    /// Nothing is wrong, and yet there is something to know or to do.
    Note(String),
}

/// What becomes of a stream.
#[derive(Debug, Default)]
pub struct InjectPlan {
    pub changes: BTreeMap<Place, Change>,
    pub remarks: Vec<Remark>,
}

/// A name in a namespace; an empty one stands for that which kubectl is told.
type Key = (String, String);

struct Planner<'a> {
    documents: &'a [Document],
    args: &'a InjectArgs,
    /// What stands in the stream and may be a companion, by its kind and its key.
    companions: HashMap<(&'static str, Key), (Place, &'a Node)>,
    /// The keys of the companions of workloads.
    needed: HashSet<Key>,
    plan: InjectPlan,
}

/// Looks at everything.
pub fn plan(documents: &[Document], args: &InjectArgs) -> InjectPlan {
    let objects =
        || documents.iter().enumerate().flat_map(|(number, document)| objects(number, &document.root));
    let companion = |(place, object): (Place, _)| {
        let kind = Node::text_at(object, &["kind"])?;
        let companion = COMPANIONS.iter().find(|companion| companion.kind == kind)?;
        Some(((companion.kind, key(object)), (place, object)))
    };
    let companions = objects().filter_map(companion).collect();
    let mut planner =
        Planner { documents, args, companions, needed: HashSet::new(), plan: InjectPlan::default() };
    for (place, object) in objects() {
        if let Err(why) = planner.object(place, object) {
            let what = planner.name(place, object);
            planner.plan.remarks.push(Remark::Refused { what, why });
        }
    }
    for only in &args.only {
        let there = objects().any(|(_, object)| {
            object.text_at(&["kind"]) == Some(only.kind.kind())
                && object.text_at(&["metadata", "name"]) == Some(&only.name)
        });
        if !there {
            planner.plan.remarks.push(Remark::Missing(only.to_string()));
        }
    }
    planner.plan
}

/// A document's objects: itself, or the items of a List.
fn objects(number: usize, root: &Node) -> impl Iterator<Item = (Place, &Node)> {
    let items = match root.text_at(&["kind"]) {
        Some("List") => root.items(&["items"]),
        _ => &[],
    };
    let itself = items.is_empty().then_some(((number, None), root));
    itself.into_iter().chain(items.iter().enumerate().map(move |(item, node)| ((number, Some(item)), node)))
}

fn key(object: &Node) -> Key {
    let text = |path: &[&str]| object.text_at(path).unwrap_or_default().to_owned();
    (text(&["metadata", "namespace"]), text(&["metadata", "name"]))
}

impl Planner<'_> {
    fn object(&mut self, place: Place, object: &Node) -> Result<(), WorkloadError> {
        if !rules::is_selected(object, self.args) {
            return Ok(());
        }
        match (rules::workload(object), object.text_at(&["kind"])) {
            (Some(_), _) if self.args.uninject => self.uninject(place, object),
            (Some(kind), _) => self.inject(place, object, kind),
            (None, Some(kind)) if !self.args.uninject => rules::never(kind).map_or(Ok(()), Err),
            // A document of comments alone is empty.
            _ if !matches!(object, Node::Map(_)) && !object.is_absent(&[]) => Err(WorkloadError::NoObject),
            _ => Ok(()),
        }
    }

    fn inject(&mut self, place: Place, object: &Node, kind: Workload) -> Result<(), WorkloadError> {
        let facts = rules::facts(&bare(object), kind, self.args)?;
        let anew = !sidecar::is_injected(object) || injected(object, &facts, self.args) != *object;
        if anew {
            self.writable(place)?;
        }
        let following = self.companions(place, &facts)?;
        if anew {
            self.notes(object, &facts);
        }
        if anew || !following.is_empty() {
            self.plan.changes.insert(place, Change::Injected { facts, anew, following });
        }
        Ok(())
    }

    /// Sees to the workload's companions: each is there, or is corrected, or is to follow the workload.
    fn companions(&mut self, place: Place, facts: &Facts) -> Result<Vec<&'static Companion>, WorkloadError> {
        let (name, owner) = (facts.companion_name(), facts.owner());
        let key = (facts.namespace.clone().unwrap_or_default(), name.clone());
        if self.needed.contains(&key) {
            return Err(WorkloadError::Taken { kind: COMPANIONS[0].kind, name });
        }
        let (mut corrected, mut following) = (Vec::new(), Vec::new());
        for companion in sidecar::companions(self.args) {
            let kind = companion.kind;
            match self.companions.get(&(kind, key.clone())) {
                Some((_, found)) if sidecar::injected_for(found) != Some(&owner) => {
                    return Err(WorkloadError::Taken { kind, name });
                }
                Some((there, found)) => {
                    let wanted = (companion.make)(facts);
                    if **found != wanted {
                        self.writable(*there)?;
                        corrected.push((*there, Change::Replaced(wanted)));
                    }
                }
                None => following.push(companion),
            }
        }
        // In a List it becomes an item of what is written anew.
        if place.1.is_some() && !following.is_empty() {
            self.writable(place)?;
        }
        self.plan.changes.extend(corrected);
        self.needed.insert(key);
        Ok(following)
    }

    fn uninject(&mut self, place: Place, object: &Node) -> Result<(), WorkloadError> {
        if !sidecar::is_injected(object) {
            return Ok(());
        }
        self.writable(place)?;
        let (namespace, name) = key(object);
        let owner = format!("{}/{name}", object.text_at(&["kind"]).unwrap_or_default());
        let companion_name = format!("{name}{}", sidecar::SUFFIX);
        let at = if namespace.is_empty() { String::new() } else { format!(" -n {namespace}") };
        let note = format!(
            "{owner}: if its headless Service and its NetworkPolicy are in a cluster, they stay there. Once \
             the pods have been replaced: kubectl delete service,networkpolicy{at} {companion_name} \
             --ignore-not-found"
        );
        let key = (namespace, companion_name);
        let found = COMPANIONS.iter().filter_map(|one| self.companions.get(&(one.kind, key.clone())));
        let ours = found.filter(|(_, node)| sidecar::injected_for(node) == Some(&owner));
        let ours: Vec<Place> = ours.map(|(there, _)| *there).collect();
        for there in ours.iter().filter(|(_, item)| item.is_some()) {
            self.writable(*there)?;
        }
        self.plan.changes.insert(place, Change::Bare);
        self.plan.changes.extend(ours.into_iter().map(|there| (there, Change::Gone)));
        self.plan.remarks.push(Remark::Note(note));
        Ok(())
    }

    /// What else there is to know about what is put into this workload.
    fn notes(&mut self, workload: &Node, facts: &Facts) {
        let owner = facts.owner();
        let permissive = self.args.run_flag("--peer-auth") == Some("permissive");
        if self.args.peer_secret.is_some() && !permissive && sidecar::has_no_secret(workload) {
            self.plan.remarks.push(Remark::Note(format!(
                "{owner}: pods without a secret refuse those that require one. Unless all are stopped, apply \
                 this with -- --peer-auth permissive first, and without it after that rollout"
            )));
        }
        if facts.voters.is_none() {
            if workload.text_at(&["spec", "replicas"]).unwrap_or("1") == "1" {
                self.plan.remarks.push(Remark::Note(format!(
                    "{owner}: with one replica no other pod can take over. Set spec.replicas to 2 or more, \
                     unless an autoscaler does"
                )));
            }
            if !self.args.exec.is_empty() {
                self.plan.remarks.push(Remark::Note(format!(
                    "{owner}: two commands can run at once. They do for up to exec's --hold at each change \
                     of leader, and on both sides of a partition. --safety majority prevents that"
                )));
            }
            return;
        }
        if !sidecar::votes(workload) {
            self.plan.remarks.push(Remark::Note(format!(
                "{owner}: if its pods run already and do not vote, stop them all before this is applied \
                 (kubectl scale statefulset {} --replicas=0). In a rolling update the first new pod would \
                 wait for a majority of new ones, and they for it. A Deployment of these pods has to be \
                 deleted as well: it would work on",
                facts.name
            )));
        }
        let note = match &self.args.state_claim {
            None => format!(
                "{owner}: the voters' records are in an emptyDir each, and go with their pods. When all pods \
                 are deleted at once, epochs begin anew (--state-claim keeps them)"
            ),
            Some(claim)
                if workload.is_absent(&["spec", "template", "spec", "securityContext", "fsGroup"]) =>
            {
                format!(
                    "{owner}: its pods have no securityContext.fsGroup, so the volume of {claim} may not be \
                 writable for the sidecar, which runs as 65532. Set fsGroup: 65532, or another group that \
                 the application has"
                )
            }
            Some(_) => return,
        };
        self.plan.remarks.push(Remark::Note(note));
    }

    /// Whether the document of this object can be written anew.
    fn writable(&self, (document, _): Place) -> Result<(), WorkloadError> {
        let unwritable = self.documents.get(document).and_then(|document| document.unwritable);
        unwritable.map_or(Ok(()), |what| Err(WorkloadError::Unwritable(what)))
    }

    /// Where an object is and what it is, for people.
    fn name(&self, (document, item): Place, object: &Node) -> String {
        let line = self.documents.get(document).map_or(0, |document| document.line);
        let item = item.map_or(String::new(), |item| format!(", item {}", item + 1));
        let (_, name) = key(object);
        let place = format!("document {} (from line {line}){item}", document + 1);
        match object.text_at(&["kind"]) {
            Some(kind) => format!("{place}, {kind}/{name}"),
            None => place,
        }
    }
}
