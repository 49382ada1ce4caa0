//! What is put into a workload, and how it is found again and taken out.

use super::tree::Node;
use crate::config::{Drain, InjectArgs, Workload};

/// The container's name, by which it is found again in a marked workload.
pub const CONTAINER: &str = "bellwether";
/// The volumes' names: of the record, of the peer secret, and of the program for `--exec`.
pub const VOLUMES_OWN: [&str; 3] = ["bellwether-state", "bellwether-peer-secret", "bellwether-program"];
/// What the companions' names end in: the Service must not have the name of that which a StatefulSet has.
pub const SUFFIX: &str = "-bellwether";
/// The ports: the status API, and the peer port.
pub const PORTS: [(&str, u16); 2] = [("status", 4040), ("peer", PEER_PORT)];
const PEER_PORT: u16 = 4041;
/// On a workload: the sidecar in it was put there by this program.
const INJECTED: &str = "bellwether/injected";
/// On a companion: the workload that it was made for.
const INJECTED_FOR: &str = "bellwether/injected-for";
/// Where the record is.
const STATE_DIR: &str = "/state";
/// Where the peer secret is: a folder, since a file that is mounted alone would not follow the Secret.
const SECRET_DIR: &str = "/peer-secret";
/// The file in it.
const SECRET_FILE: &str = "secret";
/// The sidecar's flag that names the file.
const SECRET_FLAG: &str = "--peer-secret-file";
/// The user that the sidecar runs as; no account has this number.
const USER: u32 = 65_532;

pub const POD: [&str; 3] = ["spec", "template", "spec"];
pub const CONTAINERS: [&str; 4] = ["spec", "template", "spec", "containers"];
pub const INIT_CONTAINERS: [&str; 4] = ["spec", "template", "spec", "initContainers"];
pub const VOLUMES: [&str; 4] = ["spec", "template", "spec", "volumes"];
const ANNOTATIONS: [&str; 2] = ["metadata", "annotations"];

/// What an API server or kubectl adds to what it was given.
const SERVERS: [&[&str]; 9] = [
    &["status"],
    &["metadata", "creationTimestamp"],
    &["metadata", "generation"],
    &["metadata", "managedFields"],
    &["metadata", "resourceVersion"],
    &["metadata", "selfLink"],
    &["metadata", "uid"],
    &["metadata", "annotations", "deployment.kubernetes.io/revision"],
    &["metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"],
];

/// What the rules have found out about a workload that can be injected.
#[derive(Debug)]
pub struct Facts {
    pub kind: Workload,
    pub name: String,
    pub namespace: Option<String>,
    /// The labels by which its pods are selected.
    pub labels: Node,
    /// With majority: how many vote.
    pub voters: Option<usize>,
}

impl Facts {
    /// The name of its companions: the headless Service, and the NetworkPolicy.
    pub fn companion_name(&self) -> String {
        format!("{}{SUFFIX}", self.name)
    }

    /// What a companion's annotation says about its workload.
    pub fn owner(&self) -> String {
        format!("{}/{}", self.kind.kind(), self.name)
    }
}

/// An object that stands beside a workload, and is made for it.
#[derive(Debug)]
pub struct Companion {
    pub kind: &'static str,
    pub make: fn(&Facts) -> Node,
}

/// All that there may be.
pub const COMPANIONS: [Companion; 2] =
    [Companion { kind: "Service", make: service }, Companion { kind: "NetworkPolicy", make: network_policy }];

/// Those that are asked for.
pub fn companions(args: &InjectArgs) -> impl Iterator<Item = &'static Companion> {
    COMPANIONS.iter().take(if args.network_policy { 2 } else { 1 })
}

/// Whether this program has put a sidecar into the workload.
pub fn is_injected(workload: &Node) -> bool {
    workload.text_at(&[ANNOTATIONS[0], ANNOTATIONS[1], INJECTED]).is_some()
}

/// The arguments of the sidecar that is in the workload; none where there is no sidecar.
fn present_arguments(workload: &Node) -> &[Node] {
    let mut containers = workload.items(&CONTAINERS).iter().chain(workload.items(&INIT_CONTAINERS));
    let ours = containers.find(|container| container.text_at(&["name"]) == Some(CONTAINER));
    ours.map_or(&[], |container| container.items(&["args"]))
}

/// Whether the sidecar that is in the workload votes.
pub fn votes(workload: &Node) -> bool {
    let level = [Node::string("--safety"), Node::string("majority")];
    present_arguments(workload).windows(2).any(|pair| pair == level)
}

/// Whether there is a sidecar in the workload that has no secret.
pub fn has_no_secret(workload: &Node) -> bool {
    let arguments = present_arguments(workload);
    !arguments.is_empty() && !arguments.contains(&Node::string(SECRET_FLAG))
}

/// The workload that this companion was made for, if this program has made it.
pub fn injected_for(companion: &Node) -> Option<&str> {
    companion.text_at(&[ANNOTATIONS[0], ANNOTATIONS[1], INJECTED_FOR])
}

/// Takes out what was put in. The pod's own fields stay, and so does what others have put there meanwhile.
pub fn take_out(workload: &mut Node) {
    if !is_injected(workload) {
        return;
    }
    workload.remove_named(&INIT_CONTAINERS, CONTAINER);
    workload.remove_named(&CONTAINERS, CONTAINER);
    for volume in VOLUMES_OWN {
        workload.remove_named(&VOLUMES, volume);
    }
    workload.remove(&[ANNOTATIONS[0], ANNOTATIONS[1], INJECTED]);
    workload.remove_if_empty(&ANNOTATIONS);
}

/// Takes out what is the API server's, with which `kubectl apply` would ask for the version that was read, or
/// apply what is only reported.
pub fn take_out_servers(object: &mut Node) {
    for path in SERVERS {
        object.remove(path);
    }
    object.remove_if_empty(&ANNOTATIONS);
}

/// Puts the sidecar in.
pub fn put_in(workload: &mut Node, facts: &Facts, args: &InjectArgs) {
    let container = container(facts, args);
    if args.ordinary_container {
        workload.insert(&CONTAINERS, container, false);
    } else {
        // First, so that it runs before what else is done at a start.
        workload.insert(&INIT_CONTAINERS, container, true);
    }
    if facts.voters.is_some() && args.state_claim.is_none() {
        let volume = Node::map([("name", Node::string(VOLUMES_OWN[0])), ("emptyDir", Node::map([]))]);
        workload.insert(&VOLUMES, volume, false);
    }
    if let Some(secret) = &args.peer_secret {
        let item = [("key", Node::string(secret.key.clone())), ("path", Node::string(SECRET_FILE))];
        let secret = Node::map([
            ("secretName", Node::string(secret.name.clone())),
            // The files are root's. Their mode is the default, 0644, which the sidecar's user can read; 0440
            // would need an fsGroup.
            ("items", Node::List(vec![Node::map(item)])),
        ]);
        let volume = Node::map([("name", Node::string(VOLUMES_OWN[1])), ("secret", secret)]);
        workload.insert(&VOLUMES, volume, false);
    }
    workload.change(&[ANNOTATIONS[0], ANNOTATIONS[1], INJECTED], |mark| *mark = Node::string("true"));
}

fn container(facts: &Facts, args: &InjectArgs) -> Node {
    let mut container = Node::map([
        ("name", Node::string(CONTAINER)),
        ("image", Node::string(args.image.clone())),
        ("args", arguments(facts, args)),
        ("env", environment(facts.kind)),
        ("ports", Node::List(PORTS.iter().map(|(name, port)| container_port(name, *port)).collect())),
        ("startupProbe", probe("/healthz", &[("periodSeconds", 1), ("failureThreshold", 30)])),
        ("livenessProbe", probe("/healthz", &[("periodSeconds", 5), ("failureThreshold", 3)])),
    ]);
    if let Some(path) = args.readiness.path() {
        let readiness = probe(path, &[("periodSeconds", 2), ("failureThreshold", 2)]);
        container.change(&["readinessProbe"], |probe| *probe = readiness);
    }
    if let Some(command) = pre_stop(args) {
        container.change(&["lifecycle", "preStop", "exec", "command"], |list| *list = command);
    }
    container.change(&["resources"], |limits| *limits = resources());
    container.change(&["securityContext"], |context| *context = security());
    if !args.ordinary_container {
        container.change(&["restartPolicy"], |policy| *policy = Node::string("Always"));
    }
    if facts.voters.is_some() {
        let mount = match &args.state_claim {
            None => {
                Node::map([("name", Node::string(VOLUMES_OWN[0])), ("mountPath", Node::string(STATE_DIR))])
            }
            Some(claim) => Node::map([
                ("name", Node::string(claim.clone())),
                ("mountPath", Node::string(STATE_DIR)),
                ("subPath", Node::string(CONTAINER)),
            ]),
        };
        container.insert(&["volumeMounts"], mount, false);
    }
    if args.peer_secret.is_some() {
        let mount = Node::map([
            ("name", Node::string(VOLUMES_OWN[1])),
            ("mountPath", Node::string(SECRET_DIR)),
            ("readOnly", Node::literal(true)),
        ]);
        container.insert(&["volumeMounts"], mount, false);
    }
    container
}

fn arguments(facts: &Facts, args: &InjectArgs) -> Node {
    let mut arguments = vec!["run".to_owned(), "--service".to_owned(), facts.companion_name()];
    if let Some(voters) = facts.voters {
        let majority = ["--safety", "majority", "--voters", &voters.to_string(), "--state-dir", STATE_DIR];
        arguments.extend(majority.map(str::to_owned));
    }
    if args.peer_secret.is_some() {
        arguments.extend([SECRET_FLAG.to_owned(), format!("{SECRET_DIR}/{SECRET_FILE}")]);
    }
    arguments.extend(args.run_flags.iter().cloned());
    Node::List(arguments.into_iter().map(Node::string).collect())
}

/// The command that hands leadership over when the pod is to end. An ordinary container is stopped at once,
/// and hands it over by itself.
fn pre_stop(args: &InjectArgs) -> Option<Node> {
    let socket = args.run_flag("--control-socket");
    if args.drain == Drain::Late || args.ordinary_container || socket == Some("none") {
        return None;
    }
    let mut command = vec!["/bellwether", "cordon", "--timeout", "5s"];
    command.extend(socket.into_iter().flat_map(|socket| ["--control-socket", socket]));
    Some(Node::List(command.into_iter().map(|word| Node::string(word.to_owned())).collect()))
}

fn environment(kind: Workload) -> Node {
    let revision = match kind {
        Workload::StatefulSet => "metadata.labels['controller-revision-hash']",
        Workload::Deployment => "metadata.labels['pod-template-hash']",
    };
    let variables =
        [("POD_NAME", "metadata.name"), ("POD_IP", "status.podIP"), ("BELLWETHER_REVISION", revision)];
    let variable = |(name, field): (&'static str, &'static str)| {
        let field = Node::map([("fieldRef", Node::map([("fieldPath", Node::string(field))]))]);
        Node::map([("name", Node::string(name)), ("valueFrom", field)])
    };
    Node::List(variables.map(variable).into())
}

fn container_port(name: &'static str, port: u16) -> Node {
    Node::map([("name", Node::string(name)), ("containerPort", Node::literal(port))])
}

fn probe(path: &'static str, timing: &[(&str, u32)]) -> Node {
    let get = [("path", Node::string(path)), ("port", Node::string(PORTS[0].0))];
    let mut probe = Node::map([("httpGet", Node::map(get))]);
    for (key, value) in timing {
        probe.change(&[key], |number| *number = Node::literal(value));
    }
    probe
}

/// No limit on the CPU: throttled for a period of 100 ms, a process would miss heartbeats.
pub fn resources() -> Node {
    let requests = [("cpu", Node::string("10m")), ("memory", Node::string("16Mi"))];
    Node::map([("requests", Node::map(requests)), ("limits", Node::map([("memory", Node::string("32Mi"))]))])
}

/// The security context of what runs this program.
pub fn security() -> Node {
    Node::map([
        ("allowPrivilegeEscalation", Node::literal(false)),
        ("capabilities", Node::map([("drop", Node::List(vec![Node::string("ALL")]))])),
        ("readOnlyRootFilesystem", Node::literal(true)),
        ("runAsNonRoot", Node::literal(true)),
        ("runAsUser", Node::literal(USER)),
        ("runAsGroup", Node::literal(USER)),
        ("seccompProfile", Node::map([("type", Node::string("RuntimeDefault"))])),
    ])
}

/// What all companions have: a name of their own, and the workload that they are for.
fn metadata(facts: &Facts) -> Node {
    let mut metadata = Node::map([("name", Node::string(facts.companion_name()))]);
    if let Some(namespace) = &facts.namespace {
        metadata.change(&["namespace"], |node| *node = Node::string(namespace.clone()));
    }
    let labels = [
        ("app.kubernetes.io/name", Node::string(CONTAINER)),
        ("app.kubernetes.io/instance", Node::string(facts.name.clone())),
        ("app.kubernetes.io/managed-by", Node::string("bellwether-inject")),
    ];
    metadata.change(&["labels"], |node| *node = Node::map(labels));
    metadata.change(&["annotations", INJECTED_FOR], |node| *node = Node::string(facts.owner()));
    metadata
}

/// The headless Service of a workload, under a name of its own: the `serviceName` of a StatefulSet cannot be
/// changed.
fn service(facts: &Facts) -> Node {
    let (name, port) = PORTS[1];
    let port = Node::map([
        ("name", Node::string(name)),
        ("port", Node::literal(port)),
        // The number: the application may have a port of that name.
        ("targetPort", Node::literal(port)),
    ]);
    let spec = Node::map([
        ("clusterIP", Node::string("None")),
        ("publishNotReadyAddresses", Node::literal(true)),
        ("selector", facts.labels.clone()),
        ("ports", Node::List(vec![port])),
    ]);
    Node::map([
        ("apiVersion", Node::string("v1")),
        ("kind", Node::string("Service")),
        ("metadata", metadata(facts)),
        ("spec", spec),
    ])
}

/// The chart's NetworkPolicy: the peer port is open to the same pods only, all other ports to all.
fn network_policy(facts: &Facts) -> Node {
    let pods = Node::map([("matchLabels", facts.labels.clone())]);
    let peers = Node::map([
        ("from", Node::List(vec![Node::map([("podSelector", pods.clone())])])),
        ("ports", Node::List(vec![policy_ports("TCP", PEER_PORT, None)])),
    ]);
    let others = [
        policy_ports("TCP", 1, Some(PEER_PORT - 1)),
        policy_ports("TCP", PEER_PORT + 1, Some(u16::MAX)),
        policy_ports("UDP", 1, Some(u16::MAX)),
        policy_ports("SCTP", 1, Some(u16::MAX)),
    ];
    let spec = Node::map([
        ("podSelector", pods),
        ("policyTypes", Node::List(vec![Node::string("Ingress")])),
        ("ingress", Node::List(vec![peers, Node::map([("ports", Node::List(others.into()))])])),
    ]);
    Node::map([
        ("apiVersion", Node::string("networking.k8s.io/v1")),
        ("kind", Node::string("NetworkPolicy")),
        ("metadata", metadata(facts)),
        ("spec", spec),
    ])
}

/// A port of a policy, or all from it to another one.
fn policy_ports(protocol: &'static str, port: u16, end: Option<u16>) -> Node {
    let mut ports = Node::map([("protocol", Node::string(protocol)), ("port", Node::literal(port))]);
    if let Some(end) = end {
        ports.change(&["endPort"], |node| *node = Node::literal(end));
    }
    ports
}
