{{- /* A scalar as it was written: Go prints large numbers as 2e+09. */}}
{{- define "raykeeper.text" -}}
{{- if kindIs "string" . }}{{ . }}{{ else }}{{ toJson . }}{{ end }}
{{- end }}

{{- /* Merges a map into another: (list target source). Lists of named things are merged by name, others replaced; null removes. */}}
{{- define "raykeeper.merge" -}}
{{- $target := index . 0 }}
{{- range $key, $new := default dict (index . 1) }}
{{- $old := get $target $key }}
{{- if kindIs "invalid" $new }}
{{- $_ := unset $target $key }}
{{- else if and (kindIs "map" $new) (kindIs "map" $old) }}
{{- include "raykeeper.merge" (list $old $new) }}
{{- else if and (kindIs "slice" $new) (kindIs "slice" $old) }}
{{- include "raykeeper.mergeList" (list $target $key $old $new) }}
{{- else }}
{{- $_ := set $target $key $new }}
{{- end }}
{{- end }}
{{- end }}

{{- define "raykeeper.mergeList" -}}
{{- $identities := dict "containers" "name" "initContainers" "name" "env" "name" "volumes" "name" "imagePullSecrets" "name"
  "resourceClaims" "name" "ports" "containerPort" "volumeMounts" "mountPath" "volumeDevices" "devicePath" "hostAliases" "ip"
  "workerGroupSpecs" "groupName" }}
{{- $target := index . 0 }}
{{- $key := index . 1 }}
{{- $new := index . 3 }}
{{- $identity := get $identities $key }}
{{- if $identity }}
{{- $items := list }}
{{- $merged := list }}
{{- range index . 2 }}
{{- $item := . }}
{{- range $new }}
{{- if eq (get . $identity | toString) (get $item $identity | toString) }}
{{- include "raykeeper.merge" (list $item .) }}
{{- $merged = append $merged (get . $identity | toString) }}
{{- end }}
{{- end }}
{{- $items = append $items $item }}
{{- end }}
{{- range $new }}
{{- if not (has (get . $identity | toString) $merged) }}
{{- $items = append $items . }}
{{- end }}
{{- end }}
{{- $_ := set $target $key $items }}
{{- else }}
{{- $_ := set $target $key $new }}
{{- end }}
{{- end }}
