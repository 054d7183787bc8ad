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

{{- define "kuberay-apiserver.serviceAccountName" -}}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}

{{- define "kuberay-apiserver.image" -}}
{{- $image := .Values.image }}
{{- if $image.digest }}{{ printf "%s@%s" $image.repository $image.digest }}
{{- else }}{{ printf "%s:%s" $image.repository (default .Chart.AppVersion $image.tag | toString) }}
{{- end }}
{{- end }}

{{- define "kuberay-apiserver.proxyImage" -}}
{{- with .Values.security.proxy }}
{{- if .repository }}{{ printf "%s:%s" .repository (default $.Chart.AppVersion .tag | toString) }}
{{- else }}{{ include "kuberay-apiserver.image" $ }}
{{- end }}
{{- end }}
{{- end }}

{{- define "kuberay-apiserver.tokenSecret" -}}
{{- default (printf "%s-token" (include "kuberay-apiserver.fullname" .)) .Values.security.existingSecret }}
{{- end }}

{{- /* The number of the container's port of this name; empty if there is none. */}}
{{- define "kuberay-apiserver.port" -}}
{{- range .root.Values.containerPort }}{{ if eq .name $.name }}{{ .containerPort }}{{ end }}{{ end }}
{{- end }}

{{- define "kuberay-apiserver.validate" -}}
{{- if and .Values.ingress.enabled .Values.route.enabled }}
{{- fail "ingress.enabled and route.enabled exclude each other: both would lead to the same Service" }}
{{- end }}
{{- with .Values.security }}
{{- if and .existingSecret .env.SECURITY_TOKEN }}
{{- fail "security.existingSecret holds the token; leave security.env.SECURITY_TOKEN out" }}
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
