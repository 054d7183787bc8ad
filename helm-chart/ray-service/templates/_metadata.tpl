{{- /*
Metadata of any object: (dict root name labels annotations namespace isClusterWide); all but root and name may be left out.
What the object itself needs wins over commonLabels and commonAnnotations.
*/}}
{{- define "raykeeper.metadata" -}}
name: {{ .name }}
{{- if not .isClusterWide }}
namespace: {{ default .root.Release.Namespace .namespace }}
{{- end }}
{{- with merge dict (default dict .labels) (default dict .root.Values.commonLabels) }}
labels: {{- include "raykeeper.texts" . | nindent 2 }}
{{- end }}
{{- with merge dict (default dict .annotations) (default dict .root.Values.commonAnnotations) }}
annotations: {{- include "raykeeper.texts" . | nindent 2 }}
{{- end }}
{{- end }}
