{{- /*
Objects that several charts make. Each takes a dict with the chart's context as `root`, and what differs.
Labels and annotations of values come last, so that they win.
*/}}

{{- /* (dict root values name labels): metadata of an object for Prometheus or Grafana, which may stand in another namespace. */}}
{{- define "raykeeper.monitoringMetadata" -}}
{{- include "raykeeper.metadata" (dict "root" .root "name" .name "namespace" .values.namespace "annotations" .values.annotations
  "labels" (merge dict (default dict .values.additionalLabels) .labels)) }}
{{- end }}

{{- /* (dict root values name labels service): the alerts of monitoring/rules.yaml, about this release alone. */}}
{{- define "raykeeper.prometheusRule" -}}
{{- $target := printf "job=%q,namespace=%q" .service .root.Release.Namespace }}
{{- $rules := .root.Files.Get "monitoring/rules.yaml" | replace "TARGET" $target | replace "NAMESPACE" .root.Release.Namespace | fromYaml }}
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata: {{- include "raykeeper.monitoringMetadata" . | nindent 2 }}
spec: {{- toYaml $rules | nindent 2 }}
{{- end }}

{{- /* (dict root values name labels): the dashboards of monitoring/, where Grafana's sidecar finds them by a label. */}}
{{- define "raykeeper.dashboard" -}}
apiVersion: v1
kind: ConfigMap
metadata: {{- include "raykeeper.monitoringMetadata" . | nindent 2 }}
data:
  {{- range $path, $content := .root.Files.Glob "monitoring/*.json" }}
  {{ $.name }}{{ ternary "" (printf "-%s" (base $path | trimSuffix ".json")) (eq (base $path) "dashboard.json") }}.json: |-
    {{- toString $content | trim | nindent 4 }}
  {{- end }}
{{- end }}

{{- /* (dict root name labels selector ports): who may reach the pods, and what they may reach. */}}
{{- define "raykeeper.networkPolicy" -}}
{{- $values := .root.Values.networkPolicy }}
{{- $ports := list }}
{{- range .ports }}{{ $ports = append $ports (dict "port" . "protocol" "TCP") }}{{ end }}
{{- $ingress := dict "ports" $ports }}
{{- with $values.from }}{{ $_ := set $ingress "from" . }}{{ end }}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {{- include "raykeeper.metadata" . | nindent 2 }}
spec:
  podSelector:
    matchLabels: {{- toYaml .selector | nindent 6 }}
  policyTypes: {{- ternary (list "Ingress" "Egress") (list "Ingress") (not (empty $values.egress)) | toYaml | nindent 4 }}
  ingress: {{- list $ingress | toYaml | nindent 4 }}
  {{- with $values.egress }}
  egress: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{- /* (dict root name labels selector replicas): how many pods may be away at once. */}}
{{- define "raykeeper.podDisruptionBudget" -}}
{{- $away := .root.Values.podDisruptionBudget.maxUnavailable }}
{{- if kindIs "invalid" $away }}{{ $away = 1 }}{{ end }}
{{- if eq (toString $away) "0" }}
{{- fail "podDisruptionBudget.maxUnavailable: 0 would keep every node with such a pod from being drained; use 1, or leave podDisruptionBudget.enabled out" }}
{{- end }}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{- include "raykeeper.metadata" . | nindent 2 }}
spec:
  maxUnavailable: {{ $away }}
  selector:
    matchLabels: {{- toYaml .selector | nindent 6 }}
{{- end }}
