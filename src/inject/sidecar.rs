//! What is put into a workload, and how it is found again and taken out.

use super::tree::Node;
use crate::config::{InjectArgs, Workload};

/// The container's name, by which it is found again in a marked workload.
pub const CONTAINER: &str = "bellwether";
/// The volume's name.
pub const VOLUME: &str = "bellwether-state";
/// What the headless Service's name ends in: it must not be that of the Service which a StatefulSet has.
pub const SERVICE_SUFFIX: &str = "-bellwether";
/// The ports: the status API, and the peer port.
pub const PORTS: [(&str, &str); 2] = [("status", "4040"), ("peer", "4041")];
/// On a workload: the sidecar in it was put there by this program.
const INJECTED: &str = "bellwether/injected";
/// On a Service: the workload that it was made for.
const INJECTED_FOR: &str = "bellwether/injected-for";
/// Where the record is.
const STATE_DIR: &str = "/state";
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
    /// The name of its headless Service.
    pub fn service_name(&self) -> String {
        format!("{}{SERVICE_SUFFIX}", self.name)
    }

    /// What the Service's annotation says about its workload.
    pub fn owner(&self) -> String {
        format!("{}/{}", self.kind.kind(), self.name)
    }
}

/// Whether this program has put a sidecar into the workload.
pub fn is_injected(workload: &Node) -> bool {
    workload.text_at(&[ANNOTATIONS[0], ANNOTATIONS[1], INJECTED]).is_some()
}

/// Whether the sidecar that is in the workload votes.
pub fn votes(workload: &Node) -> bool {
    let containers = workload.items(&CONTAINERS).iter().chain(workload.items(&INIT_CONTAINERS));
    let mut ours = containers.filter(|container| container.text_at(&["name"]) == Some(CONTAINER));
    ours.any(|container| container.items(&["args"]).contains(&Node::string("majority")))
}

/// The workload that this Service was made for, if this program has made it.
pub fn injected_for(service: &Node) -> Option<&str> {
    service.text_at(&[ANNOTATIONS[0], ANNOTATIONS[1], INJECTED_FOR])
}

/// Takes out what was put in. The pod's own fields stay, and so does what others have put there meanwhile.
pub fn take_out(workload: &mut Node) {
    if !is_injected(workload) {
        return;
    }
    workload.remove_named(&INIT_CONTAINERS, CONTAINER);
    workload.remove_named(&CONTAINERS, CONTAINER);
    workload.remove_named(&VOLUMES, VOLUME);
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
        let volume = Node::map([("name", Node::string(VOLUME)), ("emptyDir", Node::map([]))]);
        workload.insert(&VOLUMES, volume, false);
    }
    workload.change(&[ANNOTATIONS[0], ANNOTATIONS[1], INJECTED], |mark| *mark = Node::string("true"));
}

fn container(facts: &Facts, args: &InjectArgs) -> Node {
    let mut container = Node::map([
        ("name", Node::string(CONTAINER)),
        ("image", Node::string(args.image.clone())),
        ("args", arguments(facts)),
        ("env", environment(facts.kind)),
        ("ports", Node::List(PORTS.iter().map(|(name, port)| container_port(name, port)).collect())),
        ("startupProbe", probe("/healthz", &[("periodSeconds", 1), ("failureThreshold", 30)])),
        ("livenessProbe", probe("/healthz", &[("periodSeconds", 5), ("failureThreshold", 3)])),
        ("readinessProbe", probe("/readyz", &[("periodSeconds", 2), ("failureThreshold", 2)])),
        ("resources", resources()),
        ("securityContext", security()),
    ]);
    if !args.ordinary_container {
        container.change(&["restartPolicy"], |policy| *policy = Node::string("Always"));
    }
    if facts.voters.is_some() {
        let mount = match &args.state_claim {
            None => Node::map([("name", Node::string(VOLUME)), ("mountPath", Node::string(STATE_DIR))]),
            Some(claim) => Node::map([
                ("name", Node::string(claim.clone())),
                ("mountPath", Node::string(STATE_DIR)),
                ("subPath", Node::string(CONTAINER)),
            ]),
        };
        container.insert(&["volumeMounts"], mount, false);
    }
    container
}

fn arguments(facts: &Facts) -> Node {
    let mut arguments = vec!["run".to_owned(), "--service".to_owned(), facts.service_name()];
    if let Some(voters) = facts.voters {
        let majority = ["--safety", "majority", "--voters", &voters.to_string(), "--state-dir", STATE_DIR];
        arguments.extend(majority.map(str::to_owned));
    }
    Node::List(arguments.into_iter().map(Node::string).collect())
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

fn container_port(name: &'static str, port: &str) -> Node {
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
fn resources() -> Node {
    let requests = [("cpu", Node::string("10m")), ("memory", Node::string("16Mi"))];
    Node::map([("requests", Node::map(requests)), ("limits", Node::map([("memory", Node::string("32Mi"))]))])
}

fn security() -> Node {
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

/// The headless Service of a workload, under a name of its own: the `serviceName` of a StatefulSet cannot be
/// changed.
pub fn service(facts: &Facts) -> Node {
    let mut metadata = Node::map([("name", Node::string(facts.service_name()))]);
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
    let (name, port) = PORTS[1];
    let port = Node::map([
        ("name", Node::string(name)),
        ("port", Node::literal(port)),
        // The number: the application may have a port of that name.
        ("targetPort", Node::literal(port)),
    ]);
    Node::map([
        ("apiVersion", Node::string("v1")),
        ("kind", Node::string("Service")),
        ("metadata", metadata),
        (
            "spec",
            Node::map([
                ("clusterIP", Node::string("None")),
                ("publishNotReadyAddresses", Node::literal(true)),
                ("selector", facts.labels.clone()),
                ("ports", Node::List(vec![port])),
            ]),
        ),
    ])
}
