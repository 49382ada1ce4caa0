{{/*
What the other templates read: the settings, resolved and checked, and the names.

Every template of this library takes the root context (`.`) and finds its settings in `.Values.bellwether`, where a
dependency with `alias: bellwether` puts them.
*/}}

{{/*
The settings with everything in them that follows from other settings, as YAML. Whatever cannot work is refused here,
all of it at once.
*/}}
{{- define "bellwether.settings" -}}
{{- $given := .Values.bellwether -}}
{{- if not $given -}}
{{- fail "\n\nbellwether-lib finds no values under `bellwether`.\nGive the dependency `alias: bellwether` in Chart.yaml.\n" -}}
{{- end -}}
{{- $settings := deepCopy $given -}}
{{- $name := include "bellwether.name" . -}}
{{- if not $settings.safety -}}
{{- $_ := set $settings "safety" (ternary "majority" "classic" (eq $settings.kind "StatefulSet")) -}}
{{- end -}}
{{- if not $settings.replicas -}}
{{- $_ := set $settings "replicas" (int .Values.replicaCount) -}}
{{- end -}}
{{- if not $settings.state.type -}}
{{- $_ := set $settings.state "type" (ternary "persistentVolumeClaim" "none" (eq $settings.safety "majority")) -}}
{{- end -}}
{{- if kindIs "string" $settings.peerSecret.enabled -}}
{{- $_ := set $settings.peerSecret "enabled" (or (not $settings.peerCertificate.enabled) (ne $settings.peerSecret.existingSecret "")) -}}
{{- end -}}
{{- if not $settings.peerCertificate.san -}}
{{- $_ := set $settings.peerCertificate "namesPods" true -}}
{{- /* The DNS name of a StatefulSet's pod, without the cluster's domain, which is not known here. */ -}}
{{- $_ := set $settings.peerCertificate "san" (printf "{name}.%s.%s.svc" $name .Release.Namespace) -}}
{{- end -}}
{{- if eq $settings.sidecar "auto" -}}
{{- $native := semverCompare ">=1.29.0-0" .Capabilities.KubeVersion.Version -}}
{{- $_ := set $settings "sidecar" (ternary "native" "ordinary" $native) -}}
{{- end -}}
{{- $faults := include "bellwether.faults" (dict "settings" $settings "name" $name "securityContext" (include "bellwether.securityContext" . | fromYaml) "version" .Capabilities.KubeVersion.Version) | fromJsonArray -}}
{{- if $faults -}}
{{- fail (printf "\n\nbellwether: these values cannot work:\n- %s\n" (join "\n- " $faults)) -}}
{{- end -}}
{{- /* As the program has it. */ -}}
{{- $found := get (dict "true" "yes" "false" "no" "auto" "auto") (toString $settings.founding) -}}
{{- $_ := set $settings "founding" (default (ternary "yes" "no" .Release.IsInstall) $found) -}}
{{- $settings | toYaml -}}
{{- end -}}

{{/* Every fault of resolved settings as a JSON array of sentences, each with its mend. */}}
{{- define "bellwether.faults" -}}
{{- $faults := list -}}
{{- $s := .settings -}}
{{- $replicas := int $s.replicas -}}
{{- if gt (len .name) 52 -}}
{{- $faults = append $faults (printf "the name %q has %d characters; at most 52 are possible, since a StatefulSet's pods carry it with a hash in a label of 63: choose a shorter release name, or set fullnameOverride (in a chart of your own: bellwether.name)" .name (len .name)) -}}
{{- end -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" .name) -}}
{{- $faults = append $faults (printf "the name %q is no name for a Service: it must begin with a letter and hold a-z, 0-9 and - only: choose another release name, or set fullnameOverride (in a chart of your own: bellwether.name)" .name) -}}
{{- end -}}
{{- if and .securityContext.runAsNonRoot (eq (toString .securityContext.runAsUser) "0") -}}
{{- $faults = append $faults "runAsUser: 0 beside runAsNonRoot: true, which Kubernetes refuses: leave runAsUser out, or set another user; the sidecar needs no root" -}}
{{- end -}}
{{- if lt $replicas 1 -}}
{{- $faults = append $faults "nothing says how many replicas there are: set replicaCount, or bellwether.replicas" -}}
{{- end -}}
{{- if eq $s.safety "majority" -}}
{{- if ne $s.kind "StatefulSet" -}}
{{- $faults = append $faults (printf "safety: majority needs kind: StatefulSet, since voters are known by their pods' names, which a %s does not keep: set kind: StatefulSet, or safety: classic" $s.kind) -}}
{{- end -}}
{{- if and (eq $replicas 1) (not $s.allowSingleVoter) -}}
{{- $faults = append $faults "a single voter survives nothing: set replicas: 3 or 5 (in a chart of your own: replicaCount), or allowSingleVoter: true where that is what you want" -}}
{{- else if and (gt $replicas 0) (eq (mod $replicas 2) 0) -}}
{{- $faults = append $faults (printf "%d voters survive no more losses than %d, and need more of them up: set an odd number of replicas" $replicas (sub $replicas 1)) -}}
{{- end -}}
{{- if gt $replicas 31 -}}
{{- $faults = append $faults (printf "%d voters; at most 31 are possible: set fewer replicas, or safety: classic" $replicas) -}}
{{- end -}}
{{- if eq $s.state.type "none" -}}
{{- $faults = append $faults "safety: majority needs a place for its record: set state.type: persistentVolumeClaim, or emptyDir" -}}
{{- end -}}
{{- end -}}
{{- if and (eq $s.state.type "persistentVolumeClaim") (ne $s.kind "StatefulSet") (ne $s.safety "majority") -}}
{{- $faults = append $faults (printf "state.type: persistentVolumeClaim needs kind: StatefulSet, since all pods of a %s would share one volume: set state.type: emptyDir" $s.kind) -}}
{{- end -}}
{{- if and (eq $s.readiness "leader") (eq $replicas 1) -}}
{{- $faults = append $faults "readiness: leader with one replica: a rolling update waits for a new pod that cannot lead while the old one does: set readiness: member, or replicas: 3" -}}
{{- end -}}
{{- if and (eq $s.sidecar "native") (semverCompare "<1.29.0-0" .version) -}}
{{- $faults = append $faults (printf "sidecar: native needs Kubernetes 1.29, and this is %s, where the sidecar would be an init container that never ends: set sidecar: ordinary, or auto" .version) -}}
{{- end -}}
{{- if and $s.peerCertificate.enabled $s.peerSecret.enabled -}}
{{- $faults = append $faults "peerSecret and peerCertificate are both set, and members have one proof: leave out peerSecret.enabled and peerSecret.existingSecret, or peerCertificate.enabled" -}}
{{- end -}}
{{- if and $s.peerSecret.existingSecret (not $s.peerSecret.enabled) (not $s.peerCertificate.enabled) -}}
{{- $faults = append $faults (printf "peerSecret.existingSecret names %s, and peerSecret.enabled is false, so that members would speak in clear: set one of them empty (--set peerSecret.existingSecret=)" $s.peerSecret.existingSecret) -}}
{{- end -}}
{{- if and $s.peerCertificate.enabled (not $s.peerCertificate.volume) -}}
{{- $faults = append $faults (printf "peerCertificate.volume is empty, and nothing holds the files %s, %s and %s: set it to the source of a volume, such as secret: {secretName: NAME}" $s.peerCertificate.cert $s.peerCertificate.key $s.peerCertificate.ca) -}}
{{- end -}}
{{- if and $s.peerCertificate.enabled $s.peerCertificate.namesPods (eq $s.kind "Deployment") (hasKey (default dict $s.peerCertificate.volume) "secret") -}}
{{- $faults = append $faults "peerCertificate.san is empty, and no certificate in a Secret can name the pods of a Deployment: give it one name for all, and set peerCertificate.san to that" -}}
{{- end -}}
{{- /* --set makes other numbers than a file does. */ -}}
{{- if eq (int $s.ports.status) (int $s.ports.peer) -}}
{{- $faults = append $faults (printf "ports.status and ports.peer are both %v: set two different ports" $s.ports.peer) -}}
{{- end -}}
{{- $config := default dict $s.config -}}
{{- $heartbeat := default "250ms" $config.heartbeat -}}
{{- $lease := default "1500ms" $config.lease -}}
{{- if lt (include "bellwether.milliseconds" $lease | int64) (mul 4 (include "bellwether.milliseconds" $heartbeat | int64)) -}}
{{- $faults = append $faults (printf "config.lease: %s is shorter than 4 heartbeats of %s, and the program would refuse it: set a longer lease, or a shorter config.heartbeat" $lease $heartbeat) -}}
{{- end -}}
{{- if and (hasKey $config "priority") (eq (toString $config.priority) "0") -}}
{{- $faults = append $faults "config.priority: 0 for all members: none of them could lead: set 1 or more" -}}
{{- end -}}
{{- /* But for BELLWETHER_PEER_PORT: Kubernetes sets that one where a Service is named `bellwether-peer`, and this is the mend. */ -}}
{{- range $s.extraEnv -}}
{{- if has .name (list "POD_NAME" "POD_IP" "BELLWETHER_SERVICE" "BELLWETHER_PEERS" "BELLWETHER_LISTEN" "BELLWETHER_ADVERTISE" "BELLWETHER_HTTP" "BELLWETHER_NAME" "BELLWETHER_ELECTION" "BELLWETHER_STATE_DIR" "BELLWETHER_REVISION" "BELLWETHER_SAFETY" "BELLWETHER_VOTERS" "BELLWETHER_FOUND" "BELLWETHER_PEER_SECRET_FILE" "BELLWETHER_PEER_CERT" "BELLWETHER_PEER_KEY" "BELLWETHER_PEER_CA" "BELLWETHER_PEER_SAN" "BELLWETHER_PEER_AUTH") -}}
{{- $faults = append $faults (printf "extraEnv: %s is set by the chart: leave it out, and set the value that it comes from" .name) -}}
{{- end -}}
{{- end -}}
{{- if and (eq (get $config "crash-evidence") "release") (ne $s.safety "majority") -}}
{{- $faults = append $faults "config.crash-evidence: release is for safety: majority only: set suspect, or off" -}}
{{- end -}}
{{- if and (kindIs "bool" $s.founding) (ne $s.safety "majority") -}}
{{- $faults = append $faults (printf "founding: %v is for safety: majority only: leave it out" $s.founding) -}}
{{- end -}}
{{- toJson $faults -}}
{{- end -}}

{{/* `true` where the pods read from a ConfigMap whether they may found the cluster, else nothing. */}}
{{- define "bellwether.readsFounding" -}}
{{- $settings := include "bellwether.settings" . | fromYaml -}}
{{- if and (eq $settings.safety "majority") (ne $settings.founding "auto") }}true{{ end -}}
{{- end -}}

{{/* How many milliseconds a duration of the command line is, such as 1500ms or 2s. */}}
{{- define "bellwether.milliseconds" -}}
{{- mul (regexFind "^[0-9]+" . | int64) (get (dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000) (regexFind "[a-z]+$" .)) -}}
{{- end -}}

{{/*
The name of the workload and of its headless Service: `bellwether.name`, or else what `helm create` calls them.
*/}}
{{- define "bellwether.name" -}}
{{- $chart := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.bellwether.name -}}
{{- .Values.bellwether.name -}}
{{- else if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains $chart .Release.Name -}}
{{- .Release.Name -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $chart -}}
{{- end -}}
{{- end -}}

{{/* The labels that select the workload's pods: `bellwether.selectorLabels`, or else those of `helm create`. */}}
{{- define "bellwether.selectorLabels" -}}
{{- with .Values.bellwether.selectorLabels -}}
{{- toYaml . -}}
{{- else -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}
{{- end -}}
