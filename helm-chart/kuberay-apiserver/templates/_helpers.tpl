{{- define "kuberay-apiserver.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "kuberay-apiserver.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- $made := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) }}
{{- default $made .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "kuberay-apiserver.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/name: {{ include "kuberay-apiserver.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* The labels by which the Deployment and the Service find their pods; KubeRay's, since a selector can never be changed. */}}
{{- define "kuberay-apiserver.podLabels" -}}
app.kubernetes.io/component: {{ include "kuberay-apiserver.name" . }}
app.kubernetes.io/name: {{ .Release.Name }}
{{- end }}

{{- /* Metadata of an object of the release: (dict root name labels annotations isClusterWide); without a name that of the release. */}}
{{- define "kuberay-apiserver.metadata" -}}
{{- include "raykeeper.metadata" (merge (dict "name" (default (include "kuberay-apiserver.fullname" .root) .name)
  "labels" (merge dict (default dict .labels) (include "kuberay-apiserver.labels" .root | fromYaml))) .) }}
{{- end }}

{{- /* Name of the Deployment and the roles. */}}
{{- define "kuberay-apiserver.deploymentName" -}}
{{- default .Chart.Name .Values.name }}
{{- end }}

{{- define "kuberay-apiserver.serviceAccountName" -}}
{{- default "default" (.Values.serviceAccount).name }}
{{- end }}

{{- define "kuberay-apiserver.image" -}}
{{- $image := default dict .Values.image }}
{{- if $image.digest }}{{ printf "%s@%s" $image.repository $image.digest }}
{{- else }}{{ printf "%s:%s" $image.repository (default .Chart.AppVersion $image.tag | toString) }}
{{- end }}
{{- end }}

{{- /* Whether the values name KubeRay's own proxy, as its values.yaml does. Its image has another program and is no longer built. */}}
{{- define "kuberay-apiserver.namesKuberaysProxy" -}}
{{- if has (toString ((.Values.security).proxy).repository) (list "quay.io/kuberay/security-proxy" "kuberay/security-proxy" "docker.io/kuberay/security-proxy") }}true{{ end }}
{{- end }}

{{- /* Image and command of the proxy: {image, command}. The API server's own image has our proxy; what another one runs is for the values to say. */}}
{{- define "kuberay-apiserver.proxyProgram" -}}
{{- $proxy := default dict .Values.security.proxy }}
{{- if and $proxy.repository (not (include "kuberay-apiserver.namesKuberaysProxy" .)) }}
image: {{ printf "%s:%s" $proxy.repository (default .Chart.AppVersion $proxy.tag | toString) }}
command: {{- default list $proxy.command | toYaml | nindent 2 }}
{{- else }}
image: {{ include "kuberay-apiserver.image" . }}
command: {{- default (list "raykeeper" "security-proxy") $proxy.command | toYaml | nindent 2 }}
{{- end }}
{{- end }}

{{- define "kuberay-apiserver.tokenSecret" -}}
{{- default (printf "%s-token" (include "kuberay-apiserver.fullname" .)) .Values.security.existingSecret }}
{{- end }}

{{- /* The ports at which the API server listens, by name: {http, grpc}, and beside the proxy {metrics}. */}}
{{- define "kuberay-apiserver.ports" -}}
{{- $ports := dict "http" 8888 "grpc" 8887 }}
{{- if .Values.security }}{{ $_ := set $ports "metrics" 8889 }}{{ end }}
{{- range .Values.containerPort }}
{{- if hasKey $ports (default "" .name) }}{{ $_ := set $ports .name (int .containerPort) }}{{ end }}
{{- end }}
{{- toYaml $ports }}
{{- end }}

{{- /* The ports of the API server's container: those of the values, and what it listens at beside them. */}}
{{- define "kuberay-apiserver.containerPorts" -}}
{{- $given := default list .Values.containerPort }}
{{- $names := list }}
{{- range $given }}{{ $names = append $names (default "" .name) }}{{ end }}
{{- range $name, $port := include "kuberay-apiserver.ports" . | fromYaml }}
{{- if not (has $name $names) }}{{ $given = append $given (dict "name" $name "containerPort" (int $port) "protocol" "TCP") }}{{ end }}
{{- end }}
{{- toYaml $given }}
{{- end }}

{{- /* The port that kubelets and Prometheus ask: behind the proxy that of the metrics, since the others are on loopback. */}}
{{- define "kuberay-apiserver.monitoredPort" -}}
{{- get (include "kuberay-apiserver.ports" . | fromYaml) (ternary "metrics" "http" (not (empty .Values.security))) }}
{{- end }}

{{- /* The proxy's variables, but for the token. What the values leave out is as in values.yaml, since the proxy starts with none missing. */}}
{{- define "kuberay-apiserver.proxyEnv" -}}
{{- $env := dict "HTTP_LOCAL_PORT" "8988" "GRPC_LOCAL_PORT" "8987" "SECURITY_PREFIX" "/" "ENABLE_GRPC" "true" }}
{{- with (.Values.cors).allowOrigin }}{{ $_ := set $env "RAYKEEPER_CORS_ALLOW_ORIGIN" . }}{{ end }}
{{- range $name, $value := .Values.security.env }}
{{- with include "raykeeper.text" $value }}{{ $_ := set $env $name . }}{{ end }}
{{- end }}
{{- $ports := include "kuberay-apiserver.ports" . | fromYaml }}
{{- toYaml (omit (merge (dict "HTTP_REMOTE_PORT" (toString $ports.http) "GRPC_REMOTE_PORT" (toString $ports.grpc)) $env) "SECURITY_TOKEN") }}
{{- end }}

{{- /* The ports at which the proxy listens: {http, grpc}. */}}
{{- define "kuberay-apiserver.proxyPorts" -}}
{{- $env := include "kuberay-apiserver.proxyEnv" . | fromYaml }}
http: {{ $env.HTTP_LOCAL_PORT }}
grpc: {{ $env.GRPC_LOCAL_PORT }}
{{- end }}

{{- define "kuberay-apiserver.validate" -}}
{{- if and (.Values.ingress).enabled (.Values.route).enabled }}
{{- fail "ingress.enabled and route.enabled exclude each other: both would lead to the same Service" }}
{{- end }}
{{- $repository := toString (.Values.image).repository }}
{{- if has $repository (list "quay.io/kuberay/apiserver" "kuberay/apiserver" "docker.io/kuberay/apiserver") }}
{{- fail (printf "image.repository: %s is KubeRay's own API server, which does not know the arguments of this chart. Leave image out of your values; after --reuse-values use --reset-then-reuse-values instead" $repository) }}
{{- end }}
{{- include "kuberay-apiserver.validatePorts" . }}
{{- include "kuberay-apiserver.validateAuth" . }}
{{- with .Values.security }}
{{- if and .existingSecret (.env).SECURITY_TOKEN }}
{{- fail "security.existingSecret holds the token; leave security.env.SECURITY_TOKEN out" }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Stops where two programs of the pod would listen at one port, or a Service would lead to none. */}}
{{- define "kuberay-apiserver.validatePorts" -}}
{{- $ports := include "kuberay-apiserver.ports" . | fromYaml }}
{{- $taken := dict }}
{{- range $name, $port := $ports }}
{{- if hasKey $taken (toString $port) }}
{{- fail (printf "containerPort: %v is the port of both %s and %s; use another for one of them" $port (get $taken (toString $port)) $name) }}
{{- end }}
{{- $_ := set $taken (toString $port) $name }}
{{- end }}
{{- if .Values.security }}
{{- range $name, $port := include "kuberay-apiserver.proxyPorts" . | fromYaml }}
{{- if not (regexMatch "^[0-9]+$" (toString $port)) }}
{{- fail (printf "security.env.%s_LOCAL_PORT must be a port, not %v" (upper $name) $port) }}
{{- else if eq (get $taken (toString $port)) "the proxy" }}
{{- fail (printf "security.env: %v is both HTTP_LOCAL_PORT and GRPC_LOCAL_PORT; use another for one of them" $port) }}
{{- else if hasKey $taken (toString $port) }}
{{- fail (printf "security.env.%s_LOCAL_PORT: %v is a port of the API server itself, in the same pod; use another" (upper $name) $port) }}
{{- end }}
{{- $_ := set $taken (toString $port) "the proxy" }}
{{- end }}
{{- else if not (or .Values.sidecarContainers .Values.template) }}
{{- range (.Values.service).ports }}
{{- if and .targetPort (regexMatch "^[0-9]+$" (toString .targetPort)) (not (hasKey $taken (toString .targetPort))) }}
{{- fail (printf "service.ports: targetPort %v is no port of the pod: containerPort says %v for HTTP and %v for gRPC. Leave targetPort out to follow it" .targetPort $ports.http $ports.grpc) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Whether the second version of the API is served: `true` or empty. */}}
{{- define "kuberay-apiserver.servesV2" -}}
{{- if or .Values.enableAPIServerV2 (kindIs "invalid" .Values.enableAPIServerV2) }}true{{ end }}
{{- end }}

{{- /* What the API server does to Kubernetes, and nothing else: tests/apiserver/test_chart_role.py compares it with an audit log. */}}
{{- define "kuberay-apiserver.rules" -}}
{{- /* Compute templates. */}}
- apiGroups: [""]
  resources: [configmaps]
  verbs: [create, delete, get, list]
{{- if include "kuberay-apiserver.servesV2" . }}
- apiGroups: ["", events.k8s.io]
  resources: [events]
  verbs: [list, watch]
- apiGroups: [ray.io]
  resources: [rayclusters, raycronjobs, rayjobs, rayservices]
  verbs: [create, delete, get, list, patch, update, watch]
- apiGroups: [ray.io]
  resources: [rayclusters/status, raycronjobs/status, rayjobs/status, rayservices/status]
  verbs: [get]
{{- else }}
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [list]
- apiGroups: [ray.io]
  resources: [rayclusters, rayjobs, rayservices]
  verbs: [create, delete, get, list]
- apiGroups: [ray.io]
  resources: [rayservices]
  verbs: [update]
{{- end }}
{{- if .Values.readClusterTokens }}
- apiGroups: [""]
  resources: [secrets]
  verbs: [get]
{{- end }}
{{- end }}

{{- define "kuberay-apiserver.subjects" -}}
- kind: ServiceAccount
  name: {{ include "kuberay-apiserver.serviceAccountName" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}
