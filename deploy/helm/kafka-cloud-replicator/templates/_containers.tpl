{{/* Pieces of all containers. */}}

{{- define "kcr.podSecurityContext" -}}
{{- with .Values.podSecurityContext }}{{ toYaml . }}
{{ end -}}
runAsNonRoot: true
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "kcr.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* True if the pod's user may be one that the image does not know. */}}
{{- define "kcr.anyUser" -}}
{{- if ne (int (default 0 (default dict .Values.podSecurityContext).runAsUser)) 10001 }}true{{ end }}
{{- end }}

{{/* The fields that every container begins with; setenv.sh is read in its working directory. */}}
{{- define "kcr.container" -}}
image: {{ include "kcr.image" .root }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
workingDir: /etc/appliance
securityContext:
  {{- include "kcr.securityContext" . | nindent 2 }}
{{- end }}

{{- define "kcr.mounts" -}}
- {name: settings-{{ .container }}, mountPath: /etc/appliance, readOnly: true}
- {name: tmp-{{ .container }}, mountPath: /tmp}
{{- if include "kcr.anyUser" .root }}
- {name: passwd, mountPath: /etc/passwd, subPath: passwd, readOnly: true}
{{- end }}
{{- end }}

{{/* The volumes of a container, whose /tmp has the size `.tmp`. */}}
{{- define "kcr.volumes" -}}
{{ include "kcr.settingsVolume" . }}
- name: tmp-{{ .container }}
  emptyDir: {medium: Memory, sizeLimit: {{ .tmp }}}
{{- end }}

{{/* A passwd file with the pod's user: Spark's Java refuses to run as a user without a name. */}}
{{- define "kcr.passwdContainer" -}}
- name: passwd
  image: {{ include "kcr.image" . }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  securityContext:
    {{- include "kcr.securityContext" . | nindent 4 }}
  command:
    - sh
    - -c
    - cp /etc/passwd /made/passwd && echo "pod:x:$(id -u):$(id -g)::/tmp:/usr/sbin/nologin" >>/made/passwd
  resources: {limits: {memory: 64Mi}, requests: {cpu: 10m, memory: 16Mi}}
  volumeMounts:
    - {name: passwd, mountPath: /made}
{{- end }}

{{/* The environment of the container `.container`; `.own` are variables of the chart's, by name. */}}
{{- define "kcr.environment" -}}
- {name: HOME, value: /tmp}
{{- range $name, $value := .own }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- range $name, $file := include "kcr.filesOf" . | fromJson }}
- {name: {{ $name }}, value: /etc/appliance/files/{{ $name }}}
{{- end }}
{{- if .root.Values.existingSecret.name }}
{{- /* Kubernetes would expand $(NAME), and take $$ for $. */}}
{{- range $name, $text := include "kcr.settingsOf" . | fromJson }}
- {name: {{ $name }}, value: {{ $text | replace "$" "$$" | quote }}}
{{- end }}
{{- end }}
{{- with .root.Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Healthy: the process answers /health, with any content, which is for monitoring: another cluster or network that is down is
     no reason to restart it, and a probe by httpGet would take the answer 503 for one. */}}
{{- define "kcr.probes" -}}
{{- $page := printf "HTTP%sConnection('127.0.0.1', %v, timeout=5%s)" (ternary "S" "" (hasKey . "tls")) .port (ternary ", context=__import__('ssl')._create_unverified_context()" "" (hasKey . "tls")) }}
{{- $probe := dict "exec" (dict "command" (list "python" "-c" (printf "import http.client; page = http.client.%s; page.request('GET', '/health'); page.getresponse()" $page))) "timeoutSeconds" 10 }}
startupProbe:
  {{- merge (dict "periodSeconds" 2 "failureThreshold" 90) $probe | toYaml | nindent 2 }}
livenessProbe:
  {{- merge (dict "periodSeconds" 30 "failureThreshold" 3) $probe | toYaml | nindent 2 }}
{{- if hasKey . "readiness" }}
readinessProbe:
  {{- merge (dict "periodSeconds" 15 "failureThreshold" 1) $probe | toYaml | nindent 2 }}
{{- end }}
{{- end }}

{{/* Memory of an end of the tunnel in MiB: deploy/render/limits.py has the reasons. */}}
{{- define "kcr.tunnelMemory" -}}
{{- $connections := int .settings.TUNNEL_CONNECTIONS_MAX }}
{{- $memory := max 512 (add 348 (ceil (divf $connections 25))) }}
{{- if .ssh }}
{{- $vms := max (len (splitList "," .settings.TUNNEL_SSH)) (len (splitList "," .settings.SOURCE_SIDE_TUNNEL_IP)) }}
{{- $memory = add $memory (mul 128 $vms) (ceil (divf $connections 16)) }}
{{- end }}
{{- $memory }}
{{- end }}

{{/* Memory of the replicator in MiB: Java's heap and its other memory, the driver's Python, and each task's. */}}
{{- define "kcr.replicatorMemory" -}}
{{- $heap := .settings.SPARK_DRIVER_MEMORY }}
{{- $megabytes := int (regexFind "[0-9]+" $heap) }}
{{- if regexMatch "[gG]$" $heap }}{{ $megabytes = mul $megabytes 1024 }}{{ end }}
{{- $tasks := ternary 0 (int .settings.TASKS) .executors }}
{{- add $megabytes 640 (mul 192 $tasks) (ternary 128 0 (hasKey .settings "AUDIT_PATH")) }}
{{- end }}

{{/* `resources`: the documented sizes, with what `.given` sets. */}}
{{- define "kcr.resources" -}}
{{- $sizes := dict "limits" (dict "memory" (printf "%vMi" .limit)) "requests" (dict "memory" (printf "%vMi" .request) "cpu" .cpu) }}
{{- mergeOverwrite $sizes (deepCopy (default dict .given)) | toYaml }}
{{- end }}
