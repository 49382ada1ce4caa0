//! What is injected and what the chart makes are held together.

use super::*;

/// What stands in it, whatever its quotes: `"10m"` and `10m` are the same to a reader of that field.
fn unquoted(node: &Node) -> serde_json::Value {
    match node {
        Node::Scalar(scalar) => scalar.text().into(),
        Node::List(items) => items.iter().map(unquoted).collect(),
        Node::Map(entries) => {
            entries.iter().map(|(key, value)| (key.text().to_owned(), unquoted(value))).collect()
        }
    }
}

/// The only sidecar of all workloads in a text.
fn sidecar_in(text: &str) -> serde_json::Value {
    let documents = documents(text).unwrap();
    let containers = documents
        .iter()
        .flat_map(|document| document.root.items(&sidecar::INIT_CONTAINERS))
        .collect::<Vec<_>>();
    let [sidecar] = containers[..] else { panic!("{containers:?}") };
    assert_eq!(sidecar.text_at(&["name"]), Some(sidecar::CONTAINER));
    unquoted(sidecar)
}

/// The NetworkPolicy of a text, without its name and labels; its pods are those of [`WEB`].
fn policy_in(text: &str) -> serde_json::Value {
    let documents = documents(text).unwrap();
    let policy = |root: &&Node| root.text_at(&["kind"]) == Some("NetworkPolicy");
    let mut policy = unquoted(documents.iter().map(|document| &document.root).find(policy).unwrap());
    let pods = serde_json::json!({"matchLabels": {"app": "web"}});
    let rule = &mut policy["spec"]["ingress"][0]["from"][0]["podSelector"];
    let of_peers = std::mem::replace(rule, pods.clone());
    assert_eq!(std::mem::replace(&mut policy["spec"]["podSelector"], pods), of_peers);
    policy.as_object_mut().unwrap().remove("metadata").unwrap();
    policy
}

#[test]
fn the_network_policy_is_the_charts() {
    let chart = policy_in(include_str!("../../../deploy/manifests/statefulset-majority.yaml"));
    let injected = done(WEB, &all()).text;
    assert_eq!(policy_in(&injected), chart);
    let pods = roots(&injected)[2].text_at(&["spec", "podSelector", "matchLabels", "app"]).map(str::to_owned);
    assert_eq!(pods.as_deref(), Some("web"));
}

/// The manifests are made from the chart, so this holds probes, resources, variables and privileges together.
#[test]
fn the_sidecar_is_the_charts() {
    let deployment = WEB.replace("StatefulSet", "Deployment");
    let of_charts = [
        (include_str!("../../../deploy/manifests/deployment-classic.yaml"), deployment.as_str(), args()),
        (include_str!("../../../deploy/manifests/statefulset-majority.yaml"), WEB, majority()),
    ];
    for (chart, bare, args) in of_charts {
        let mut wanted = sidecar_in(chart);
        let injected = sidecar_in(&transform(bare, &args).unwrap().text);
        // Its Service has a name of its own, and so has its volume. The image is the caller's to name.
        wanted["args"][2] = "web-bellwether".into();
        wanted["image"] = args.image.into();
        wanted.as_object_mut().unwrap().remove("imagePullPolicy").unwrap();
        if let Some(mounts) = wanted.get_mut("volumeMounts") {
            mounts[0]["name"] = sidecar::VOLUMES_OWN[0].into();
        }
        assert_eq!(injected, wanted);
    }
}
