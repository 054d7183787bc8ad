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

{{- define "kuberay-apiserver.proxyImage" -}}
{{- $proxy := default dict .Values.security.proxy }}
{{- if $proxy.repository }}{{ printf "%s:%s" $proxy.repository (default .Chart.AppVersion $proxy.tag | toString) }}
{{- else }}{{ include "kuberay-apiserver.image" . }}
{{- end }}
{{- end }}

{{- define "kuberay-apiserver.tokenSecret" -}}
{{- default (printf "%s-token" (include "kuberay-apiserver.fullname" .)) .Values.security.existingSecret }}
{{- end }}

{{- /* The number of the container's port of this name; empty if there is none. */}}
{{- define "kuberay-apiserver.port" -}}
{{- range .root.Values.containerPort }}{{ if eq .name $.name }}{{ .containerPort }}{{ end }}{{ end }}
{{- end }}

{{- /* The ports at which the proxy listens: {http, grpc}. */}}
{{- define "kuberay-apiserver.proxyPorts" -}}
{{- $env := default dict .Values.security.env }}
http: {{ default 8988 $env.HTTP_LOCAL_PORT }}
grpc: {{ default 8987 $env.GRPC_LOCAL_PORT }}
{{- end }}

{{- define "kuberay-apiserver.validate" -}}
{{- if and (.Values.ingress).enabled (.Values.route).enabled }}
{{- fail "ingress.enabled and route.enabled exclude each other: both would lead to the same Service" }}
{{- end }}
{{- with .Values.security }}
{{- if and .existingSecret (.env).SECURITY_TOKEN }}
{{- fail "security.existingSecret holds the token; leave security.env.SECURITY_TOKEN out" }}
{{- end }}
{{- range $name, $port := include "kuberay-apiserver.proxyPorts" $ | fromYaml }}
{{- range $.Values.containerPort }}
{{- if eq (toString .containerPort) (toString $port) }}
{{- fail (printf "security.env.%s_LOCAL_PORT: %v is a port of the API server itself, in the same pod; use another" (upper $name) $port) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "kuberay-apiserver.rules" -}}
- apiGroups: [""]
  resources: [namespaces]
  verbs: [list]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [get, list]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [create, delete, get, list, patch, update, watch]
- apiGroups: [ray.io]
  resources: [rayclusters, raycronjobs, rayjobs, rayservices]
  verbs: [create, delete, get, list, patch, update, watch]
{{- end }}

{{- define "kuberay-apiserver.subjects" -}}
- kind: ServiceAccount
  name: {{ include "kuberay-apiserver.serviceAccountName" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}
