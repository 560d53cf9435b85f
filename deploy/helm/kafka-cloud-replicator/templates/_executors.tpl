{{/* Spark's executors as pods. */}}

{{- define "kcr.executorConf" -}}
{{- if .Values.executors.enabled }}
{{- $requested := default (.Values.executors.cores | toString) .Values.executors.cpuRequest }}
{{- list
  (printf "spark.kubernetes.container.image=%s" (include "kcr.image" .))
  "spark.kubernetes.namespace=$(NAMESPACE)"
  "spark.kubernetes.driver.pod.name=$(POD_NAME)"
  "spark.kubernetes.executor.podTemplateFile=/etc/executor/pod.yaml"
  "spark.kubernetes.executor.podTemplateContainerName=executor"
  (printf "spark.executor.instances=%v" .Values.executors.instances)
  (printf "spark.executor.cores=%v" .Values.executors.cores)
  (printf "spark.kubernetes.executor.request.cores=%s" $requested)
  (printf "spark.executor.memoryOverhead=%vm" (add 300 (mul 192 .Values.executors.cores)))
  | toJson }}
{{- else }}[]{{ end }}
{{- end }}

{{- define "kcr.executorSettings" -}}
{{- if .Values.executors.enabled }}
{{- dict "SPARK_MASTER" "k8s://https://kubernetes.default.svc:443" "SPARK_DRIVER_PORT" (.Values.executors.driverPort | toString) | toJson }}
{{- else }}{}{{ end }}
{{- end }}

{{/* The login to Kubernetes, where Java looks for it: of the replicator alone, whose Spark asks for executors. */}}
{{- define "kcr.token" -}}
- name: token
  projected:
    defaultMode: 0440
    sources:
      - serviceAccountToken: {path: token, expirationSeconds: 3600}
      - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}
      - downwardAPI: {items: [{path: namespace, fieldRef: {fieldPath: metadata.namespace}}]}
{{- end }}
