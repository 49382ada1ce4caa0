{{/*
What an upgrade of a workload cannot do, as a list of texts. It goes by the one in the cluster, so `helm template` finds
nothing. Arguments: the context, and the settings.
*/}}
{{- define "app.changes" -}}
{{- $root := index . 0 -}}
{{- $settings := index . 1 -}}
{{- $name := include "app.name" $root -}}
{{- $faults := list -}}
{{- $other := ternary "Deployment" "StatefulSet" (eq $root.Values.kind "StatefulSet") -}}
{{- with lookup "apps/v1" $other $root.Release.Namespace $name -}}
{{- if and $root.Release.IsUpgrade (eq $root.Release.Name (dig "metadata" "annotations" "meta.helm.sh/release-name" "" .)) -}}
{{- $faults = append $faults (printf "kind: %s, and %s runs as a %s: its pods would all be replaced at once, and a change of safety would begin without records. Add --reuse-values if this upgrade was not meant to change it; else uninstall and install" $root.Values.kind $name $other) -}}
{{- end -}}
{{- end -}}
{{- with lookup "apps/v1" "StatefulSet" $root.Release.Namespace $name -}}
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
{{- $ending := int (dig "status" "replicas" 0 .) -}}
{{- if and (eq $settings.safety "majority") (eq $settings.founding "yes") (eq $old 0) $ending -}}
{{- $faults = append $faults (printf "founding: true, and %d pods of %s still end: new voters would recover from their records and wait for them for good. Wait until they are gone: kubectl -n %s wait --for=delete pod -l %s --timeout=5m" $ending $name $root.Release.Namespace (include "app.selector" $root)) -}}
{{- end -}}
{{- end -}}
{{- toYaml $faults -}}
{{- end -}}
