{{- /* The operator's configuration file, as the ConfigMap holds it. */}}
{{- define "kuberay-operator.configuration" -}}
apiVersion: config.ray.io/v1alpha1
kind: Configuration
enableLeaderElection: {{ include "kuberay-operator.leaderElection" . }}
enableMetrics: {{ include "kuberay-operator.metrics" . }}
reconcileConcurrency: {{ include "kuberay-operator.concurrency" . }}
{{- if kindIs "bool" .Values.useKubernetesProxy }}
useKubernetesProxy: {{ .Values.useKubernetesProxy }}
{{- end }}
qps: {{ include "kuberay-operator.qps" . }}
burst: {{ include "kuberay-operator.burst" . }}
{{- with include "kuberay-operator.watchNamespace" . }}
watchNamespace: {{ quote . }}
{{- end }}
{{- with include "kuberay-operator.logFile" . }}
logFile: {{ quote . }}
{{- end }}
{{- with (.Values.logging).stdoutEncoder }}
logStdoutEncoder: {{ quote . }}
{{- end }}
{{- with (.Values.logging).fileEncoder }}
logFileEncoder: {{ quote . }}
{{- end }}
{{- with .Values.batchScheduler }}
{{- if .enabled }}
enableBatchScheduler: true
{{- end }}
{{- with .name }}
batchScheduler: {{ quote . }}
{{- end }}
{{- end }}
{{- range $key := list "headSidecarContainers" "workerSidecarContainers" "defaultContainerEnvs" "defaultPodAnnotations" "defaultPodLabels" }}
{{- with get $.Values.configuration $key }}
{{ $key }}: {{- if kindIs "map" . }}{{ include "raykeeper.texts" . | nindent 2 }}{{ else }}{{ toYaml . | nindent 2 }}{{ end }}
{{- end }}
{{- end }}
{{- with include "kuberay-operator.history" . | fromYaml }}
history: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* The settings of history by annotation, as the operator's configuration has them; empty where nothing is set. */}}
{{- define "kuberay-operator.history" -}}
{{- $history := default dict .Values.history }}
{{- $store := default dict $history.store }}
{{- $collector := default dict $history.collector }}
{{- $env := list }}
{{- range $name, $value := merge dict (default dict $store.env) (dict "STORAGE_BACKEND" $store.backend "STORAGE_ROOT_DIR" $store.rootDir) }}
{{- if or $value (kindIs "bool" $value) }}
{{- $env = append $env (dict "name" $name "value" (include "raykeeper.text" $value)) }}
{{- end }}
{{- end }}
{{- $given := dict
  "collectorImage" $collector.image
  "collectorImagePullPolicy" $collector.imagePullPolicy
  "collectorResources" $collector.resources
  "storeUrl" $store.url
  "storeVolume" $store.volume
  "env" $env
  "secretName" $store.secretName
  "serviceAccountPrefix" $history.ServiceAccountPrefix
  "serviceAccountAnnotations" (include "raykeeper.texts" (default dict $history.serviceAccountAnnotations) | fromYaml)
  "callbackServiceName" $history.CallbackServiceName
  "cloudRoleName" $history.CloudRoleName
  "oidcProviderArn" $history.OIDCProviderARN
  "ossBucket" $history.OSSBucket
  "ossEndPoint" $history.OSSEndPoint
  "ossRegion" $history.OSSRegion
  "ossHistoryServerRootDir" $history.OSSHistoryServerRootDir
}}
{{- $said := dict }}
{{- range $field, $value := $given }}
{{- if $value }}{{ $_ := set $said $field $value }}{{ end }}
{{- end }}
{{- if $said }}
{{- toYaml (merge $said (dict "collectorImage" (include "kuberay-operator.image" .))) }}
{{- end }}
{{- end }}

{{- /* The same as flags. */}}
{{- define "kuberay-operator.historyFlags" -}}
{{- $flags := dict
  "collectorImage" "history-collector-image"
  "collectorImagePullPolicy" "history-collector-image-pull-policy"
  "collectorResources" "history-collector-resources"
  "storeUrl" "history-store-url"
  "storeVolume" "history-store-volume"
  "env" "history-env"
  "secretName" "history-secret-name"
  "serviceAccountPrefix" "service-account-prefix"
  "serviceAccountAnnotations" "service-account-annotations"
  "callbackServiceName" "callback-service-name"
  "cloudRoleName" "cloud-role-name"
  "oidcProviderArn" "oidc-provider-arn"
  "ossBucket" "oss-bucket"
  "ossEndPoint" "oss-endpoint"
  "ossRegion" "oss-region"
  "ossHistoryServerRootDir" "oss-history-server-root-dir"
}}
{{- range $field, $value := include "kuberay-operator.history" . | fromYaml }}
- {{ printf "--%s=%s" (get $flags $field) (ternary $value (toJson $value) (kindIs "string" $value)) | quote }}
{{- end }}
{{- end }}
