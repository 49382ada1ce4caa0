//! The flags of `bellwether inject`.

use super::modes::SafetyLevel;
use std::fmt;
use std::path::PathBuf;

pub const INJECT_LONG: &str = "\
Reads Kubernetes manifests and writes them with the sidecar in each StatefulSet and Deployment, and with a \
headless Service beside each.

YAML with any number of documents, JSON, and lists as kubectl prints them are read. What needs no change is \
written byte for byte as it was. What is changed is written anew: comments in that document are lost, and \
aliases are written out. What an API server adds (status, managedFields, resourceVersion, uid and the like) \
is left out, so that kubectl apply takes it. A second run with the \
same flags changes nothing; each run writes the sidecar from its own flags alone.

What cannot be injected is left as it is, and the reason is on stderr. When the input cannot be read, \
nothing is written on stdout, so that nothing is applied half.";

pub const INJECT_EXAMPLES: &str = "\
Examples:
  bellwether inject app.yaml | kubectl apply -f -
  kubectl get sts web -o yaml | bellwether inject - | kubectl apply -f -
  bellwether inject --only StatefulSet/web --safety majority app.yaml > with-sidecar.yaml
  bellwether inject app.yaml -- --priority 50 --lease 3s | kubectl apply -f -
  kubectl get sts web -o yaml | bellwether inject --uninject - | kubectl apply -f -
  With a secret that the members share, made once:
    kubectl create secret generic web-peers --from-literal=secret=\"$(head -c 32 /dev/urandom | base64)\"
    bellwether inject --peer-secret web-peers --network-policy app.yaml | kubectl apply -f -

Exit codes:
  0  done; what could not be injected was left as it is, and said
  1  nothing was written: a file could not be read or written, or --strict found what cannot be injected
  2  nothing was written: bad configuration, or input that is no manifest";

/// How long the name of a Secret and of its key may be.
const SECRET_BYTES_MAX: usize = 253;
/// The key of a Secret where no other is named.
const SECRET_KEY: &str = "secret";
/// The largest name of an image that is taken.
const IMAGE_BYTES_MAX: usize = 512;

/// What `bellwether inject` is asked for.
#[derive(clap::Args, Clone, PartialEq, Eq, Debug)]
pub struct InjectArgs {
    /// Manifests to read; `-` is stdin
    #[arg(value_name = "FILE", default_value = "-")]
    pub file: PathBuf,

    /// Take out what was put in, instead
    ///
    /// It is found by the annotation bellwether/injected. The Service and the NetworkPolicy are taken out of
    /// the manifests; those in a cluster stay there, and how to delete them is said.
    #[arg(long, conflicts_with_all = [
        "safety", "state_claim", "image", "ordinary_container", "peer_secret", "network_policy", "readiness",
        "drain", "exec", "run_flags"
    ])]
    pub uninject: bool,

    /// Only these, given as StatefulSet/NAME or Deployment/NAME; may be given more than once
    ///
    /// All others are written as they are in the input. So a second run with other flags takes the output of
    /// the first one as its input. From a fresh input the others lose the sidecar that they have in the
    /// cluster.
    #[arg(long, value_name = "KIND/NAME", value_parser = only)]
    pub only: Vec<Only>,

    /// Only those with the annotation bellwether/inject: "enabled", on themselves or on their pod template
    #[arg(long)]
    pub annotated: bool,

    /// Image of the sidecar
    #[arg(
        long, value_name = "IMAGE", default_value = concat!("bellwether:", env!("CARGO_PKG_VERSION")),
        value_parser = image
    )]
    pub image: String,

    /// What is promised; `majority` is for StatefulSets with an odd number of replicas, at least 3, which all
    /// vote
    ///
    /// It needs podManagementPolicy: Parallel, since a first pod alone is never ready. For the same reason,
    /// pods that run already are stopped before it is put in. --voters and --state-dir are set here. Scale by
    /// injecting anew with the new number of replicas.
    #[arg(long, value_name = "LEVEL", default_value = "classic", value_enum)]
    pub safety: SafetyLevel,

    /// With majority: keep the voters' records on the volume claim of this name instead of in an emptyDir
    ///
    /// One of the StatefulSet's own volumeClaimTemplates, which cannot be added to later. Bellwether uses a
    /// folder `bellwether` in it. An emptyDir goes with its pod: a voter whose pod is deleted asks the others
    /// for what it has forgotten. When all pods are deleted at once, epochs begin anew.
    #[arg(long, value_name = "NAME")]
    pub state_claim: Option<String>,

    /// Mount this Secret, whose key `secret` (or KEY) holds the secret that the members share
    ///
    /// Members then prove that they share it, and connections between them are encrypted. No other container
    /// mounts it. Make it first, in the namespace of the pods, with the command below. Pods that run already
    /// without a secret refuse those with one: inject with `-- --peer-auth permissive` first, roll that out,
    /// and then inject without it.
    #[arg(long, value_name = "NAME[/KEY]", value_parser = peer_secret)]
    pub peer_secret: Option<PeerSecret>,

    /// Add a NetworkPolicy that opens the peer port (4041) to the pods of the same workload only
    ///
    /// All other ports stay open to all, as they were. It needs a network that enforces policies, and ranges
    /// of ports in them (endPort): one that ignores ranges closes the other ports. Policies add up: do not
    /// use it where another one selects these pods, since it would open what that one closes.
    #[arg(long)]
    pub network_policy: bool,

    /// When a pod is ready, as far as the sidecar is asked
    #[arg(long, value_name = "WHEN", default_value = "member", value_enum)]
    pub readiness: Readiness,

    /// When a leader's pod that is deleted transfers leadership
    ///
    /// early: `bellwether cordon` is the native sidecar's preStop hook, so another process leads while the
    /// application still drains. late: once the application has ended.
    #[arg(long, value_name = "WHEN", default_value = "early", value_enum)]
    pub drain: Drain,

    /// Run this container's command while its pod leads (bellwether exec); may be given more than once
    ///
    /// The container has to name its command, since no tool sees that of the image. An init container takes
    /// the program out of the sidecar's image, and puts it onto a volume of the pod. With --safety classic
    /// two commands can run at once. They do for up to --hold of exec at each change of leader, and on both
    /// sides of a partition.
    #[arg(long, value_name = "CONTAINER")]
    pub exec: Vec<String>,

    /// Add an ordinary container: for clusters before 1.29, which know no native sidecars
    ///
    /// A native sidecar (an init container with restartPolicy: Always) starts before the application and
    /// stops after it.
    #[arg(long)]
    pub ordinary_container: bool,

    /// Write nothing and exit with 1 when there is anything that cannot be injected
    #[arg(long)]
    pub strict: bool,

    /// Flags of `bellwether run` for the sidecar, such as: -- --priority 50 --lease 3s
    ///
    /// Those that inject sets itself are refused: --service, --safety, --voters, --state-dir,
    /// --peer-secret-file, the ports and addresses, --name and --revision.
    #[arg(last = true, value_name = "RUN FLAGS")]
    pub run_flags: Vec<String>,
}

/// When a leader's pod transfers leadership.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Drain {
    /// As soon as the pod is to end
    Early,
    /// Once the application has ended
    Late,
}

/// What the sidecar's readiness probe asks for.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Readiness {
    /// It has taken part since its start, and stays ready without a leader
    Member,
    /// It knows a leader now
    LeaderKnown,
    /// There is no readiness probe
    None,
}

impl Readiness {
    /// The path of the probe.
    pub fn path(self) -> Option<&'static str> {
        match self {
            Readiness::Member => Some("/readyz"),
            Readiness::LeaderKnown => Some("/readyz?leader=known"),
            Readiness::None => None,
        }
    }
}

/// A key of a Secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerSecret {
    /// The Secret's name.
    pub name: String,
    /// The key in it.
    pub key: String,
}

/// What can be injected.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Workload {
    /// A StatefulSet.
    StatefulSet,
    /// A Deployment.
    Deployment,
}

impl Workload {
    /// Its kind as in a manifest.
    pub fn kind(self) -> &'static str {
        match self {
            Workload::StatefulSet => "StatefulSet",
            Workload::Deployment => "Deployment",
        }
    }
}

/// One that `--only` names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Only {
    /// What it is.
    pub kind: Workload,
    /// Its name; not empty.
    pub name: String,
}

impl fmt::Display for Only {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.kind(), self.name)
    }
}

/// Why flags of `inject` do not go together.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InjectRefusal {
    #[error(
        "--state-claim {0} is given with --safety classic, for which no volume is added; write --safety \
         majority, or leave --state-claim out"
    )]
    ClaimInClassic(String),
}

impl InjectArgs {
    /// What a flag among the sidecar's says, such as `--control-socket`; none: it is not among them.
    pub fn run_flag(&self, name: &str) -> Option<&str> {
        let after = |(at, flag): (usize, &String)| match flag.strip_prefix(name)? {
            "" => self.run_flags.get(at + 1).map(String::as_str),
            _ => None,
        };
        let joined = self.run_flags.iter().find_map(|flag| flag.strip_prefix(name)?.strip_prefix('='));
        joined.or_else(|| self.run_flags.iter().enumerate().find_map(after))
    }

    /// Checks the flags against each other.
    pub(super) fn checked(self) -> Result<InjectArgs, InjectRefusal> {
        match &self.state_claim {
            Some(claim) if self.safety == SafetyLevel::Classic => {
                Err(InjectRefusal::ClaimInClassic(claim.clone()))
            }
            _ => Ok(self),
        }
    }
}

/// Reads a kind, as kubectl abbreviates it too, and a name.
fn only(text: &str) -> Result<Only, String> {
    let (kind, name) = text
        .split_once('/')
        .filter(|(_, name)| !name.is_empty() && !name.contains('/'))
        .ok_or_else(|| "write StatefulSet/NAME or Deployment/NAME".to_owned())?;
    let kind = match kind.to_ascii_lowercase().as_str() {
        "statefulset" | "statefulsets" | "sts" => Workload::StatefulSet,
        "deployment" | "deployments" | "deploy" => Workload::Deployment,
        _ => {
            return Err(
                "only StatefulSets and Deployments can be injected; write StatefulSet/NAME or Deployment/NAME"
                    .to_owned(),
            );
        }
    };
    Ok(Only { kind, name: name.to_owned() })
}

/// Reads the name of a Secret, and perhaps of a key in it.
fn peer_secret(text: &str) -> Result<PeerSecret, String> {
    let (name, key) = text.split_once('/').unwrap_or((text, SECRET_KEY));
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_name = name.split('.').all(|part| {
        part.starts_with(edge) && part.ends_with(edge) && part.chars().all(|c| edge(c) || c == '-')
    });
    let is_key = !key.is_empty()
        && !key.starts_with("..")
        && key != "."
        && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    if !is_name || !is_key || name.len().max(key.len()) > SECRET_BYTES_MAX {
        return Err(
            "write the name of a Secret, or NAME/KEY, as Kubernetes has them: lower-case letters, digits, \
             hyphens and dots for the name, such as web-peers"
                .to_owned(),
        );
    }
    Ok(PeerSecret { name: name.to_owned(), key: key.to_owned() })
}

/// Reads the name of an image: what it may look like is the registry's affair.
fn image(text: &str) -> Result<String, String> {
    let fine = text.bytes().all(|b| b.is_ascii_graphic());
    if text.is_empty() || text.len() > IMAGE_BYTES_MAX || !fine {
        return Err(format!(
            "write the name of an image, without spaces and of at most {IMAGE_BYTES_MAX} bytes, such as \
             registry.example/bellwether:0.1.0"
        ));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_what_can_be_injected() {
        for text in ["StatefulSet/web", "sts/web", "statefulsets/web"] {
            assert_eq!(
                only(text),
                Ok(Only { kind: Workload::StatefulSet, name: "web".to_owned() }),
                "{text}"
            );
        }
        assert_eq!(only("deploy/web").unwrap().to_string(), "Deployment/web");
        for bad in ["", "web", "sts/", "/web", "cronjob/web", "sts/a/b"] {
            assert!(only(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_peer_secret_is_a_name_and_perhaps_a_key() {
        let secret = |name: &str, key: &str| Ok(PeerSecret { name: name.to_owned(), key: key.to_owned() });
        assert_eq!(peer_secret("web-peers"), secret("web-peers", "secret"));
        assert_eq!(peer_secret("a.b-1/K_.-9"), secret("a.b-1", "K_.-9"));
        let long = "a".repeat(254);
        let bad =
            ["", "/", "a/", "/a", "A", "a_b", "-a", "a-", "a.", ".a", "a..b", "é", "a/b/c", "a/..", "a/."];
        for bad in bad.into_iter().chain(["a/..b", "a/b c", "a b", &long, &format!("a/{long}")]) {
            assert!(peer_secret(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_image_has_no_spaces() {
        assert!(image("registry.example:5000/bellwether@sha256:00").is_ok());
        for bad in ["", "a b", "a\n", &"a".repeat(IMAGE_BYTES_MAX + 1)] {
            assert!(image(bad).is_err(), "{bad:?}");
        }
    }
}
