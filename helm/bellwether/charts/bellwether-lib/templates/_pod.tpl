{{/* What the pod and the workload have besides the container, the headless Service, and the ConfigMap. */}}

{{/* The pod's security context. */}}
{{- define "bellwether.podSecurityContext" -}}
{{- with .Values.bellwether.podSecurityContext -}}
{{- toYaml . -}}
{{- end -}}
{{- end -}}

{{/* Annotations for the pod: those that keep the peer port out of a mesh. */}}
{{- define "bellwether.podAnnotations" -}}
{{- $settings := include "bellwether.settings" . | fromYaml -}}
{{- if eq $settings.mesh "istio" -}}
traffic.sidecar.istio.io/excludeInboundPorts: {{ $settings.ports.peer | quote }}
traffic.sidecar.istio.io/excludeOutboundPorts: {{ $settings.ports.peer | quote }}
{{- else if eq $settings.mesh "linkerd" -}}
config.linkerd.io/skip-inbound-ports: {{ $settings.ports.peer | quote }}
config.linkerd.io/skip-outbound-ports: {{ $settings.ports.peer | quote }}
{{- end -}}
{{- end -}}

{{/* Volumes for the pod: the emptyDir, where the record is in one, and that of the secret or the
certificate. */}}
{{- define "bellwether.volumes" -}}
{{- $settings := include "bellwether.settings" . | fromYaml -}}
{{- if eq $settings.state.type "emptyDir" -}}
- name: bellwether
  emptyDir:
    sizeLimit: {{ $settings.state.size }}
{{- end }}
{{- if $settings.peerSecret.enabled }}
- name: bellwether-peer-secret
  secret:
    secretName: {{ include "bellwether.peerSecretName" . }}
    items:
      - key: {{ $settings.peerSecret.key }}
        path: secret
{{- end }}
{{- if $settings.peerCertificate.enabled }}
- name: bellwether-peer-certificate
  {{- toYaml $settings.peerCertificate.volume | nindent 2 }}
{{- with $settings.peerCertificate.caVolume }}
- name: bellwether-peer-ca
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
{{- end -}}

{{/* The Secret that members share: the one that is given, or the one that the chart makes. */}}
{{- define "bellwether.peerSecretName" -}}
{{- default (include "bellwether.ownPeerSecretName" .) (include "bellwether.settings" . | fromYaml).peerSecret.existingSecret -}}
{{- end -}}

{{/* The Secret that the chart makes. */}}
{{- define "bellwether.ownPeerSecretName" -}}
{{- printf "%s-peer-secret" (include "bellwether.name" .) -}}
{{- end -}}

{{/*
The Secret that members share, as a whole document. What is in the cluster is kept, so that an upgrade changes nothing,
and a changed secret stays. Where another one is given, only what this release has in the cluster is there: the way back
from a wrong one.
*/}}
{{- define "bellwether.peerSecret" -}}
{{- $settings := include "bellwether.settings" . | fromYaml -}}
{{- $name := include "bellwether.ownPeerSecretName" . -}}
{{- $found := default dict (lookup "v1" "Secret" .Release.Namespace $name) -}}
{{- $data := default dict $found.data -}}
{{- $given := $settings.peerSecret.existingSecret -}}
{{- if and (not $given) (not (get $data $settings.peerSecret.key)) -}}
{{- $data = merge (dict $settings.peerSecret.key (randAlphaNum 43 | b64enc)) $data -}}
{{- end -}}
{{- $ours := eq .Release.Name (dig "metadata" "annotations" "meta.helm.sh/release-name" "" $found) -}}
{{- if and $settings.peerSecret.enabled (or (not $given) $ours) -}}
apiVersion: v1
kind: Secret
metadata:
  name: {{ $name }}
  labels:
    {{- include "bellwether.selectorLabels" . | nindent 4 }}
    {{- with $settings.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
type: Opaque
data:
  {{- range $key, $value := $data }}
  {{ $key }}: {{ $value | quote }}
  {{- end }}
{{- end -}}
{{- end -}}

{{/* Volume claims for a StatefulSet: one, where the record is in a persistent volume. */}}
{{- define "bellwether.volumeClaimTemplates" -}}
{{- $settings := include "bellwether.settings" . | fromYaml -}}
{{- if eq $settings.state.type "persistentVolumeClaim" -}}
- apiVersion: v1
  kind: PersistentVolumeClaim
  metadata:
    name: bellwether
  spec:
    accessModes: [{{ $settings.state.accessMode }}]
    {{- with $settings.state.storageClassName }}
    storageClassName: {{ . }}
    {{- end }}
    resources:
      requests:
        storage: {{ $settings.state.size }}
{{- end -}}
{{- end -}}

{{/*
The headless Service by which the pods find each other, as a whole document. A StatefulSet names it as its
`serviceName`.
*/}}
{{- define "bellwether.headlessService" -}}
{{- $settings := include "bellwether.settings" . | fromYaml -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ include "bellwether.name" . }}
  labels:
    {{- include "bellwether.selectorLabels" . | nindent 4 }}
    {{- with $settings.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  clusterIP: None
  # Peers must find each other before they are ready.
  publishNotReadyAddresses: true
  selector:
    {{- include "bellwether.selectorLabels" . | nindent 4 }}
  ports:
    - name: peer
      port: {{ $settings.ports.peer }}
{{- end -}}

{{/*
The ConfigMap that says whether a voter without a record may found the cluster, as a whole document; nothing where no
voter reads one. A pod reads it when its container starts.
*/}}
{{- define "bellwether.founding" -}}
{{- if include "bellwether.readsFounding" . -}}
{{- $settings := include "bellwether.settings" . | fromYaml -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "bellwether.name" . }}-founding
  labels:
    {{- include "bellwether.selectorLabels" . | nindent 4 }}
    {{- with $settings.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
data:
  found: {{ $settings.founding | quote }}
{{- end -}}
{{- end -}}
