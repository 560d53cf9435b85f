{{/* The peers of the pods. */}}

{{/* The CIDRs from which the other side dials the tunnel, as JSON. */}}
{{- define "kcr.peers" -}}
{{- $settings := include "kcr.settings" . | fromJson }}
{{- $peers := .Values.networkPolicy.peers | default list }}
{{- if not $peers }}
{{- with $settings.DESTINATION_SIDE_TUNNEL_IP }}
{{- range splitList "," . }}
{{- $peers = append $peers (ternary (printf "%s/128" (trim .)) (printf "%s/32" (trim .)) (contains ":" .)) }}
{{- end }}
{{- end }}
{{- end }}
{{- $peers | toJson }}
{{- end }}

{{/* The ports, as JSON, in a list of brokers `host:port` or of patterns `*.domain:first-last`. */}}
{{- define "kcr.ports" -}}
{{- $ports := list }}
{{- range splitList "," . }}
{{- $port := regexFind "[0-9]+(-[0-9]+)?$" (trim .) }}
{{- if $port }}
{{- $ends := splitList "-" $port }}
{{- $rule := dict "protocol" "TCP" "port" (int (first $ends)) }}
{{- if gt (len $ends) 1 }}{{ $_ := set $rule "endPort" (int (last $ends)) }}{{ end }}
{{- $ports = append $ports $rule }}
{{- end }}
{{- end }}
{{- uniq $ports | toJson }}
{{- end }}

{{/* Connections to the brokers beside this end, and from the destination side to the other end. */}}
{{- define "kcr.egress" -}}
{{- $settings := include "kcr.settings" . | fromJson }}
{{- $direct := include "kcr.direct" . }}
{{- $brokers := list }}
{{- if or (eq .Values.side "source") $direct }}
{{- $brokers = append $brokers (coalesce $settings.SOURCE_BROKER_SERVERS $settings.KAFKA_CLUSTERS_SOURCE_BOOTSTRAP_SERVERS) }}
{{- $brokers = append $brokers $settings.SOURCE_BROKER_PATTERN }}
{{- end }}
{{- if eq .Values.side "destination" }}
{{- $brokers = append $brokers (coalesce $settings.DESTINATION_BROKER_SERVERS $settings.KAFKA_CLUSTERS_DESTINATION_BOOTSTRAP_SERVERS) }}
{{- end }}
{{- $ports := include "kcr.ports" (compact $brokers | join ",") | fromJsonArray }}
- ports: {{ default (list (dict "protocol" "TCP")) $ports | toJson }}
  {{- with .Values.networkPolicy.brokers }}
  to:
    {{- range . }}
    - ipBlock: {cidr: {{ . }}}
    {{- end }}
  {{- end }}
{{- if eq .Values.side "source" }}
# The doctor dials the tunnel's port.
- to: [{podSelector: {matchLabels: {{ include "kcr.selector" . | fromYaml | toJson }}}}]
  ports: [{protocol: TCP, port: {{ $settings.TUNNEL_PORT }}}]
{{- with $settings.TUNNEL_RESOLVER }}
{{- $port := regexFind "[0-9]+$" . }}
- ports: [{protocol: UDP, port: {{ $port }}}, {protocol: TCP, port: {{ $port }}}]
{{- end }}
{{- end }}
{{- if eq .Values.side "destination" }}
{{- if not $direct }}
- ports: {{ include "kcr.ports" (default (printf "server:%s" $settings.TUNNEL_PORT) $settings.TUNNEL_SSH) }}
{{- end }}
{{- $urls := list }}
{{- range tuple "SOURCE_OAUTH_TOKEN_URL" "DESTINATION_OAUTH_TOKEN_URL" "CONSOLE_OIDC_ISSUER" }}
{{- with get $settings . }}{{ $urls = append $urls (regexReplaceAll "^https?://([^/:]+)(:[0-9]+)?.*$" . "${1}${2}") }}{{ end }}
{{- end }}
{{- with $urls }}
# The providers of tokens.
- ports:
    {{- range . }}
    - {protocol: TCP, port: {{ default "443" (regexFind "[0-9]+$" (regexFind ":[0-9]+$" .)) }}}
    {{- end }}
{{- end }}
{{- if or (has "AWS_MSK_IAM" (list $settings.SOURCE_SASL_MECHANISM $settings.DESTINATION_SASL_MECHANISM)) (contains "://" (default "" $settings.AUDIT_PATH)) }}
# AWS's logins for the role of a pod or of a node, and object stores.
- ports: [{protocol: TCP, port: 443}]
- to: [{ipBlock: {cidr: 169.254.169.254/32}}, {ipBlock: {cidr: 169.254.170.23/32}}]
  ports: [{protocol: TCP, port: 80}]
{{- end }}
{{- if .Values.executors.enabled }}
# Kubernetes' API, and between the replicator and its executors.
- ports: [{protocol: TCP, port: 443}, {protocol: TCP, port: 6443}]
- to: [{podSelector: {matchLabels: {{ include "kcr.selector" . | fromYaml | toJson }}}}]
{{- end }}
{{- end }}
{{- end }}
