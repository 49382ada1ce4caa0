{{/*
`app.exec`: the application's command under `bellwether exec`, which comes out of the sidecar's image. An init container
puts it onto a volume of the pod.
*/}}

{{- define "app.programFolder" -}}
/opt/bellwether
{{- end -}}

{{/* The init container, as a list of one; nothing without `app.exec`. */}}
{{- define "app.installer" -}}
{{- if (default dict .Values.app).exec -}}
- name: bellwether-install
  image: {{ include "app.library" (list . "bellwether.image") }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  args: [install, {{ include "app.programFolder" . }}]
  {{- with .Values.resources }}
  resources:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with include "app.library" (list . "bellwether.securityContext") }}
  securityContext:
    {{- . | nindent 4 }}
  {{- end }}
  volumeMounts:
    - name: bellwether-program
      mountPath: {{ include "app.programFolder" . }}
{{- end -}}
{{- end -}}

{{/* The volume, as a list of one; nothing without `app.exec`. */}}
{{- define "app.programVolume" -}}
{{- if (default dict .Values.app).exec -}}
- name: bellwether-program
  emptyDir:
    sizeLimit: 16Mi
{{- end -}}
{{- end -}}

{{/* The application's container without its name and security context: as it is given, or under `bellwether exec`. */}}
{{- define "app.container" -}}
{{- $container := omit .Values.app "name" "securityContext" "exec" "execArgs" -}}
{{- if .Values.app.exec -}}
{{- $command := list (printf "%s/bellwether" (include "app.programFolder" .)) "exec" -}}
{{- if ne (int .Values.ports.status) 4040 -}}
{{- $command = concat $command (list "--url" (printf "http://127.0.0.1:%v" .Values.ports.status)) -}}
{{- end -}}
{{- $mount := dict "name" "bellwether-program" "mountPath" (include "app.programFolder" .) "readOnly" true -}}
{{- $_ := set $container "command" (concat $command (default list .Values.app.execArgs) (list "--") .Values.app.command) -}}
{{- $_ := set $container "volumeMounts" (concat (default list .Values.app.volumeMounts) (list $mount)) -}}
{{- end -}}
{{- toYaml $container -}}
{{- end -}}
