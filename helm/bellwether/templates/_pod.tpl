{{/* The pod's template, the same for StatefulSet and Deployment. */}}
{{- define "app.podTemplate" -}}
{{- $settings := include "app.settings" . | fromYaml -}}
{{- $annotations := mergeOverwrite (include "app.library" (list . "bellwether.podAnnotations") | fromYaml) (default dict .Values.podAnnotations) -}}
metadata:
  labels:
    {{- /* Without the chart's version, or each new one would restart the pods. */}}
    {{- mergeOverwrite (deepCopy (default dict .Values.podLabels)) (include "app.selectorLabels" . | fromYaml) | toYaml | nindent 4 }}
  {{- with $annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.serviceAccountName }}
  serviceAccountName: {{ . }}
  {{- end }}
  automountServiceAccountToken: {{ .Values.automountServiceAccountToken }}
  {{- with include "app.library" (list . "bellwether.podSecurityContext") }}
  securityContext:
    {{- . | nindent 4 }}
  {{- end }}
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  {{- $native := eq $settings.sidecar "native" }}
  {{- $installer := include "app.installer" . }}
  {{- if or $native $installer .Values.extraInitContainers }}
  initContainers:
    {{- with include "app.library" (list . "bellwether.initContainers") }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with $installer }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with .Values.extraInitContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
  containers:
    {{- with .Values.app }}
    - name: {{ include "app.containerName" $ }}
      {{- /* Not `merge`, which takes a false for nothing. */}}
      {{- $context := mergeOverwrite (deepCopy (default dict $.Values.securityContext)) (default dict .securityContext) }}
      {{- mergeOverwrite (dict "securityContext" $context) (include "app.container" $ | fromYaml) | toYaml | nindent 6 }}
    {{- end }}
    {{- with include "app.library" (list . "bellwether.containers") }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with .Values.extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- $volumes := include "app.library" (list . "bellwether.volumes") }}
  {{- $program := include "app.programVolume" . }}
  {{- if or $volumes $program .Values.extraVolumes }}
  volumes:
    {{- range compact (list $volumes $program) }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
  {{- with .Values.topologySpread.keys }}
  topologySpreadConstraints:
    {{- range . }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: {{ ternary "DoNotSchedule" "ScheduleAnyway" $.Values.topologySpread.required }}
      labelSelector:
        matchLabels:
          {{- include "app.selectorLabels" $ | nindent 10 }}
    {{- end }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
{{- end -}}
