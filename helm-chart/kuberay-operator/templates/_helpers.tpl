{{- define "kuberay-operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "kuberay-operator.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- $made := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) }}
{{- default $made .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "kuberay-operator.chart" -}}
{{- printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "kuberay-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ include "kuberay-operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "kuberay-operator.labels" -}}
{{ include "kuberay-operator.selectorLabels" . }}
helm.sh/chart: {{ include "kuberay-operator.chart" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "kuberay-operator.component" -}}
{{- default .Chart.Name .Values.componentOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "kuberay-operator.leaderElectionRole.name" -}}
{{ include "kuberay-operator.fullname" . }}-leader-election
{{- end }}

{{- define "kuberay-operator.serviceAccount.name" -}}
{{- $unnamed := ternary (include "kuberay-operator.fullname" .) "default" .Values.serviceAccount.create }}
{{- default $unnamed .Values.serviceAccount.name }}
{{- end }}

{{- define "kuberay-operator.image" -}}
{{- $image := .Values.image }}
{{- if $image.digest }}
{{- printf "%s@%s" $image.repository $image.digest }}
{{- else }}
{{- printf "%s:%s" $image.repository (default .Chart.AppVersion $image.tag | toString) }}
{{- end }}
{{- end }}

{{- /* The namespaces to work in, separated by commas; empty means all. */}}
{{- define "kuberay-operator.watchNamespace" -}}
{{- if .Values.watchNamespace }}
{{- join "," .Values.watchNamespace }}
{{- else if .Values.singleNamespaceInstall }}
{{- .Release.Namespace }}
{{- end }}
{{- end }}

{{- define "kuberay-operator.logFile" -}}
{{- with .Values.logging }}
{{- if and .baseDir .fileName }}
{{- printf "%s/%s" (trimSuffix "/" .baseDir) .fileName }}
{{- end }}
{{- end }}
{{- end }}

{{- define "kuberay.featureGates" -}}
{{- $gates := list }}
{{- range .Values.featureGates }}
{{- $gates = append $gates (printf "%s=%t" .name .enabled) }}
{{- end }}
{{- if $gates }}
{{- printf "--feature-gates=%s" (join "," $gates) }}
{{- end }}
{{- end }}

{{- define "kuberay.kubernetesWASEnabled" -}}
{{- range .Values.featureGates }}
{{- if and (eq .name "KubernetesWAS") .enabled }}true{{ end }}
{{- end }}
{{- end }}

{{- /* Stops on values that contradict each other or that the operator would refuse at its start. */}}
{{- define "kuberay-operator.validateConfig" -}}
{{- if not (regexMatch "^[1-9][0-9]*$" (.Values.reconcileConcurrency | toJson | trimAll "\"")) }}
{{- fail (printf "reconcileConcurrency must be a positive integer, not %v" .Values.reconcileConcurrency) }}
{{- end }}
{{- if not (regexMatch "^[0-9]+(\\.[0-9]+)?$" (.Values.kubeClient.qps | toJson | trimAll "\"")) }}
{{- fail (printf "kubeClient.qps must be a number that is not negative, not %v" .Values.kubeClient.qps) }}
{{- end }}
{{- if not (regexMatch "^[0-9]+$" (.Values.kubeClient.burst | toJson | trimAll "\"")) }}
{{- fail (printf "kubeClient.burst must be an integer that is not negative, not %v" .Values.kubeClient.burst) }}
{{- end }}
{{- $scheduler := default dict .Values.batchScheduler }}
{{- if and (include "kuberay.kubernetesWASEnabled" .) (or $scheduler.enabled $scheduler.name) }}
{{- fail "featureGates: KubernetesWAS is a scheduler too; leave out batchScheduler, or the gate" }}
{{- end }}
{{- with .Values.batchScheduler }}
{{- if and .enabled .name }}
{{- fail (printf "batchScheduler.enabled is a deprecated spelling of name: volcano; leave it out beside name: %s" .name) }}
{{- end }}
{{- end }}
{{- $gates := dict }}
{{- range .Values.featureGates }}
{{- if hasKey $gates .name }}
{{- fail (printf "featureGates names %s twice; leave one of them out" .name) }}
{{- end }}
{{- $_ := set $gates .name .enabled }}
{{- end }}
{{- if and (include "kuberay.kubernetesWASEnabled" .) (or .Values.batchScheduler.enabled .Values.batchScheduler.name) }}
{{- fail "the feature gate KubernetesWAS and batchScheduler exclude each other: both would start the pods of a cluster together" }}
{{- end }}
{{- range .Values.watchNamespace }}
{{- if gt (len (splitList (printf ",%s," .) (printf ",%s," (join ",," $.Values.watchNamespace)))) 2 }}
{{- fail (printf "watchNamespace names %s twice; leave one of them out" .) }}
{{- end }}
{{- end }}
{{- if and (gt (int .Values.replicas) 1) (not .Values.leaderElectionEnabled) }}
{{- fail (printf "replicas: %v needs leaderElectionEnabled: true, else all of them work at once" .Values.replicas) }}
{{- end }}
{{- end }}

{{- define "kuberay-operator.flags" -}}
{{- with .Values.batchScheduler }}
{{- if .enabled }}
- --enable-batch-scheduler
{{- end }}
{{- with .name }}
- --batch-scheduler={{ . }}
{{- end }}
{{- end }}
{{- with include "kuberay-operator.watchNamespace" . }}
- --watch-namespace
- {{ . }}
{{- end }}
{{- with include "kuberay-operator.logFile" . }}
- --log-file-path
- {{ . }}
{{- end }}
{{- with .Values.logging.stdoutEncoder }}
- --log-stdout-encoder
- {{ . }}
{{- end }}
{{- with .Values.logging.fileEncoder }}
- --log-file-encoder
- {{ . }}
{{- end }}
{{- if kindIs "bool" .Values.useKubernetesProxy }}
- --use-kubernetes-proxy={{ .Values.useKubernetesProxy }}
{{- end }}
- --enable-leader-election={{ .Values.leaderElectionEnabled }}
- --enable-metrics={{ .Values.metrics.enabled }}
- --reconcile-concurrency={{ .Values.reconcileConcurrency | toJson | trimAll "\"" }}
- --qps={{ .Values.kubeClient.qps | toJson | trimAll "\"" }}
- --burst={{ .Values.kubeClient.burst | toJson | trimAll "\"" }}
{{- end }}

{{- define "role.consistentRules" -}}
{{- $read := list "get" "list" "watch" }}
{{- $all := list "create" "delete" "get" "list" "patch" "update" "watch" }}
{{- $keep := without $all "patch" }}
{{- $rules := list
  (list "" "persistentvolumeclaims pods/status services" $all)
  (list "" "pods" (append $all "deletecollection"))
  (list "" "pods/proxy services/status" (list "get" "patch" "update"))
  (list "" "pods/resize" (list "patch"))
  (list "" "secrets" $keep)
  (list "" "serviceaccounts" (without $keep "update"))
  (list "" "services/proxy" (list "create" "get" "patch" "update"))
  (list "batch" "jobs" $all)
  (list "cert-manager.io" "certificates" (without $keep "delete"))
  (list "cert-manager.io" "certificates/status" (list "get"))
  (list "cert-manager.io" "issuers" (append $read "create"))
  (list "coordination.k8s.io" "leases" (list "create" "get" "list" "update"))
  (list "discovery.k8s.io" "endpointslices" $read)
  (list "events.k8s.io" "events" (list "create" "patch"))
  (list "extensions networking.k8s.io" "ingresses" $all)
  (list "gateway.networking.k8s.io" "gateways httproutes" $keep)
  (list "networking.k8s.io" "ingressclasses" $read)
  (list "networking.k8s.io" "networkpolicies" $keep)
  (list "ray.io" "rayclusters raycronjobs rayjobs rayservices" $all)
  (list "ray.io" "rayclusters/finalizers raycronjobs/finalizers rayjobs/finalizers rayservices/finalizers" (list "update"))
  (list "ray.io" "rayclusters/status raycronjobs/status rayjobs/status rayservices/status" (list "get" "patch" "update"))
  (list "rbac.authorization.k8s.io" "rolebindings" (without $keep "update"))
  (list "rbac.authorization.k8s.io" "roles" $keep)
  (list "route.openshift.io" "routes" $all)
}}
{{- if include "kuberay.kubernetesWASEnabled" . }}
{{- $rules = append $rules (list "scheduling.k8s.io" "podgroups workloads" $all) }}
{{- end }}
{{- $scheduler := default dict .Values.batchScheduler }}
{{- if or $scheduler.enabled (eq (default "" $scheduler.name) "volcano") }}
{{- $rules = append $rules (list "scheduling.volcano.sh" "podgroups" $keep) }}
{{- end }}
{{- if or $scheduler.enabled (eq (default "" $scheduler.name) "scheduler-plugins") }}
{{- $rules = append $rules (list "scheduling.x-k8s.io" "podgroups" (concat $read (list "create" "update"))) }}
{{- end }}
{{- $written := list }}
{{- range $rules }}
{{- $groups := ternary (list "") (splitList " " (index . 0)) (eq (index . 0) "") }}
{{- $written = append $written (dict "apiGroups" $groups "resources" (splitList " " (index . 1)) "verbs" (sortAlpha (index . 2))) }}
{{- end }}
{{- toYaml $written }}
{{- end }}

{{- /* A ClusterRole for people: call with the context, the kind's plural, its singular, and editor or viewer. */}}
{{- define "kuberay-operator.userRole" -}}
{{- $verbs := list "get" "list" "watch" }}
{{- if eq .access "editor" }}
{{- $verbs = list "create" "delete" "get" "list" "patch" "update" "watch" }}
{{- end }}
{{- if and .context.Values.rbacEnable (not .context.Values.singleNamespaceInstall) }}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ .kind }}-{{ .access }}-role
  labels: {{- include "kuberay-operator.labels" .context | nindent 4 }}
rules:
  - apiGroups: [ray.io]
    resources: [{{ .kind }}s]
    verbs: {{- toYaml $verbs | nindent 6 }}
  - apiGroups: [ray.io]
    resources: [{{ .kind }}s/status]
    verbs: [get]
{{- end }}
{{- end }}
