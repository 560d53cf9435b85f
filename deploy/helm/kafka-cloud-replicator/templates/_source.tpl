{{/* The pod of the source side. */}}

{{- define "kcr.sourcePod" -}}
{{- $settings := include "kcr.settings" . | fromJson }}
{{- $of := dict "root" . "container" "tunnel" }}
spec:
  {{- include "kcr.pod" . | nindent 2 }}
  automountServiceAccountToken: false
  # It drains its connections for five seconds.
  terminationGracePeriodSeconds: 15
  securityContext:
    {{- include "kcr.podSecurityContext" . | nindent 4 }}
    {{- if lt (int $settings.TUNNEL_PORT) 1024 }}
    sysctls: [{name: net.ipv4.ip_unprivileged_port_start, value: "0"}]
    {{- end }}
  {{- if include "kcr.anyUser" . }}
  initContainers:
    {{- include "kcr.passwdContainer" . | trim | nindent 4 }}
  {{- end }}
  containers:
    - name: tunnel
      {{- include "kcr.container" $of | nindent 6 }}
      command: [appliance, source]
      env:
        {{- include "kcr.environment" (merge (dict "own" (dict "TUNNEL_LISTEN" "0.0.0.0" "TUNNEL_STATUS_LISTEN" "0.0.0.0:8081")) $of) | trim | nindent 8 }}
      ports:
        - {name: tunnel, containerPort: {{ $settings.TUNNEL_PORT }}}
        - {name: tunnel-pages, containerPort: 8081}
      {{- include "kcr.probes" (dict "port" 8081 "readiness" true) | trim | nindent 6 }}
      resources:
        {{- include "kcr.resources" (dict "given" .Values.tunnel.resources "limit" (include "kcr.tunnelMemory" (dict "settings" $settings "ssh" false)) "request" 128 "cpu" "100m") | trim | nindent 8 }}
      volumeMounts:
        {{- include "kcr.mounts" $of | nindent 8 }}
  volumes:
    {{- include "kcr.volumes" (merge (dict "tmp" "16Mi") $of) | trim | nindent 4 }}
    {{- if include "kcr.anyUser" . }}
    - {name: passwd, emptyDir: {sizeLimit: 1Mi}}
    {{- end }}
{{- end }}

{{/* The fields that the pods of both sides begin with. */}}
{{- define "kcr.pod" -}}
serviceAccountName: {{ include "kcr.serviceAccount" . }}
# Kubernetes' own variables of Services could have the names of settings.
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- range $field := list "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" "priorityClassName" }}
{{- with get $.Values $field }}
{{ $field }}: {{ toJson . }}
{{- end }}
{{- end }}
{{- end }}
