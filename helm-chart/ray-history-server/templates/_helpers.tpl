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
{{- with merge dict (default dict .Values.labels) (default dict .Values.commonLabels) }}
{{ include "raykeeper.texts" . }}
{{- end }}
{{- end }}

{{- /* Metadata of an object of the release: (dict root name annotations namespace isClusterWide); without a name that of the release. */}}
{{- define "ray-history-server.metadata" -}}
{{- include "raykeeper.metadata" (merge (dict "name" (default (include "ray-history-server.fullname" .root) .name)
  "labels" (include "ray-history-server.labels" .root | fromYaml)) .) }}
{{- end }}

{{- define "ray-history-server.serviceAccountName" -}}
{{- $made := ternary "ray-historyserver" (include "ray-history-server.fullname" .) (ne (default "" (.Values.history).CloudRoleName) "") }}
{{- default (ternary $made "default" (not (not (.Values.serviceAccount).create))) (.Values.serviceAccount).name }}
{{- end }}

{{- /* Annotations of the ServiceAccount: the role of Alibaba Cloud, and what the user gave. */}}
{{- define "ray-history-server.serviceAccountAnnotations" -}}
{{- $role := ternary (dict "pod-identity.alibabacloud.com/role-name" (.Values.history).CloudRoleName) dict (ne (default "" (.Values.history).CloudRoleName) "") }}
{{- with merge dict (default dict (.Values.serviceAccount).annotations) $role }}{{ toYaml . }}{{ end }}
{{- end }}

{{- /* Whether this chart mounts the token for the role itself, since it knows the cluster's OIDC provider. */}}
{{- define "ray-history-server.mountsRole" -}}
{{- if and (.Values.history).CloudRoleName (.Values.history).OIDCProviderARN }}true{{ end }}
{{- end }}

{{- define "ray-history-server.image" -}}
{{- $image := default dict .Values.image }}
{{- if $image.digest }}{{ printf "%s@%s" $image.repository $image.digest }}
{{- else }}{{ printf "%s:%s" $image.repository (default .Chart.AppVersion $image.tag | toString) }}
{{- end }}
{{- end }}

{{- define "ray-history-server.authMode" -}}
{{- default "token" (.Values.auth).mode }}
{{- end }}

{{- define "ray-history-server.tokenSecret" -}}
{{- default (printf "%s-token" (include "ray-history-server.fullname" .)) (.Values.auth).existingSecret }}
{{- end }}

{{- define "ray-history-server.validate" -}}
{{- with default dict .Values.store }}
{{- if not (or .url .backend ($.Values.history).OSSBucket) }}
{{- fail "say where the history is: store.url, such as s3://bucket/prefix, or store.backend with store.env" }}
{{- end }}
{{- if and (or .url .backend) ($.Values.history).OSSBucket }}
{{- fail "history.OSSBucket and store both say where the history is: keep one" }}
{{- end }}
{{- if and .url (not (regexMatch "^(s3|gs|azblob|oss)://[^/]|^file:///" .url)) }}
{{- fail (printf "store.url: %s is no store; use s3://bucket/prefix, gs://, azblob://, oss:// or file:///folder" .url) }}
{{- end }}
{{- if and .url .backend }}
{{- fail "store.url and store.backend exclude each other: the URL says all about the place" }}
{{- end }}
{{- end }}
{{- if and (ne (include "ray-history-server.authMode" .) "token") (or (.Values.auth).token (.Values.auth).existingSecret) }}
{{- fail (printf "auth.mode %s uses no token: leave auth.token and auth.existingSecret out" .Values.auth.mode) }}
{{- end }}
{{- if and (.Values.auth).token (lt (len (.Values.auth).token) 16) }}
{{- fail "auth.token must have at least 16 characters" }}
{{- end }}
{{- with .Values.autoscaling }}
{{- if and .enabled (gt (int .minReplicas) (int .maxReplicas)) }}
{{- fail (printf "autoscaling.minReplicas %d is above autoscaling.maxReplicas %d" (int .minReplicas) (int .maxReplicas)) }}
{{- end }}
{{- end }}
{{- $size := include "raykeeper.quantity" (dig "emptyDir" "sizeLimit" "" (default dict (.Values.cache).volume)) }}
{{- if and $size (gt (mulf (default 10240 (.Values.cache).megabytes) 1e6) (float64 $size)) }}
{{- fail (printf "cache.megabytes: %v do not fit into cache.volume.emptyDir.sizeLimit, %s: Kubernetes would evict the pod" .Values.cache.megabytes .Values.cache.volume.emptyDir.sizeLimit) }}
{{- end }}
{{- if and (.Values.monitoring).grafanaUrl (not (include "ray-history-server.hasMonitoringPort" .)) }}
{{- fail "monitoring.grafanaUrl needs monitoring.servicePort, the port that leads there" }}
{{- end }}
{{- if and (.Values.httpRoute).enabled (not (.Values.httpRoute).parentRefs) }}
{{- fail "httpRoute.enabled needs httpRoute.parentRefs, such as [{name: my-gateway}]" }}
{{- end }}
{{- end }}

{{- define "ray-history-server.hasMonitoringPort" -}}
{{- if ne (toString (.Values.monitoring).servicePort) "false" }}true{{ end }}
{{- end }}

{{- define "ray-history-server.recordsFacts" -}}
{{- if ne (toString (.Values.kubernetesFacts).enabled) "false" }}true{{ end }}
{{- end }}

{{- define "ray-history-server.showsLiveObjects" -}}
{{- if ne (toString (.Values.liveObjects).enabled) "false" }}true{{ end }}
{{- end }}

{{- define "ray-history-server.asksKubernetes" -}}
{{- if or (include "ray-history-server.recordsFacts" .) (include "ray-history-server.showsLiveObjects" .) }}true{{ end }}
{{- end }}

{{- define "ray-history-server.args" -}}
- --bind=:8080
{{- if include "ray-history-server.hasMonitoringPort" . }}
- --monitoring-bind=:3000
{{- with (.Values.monitoring).grafanaUrl }}
- --grafana-url={{ . }}
{{- end }}
{{- end }}
- --auth={{ include "ray-history-server.authMode" . }}
{{- if eq (include "ray-history-server.authMode" .) "token" }}
- --auth-token-file=/var/run/raykeeper/token
{{- end }}
- --cache-dir=/var/cache/raykeeper
- --cache-mb={{ include "raykeeper.text" (default 10240 (.Values.cache).megabytes) }}
- --query-memory-mb={{ include "raykeeper.text" (default 1024 .Values.queryMemoryMegabytes) }}
- --log-level={{ default "info" .Values.logLevel }}
- --kubernetes-facts={{ ternary "on" "off" (eq (include "ray-history-server.recordsFacts" .) "true") }}
- --live-objects={{ ternary "on" "off" (eq (include "ray-history-server.showsLiveObjects" .) "true") }}
{{- with (.Values.kubernetesFacts).namespaces }}
- --kubernetes-namespaces={{ join "," . }}
{{- end }}
{{- with .Values.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "ray-history-server.env" -}}
{{- $oss := dict }}
{{- with .Values.history }}
{{- if .OSSBucket }}
{{- $oss = dict "STORAGE_BACKEND" "aliyunoss" "OSS_BUCKET" .OSSBucket "OSS_ENDPOINT" .OSSEndPoint "OSS_REGION" .OSSRegion "STORAGE_ROOT_DIR" .OSSHistoryServerRootDir }}
{{- end }}
{{- if include "ray-history-server.mountsRole" $ }}
{{- $role := regexReplaceAll ":oidc-provider/.*$" .OIDCProviderARN (printf ":role/%s" .CloudRoleName) }}
{{- $oss = merge $oss (dict "ALIBABA_CLOUD_ROLE_ARN" $role "ALIBABA_CLOUD_OIDC_PROVIDER_ARN" .OIDCProviderARN "ALIBABA_CLOUD_OIDC_TOKEN_FILE" "/var/run/secrets/ack.alibabacloud.com/rrsa-tokens/token") }}
{{- end }}
{{- end }}
{{- $variables := dict "RAYKEEPER_STORE_URL" (.Values.store).url "STORAGE_BACKEND" (.Values.store).backend "STORAGE_ROOT_DIR" (.Values.store).rootDir
  "RAY_GRAFANA_HOST" (.Values.monitoring).grafanaHost "RAY_PROMETHEUS_NAME" (.Values.monitoring).prometheusName }}
{{- $env := list }}
{{- range $name, $value := merge dict (default dict (.Values.store).env) $oss $variables }}
{{- if or $value (kindIs "bool" $value) }}
{{- $env = append $env (dict "name" $name "value" (include "raykeeper.text" $value)) }}
{{- end }}
{{- end }}
{{- with concat $env (default list .Values.env) }}{{ toYaml . }}{{ end }}
{{- end }}

{{- define "ray-history-server.template" -}}
metadata:
  labels: {{- include "ray-history-server.labels" . | nindent 4 }}
    {{- if and (.Values.history).CloudRoleName (not (.Values.history).OIDCProviderARN) }}
    pod-identity.alibabacloud.com/injection: "on"
    {{- end }}
  {{- with .Values.annotations }}
  annotations: {{- include "raykeeper.texts" . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "ray-history-server.serviceAccountName" . }}
  automountServiceAccountToken: {{ eq (include "ray-history-server.asksKubernetes" .) "true" }}
  {{- with .Values.podSecurityContext }}
  securityContext: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector: {{- include "raykeeper.texts" . | nindent 4 }}
  {{- end }}
  {{- range $name := list "imagePullSecrets" "affinity" "tolerations" "topologySpreadConstraints" "priorityClassName" }}
  {{- with get $.Values $name }}
  {{ $name }}: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
  volumes:
    - name: tmp
      emptyDir: {}
    - name: cache
      {{- default (dict "emptyDir" dict) (.Values.cache).volume | toYaml | nindent 6 }}
    {{- if eq (include "ray-history-server.authMode" .) "token" }}
    - name: token
      secret:
        secretName: {{ include "ray-history-server.tokenSecret" . }}
    {{- end }}
    {{- if include "ray-history-server.mountsRole" . }}
    - name: rrsa-oidc-token
      projected:
        sources:
          - serviceAccountToken: {audience: sts.aliyuncs.com, expirationSeconds: 3600, path: token}
    {{- end }}
  containers:
    - name: history-server
      image: {{ include "ray-history-server.image" . }}
      {{- with (.Values.image).pullPolicy }}
      imagePullPolicy: {{ . }}
      {{- end }}
      command: [raykeeper, history]
      args: {{- include "ray-history-server.args" . | nindent 8 }}
      {{- with include "ray-history-server.env" . }}
      env: {{- . | nindent 8 }}
      {{- end }}
      {{- with .Values.envFrom | default list | concat (ternary (list (dict "secretRef" (dict "name" (.Values.store).secretName))) list (not (empty (.Values.store).secretName))) }}
      envFrom: {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - name: http
          containerPort: 8080
          protocol: TCP
        {{- if include "ray-history-server.hasMonitoringPort" . }}
        - name: monitoring
          containerPort: 3000
          protocol: TCP
        {{- end }}
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
        {{- if eq (include "ray-history-server.authMode" .) "token" }}
        - name: token
          mountPath: /var/run/raykeeper
          readOnly: true
        {{- end }}
        {{- if include "ray-history-server.mountsRole" . }}
        - name: rrsa-oidc-token
          mountPath: /var/run/secrets/ack.alibabacloud.com/rrsa-tokens
          readOnly: true
        {{- end }}
{{- end }}
