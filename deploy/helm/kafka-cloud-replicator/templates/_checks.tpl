{{/* Faults of the values that the schema cannot see; all of them at once. */}}
{{- define "kcr.check" -}}
{{- $faults := list }}
{{- $settings := include "kcr.settings" . | fromJson }}
{{- $direct := include "kcr.direct" . }}
{{- $given := merge (dict) $settings (default dict .Values.files) }}
{{- $oneTopic := hasKey $settings "KAFKA_CLUSTERS_SOURCE_TOPIC" }}
{{- if and (eq .Values.side "source") $direct }}
{{- $faults = append $faults "side: expected destination, since SOURCE_ROUTE=direct needs no source side" }}
{{- end }}
{{- range $name := keys (default dict .Values.files) | sortAlpha }}
{{- range list $name (trimSuffix "_FILE" $name) }}
{{- if hasKey $settings . }}
{{- $faults = append $faults (printf "files.%s, settings.%s: expected one of them" $name .) }}
{{- end }}
{{- end }}
{{- end }}
{{- if .Values.existingSecret.name }}
{{- range (.Files.Get "files/variables.json" | fromJson).confidential }}
{{- if hasKey $settings . }}
{{- $faults = append $faults (printf "settings.%s: expected it in the Secret %s, or in files.%s_FILE" . $.Values.existingSecret.name .) }}
{{- end }}
{{- end }}
{{- else }}
{{- $required := list }}
{{- if not $oneTopic }}
{{- $required = list "SOURCE_CLUSTER_ID" "SOURCE_BROKER_SERVERS" "DESTINATION_CLUSTER_ID" }}
{{- end }}
{{- if not $direct }}
{{- $required = concat $required (list "SOURCE_SIDE_TUNNEL_IP" "DESTINATION_SIDE_TUNNEL_IP" "SHARED_SECRET") }}
{{- end }}
{{- if and (eq .Values.side "destination") (not $oneTopic) }}
{{- $required = append $required "DESTINATION_BROKER_SERVERS" }}
{{- end }}
{{- range $required }}
{{- if not (or (hasKey $given .) (hasKey $given (printf "%s_FILE" .))) }}
{{- $faults = append $faults (printf "settings.%s: missing" .) }}
{{- end }}
{{- end }}
{{- end }}
{{- if and (eq .Values.side "source") .Values.networkPolicy.enabled (not .Values.networkPolicy.peers) (not (hasKey $settings "DESTINATION_SIDE_TUNNEL_IP")) }}
{{- $faults = append $faults "networkPolicy.peers: missing: the CIDRs from which the other side dials" }}
{{- end }}
{{- if and .Values.serviceMonitor.enabled (not .Values.serviceMonitor.link) (not (and $settings.SOURCE_CLUSTER_ID $settings.DESTINATION_CLUSTER_ID)) }}
{{- $faults = append $faults "serviceMonitor.link: missing: the link's name in alerts, since the settings do not name both clusters" }}
{{- end }}
{{- if and .Values.executors.enabled $settings.SPARK_MASTER }}
{{- $faults = append $faults "settings.SPARK_MASTER: expected nothing with executors.enabled" }}
{{- end }}
{{- if and (eq .Values.side "destination") (not $direct) (not (include "kcr.upstream" .)) }}
{{- $faults = append $faults "dns.upstream: missing: kubectl -n kube-system get service kube-dns -o jsonpath='{.spec.clusterIP}'" }}
{{- end }}
{{- if $faults }}
{{- fail (printf "\n  %s" (join "\n  " $faults)) }}
{{- end }}
{{- end }}

{{/* The cluster's DNS server. */}}
{{- define "kcr.upstream" -}}
{{- if .Values.dns.upstream }}
{{- .Values.dns.upstream }}
{{- else }}
{{- with coalesce (lookup "v1" "Service" "kube-system" "kube-dns") (lookup "v1" "Service" "openshift-dns" "dns-default") }}{{ .spec.clusterIP }}{{ end }}
{{- end }}
{{- end }}
