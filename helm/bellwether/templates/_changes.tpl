{{/*
What an upgrade of a workload cannot do, as a list of texts. It goes by the one in the cluster, so `helm template` finds
nothing. Arguments: the context, and the settings.
*/}}
{{- define "app.changes" -}}
{{- $root := index . 0 -}}
{{- $settings := index . 1 -}}
{{- $name := include "app.name" $root -}}
{{- $faults := list -}}
{{- $kind := $root.Values.kind -}}
{{- $other := ternary "Deployment" "StatefulSet" (eq $kind "StatefulSet") -}}
{{- $present := lookup "apps/v1" $kind $root.Release.Namespace $name -}}
{{- if $root.Release.IsUpgrade -}}
{{- if include "app.ofRelease" (list $root (lookup "apps/v1" $other $root.Release.Namespace $name)) -}}
{{- $faults = append $faults (printf "kind: %s, and %s runs as a %s: its pods would all be replaced at once, and a change of safety would begin without records. Add --reuse-values if this upgrade was not meant to change it. Else uninstall, wait until its pods are gone, and install: docs/kubernetes.md, Upgrade" $kind $name $other) -}}
{{- else if include "app.ofRelease" (list $root $present) -}}
{{- $running := include "app.running" $present | fromYaml -}}
{{- $runs := or $present.spec.replicas (dig "status" "replicas" 0 $present) -}}
{{- if not $runs -}}
{{- /* No pod runs that could be beside the new ones. */ -}}
{{- else if ne $running.safety $settings.safety -}}
{{- $faults = append $faults (printf "safety: %s, and the pods of %s run with %s: the new pods would elect a leader apart from the old ones, or none. Add --reuse-values if this upgrade was not meant to change it. Else uninstall, wait until its pods are gone, and install: docs/kubernetes.md, Upgrade" $settings.safety $name $running.safety) -}}
{{- else if and (eq $settings.safety "classic") (ne (int $running.peer) (int $settings.ports.peer)) -}}
{{- $faults = append $faults (printf "ports.peer: %v, and the pods of %s listen on %v: the new pods would find no old one, and lead beside them. Stop all pods first (kubectl -n %s scale %s %s --replicas=0), wait until they are gone, then upgrade" $settings.ports.peer $name $running.peer $root.Release.Namespace ($kind | lower) $name) -}}
{{- end -}}
{{- $secret := include "app.library" (list $root "bellwether.ownPeerSecretName") -}}
{{- $found := default dict (lookup "v1" "Secret" $root.Release.Namespace $secret) -}}
{{- $keys := keys (default dict $found.data) | sortAlpha -}}
{{- $own := and $settings.peerSecret.enabled (not $settings.peerSecret.existingSecret) -}}
{{- if and $own $keys $runs (not (has $settings.peerSecret.key $keys)) -}}
{{- $faults = append $faults (printf "peerSecret.key: %s, and the Secret %s has %s: the chart would make another secret, and the new pods would stay alone. Keep the former key, or add --reuse-values" $settings.peerSecret.key $secret (join ", " $keys)) -}}
{{- end -}}
{{- with include "app.foreignSecret" (list $secret $present) -}}
{{- if and $own $runs (not $found) -}}
{{- $faults = append $faults (printf "peerSecret.existingSecret: empty, and the pods of %s share the Secret %s: the chart would make another secret, and the new pods would stay alone. Set existingSecret to %s, or add --reuse-values. To go over to a Secret of the chart, make it first with the same line: docs/kubernetes.md, The secret that members share" $name . .) -}}
{{- end -}}
{{- end -}}
{{- else if not (contains "/charts/" $root.Template.BasePath) -}}
{{- /* A chart of charts may add this one under a second alias. */ -}}
{{- range (lookup "apps/v1" $kind $root.Release.Namespace "").items -}}
{{- if and (include "app.ofRelease" (list $root .)) (hasPrefix "bellwether-" (dig "metadata" "labels" "helm.sh/chart" "" .)) -}}
{{- $faults = append $faults (printf "fullnameOverride or nameOverride: the workload would be %s, and this release runs as %s %s, which would be deleted with the names of its voters. Set the same names, or add --reuse-values" $name $kind .metadata.name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with ternary $present dict (eq $kind "StatefulSet") -}}
{{- $claims := list -}}
{{- range .spec.volumeClaimTemplates -}}
{{- $claims = append $claims .metadata.name -}}
{{- end -}}
{{- $has := has "bellwether" $claims -}}
{{- $wants := eq $settings.state.type "persistentVolumeClaim" -}}
{{- if ne $has $wants -}}
{{- $faults = append $faults (printf "state.type: %s, and the pods of %s have %s: Kubernetes changes no volume claims of a StatefulSet. Uninstall and install, or keep state.type" $settings.state.type $name (ternary "volume claims" "none" $has)) -}}
{{- end -}}
{{- $old := int .spec.replicas -}}
{{- $new := int $settings.replicas -}}
{{- if and (eq $settings.safety "majority") (eq $settings.state.type "emptyDir") (lt $new $old) (lt (sub $new 1) (add (div $old 2) 1)) -}}
{{- $faults = append $faults (printf "replicas: %d, and %d pods vote, with their records in emptyDirs: the update would leave less than a majority of them. Stop all pods first (kubectl -n %s scale statefulset %s --replicas=0) and wait until they are gone, then upgrade with founding: true. Epochs begin anew" $new $old $root.Release.Namespace $name) -}}
{{- end -}}
{{- $voters := int (default 0 (include "app.running" . | fromYaml).voters) -}}
{{- if and (eq $settings.safety "majority") (ne $settings.state.type "emptyDir") $old (lt $new (add (div $voters 2) 1)) -}}
{{- $faults = append $faults (printf "replicas: %d, and %d pods vote: Kubernetes would delete all others at once, and no majority of the voters would be left. Go down in steps (7, 5, 3), each once the rollout before it is over. A single voter begins anew" $new $voters) -}}
{{- end -}}
{{- $ending := int (dig "status" "replicas" 0 .) -}}
{{- if and (eq $settings.safety "majority") (eq $settings.founding "yes") (eq $old 0) $ending -}}
{{- $faults = append $faults (printf "founding: true, and %d pods of %s still end: new voters would recover from their records and wait for them for good. Wait until they are gone: kubectl -n %s wait --for=delete pod -l %s --timeout=5m" $ending $name $root.Release.Namespace (include "app.selector" $root)) -}}
{{- end -}}
{{- end -}}
{{- toYaml $faults -}}
{{- end -}}

{{/*
The Secret that the pods of a workload share, where it is not the chart's. Arguments: the name of the chart's, and the
workload.
*/}}
{{- define "app.foreignSecret" -}}
{{- $own := index . 0 -}}
{{- range dig "spec" "template" "spec" "volumes" list (index . 1) -}}
{{- if and (eq .name "bellwether-peer-secret") .secret -}}
{{- if ne .secret.secretName $own -}}
{{- .secret.secretName -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Whether a workload in the cluster is of this release. Arguments: the context, and the workload. */}}
{{- define "app.ofRelease" -}}
{{- if eq (index . 0).Release.Name (dig "metadata" "annotations" "meta.helm.sh/release-name" "" (index . 1)) }}true{{ end -}}
{{- end -}}

{{/* How the sidecars of a workload in the cluster run, as YAML. */}}
{{- define "app.running" -}}
{{- $pod := dig "spec" "template" "spec" dict . -}}
{{- range concat (default list $pod.initContainers) (default list $pod.containers) -}}
{{- if eq .name "bellwether" }}
safety: {{ ternary "majority" "classic" (and (has "--safety" .args) (has "majority" .args)) }}
{{- $args := .args }}
{{- range $at, $arg := $args }}{{ if and (eq $arg "--voters") (gt (len $args) (add1 $at | int)) }}
voters: {{ index $args (add1 $at | int) }}
{{- end }}{{ end }}
{{- range .ports }}{{ if eq .name "peer" }}
peer: {{ .containerPort }}
{{- end }}{{ end }}
{{- end }}
{{- end -}}
{{- end -}}
