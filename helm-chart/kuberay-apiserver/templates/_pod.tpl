{{- define "kuberay-apiserver.template" -}}
{{- $probe := dict "httpGet" (dict "path" "/healthz" "port" (include "kuberay-apiserver.monitoredPort" . | int)) }}
{{- $ports := include "kuberay-apiserver.ports" . | fromYaml }}
metadata:
  labels: {{- merge dict (include "kuberay-apiserver.podLabels" . | fromYaml) (default dict .Values.labels) (default dict .Values.commonLabels) | include "raykeeper.texts" | nindent 4 }}
  {{- with .Values.annotations }}
  annotations: {{- include "raykeeper.texts" . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "kuberay-apiserver.serviceAccountName" . }}
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
    {{- $files := include "kuberay-apiserver.authFiles" . | fromYamlArray }}
    {{- range $files }}
    - {{- merge (dict "name" .name) .source | toYaml | nindent 6 }}
    {{- end }}
  containers:
    - name: {{ include "kuberay-apiserver.deploymentName" . }}-container
      image: {{ include "kuberay-apiserver.image" . }}
      {{- with (.Values.image).pullPolicy }}
      imagePullPolicy: {{ . }}
      {{- end }}
      {{- with .Values.command }}
      command: {{- toYaml . | nindent 8 }}
      {{- end }}
      args:
        {{- /* Behind the proxy nobody gets past it: the API itself is on loopback, so that the proxy has to be asked. It has asked for
        the token, hence --auth=none. Probes and metrics have a port of their own. */}}
        - --httpPortFlag={{ ternary "127.0.0.1" "" (not (empty .Values.security)) }}:{{ $ports.http }}
        - --rpcPortFlag={{ ternary "127.0.0.1" "" (not (empty .Values.security)) }}:{{ $ports.grpc }}
        {{- if .Values.security }}
        - --metrics-addr=:{{ $ports.metrics }}
        - --auth=none
        {{- end }}
        {{- with include "kuberay-apiserver.authArguments" . | trim }}{{- . | nindent 8 }}{{- end }}
        - --enable-api-server-v2={{ include "kuberay-apiserver.servesV2" . | default "false" }}
        {{- with (.Values.cors).allowOrigin }}
        - --cors-allow-origin={{ . }}
        {{- end }}
        {{- with .Values.extraArgs }}{{- toYaml . | nindent 8 }}{{- end }}
      ports: {{- include "kuberay-apiserver.containerPorts" . | nindent 8 }}
      {{- range $name := list "env" "envFrom" "resources" "securityContext" }}
      {{- with get $.Values $name }}
      {{ $name }}: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- end }}
      livenessProbe: {{- merge dict (default dict .Values.livenessProbe) $probe | toYaml | nindent 8 }}
      readinessProbe: {{- merge dict (default dict .Values.readinessProbe) $probe | toYaml | nindent 8 }}
      volumeMounts:
        - name: tmp
          mountPath: /tmp
        {{- range $files }}
        - name: {{ .name }}
          mountPath: {{ .path }}
          readOnly: true
        {{- end }}
    {{- if .Values.security }}
    {{- include "kuberay-apiserver.proxy" . | nindent 4 }}
    {{- end }}
    {{- with .Values.sidecarContainers }}{{- toYaml . | nindent 4 }}{{- end }}
{{- end }}

{{- /* The container that asks for the token, then passes requests on to the API server. */}}
{{- define "kuberay-apiserver.proxy" -}}
{{- $security := .Values.security }}
{{- $program := include "kuberay-apiserver.proxyProgram" . | fromYaml }}
{{- $ports := include "kuberay-apiserver.proxyPorts" . | fromYaml -}}
- name: security-proxy-container
  image: {{ $program.image }}
  {{- with ($security.proxy).pullPolicy }}
  imagePullPolicy: {{ . }}
  {{- end }}
  {{- with $program.command }}
  command: {{- toYaml . | nindent 4 }}
  {{- end }}
  ports:
    - name: http
      containerPort: {{ $ports.http }}
      protocol: TCP
    - name: grpc
      containerPort: {{ $ports.grpc }}
      protocol: TCP
  env:
    {{- range $name, $value := include "kuberay-apiserver.proxyEnv" . | fromYaml }}
    - name: {{ $name }}
      value: {{ $value | quote }}
    {{- end }}
    - name: SECURITY_TOKEN
      valueFrom:
        secretKeyRef:
          name: {{ include "kuberay-apiserver.tokenSecret" . }}
          key: SECURITY_TOKEN
  {{- range $name := list "resources" "securityContext" }}
  {{- with get $.Values $name }}
  {{ $name }}: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
  {{- /* Without it the pod would count as ready before anybody listens where the Service leads. */}}
  readinessProbe:
    tcpSocket:
      port: {{ $ports.http }}
    periodSeconds: 10
  volumeMounts:
    - name: tmp
      mountPath: /tmp
{{- end }}
