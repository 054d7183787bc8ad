{{- /* The operator's configuration file, as the ConfigMap holds it. */}}
{{- define "kuberay-operator.configuration" -}}
apiVersion: config.ray.io/v1alpha1
kind: Configuration
enableLeaderElection: {{ .Values.leaderElectionEnabled }}
enableMetrics: {{ .Values.metrics.enabled }}
reconcileConcurrency: {{ .Values.reconcileConcurrency | toJson | trimAll "\"" }}
{{- if kindIs "bool" .Values.useKubernetesProxy }}
useKubernetesProxy: {{ .Values.useKubernetesProxy }}
{{- end }}
qps: {{ .Values.kubeClient.qps | toJson | trimAll "\"" }}
burst: {{ .Values.kubeClient.burst | toJson | trimAll "\"" }}
{{- with include "kuberay-operator.watchNamespace" . }}
watchNamespace: {{ quote . }}
{{- end }}
{{- with include "kuberay-operator.logFile" . }}
logFile: {{ quote . }}
{{- end }}
{{- with .Values.logging.stdoutEncoder }}
logStdoutEncoder: {{ quote . }}
{{- end }}
{{- with .Values.logging.fileEncoder }}
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
{{ $key }}: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}
