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

{{- /* Metadata of an object of the release: (dict root suffix labels annotations); labels and annotations are further ones. */}}
{{- define "kuberay-operator.metadata" -}}
{{- include "raykeeper.metadata" (dict "root" .root "name" (printf "%s%s" (include "kuberay-operator.fullname" .root) (default "" .suffix))
  "labels" (merge dict (default dict .labels) (include "kuberay-operator.labels" .root | fromYaml)) "annotations" .annotations) }}
{{- end }}

{{- define "kuberay-operator.serviceAccount.name" -}}
{{- $account := default dict .Values.serviceAccount }}
{{- default (ternary (include "kuberay-operator.fullname" .) "default" (not (not $account.create))) $account.name }}
{{- end }}

{{- define "kuberay-operator.subjects" -}}
- kind: ServiceAccount
  name: {{ include "kuberay-operator.serviceAccount.name" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}

{{- define "kuberay-operator.image" -}}
{{- $image := default dict .Values.image }}
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

{{- /* Values that may be missing, after `helm upgrade --reuse-values` from another version; then as the chart's own. */}}
{{- define "kuberay-operator.leaderElection" -}}
{{- ternary true .Values.leaderElectionEnabled (kindIs "invalid" .Values.leaderElectionEnabled) }}
{{- end }}

{{- define "kuberay-operator.metrics" -}}
{{- $enabled := (.Values.metrics).enabled }}
{{- ternary true $enabled (kindIs "invalid" $enabled) }}
{{- end }}

{{- define "kuberay-operator.concurrency" -}}
{{- $number := .Values.reconcileConcurrency }}
{{- ternary 1 $number (kindIs "invalid" $number) | toJson | trimAll "\"" }}
{{- end }}

{{- define "kuberay-operator.qps" -}}
{{- $number := (.Values.kubeClient).qps }}
{{- ternary 100 $number (kindIs "invalid" $number) | toJson | trimAll "\"" }}
{{- end }}

{{- define "kuberay-operator.burst" -}}
{{- $number := (.Values.kubeClient).burst }}
{{- ternary 200 $number (kindIs "invalid" $number) | toJson | trimAll "\"" }}
{{- end }}

{{- /* Stops on values that contradict each other or that the operator would refuse at its start. */}}
{{- define "kuberay-operator.validateConfig" -}}
{{- if not (regexMatch "^[1-9][0-9]*$" (include "kuberay-operator.concurrency" .)) }}
{{- fail (printf "reconcileConcurrency must be a positive integer, not %v" .Values.reconcileConcurrency) }}
{{- end }}
{{- if not (regexMatch "^[0-9]+(\\.[0-9]+)?$" (include "kuberay-operator.qps" .)) }}
{{- fail (printf "kubeClient.qps must be a number that is not negative, not %v" .Values.kubeClient.qps) }}
{{- end }}
{{- if not (regexMatch "^[0-9]+$" (include "kuberay-operator.burst" .)) }}
{{- fail (printf "kubeClient.burst must be an integer that is not negative, not %v" .Values.kubeClient.burst) }}
{{- end }}
{{- $repository := toString (.Values.image).repository }}
{{- if has $repository (list "quay.io/kuberay/operator" "kuberay/operator" "docker.io/kuberay/operator") }}
{{- fail (printf "image.repository: %s is KubeRay's own operator, and this chart gives it too few rights. Leave image out of your values; after --reuse-values use --reset-then-reuse-values instead" $repository) }}
{{- end }}
{{- $scheduler := default dict .Values.batchScheduler }}
{{- if and (include "kuberay.kubernetesWASEnabled" .) (or $scheduler.enabled $scheduler.name) }}
{{- fail "featureGates: KubernetesWAS is a scheduler too; leave out batchScheduler, or the gate" }}
{{- end }}
{{- with $scheduler }}
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
{{- range .Values.watchNamespace }}
{{- if gt (len (splitList (printf ",%s," .) (printf ",%s," (join ",," $.Values.watchNamespace)))) 2 }}
{{- fail (printf "watchNamespace names %s twice; leave one of them out" .) }}
{{- end }}
{{- end }}
{{- if and (gt (int .Values.replicas) 1) (ne (include "kuberay-operator.leaderElection" .) "true") }}
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
{{- with (.Values.logging).stdoutEncoder }}
- --log-stdout-encoder
- {{ . }}
{{- end }}
{{- with (.Values.logging).fileEncoder }}
- --log-file-encoder
- {{ . }}
{{- end }}
{{- if kindIs "bool" .Values.useKubernetesProxy }}
- --use-kubernetes-proxy={{ .Values.useKubernetesProxy }}
{{- end }}
- --enable-leader-election={{ include "kuberay-operator.leaderElection" . }}
- --enable-metrics={{ include "kuberay-operator.metrics" . }}
- --reconcile-concurrency={{ include "kuberay-operator.concurrency" . }}
- --qps={{ include "kuberay-operator.qps" . }}
- --burst={{ include "kuberay-operator.burst" . }}
{{- include "kuberay-operator.historyFlags" . }}
{{- end }}

{{- /*
What the operator may do: rules of (groups resources verbs). These are what it does, and nothing else; the tests compare them with
the audit log of an API server. Where it works in single namespaces it may read the Leases of others there, else it lists all.
*/}}
{{- define "role.consistentRules" -}}
{{- $follow := list "list" "watch" }}
{{- $make := concat $follow (list "get" "create") }}
{{- $keep := append $make "delete" }}
{{- $rules := list
  (list "" "persistentvolumeclaims" (append $make "patch"))
  (list "" "pods" (concat $keep (list "patch" "deletecollection")))
  (list "" "pods/resize" (list "patch"))
  (list "" "secrets" (append $make "update"))
  (list "" "serviceaccounts" (append $keep "patch"))
  (list "" "services" (append $keep "patch"))
  (list "batch" "jobs" $keep)
  (list "coordination.k8s.io" "leases" (list (ternary "get" "list" (not (not .Values.singleNamespaceInstall)))))
  (list "discovery.k8s.io" "endpointslices" $follow)
  (list "events.k8s.io" "events" (list "create" "patch"))
  (list "gateway.networking.k8s.io" "gateways httproutes" (append $keep "update"))
  (list "networking.k8s.io" "ingresses" (append $keep "patch"))
  (list "ray.io" "rayclusters rayjobs" (append $keep "patch"))
  (list "ray.io" "raycronjobs" $follow)
  (list "ray.io" "rayservices" (append $follow "patch"))
  (list "ray.io" "rayclusters/finalizers raycronjobs/finalizers rayjobs/finalizers rayservices/finalizers" (list "update"))
  (list "ray.io" "rayclusters/status raycronjobs/status rayjobs/status rayservices/status" (list "patch"))
  (list "rbac.authorization.k8s.io" "rolebindings" $keep)
  (list "rbac.authorization.k8s.io" "roles" (append $keep "update"))
  (list "route.openshift.io" "routes" (append $keep "patch"))
}}
{{- if .Values.useKubernetesProxy }}
{{- $rules = concat $rules (list
  (list "" "pods/proxy" (list "get"))
  (list "" "services/proxy" (list "create" "get" "update"))) }}
{{- end }}
{{- $scheduler := default dict .Values.batchScheduler }}
{{- $name := ternary "volcano" (default "" $scheduler.name) (not (not $scheduler.enabled)) }}
{{- if include "kuberay.kubernetesWASEnabled" . }}
{{- $rules = append $rules (list "scheduling.k8s.io" "podgroups workloads" (concat $keep (list "patch" "update"))) }}
{{- else if eq $name "volcano" }}
{{- $rules = append $rules (list "scheduling.volcano.sh" "podgroups" (append $make "update")) }}
{{- else if eq $name "scheduler-plugins" }}
{{- $rules = append $rules (list "scheduling.x-k8s.io" "podgroups" (append $make "update")) }}
{{- end }}
{{- $written := list }}
{{- range $rules }}
{{- $written = append $written (dict "apiGroups" (list (index . 0)) "resources" (splitList " " (index . 1)) "verbs" (sortAlpha (index . 2))) }}
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
metadata: {{- include "raykeeper.metadata" (dict "root" .context "name" (printf "%s-%s-role" .kind .access) "isClusterWide" true
  "labels" (include "kuberay-operator.labels" .context | fromYaml)) | nindent 2 }}
rules:
  - apiGroups: [ray.io]
    resources: [{{ .kind }}s]
    verbs: {{- toYaml $verbs | nindent 6 }}
  - apiGroups: [ray.io]
    resources: [{{ .kind }}s/status]
    verbs: [get]
{{- end }}
{{- end }}
