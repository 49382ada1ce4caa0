{{/*
How this chart uses the library, and what it refuses by itself.
*/}}

{{/*
A template of the library, with this chart's values where the library looks for them:
include "app.library" (list . "bellwether.container")
*/}}
{{- define "app.library" -}}
{{- $root := index . 0 -}}
{{- $settings := pick $root.Values "kind" "replicas" "safety" "founding" "allowSingleVoter" "image" "sidecar" "readiness" "drain" "state" "ports" "config" "extraEnv" "peerSecret" "peerCertificate" "mesh" "resources" "podSecurityContext" "securityContext" -}}
{{- if not $root.Values.app -}}
{{- /* A pod has at least one ordinary container. */ -}}
{{- $_ := set $settings "sidecar" "ordinary" -}}
{{- end -}}
{{- $_ := set $settings "selectorLabels" (include "app.selectorLabels" $root | fromYaml) -}}
{{- $_ := set $settings "labels" (include "app.commonLabels" $root | fromYaml) -}}
{{- $values := dict "bellwether" $settings "nameOverride" $root.Values.nameOverride "fullnameOverride" $root.Values.fullnameOverride -}}
{{- include (index . 1) (dict "Values" $values "Chart" $root.Chart "Release" $root.Release "Capabilities" $root.Capabilities) -}}
{{- end -}}

{{- define "app.name" -}}
{{- include "app.library" (list . "bellwether.name") -}}
{{- end -}}

{{/* The settings as the library resolves and checks them, as YAML. */}}
{{- define "app.settings" -}}
{{- include "app.library" (list . "bellwether.settings") -}}
{{- end -}}

{{/*
How pods are replaced. Kubernetes fills in `rollingUpdate` where a rolling update was the former strategy, and refuses it
beside another one, so an upgrade takes it out.
*/}}
{{- define "app.updateStrategy" -}}
{{- if eq (default "RollingUpdate" .type) "RollingUpdate" -}}
{{- toYaml . -}}
{{- else -}}
type: {{ .type }}
rollingUpdate: null
{{- end -}}
{{- end -}}

{{/* The component keeps the test's pod out of the election. */}}
{{- define "app.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: member
{{- end -}}

{{- define "app.commonLabels" -}}
app.kubernetes.io/version: {{ default .Chart.AppVersion .Values.image.tag | trunc 63 | trimAll "-_." | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 }}
{{- end -}}

{{/* The labels of its pods, as kubectl takes them. */}}
{{- define "app.selector" -}}
app.kubernetes.io/name={{ default .Chart.Name .Values.nameOverride }},app.kubernetes.io/instance={{ .Release.Name }},app.kubernetes.io/component=member
{{- end }}

{{- define "app.labels" -}}
{{ include "app.selectorLabels" . }}
{{ include "app.commonLabels" . }}
{{- end -}}

{{/* The ports of a Service: those that are given, or the status API. */}}
{{- define "app.servicePorts" -}}
{{- $root := index . 0 -}}
{{- with index . 1 -}}
{{- toYaml . -}}
{{- else -}}
- name: status
  port: {{ $root.Values.ports.status }}
{{- end -}}
{{- end -}}

{{/* Refuses what the library cannot know of: all of it at once. */}}
{{- define "app.check" -}}
{{- $settings := include "app.settings" . | fromYaml -}}
{{- $faults := list -}}
{{- $set := eq .Values.kind "StatefulSet" -}}
{{- $majority := eq $settings.safety "majority" -}}
{{- $leaderOnly := eq .Values.readiness "leader" -}}
{{- $update := default dict .Values.updateStrategy -}}
{{- $strategy := default "RollingUpdate" $update.type -}}
{{- $ordered := and $set (eq .Values.podManagementPolicy "OrderedReady") -}}
{{- $allowed := ternary (list "RollingUpdate" "OnDelete") (list "RollingUpdate" "Recreate") $set -}}
{{- if not (has $strategy $allowed) -}}
{{- $faults = append $faults (printf "updateStrategy.type: %s is none of a %s: set %s" $strategy .Values.kind (join " or " $allowed)) -}}
{{- end -}}
{{- if and $ordered $leaderOnly -}}
{{- $faults = append $faults "readiness: leader with podManagementPolicy: OrderedReady: the second pod would have to lead before the third one starts: set podManagementPolicy: Parallel" -}}
{{- else if and $ordered $majority (ne .Values.readiness "none") -}}
{{- $faults = append $faults "safety: majority with podManagementPolicy: OrderedReady: the first pod is ready once all voters have met, and the second one waits for it: set podManagementPolicy: Parallel" -}}
{{- end -}}
{{- if and $leaderOnly $set (ne $strategy "OnDelete") -}}
{{- $faults = append $faults "readiness: leader in a StatefulSet: a rolling update waits until the pod that it has replaced is ready, which is the leader alone: set updateStrategy.type: OnDelete, and delete the pods yourself" -}}
{{- end -}}
{{- $away := toString (default dict $update.rollingUpdate).maxUnavailable -}}
{{- if and $leaderOnly (not $set) (eq $strategy "RollingUpdate") (ne $away "100%") -}}
{{- $faults = append $faults "readiness: leader in a Deployment: a rolling update waits for new pods that cannot be ready while an old one leads: set updateStrategy.rollingUpdate.maxUnavailable: 100%, or updateStrategy.type: Recreate" -}}
{{- end -}}
{{- if and $leaderOnly .Values.podDisruptionBudget.enabled -}}
{{- $faults = append $faults "readiness: leader with a PodDisruptionBudget: only one pod is ever ready, so the budget is always used up, and the leader's node could never be drained: set podDisruptionBudget.enabled: false" -}}
{{- end -}}
{{- $spare := div (sub (int $settings.replicas) 1) 2 -}}
{{- if and $majority .Values.podDisruptionBudget.enabled (gt (int $settings.replicas) 1) (gt (int .Values.podDisruptionBudget.maxUnavailable) (int $spare)) -}}
{{- $faults = append $faults (printf "podDisruptionBudget.maxUnavailable: %v of %v voters leave no majority: set at most %d" .Values.podDisruptionBudget.maxUnavailable $settings.replicas $spare) -}}
{{- end -}}
{{- /* Kubernetes rounds a share up. */ -}}
{{- $parts := trimSuffix "%" $away | int -}}
{{- $at := ternary (div (add (mul (int $settings.replicas) $parts) 99) 100) $parts (hasSuffix "%" $away) -}}
{{- if and $majority $set (eq $strategy "RollingUpdate") (gt (int $at) (max 1 (int $spare))) -}}
{{- $faults = append $faults (printf "updateStrategy.rollingUpdate.maxUnavailable: %s of %v voters may leave no majority: set at most %d" $away $settings.replicas (max 1 (int $spare))) -}}
{{- end -}}
{{- if and $majority (eq (toString .Values.terminationGracePeriodSeconds) "0") -}}
{{- $faults = append $faults "terminationGracePeriodSeconds: 0 deletes a voter's pod before its container is known to have ended, so two of one name may vote: set 1 or more" -}}
{{- end -}}
{{- if and .Values.leaderService.enabled (not $leaderOnly) -}}
{{- $faults = append $faults "leaderService.enabled needs readiness: leader, since a Service leaves out only pods that are not ready" -}}
{{- end -}}
{{- $named := list -}}
{{- range include "app.servicePorts" (list . .Values.service.ports) | fromYamlArray }}{{ $named = append $named .name }}{{ end -}}
{{- if and .Values.serviceMonitor.enabled (not (and .Values.service.enabled (has "status" $named))) -}}
{{- $faults = append $faults "serviceMonitor.enabled needs a Service to select: set service.enabled: true and have a port `status` among service.ports, or set podMonitor.enabled: true instead" -}}
{{- end -}}
{{- $peer := printf "(^|,)%v(,|$)" $settings.ports.peer -}}
{{- range $key, $value := include "app.library" (list . "bellwether.podAnnotations") | fromYaml -}}
{{- $given := get (default dict $.Values.podAnnotations) $key -}}
{{- if and $given (not (regexMatch $peer (toString $given))) -}}
{{- $faults = append $faults (printf "podAnnotations: %s: %v takes the place of what mesh: %s sets, and the peer port %v is not in it: add it" $key $given $.Values.mesh $settings.ports.peer) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.app (not .Values.app.image) -}}
{{- $faults = append $faults "app has no image: set app.image" -}}
{{- end -}}
{{- if and .Values.app .Values.app.exec (not .Values.app.command) -}}
{{- $faults = append $faults "app.exec has no command to run: set app.command, since no chart sees the image's own" -}}
{{- end -}}
{{- if and .Values.app .Values.app.exec (index (default dict .Values.config) "app-health") (not .Values.extraContainers) -}}
{{- $faults = append $faults "config.app-health with app.exec: the command runs on the leader alone, so no other pod would be healthy and none could lead: leave app-health out, since exec tells of the command's end" -}}
{{- end -}}
{{- range $probe := ternary (list "livenessProbe" "startupProbe") list (not (not (and .Values.app .Values.app.exec))) -}}
{{- $given := get $.Values.app $probe -}}
{{- if and $given (not (get $given "exec")) -}}
{{- $faults = append $faults (printf "app.%s with app.exec: the command runs on the leader alone, and Kubernetes would restart the container everywhere else: leave it out, since exec tells of the command's end" $probe) -}}
{{- end -}}
{{- end -}}
{{- if and (not .Values.app) (eq .Values.sidecar "native") -}}
{{- $faults = append $faults "sidecar: native needs an application beside which it runs: set app.image, or sidecar: auto" -}}
{{- end -}}
{{- if and (not $set) .Values.extraVolumeClaimTemplates -}}
{{- $faults = append $faults "extraVolumeClaimTemplates are for kind: StatefulSet only: set extraVolumes" -}}
{{- end -}}
{{- $names := list "bellwether" "bellwether-install" -}}
{{- $own := list -}}
{{- with .Values.app -}}
{{- $own = list (merge (dict "name" (include "app.containerName" $)) .) -}}
{{- end -}}
{{- range concat $own (default list .Values.extraContainers) (default list .Values.extraInitContainers) -}}
{{- if has .name $names -}}
{{- $faults = append $faults (printf "two containers are called %q: give each a name of its own" .name) -}}
{{- end -}}
{{- $names = append $names .name -}}
{{- range .ports -}}
{{- if has (int .containerPort) (list (int $settings.ports.status) (int $settings.ports.peer)) -}}
{{- $faults = append $faults (printf "port %v of your container is the sidecar's as well: set ports.status or ports.peer to another one" .containerPort) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $grace := mul 1000 (int $.Values.terminationGracePeriodSeconds) -}}
{{- with get (default dict $settings.config) "stop-wait" -}}
{{- if ge (include "bellwether.milliseconds" . | int64) $grace -}}
{{- $faults = append $faults (printf "config.stop-wait: %s is not shorter than terminationGracePeriodSeconds: %v, so Kubernetes would kill a pod that waits for its holds: set a longer terminationGracePeriodSeconds" . $.Values.terminationGracePeriodSeconds) -}}
{{- end -}}
{{- end -}}
{{- $faults = concat $faults (include "app.changes" (list . $settings) | fromYamlArray) -}}
{{- if $faults -}}
{{- fail (printf "\n\nbellwether: these values cannot work:\n- %s\n" (join "\n- " $faults)) -}}
{{- end -}}
{{- end -}}

{{- define "app.containerName" -}}
{{- default "app" (default dict .Values.app).name -}}
{{- end -}}

{{/* The labels of the test's pod, which no selector of the workload meets. */}}
{{- define "app.testLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: test
{{- end -}}
