{{/* The settings: one setenv.sh for each container, with the variables that it needs. */}}

{{/* A JSON object of all variables as texts. */}}
{{- define "kcr.settings" -}}
{{- $texts := dict }}
{{- range $name, $value := .Values.settings }}
{{- if kindIs "bool" $value }}
{{- $_ := set $texts $name (ternary "yes" "no" $value) }}
{{- else if and (kindIs "float64" $value) (eq (floor $value) $value) }}
{{- $_ := set $texts $name (int64 $value | toString) }}
{{- else if not (kindIs "invalid" $value) }}
{{- $_ := set $texts $name (toString $value) }}
{{- end }}
{{- end }}
{{- range $name, $text := $texts }}{{ if not $text }}{{ $_ := unset $texts $name }}{{ end }}{{ end }}
{{- $defaults := dict "TUNNEL_PORT" "15060" "TUNNEL_CONNECTIONS_MAX" "4096" "SPARK_DRIVER_MEMORY" "512m" "TASKS" "2" }}
{{- if .Values.executors.enabled }}
{{- $slots := mul .Values.executors.instances .Values.executors.cores }}
{{- if or (hasKey $texts "REPLICA_TRANSFORM_SQL_FILE") (hasKey (default dict .Values.files) "REPLICA_TRANSFORM_SQL_FILE") }}
{{- /* With SQL, a task takes two cores. */}}
{{- $slots = div $slots 2 | max 1 }}
{{- end }}
{{- $_ := set $defaults "TASKS" (toString $slots) }}
{{- end }}
{{- merge $texts $defaults | toJson }}
{{- end }}

{{/* True if the source brokers are dialled without a tunnel. */}}
{{- define "kcr.direct" -}}
{{- $settings := include "kcr.settings" . | fromJson }}
{{- if eq (default (ternary "direct" "tunnel" (hasKey $settings "KAFKA_CLUSTERS_SOURCE_TOPIC")) $settings.SOURCE_ROUTE) "direct" }}true{{ end }}
{{- end }}

{{/* The containers of this side, as a JSON object: each with its key in the Secret. */}}
{{- define "kcr.containers" -}}
{{- if eq .Values.side "source" }}
{{- list "tunnel" "doctor-source" | toJson }}
{{- else if include "kcr.direct" . }}
{{- list "replicator" "control-center" "doctor-destination" | toJson }}
{{- else }}
{{- list "gateway" "replicator" "control-center" "doctor-destination" | toJson }}
{{- end }}
{{- end }}

{{/* The variables of the container `.container`, as a JSON object. */}}
{{- define "kcr.settingsOf" -}}
{{- $settings := include "kcr.settings" .root | fromJson }}
{{- $own := dict }}
{{- range index (.root.Files.Get "files/variables.json" | fromJson) .container }}
{{- if hasKey $settings . }}{{ $_ := set $own . (get $settings .) }}{{ end }}
{{- end }}
{{- toJson $own }}
{{- end }}

{{/* The text of its setenv.sh. */}}
{{- define "kcr.setenv" -}}
# Written by Helm from the values `settings`.
{{ range $name, $text := include "kcr.settingsOf" . | fromJson -}}
export {{ $name }}='{{ replace "'" "'\\''" $text }}'
{{ end }}
{{- end }}

{{/* Its files, as a JSON object: those of `files` whose variables it reads. */}}
{{- define "kcr.filesOf" -}}
{{- $files := default dict .root.Values.files }}
{{- $own := dict }}
{{- range index (.root.Files.Get "files/variables.json" | fromJson) .container }}
{{- if hasKey $files . }}{{ $_ := set $own . (get $files .) }}{{ end }}
{{- end }}
{{- toJson $own }}
{{- end }}

{{- define "kcr.secretName" -}}
{{- default (include "kcr.fullname" .) .Values.existingSecret.name }}
{{- end }}

{{/* The volume of a container's settings and files; they follow later changes, as files that are mounted alone would not. */}}
{{- define "kcr.settingsVolume" -}}
- name: settings-{{ .container }}
  projected:
    # Others may not read it.
    defaultMode: 0440
    sources:
      - secret:
          name: {{ include "kcr.secretName" .root }}
          items:
            - {key: {{ default (printf "%s.sh" .container) (ternary .root.Values.existingSecret.key "" (ne .root.Values.existingSecret.name "")) }}, path: setenv.sh}
      {{- range $name, $file := include "kcr.filesOf" . | fromJson }}
      - {{ ternary "secret" "configMap" (hasKey $file "secret") }}:
          name: {{ default $file.configMap $file.secret }}
          items:
            - {key: {{ $file.key }}, path: files/{{ $name }}}
      {{- end }}
{{- end }}

{{/* A digest of the settings, so that changed ones recreate the pods. The bound is read again while the replicator runs. The digest
     is a slow one, since a pod shows it to those who may not read its Secret. */}}
{{- define "kcr.digest" -}}
{{- $settings := omit (include "kcr.settings" . | fromJson) "MAX_BYTES_PER_SECOND" }}
{{- derivePassword 1 "long" (toJson $settings) "settings" (include "kcr.fullname" .) | sha256sum | trunc 16 }}
{{- end }}
