{{/* Names and labels. */}}

{{- define "kcr.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Room for the longest suffix, -executors. */}}
{{- define "kcr.fullname" -}}
{{- $name := include "kcr.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "kcr.selector" -}}
app.kubernetes.io/name: {{ include "kcr.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* The labels of everything; a pod's component is `source`, `destination`, `doctor` or `executor`. */}}
{{- define "kcr.labels" -}}
{{ include "kcr.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: kafka-cloud-replicator
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "kcr.metadata" -}}
name: {{ include "kcr.fullname" . }}
labels:
  {{- include "kcr.labels" . | nindent 2 }}
{{- end }}

{{- define "kcr.serviceAccount" -}}
{{- default (include "kcr.fullname" .) .Values.serviceAccount.name }}
{{- end }}

{{- define "kcr.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ default $.Chart.AppVersion .tag }}{{ end }}
{{- end }}
{{- end }}
