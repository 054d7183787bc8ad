{{- /* The operator's pod, before `template` is merged into it. */}}
{{- define "kuberay-operator.template" -}}
{{- $probe := dict "httpGet" (dict "path" "/metrics" "port" "http") }}
{{- $logFile := include "kuberay-operator.logFile" . }}
metadata:
  labels:
    {{- $labels := dict "app.kubernetes.io/component" (include "kuberay-operator.component" .) }}
    {{- merge dict (include "kuberay-operator.selectorLabels" . | fromYaml) (default dict .Values.labels) $labels (default dict .Values.commonLabels)
      | include "raykeeper.texts" | nindent 4 }}
  {{- $hasFile := (.Values.configuration).enabled }}
  {{- if or .Values.annotations $hasFile }}
  annotations:
    {{- if $hasFile }}
    checksum/config: {{ include "kuberay-operator.configuration" . | sha256sum }}
    {{- end }}
    {{- with .Values.annotations }}{{- include "raykeeper.texts" . | nindent 4 }}{{- end }}
  {{- end }}
spec:
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  serviceAccountName: {{ include "kuberay-operator.serviceAccount.name" . }}
  {{- with .Values.podSecurityContext }}
  securityContext: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector: {{- include "raykeeper.texts" . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.topologySpreadConstraints }}
  topologySpreadConstraints: {{- toYaml . | nindent 4 }}
  {{- end }}
  volumes:
    - name: tmp
      emptyDir: {}
    {{- if $hasFile }}
    - name: operator-config
      configMap:
        name: {{ include "kuberay-operator.fullname" . }}-config
    {{- end }}
    {{- if $logFile }}
    - name: kuberay-logs
      emptyDir: {{- with .Values.logging.sizeLimit }}
        sizeLimit: {{ . }}
        {{- else }} {}{{- end }}
    {{- end }}
  containers:
    - name: {{ .Chart.Name }}
      image: {{ include "kuberay-operator.image" . }}
      {{- with (.Values.image).pullPolicy }}
      imagePullPolicy: {{ . }}
      {{- end }}
      command:
        - {{ default "/manager" .Values.operatorCommand }}
      args:
        {{- if $hasFile }}
        - --config
        - /etc/kuberay/config.yaml
        {{- else }}
        {{- include "kuberay-operator.flags" . | trim | nindent 8 }}
        {{- end }}
        {{- with include "kuberay.featureGates" . }}
        - {{ . }}
        {{- end }}
        {{- with .Values.extraArgs }}{{- toYaml . | nindent 8 }}{{- end }}
      ports:
        - name: http
          containerPort: 8080
          protocol: TCP
      {{- with .Values.env }}
      env: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.envFrom }}
      envFrom: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.livenessProbe }}
      livenessProbe: {{- merge dict . $probe | toYaml | nindent 8 }}
      {{- end }}
      {{- with .Values.readinessProbe }}
      readinessProbe: {{- merge dict . $probe | toYaml | nindent 8 }}
      {{- end }}
      {{- with .Values.resources }}
      resources: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.securityContext }}
      securityContext: {{- toYaml . | nindent 8 }}
      {{- end }}
      volumeMounts:
        - name: tmp
          mountPath: /tmp
        {{- if $hasFile }}
        - name: operator-config
          mountPath: /etc/kuberay
          readOnly: true
        {{- end }}
        {{- if $logFile }}
        - name: kuberay-logs
          mountPath: {{ .Values.logging.baseDir }}
        {{- end }}
{{- end }}
