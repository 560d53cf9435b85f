{{/* The pod of the destination side. */}}

{{/* The gateway as a native sidecar: it is ready before the replicator starts, stays until that has ended its transactions, and a
     pod that ends by itself, such as the doctor's, ends with it. */}}
{{- define "kcr.gateway" -}}
{{- $settings := include "kcr.settings" . | fromJson }}
{{- $of := dict "root" . "container" "gateway" }}
{{- $upstream := include "kcr.upstream" . }}
{{- $own := dict "TUNNEL_STATUS_LISTEN" "0.0.0.0:8081" "DNS_LISTEN" "127.0.0.1:53" "DNS_UPSTREAM" (ternary $upstream (printf "%s:53" $upstream) (contains ":" $upstream)) }}
- name: gateway
  restartPolicy: Always
  {{- include "kcr.container" $of | nindent 2 }}
  command: [appliance, destination]
  env:
    {{- include "kcr.environment" (merge (dict "own" $own) $of) | trim | nindent 4 }}
  ports:
    - {name: tunnel-pages, containerPort: 8081}
  {{- include "kcr.probes" (dict "port" 8081) | trim | nindent 2 }}
  resources:
    {{- include "kcr.resources" (dict "given" .Values.gateway.resources "limit" (include "kcr.tunnelMemory" (dict "settings" $settings "ssh" (hasKey $settings "TUNNEL_SSH"))) "request" 128 "cpu" "100m") | trim | nindent 4 }}
  volumeMounts:
    {{- include "kcr.mounts" $of | nindent 4 }}
{{- end }}

{{/* The names of the pod are the shim's: those of source brokers are its endpoints, all others come from the cluster's DNS. */}}
{{- define "kcr.dns" -}}
dnsPolicy: None
dnsConfig:
  nameservers: [127.0.0.1]
  searches: [{{ .Release.Namespace }}.svc.{{ .Values.dns.clusterDomain }}, svc.{{ .Values.dns.clusterDomain }}, {{ .Values.dns.clusterDomain }}]
{{- end }}

{{/* What a pod with a gateway needs; the doctor's has it too. */}}
{{- define "kcr.destinationNetwork" -}}
{{- $direct := include "kcr.direct" . }}
{{- if not $direct }}
{{ include "kcr.dns" . }}
{{- end }}
securityContext:
  {{- include "kcr.podSecurityContext" . | nindent 2 }}
  {{- if not $direct }}
  # The shim's port 53 needs no root.
  sysctls: [{name: net.ipv4.ip_unprivileged_port_start, value: "0"}]
  {{- end }}
{{- if or (include "kcr.anyUser" .) (not $direct) }}
initContainers:
  {{- if include "kcr.anyUser" . }}
  {{- include "kcr.passwdContainer" . | trim | nindent 2 }}
  {{- end }}
  {{- if not $direct }}
  {{- include "kcr.gateway" . | trim | nindent 2 }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "kcr.destinationPod" -}}
{{- $settings := include "kcr.settings" . | fromJson }}
{{- $program := dict "APPLIANCE_PROGRAM" (printf "kubectl -n $(NAMESPACE) exec deploy/%s -c replicator -- appliance" (include "kcr.fullname" .)) }}
{{- $of := dict "root" . "container" "replicator" }}
{{- $page := dict "root" . "container" "control-center" }}
spec:
  {{- include "kcr.pod" . | nindent 2 }}
  automountServiceAccountToken: false
  {{- if not .Values.affinity }}
  affinity:
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 100
          podAffinityTerm:
            topologyKey: kubernetes.io/hostname
            labelSelector:
              matchLabels:
                {{- include "kcr.selector" . | nindent 16 }}
                app.kubernetes.io/component: destination
  {{- end }}
  # The replicator has 30 s to end its open transactions, and Java; then the gateway drains.
  terminationGracePeriodSeconds: 45
  {{- include "kcr.destinationNetwork" . | trim | nindent 2 }}
  containers:
    - name: replicator
      {{- include "kcr.container" $of | nindent 6 }}
      command:
        - appliance
        - replicate
        {{- range concat (include "kcr.executorConf" . | fromJsonArray) (default list .Values.replicator.conf) }}
        - --conf={{ . }}
        {{- end }}
      env:
        - {name: NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
        {{- if .Values.executors.enabled }}
        - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: SPARK_DRIVER_HOST, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
        {{- end }}
        {{- $own := merge (dict "CONSOLE_LISTEN" "0.0.0.0:8080") $program (include "kcr.executorSettings" . | fromJson) }}
        {{- include "kcr.environment" (merge (dict "own" $own) $of) | trim | nindent 8 }}
      ports:
        - {name: pages, containerPort: 8080}
      {{- include "kcr.probes" (dict "port" 8080) | trim | nindent 6 }}
      resources:
        {{- $memory := include "kcr.replicatorMemory" (dict "settings" $settings "executors" .Values.executors.enabled) }}
        {{- include "kcr.resources" (dict "given" .Values.replicator.resources "limit" $memory "request" $memory "cpu" "500m") | trim | nindent 8 }}
      volumeMounts:
        {{- include "kcr.mounts" $of | nindent 8 }}
        {{- if .Values.executors.enabled }}
        - {name: executor, mountPath: /etc/executor, readOnly: true}
        - {name: token, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
        {{- end }}
        {{- with .Values.replicator.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    {{- if .Values.controlCenter.enabled }}
    - name: control-center
      {{- include "kcr.container" $page | nindent 6 }}
      command: [appliance, console]
      env:
        - {name: NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
        {{- $own := merge (dict "CONTROL_CENTER_LISTEN" "0.0.0.0:8082" "CONSOLE_LISTEN" "127.0.0.1:8080") $program }}
        {{- if not (hasKey $settings "CONTROL_CENTER_NAMES") }}
        {{- $_ := set $own "CONTROL_CENTER_NAMES" (printf "%s-pages.$(NAMESPACE).svc" (include "kcr.fullname" .)) }}
        {{- end }}
        {{- include "kcr.environment" (merge (dict "own" $own) $page) | trim | nindent 8 }}
      ports:
        - {name: control-center, containerPort: 8082}
      {{- $tls := or (hasKey $settings "CONSOLE_TLS_CERTIFICATE_FILE") (hasKey (default dict .Values.files) "CONSOLE_TLS_CERTIFICATE_FILE") }}
      {{- include "kcr.probes" (merge (dict "port" 8082) (ternary (dict "tls" true) dict $tls)) | trim | nindent 6 }}
      resources:
        {{- include "kcr.resources" (dict "given" .Values.controlCenter.resources "limit" 384 "request" 128 "cpu" "50m") | trim | nindent 8 }}
      volumeMounts:
        {{- include "kcr.mounts" $page | nindent 8 }}
    {{- end }}
  volumes:
    {{- if not (include "kcr.direct" .) }}
    {{- include "kcr.volumes" (dict "root" . "container" "gateway" "tmp" "16Mi") | trim | nindent 4 }}
    {{- end }}
    {{- include "kcr.volumes" (merge (dict "tmp" "128Mi") $of) | trim | nindent 4 }}
    {{- if .Values.controlCenter.enabled }}
    {{- include "kcr.volumes" (merge (dict "tmp" "16Mi") $page) | trim | nindent 4 }}
    {{- end }}
    {{- if include "kcr.anyUser" . }}
    - {name: passwd, emptyDir: {sizeLimit: 1Mi}}
    {{- end }}
    {{- if .Values.executors.enabled }}
    - {name: executor, configMap: {name: {{ include "kcr.fullname" . }}-executor}}
    {{- include "kcr.token" . | trim | nindent 4 }}
    {{- end }}
    {{- with .Values.replicator.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}
