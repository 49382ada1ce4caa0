//! Which workloads can be injected, and why others cannot: each refusal says what is in the way and how to
//! mend it.

use super::exec;
use super::sidecar::{
    CONTAINER, CONTAINERS, Facts, INIT_CONTAINERS, POD, PORTS, SUFFIX, VOLUMES, VOLUMES_OWN, is_injected,
};
use super::tree::Node;
use crate::config::{InjectArgs, SafetyLevel, Workload};
use crate::election::VOTERS_MAX;

/// How long the name of a Service may be.
const SERVICE_BYTES_MAX: usize = 63;

/// Why a workload is left as it is.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WorkloadError {
    #[error("{0}")]
    Kind(&'static str),
    #[error("its apiVersion is {0:?}, and only apps/v1 is known; write apps/v1")]
    Version(String),
    #[error("it has no metadata.name; give it one, since its headless Service is named after it")]
    NoName,
    #[error(
        "its headless Service would be called {name:?}, which no Service can be. It may have at most \
         {SERVICE_BYTES_MAX} lower-case letters, digits and hyphens, the first one a letter. Rename it, to \
         at most {} characters",
        SERVICE_BYTES_MAX - SUFFIX.len()
    )]
    BadName { name: String },
    #[error("it has no containers in spec.template.spec.containers; is it complete?")]
    NoContainers,
    #[error("{0} is not what belongs there; correct it")]
    Malformed(&'static str),
    #[error(
        "it has no spec.selector.matchLabels, by which its headless Service selects the pods; write them, as \
         apps/v1 wants it"
    )]
    NoSelector,
    #[error(
        "its selector has matchExpressions, by which no Service can select pods; write matchLabels alone, or \
         add the sidecar by hand"
    )]
    Expressions,
    #[error(
        "its pods are in the node's network (hostNetwork). Two of them on one node would want the same port, \
         and every host reaches the peer port. Take hostNetwork out, or add the sidecar by hand with ports \
         of your choice"
    )]
    HostNetwork,
    #[error(
        "its container {container:?} has port {port}, which the sidecar needs; give the container another \
         port, or add the sidecar by hand with --listen and --http"
    )]
    Port { container: String, port: u16 },
    #[error(
        "it has a container that is called {0} and was not put there by inject (there is no annotation \
         bellwether/injected). Take it out first, or leave it as it is"
    )]
    Container(&'static str),
    #[error("it has no container that is called {0:?}, which --exec names; name one of its containers")]
    NoContainer(String),
    #[error(
        "its container {0:?} has no command for --exec to run, and no tool sees the image's own; write it as \
         the container's command"
    )]
    NoCommand(String),
    #[error(
        "--exec runs all of its containers on the leader alone. None would answer --app-health elsewhere, so \
         no pod could lead. Leave --app-health out: exec tells of the command's end"
    )]
    HealthOfCommand,
    #[error(
        "{container:?} has a {probe} of its own, and --exec runs its command on the leader alone. Kubernetes \
         would restart it everywhere else. Leave the probe out: exec tells of the command's end"
    )]
    ProbeOfCommand { container: String, probe: &'static str },
    #[error(
        "terminationGracePeriodSeconds: 0 deletes a voter's pod before its container is known to have ended, \
         so two of one name may vote. Set 1 or more, or leave it out"
    )]
    NoGrace,
    #[error("it has a volume that is called {0} and was not put there by inject; rename it")]
    Volume(&'static str),
    #[error(
        "--safety majority is for StatefulSets alone: the pods of a Deployment get new names, and no vote \
         can be kept for them. Make it a StatefulSet. --safety classic takes a Deployment, and two leaders \
         are possible there"
    )]
    MajorityOfDeployment,
    #[error(
        "--safety majority needs an odd number of replicas, from 3 to {VOTERS_MAX}, which all vote, and \
         spec.replicas is {0}. Set it to 3 (or 5) here, also while the pods are scaled down. \
         --safety classic takes any number, and two leaders are possible there"
    )]
    Replicas(String),
    #[error(
        "--safety majority needs spec.podManagementPolicy: Parallel. One after another, the first pod would \
         wait for a majority, and the others for the first to be ready. That field cannot be changed. Make \
         the StatefulSet anew (kubectl delete statefulset {0}, wait until its pods are gone, then apply it \
         with Parallel), or write --safety classic"
    )]
    OrderedReady(String),
    #[error(
        "--state-claim {claim} names none of its volumeClaimTemplates ({known}); name one of them, or leave \
         --state-claim out for an emptyDir"
    )]
    NoClaim { claim: String, known: String },
    #[error(
        "it needs a {kind} {name}, and there is another one of that name which inject has not made for it; \
         rename one of them"
    )]
    Taken { kind: &'static str, name: String },
    #[error("it is no object; expected a Kubernetes object, with kind and metadata.name")]
    NoObject,
    #[error("its document has {0}, which cannot be written anew faithfully; write the document without it")]
    Unwritable(&'static str),
}

/// Why objects of this kind are never injected; none: it can be, or no user would expect it.
pub fn never(kind: &str) -> Option<WorkloadError> {
    let why = match kind {
        "CronJob" | "Job" => {
            "its pods end when their work is done, and an election is among processes that stay. Run what \
             must be alone as a Deployment or StatefulSet"
        }
        "DaemonSet" => {
            "it has a pod on every node, which are more members than an election should have. Run what must \
             be alone as a Deployment or StatefulSet beside it"
        }
        "Pod" | "ReplicaSet" | "ReplicationController" => {
            "only a StatefulSet or Deployment can be injected; inject the one that it belongs to, or make it \
             one"
        }
        "StatefulSetList" | "DeploymentList" => {
            "only a List can be read; write it as kubectl get -o yaml does, with kind: List"
        }
        _ => return None,
    };
    Some(WorkloadError::Kind(why))
}

/// The kind of a workload that can be injected.
pub fn workload(object: &Node) -> Option<Workload> {
    match object.text_at(&["kind"]) {
        Some("StatefulSet") => Some(Workload::StatefulSet),
        Some("Deployment") => Some(Workload::Deployment),
        _ => None,
    }
}

/// Looks at a workload out of which all of ours has been taken.
pub fn facts(object: &Node, kind: Workload, args: &InjectArgs) -> Result<Facts, WorkloadError> {
    let version = object.text_at(&["apiVersion"]).unwrap_or_default();
    if version != "apps/v1" {
        return Err(WorkloadError::Version(version.to_owned()));
    }
    let name = object.text_at(&["metadata", "name"]).ok_or(WorkloadError::NoName)?.to_owned();
    let service = format!("{name}{SUFFIX}");
    let label = service.starts_with(|c: char| c.is_ascii_lowercase())
        && service.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if !label || service.len() > SERVICE_BYTES_MAX {
        return Err(WorkloadError::BadName { name: service });
    }
    shape(object)?;
    let labels = match object.at(&["spec", "selector", "matchLabels"]) {
        Some(Node::Map(labels)) if !labels.is_empty() => Node::Map(labels.clone()),
        _ => return Err(WorkloadError::NoSelector),
    };
    if !object.items(&["spec", "selector", "matchExpressions"]).is_empty() {
        return Err(WorkloadError::Expressions);
    }
    pod(object)?;
    commands(object, args)?;
    let voters = match args.safety {
        SafetyLevel::Classic => None,
        SafetyLevel::Majority => Some(voters(object, kind, &name, args)?),
    };
    let namespace = object.text_at(&["metadata", "namespace"]).map(str::to_owned);
    Ok(Facts { kind, name, namespace, labels, voters })
}

/// Whether what is added to is a list or a mapping, or not there.
fn shape(object: &Node) -> Result<(), WorkloadError> {
    if object.items(&CONTAINERS).is_empty() {
        return Err(WorkloadError::NoContainers);
    }
    for (path, what) in
        [(&INIT_CONTAINERS, "spec.template.spec.initContainers"), (&VOLUMES, "spec.template.spec.volumes")]
    {
        if !object.is_absent(path) && !matches!(object.at(path), Some(Node::List(_))) {
            return Err(WorkloadError::Malformed(what));
        }
    }
    let annotations = ["metadata", "annotations"];
    match object.at(&annotations) {
        Some(Node::Map(_)) => Ok(()),
        _ if object.is_absent(&annotations) => Ok(()),
        _ => Err(WorkloadError::Malformed("metadata.annotations")),
    }
}

/// What its pods have that the sidecar cannot be beside.
fn pod(object: &Node) -> Result<(), WorkloadError> {
    if object.at(&POD).and_then(|pod| pod.get("hostNetwork")).is_some_and(is_true) {
        return Err(WorkloadError::HostNetwork);
    }
    let containers = || object.items(&CONTAINERS).iter().chain(object.items(&INIT_CONTAINERS));
    // What is left of that name is not ours, or was there twice.
    for ours in [CONTAINER, exec::INSTALLER] {
        if containers().any(|container| container.text_at(&["name"]) == Some(ours)) {
            return Err(WorkloadError::Container(ours));
        }
    }
    for container in containers() {
        for port in container.items(&["ports"]) {
            let port = port.text_at(&["containerPort"]).and_then(|port| port.parse().ok());
            if let Some((_, port)) = PORTS.iter().copied().find(|(_, ours)| port == Some(*ours)) {
                let container = container.text_at(&["name"]).unwrap_or_default().to_owned();
                return Err(WorkloadError::Port { container, port });
            }
        }
    }
    let has =
        |name: &str| object.items(&VOLUMES).iter().any(|volume| volume.text_at(&["name"]) == Some(name));
    VOLUMES_OWN.into_iter().find(|name| has(name)).map_or(Ok(()), |name| Err(WorkloadError::Volume(name)))
}

/// Whether all containers that `--exec` names can be run so.
fn commands(workload: &Node, args: &InjectArgs) -> Result<(), WorkloadError> {
    let containers = workload.items(&CONTAINERS);
    let probes = args.run_flag("--app-health").is_some();
    if probes && !args.exec.is_empty() && containers.iter().all(|container| exec::runs(args, container)) {
        return Err(WorkloadError::HealthOfCommand);
    }
    for name in &args.exec {
        let container = || name.clone();
        let named = containers.iter().find(|container| container.text_at(&["name"]) == Some(name));
        let named = named.ok_or_else(|| WorkloadError::NoContainer(container()))?;
        if named.items(&["command"]).is_empty() {
            return Err(WorkloadError::NoCommand(container()));
        }
        // An exec probe may ask for what is right everywhere.
        let of_command = |probe: &&str| !named.is_absent(&[probe]) && named.is_absent(&[probe, "exec"]);
        if let Some(probe) = ["livenessProbe", "startupProbe"].into_iter().find(of_command) {
            return Err(WorkloadError::ProbeOfCommand { container: container(), probe });
        }
        if !named.is_absent(&["volumeMounts"]) && !matches!(named.at(&["volumeMounts"]), Some(Node::List(_)))
        {
            return Err(WorkloadError::Malformed("the volumeMounts of a container"));
        }
    }
    Ok(())
}

/// What majority needs; how many vote.
fn voters(object: &Node, kind: Workload, name: &str, args: &InjectArgs) -> Result<usize, WorkloadError> {
    if kind != Workload::StatefulSet {
        return Err(WorkloadError::MajorityOfDeployment);
    }
    let replicas = object.text_at(&["spec", "replicas"]).unwrap_or("1 (it is not given)");
    let voters = replicas.parse().ok().filter(|n: &usize| n % 2 == 1 && (3..=VOTERS_MAX).contains(n));
    let voters = voters.ok_or_else(|| WorkloadError::Replicas(replicas.to_owned()))?;
    let grace = [&POD[..], &["terminationGracePeriodSeconds"]].concat();
    if object.text_at(&grace) == Some("0") {
        return Err(WorkloadError::NoGrace);
    }
    if object.text_at(&["spec", "podManagementPolicy"]) != Some("Parallel") {
        return Err(WorkloadError::OrderedReady(name.to_owned()));
    }
    if let Some(claim) = &args.state_claim {
        let templates = object.items(&["spec", "volumeClaimTemplates"]).iter();
        let known: Vec<&str> = templates.filter_map(|claim| claim.text_at(&["metadata", "name"])).collect();
        if !known.contains(&claim.as_str()) {
            let known = if known.is_empty() { "it has none".to_owned() } else { known.join(", ") };
            return Err(WorkloadError::NoClaim { claim: claim.clone(), known });
        }
    }
    Ok(voters)
}

/// What YAML 1.1, and so kubectl, reads as true.
fn is_true(node: &Node) -> bool {
    let text = match node {
        Node::Scalar(scalar) => scalar.text().to_ascii_lowercase(),
        _ => return false,
    };
    matches!(text.as_str(), "true" | "yes" | "on" | "y")
}

/// Whether the flags mean this workload.
pub fn is_selected(object: &Node, args: &InjectArgs) -> bool {
    let wanted = args.only.iter().any(|only| {
        object.text_at(&["kind"]) == Some(only.kind.kind())
            && object.text_at(&["metadata", "name"]) == Some(&only.name)
    });
    let enabled = |annotations: Option<&Node>| {
        annotations.and_then(|annotations| annotations.text_at(&["bellwether/inject"])) == Some("enabled")
    };
    let annotated = enabled(object.at(&["metadata", "annotations"]))
        || enabled(object.at(&["spec", "template", "metadata", "annotations"]));
    (args.only.is_empty() || wanted)
        && (!args.annotated || annotated || (args.uninject && is_injected(object)))
}
