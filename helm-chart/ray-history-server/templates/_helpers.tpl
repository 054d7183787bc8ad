{{- define "ray-history-server.fullname" -}}
{{- $made := ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) (contains .Chart.Name .Release.Name) }}
{{- default $made .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "ray-history-server.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "ray-history-server.labels" -}}
{{ include "ray-history-server.selectorLabels" . }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "ray-history-server.metadata" -}}
name: {{ include "ray-history-server.fullname" . }}
namespace: {{ .Release.Namespace }}
labels: {{- include "ray-history-server.labels" . | nindent 2 }}
{{- end }}

{{- define "ray-history-server.serviceAccountName" -}}
{{- default (ternary (include "ray-history-server.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name }}
{{- end }}

{{- define "ray-history-server.image" -}}
{{- $image := .Values.image }}
{{- if $image.digest }}{{ printf "%s@%s" $image.repository $image.digest }}
{{- else }}{{ printf "%s:%s" $image.repository (default .Chart.AppVersion $image.tag | toString) }}
{{- end }}
{{- end }}

{{- define "ray-history-server.tokenSecret" -}}
{{- default (printf "%s-token" (include "ray-history-server.fullname" .)) .Values.auth.existingSecret }}
{{- end }}

{{- define "ray-history-server.validate" -}}
{{- with .Values.store }}
{{- if not (or .url .backend) }}
{{- fail "say where the history is: store.url, such as s3://bucket/prefix, or store.backend with store.env" }}
{{- end }}
{{- if and .url .backend }}
{{- fail "store.url and store.backend exclude each other: the URL says all about the place" }}
{{- end }}
{{- end }}
{{- if and (ne .Values.auth.mode "token") (or .Values.auth.token .Values.auth.existingSecret) }}
{{- fail (printf "auth.mode %s uses no token: leave auth.token and auth.existingSecret out" .Values.auth.mode) }}
{{- end }}
{{- if and .Values.auth.token (lt (len .Values.auth.token) 16) }}
{{- fail "auth.token must have at least 16 characters" }}
{{- end }}
{{- with .Values.autoscaling }}
{{- if and .enabled (gt (int .minReplicas) (int .maxReplicas)) }}
{{- fail (printf "autoscaling.minReplicas %d is above autoscaling.maxReplicas %d" (int .minReplicas) (int .maxReplicas)) }}
{{- end }}
{{- end }}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) }}
{{- fail "httpRoute.enabled needs httpRoute.parentRefs, such as [{name: my-gateway}]" }}
{{- end }}
{{- end }}

{{- define "ray-history-server.args" -}}
- --bind=:8080
- --auth={{ .Values.auth.mode }}
{{- if eq .Values.auth.mode "token" }}
- --auth-token-file=/var/run/raykeeper/token
{{- end }}
- --cache-dir=/var/cache/raykeeper
- --cache-mb={{ include "raykeeper.text" .Values.cache.megabytes }}
- --query-memory-mb={{ include "raykeeper.text" .Values.queryMemoryMegabytes }}
- --log-level={{ .Values.logLevel }}
- --kubernetes-facts={{ ternary "on" "off" .Values.kubernetesFacts.enabled }}
{{- with .Values.kubernetesFacts.namespaces }}
- --kubernetes-namespaces={{ join "," . }}
{{- end }}
{{- with .Values.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "ray-history-server.env" -}}
{{- $variables := dict "RAYKEEPER_STORE_URL" .Values.store.url "STORAGE_BACKEND" .Values.store.backend "STORAGE_ROOT_DIR" .Values.store.rootDir
  "RAY_GRAFANA_HOST" .Values.monitoring.grafanaHost "RAY_PROMETHEUS_NAME" .Values.monitoring.prometheusName }}
{{- $env := list }}
{{- range $name, $value := merge dict (default dict .Values.store.env) $variables }}
{{- if or $value (kindIs "bool" $value) }}
{{- $env = append $env (dict "name" $name "value" (include "raykeeper.text" $value)) }}
{{- end }}
{{- end }}
{{- with concat $env (default list .Values.env) }}{{ toYaml . }}{{ end }}
{{- end }}

{{- define "ray-history-server.template" -}}
metadata:
  labels: {{- include "ray-history-server.labels" . | nindent 4 }}
  {{- with .Values.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "ray-history-server.serviceAccountName" . }}
  automountServiceAccountToken: {{ .Values.kubernetesFacts.enabled }}
  {{- with .Values.podSecurityContext }}
  securityContext: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- range $name := list "imagePullSecrets" "nodeSelector" "affinity" "tolerations" "topologySpreadConstraints" "priorityClassName" }}
  {{- with get $.Values $name }}
  {{ $name }}: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
  volumes:
    - name: tmp
      emptyDir: {}
    - name: cache
      {{- toYaml .Values.cache.volume | nindent 6 }}
    {{- if eq .Values.auth.mode "token" }}
    - name: token
      secret:
        secretName: {{ include "ray-history-server.tokenSecret" . }}
    {{- end }}
  containers:
    - name: history-server
      image: {{ include "ray-history-server.image" . }}
      {{- with .Values.image.pullPolicy }}
      imagePullPolicy: {{ . }}
      {{- end }}
      command: [raykeeper, history]
      args: {{- include "ray-history-server.args" . | nindent 8 }}
      {{- with include "ray-history-server.env" . }}
      env: {{- . | nindent 8 }}
      {{- end }}
      {{- with .Values.envFrom | default list | concat (ternary (list (dict "secretRef" (dict "name" .Values.store.secretName))) list (ne .Values.store.secretName "")) }}
      envFrom: {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - name: http
          containerPort: 8080
          protocol: TCP
      livenessProbe: {{- merge dict (default dict .Values.livenessProbe) (dict "httpGet" (dict "path" "/livez" "port" "http")) | toYaml | nindent 8 }}
      readinessProbe: {{- merge dict (default dict .Values.readinessProbe) (dict "httpGet" (dict "path" "/readz" "port" "http")) | toYaml | nindent 8 }}
      {{- range $name := list "resources" "securityContext" }}
      {{- with get $.Values $name }}
      {{ $name }}: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- end }}
      volumeMounts:
        - name: tmp
          mountPath: /tmp
        - name: cache
          mountPath: /var/cache/raykeeper
        {{- if eq .Values.auth.mode "token" }}
        - name: token
          mountPath: /var/run/raykeeper
          readOnly: true
        {{- end }}
{{- end }}
