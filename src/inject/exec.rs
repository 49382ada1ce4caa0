//! `--exec`: a container's command is run by `bellwether exec`. The program comes out of the sidecar's image:
//! an init container puts it onto a volume of the pod.

use super::sidecar::{CONTAINERS, INIT_CONTAINERS, VOLUMES, VOLUMES_OWN, resources, security};
use super::tree::Node;
use crate::config::InjectArgs;

/// The init container's name.
pub const INSTALLER: &str = "bellwether-install";
/// The volume's name.
const VOLUME: &str = VOLUMES_OWN[2];
/// Where the volume is, in both containers.
const FOLDER: &str = "/opt/bellwether";
/// What stands before a container's command.
const PREFIX: [&str; 3] = ["/opt/bellwether/bellwether", "exec", "--"];

/// Whether `--exec` names this container.
pub fn runs(args: &InjectArgs, container: &Node) -> bool {
    args.exec.iter().any(|name| container.text_at(&["name"]) == Some(name))
}

/// Puts `exec` before the commands, and what it needs into the pod.
pub fn put_in(workload: &mut Node, args: &InjectArgs) {
    if args.exec.is_empty() {
        return;
    }
    let mount = Node::map([("name", Node::string(VOLUME)), ("mountPath", Node::string(FOLDER))]);
    let installer = Node::map([
        ("name", Node::string(INSTALLER)),
        ("image", Node::string(args.image.clone())),
        ("args", Node::List(["install", FOLDER].map(Node::string).into())),
        ("resources", resources()),
        ("securityContext", security()),
        ("volumeMounts", Node::List(vec![mount.clone()])),
    ]);
    workload.insert(&INIT_CONTAINERS, installer, true);
    let volume = Node::map([
        ("name", Node::string(VOLUME)),
        ("emptyDir", Node::map([("sizeLimit", Node::string("16Mi"))])),
    ]);
    workload.insert(&VOLUMES, volume, false);
    each(workload, |container| {
        if !runs(args, container) {
            return;
        }
        let command =
            PREFIX.map(Node::string).into_iter().chain(container.items(&["command"]).iter().cloned());
        let command = Node::List(command.collect());
        container.change(&["command"], |list| *list = command);
        let mut mount = mount.clone();
        mount.change(&["readOnly"], |only| *only = Node::literal(true));
        container.insert(&["volumeMounts"], mount, false);
    });
}

/// Takes out what [`put_in`] has put in.
pub fn take_out(workload: &mut Node) {
    workload.remove_named(&INIT_CONTAINERS, INSTALLER);
    let prefix = PREFIX.map(Node::string);
    each(workload, |container| {
        container.remove_named(&["volumeMounts"], VOLUME);
        if let Some(own) = container.items(&["command"]).strip_prefix(&prefix[..]) {
            let own = Node::List(own.to_vec());
            container.change(&["command"], |list| *list = own);
        }
    });
}

/// Does this to each of the pod's own containers.
fn each(workload: &mut Node, mut change: impl FnMut(&mut Node)) {
    if workload.items(&CONTAINERS).is_empty() {
        return;
    }
    workload.change(&CONTAINERS, |list| {
        if let Node::List(containers) = list {
            containers.iter_mut().for_each(&mut change);
        }
    });
}
