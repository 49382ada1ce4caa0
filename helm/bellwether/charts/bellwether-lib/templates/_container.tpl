{{/* The sidecar itself: the container and the parts of it. */}}

{{/*
The container, as a list of one. It belongs into `initContainers` where it is native, else into `containers`. A
chart that cannot tell takes bellwether.initContainers and bellwether.containers, one of which is empty.
*/}}
{{- define "bellwether.container" -}}
{{- $settings := include "bellwether.settings" . | fromYaml -}}
- name: bellwether
  image: {{ include "bellwether.image" . }}
  imagePullPolicy: {{ $settings.image.pullPolicy }}
  {{- if eq $settings.sidecar "native" }}
  restartPolicy: Always
  {{- end }}
  args:
    {{- include "bellwether.args" . | nindent 4 }}
  env:
    {{- include "bellwether.env" . | nindent 4 }}
  ports:
    {{- include "bellwether.ports" . | nindent 4 }}
  {{- include "bellwether.probes" . | nindent 2 }}
  {{- with include "bellwether.preStop" . }}
  lifecycle:
    preStop:
      exec:
        command:
          {{- . | nindent 10 }}
  {{- end }}
  {{- with $settings.resources }}
  resources:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with include "bellwether.securityContext" . }}
  securityContext:
    {{- . | nindent 4 }}
  {{- end }}
  {{- with include "bellwether.volumeMounts" . }}
  volumeMounts:
    {{- . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* The container where it is native, else nothing. */}}
{{- define "bellwether.initContainers" -}}
{{- if eq (include "bellwether.settings" . | fromYaml).sidecar "native" -}}
{{- include "bellwether.container" . -}}
{{- end -}}
{{- end -}}

{{/* The container where it is an ordinary one, else nothing. */}}
{{- define "bellwether.containers" -}}
{{- if eq (include "bellwether.settings" . | fromYaml).sidecar "ordinary" -}}
{{- include "bellwether.container" . -}}
{{- end -}}
{{- end -}}

{{- define "bellwether.image" -}}
{{- $image := .Values.bellwether.image -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- /* This library's version is the sidecar's; the chart that includes it has another one. */ -}}
{{- printf "%s:%s" $image.repository (default "0.1.0" $image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "bellwether.args" -}}
{{- $settings := include "bellwether.settings" . | fromYaml -}}
{{- /* A relative name: the pod's search path completes it, whatever the cluster's DNS domain is. */ -}}
{{- $args := list "run" "--service" (include "bellwether.name" .) -}}
{{- if eq $settings.safety "majority" -}}
{{- /* All of them: the program refuses to run as a process that does not vote. */ -}}
{{- $args = concat $args (list "--safety" "majority" "--voters" (toString $settings.replicas)) -}}
{{- end -}}
{{- if ne $settings.state.type "none" -}}
{{- $args = concat $args (list "--state-dir" "/state") -}}
{{- end -}}
{{- if ne (int $settings.ports.status) 4040 -}}
{{- $args = concat $args (list "--http" (printf "[::]:%v" $settings.ports.status)) -}}
{{- end -}}
{{- if ne (int $settings.ports.peer) 4041 -}}
{{- $port := toString $settings.ports.peer -}}
{{- $args = concat $args (list "--listen" (printf "[::]:%s" $port) "--peer-port" $port) -}}
{{- end -}}
{{- if $settings.peerSecret.enabled -}}
{{- $args = concat $args (list "--peer-secret-file" "/peer-secret/secret") -}}
{{- with $settings.peerSecret.auth -}}
{{- $args = concat $args (list "--peer-auth" .) -}}
{{- end -}}
{{- end -}}
{{- with $settings.peerCertificate -}}
{{- if .enabled -}}
{{- $args = concat $args (list "--peer-cert" (printf "/peer-certificate/%s" .cert) "--peer-key" (printf "/peer-certificate/%s" .key)) -}}
{{- $authorities := ternary "/peer-ca" "/peer-certificate" (not (empty .caVolume)) -}}
{{- $args = concat $args (list "--peer-ca" (printf "%s/%s" $authorities .ca) "--peer-san" .san) -}}
{{- with .auth -}}
{{- $args = concat $args (list "--peer-auth" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $flag, $value := $settings.config -}}
{{- if kindIs "map" $value -}}
{{- range $key, $each := $value -}}
{{- $args = concat $args (list (printf "--%s" $flag) (printf "%s=%v" $key $each)) -}}
{{- end -}}
{{- else if kindIs "bool" $value -}}
{{- $args = append $args (printf "--%s=%v" $flag $value) -}}
{{- else -}}
{{- $args = concat $args (list (printf "--%s" $flag) (toString $value)) -}}
{{- end -}}
{{- end -}}
{{- toYaml $args -}}
{{- end -}}

{{- define "bellwether.env" -}}
{{- $settings := include "bellwether.settings" . | fromYaml -}}
{{- $revision := ternary "controller-revision-hash" "pod-template-hash" (eq $settings.kind "StatefulSet") -}}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: POD_IP
  valueFrom:
    fieldRef:
      fieldPath: status.podIP
- name: BELLWETHER_REVISION
  valueFrom:
    fieldRef:
      fieldPath: metadata.labels['{{ $revision }}']
{{- if include "bellwether.readsFounding" . }}
{{- /* By reference: the pod's template is the same after an upgrade, which changes what is read. */}}
- name: BELLWETHER_FOUND
  valueFrom:
    configMapKeyRef:
      name: {{ include "bellwether.name" . }}-founding
      key: found
      optional: true
{{- end }}
{{- with $settings.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The command that transfers leadership when the pod is to end; nothing where it is not wanted, or not possible. */}}
{{- define "bellwether.preStop" -}}
{{- $settings := include "bellwether.settings" . | fromYaml -}}
{{- $socket := default "" (get (default dict $settings.config) "control-socket") -}}
{{- if and (eq $settings.drain "early") (eq $settings.sidecar "native") (ne $socket "none") -}}
{{- if and (not $socket) (ne (int $settings.ports.status) 4040) -}}
{{- $socket = printf "@bellwether-%v" $settings.ports.status -}}
{{- end -}}
{{- $command := list "/bellwether" "cordon" "--timeout" "5s" -}}
{{- /* The hook reads the variable, too. */ -}}
{{- range $settings.extraEnv }}{{ if eq .name "BELLWETHER_CONTROL_SOCKET" }}{{ $socket = "" }}{{ end }}{{ end -}}
{{- with $socket -}}
{{- $command = concat $command (list "--control-socket" .) -}}
{{- end -}}
{{- toYaml $command -}}
{{- end -}}
{{- end -}}

{{- define "bellwether.ports" -}}
{{- $settings := include "bellwether.settings" . | fromYaml -}}
- name: status
  containerPort: {{ $settings.ports.status }}
- name: peer
  containerPort: {{ $settings.ports.peer }}
{{- end -}}

{{- define "bellwether.probes" -}}
{{- $settings := include "bellwether.settings" . | fromYaml -}}
startupProbe:
  httpGet:
    path: /healthz
    port: status
  periodSeconds: 1
  failureThreshold: 30
livenessProbe:
  httpGet:
    path: /healthz
    port: status
  periodSeconds: 5
  failureThreshold: 3
{{- if has $settings.readiness (list "member" "leader-known") }}
readinessProbe:
  httpGet:
    path: /readyz{{ if eq $settings.readiness "leader-known" }}?leader=known{{ end }}
    port: status
  periodSeconds: 2
  failureThreshold: 2
{{- else if eq $settings.readiness "leader" }}
{{- /* One answer decides: a former leader should not be sent anything for longer than it has to. */}}
readinessProbe:
  httpGet:
    path: /is-leader
    port: status
  periodSeconds: 1
  failureThreshold: 1
{{- end }}
{{- end -}}

{{/*
The container's security context. It repeats what the pod's says of users and seccomp, so that it holds in a pod whose
context is another one.
*/}}
{{- define "bellwether.securityContext" -}}
{{- $own := default dict .Values.bellwether.securityContext -}}
{{- $pod := pick (default dict .Values.bellwether.podSecurityContext) "runAsNonRoot" "runAsUser" "runAsGroup" "seccompProfile" -}}
{{- with mergeOverwrite $pod (deepCopy $own) -}}
{{- toYaml . -}}
{{- end -}}
{{- end -}}

{{- define "bellwether.volumeMounts" -}}
{{- $settings := include "bellwether.settings" . | fromYaml -}}
{{- if ne $settings.state.type "none" -}}
- name: bellwether
  mountPath: /state
{{- end }}
{{- if $settings.peerSecret.enabled }}
- name: bellwether-peer-secret
  mountPath: /peer-secret
  readOnly: true
{{- end }}
{{- if $settings.peerCertificate.enabled }}
- name: bellwether-peer-certificate
  mountPath: /peer-certificate
  readOnly: true
{{- if $settings.peerCertificate.caVolume }}
- name: bellwether-peer-ca
  mountPath: /peer-ca
  readOnly: true
{{- end }}
{{- end -}}
{{- end -}}
