{{- /* A scalar as it was written: Go prints large numbers as 2e+09. */}}
{{- define "raykeeper.text" -}}
{{- if kindIs "string" . }}{{ . }}{{ else if not (kindIs "invalid" .) }}{{ toJson . }}{{ end }}
{{- end }}

{{- /* A map of labels and the like as YAML, every value as text: --set makes numbers and booleans of 1 and true. */}}
{{- define "raykeeper.texts" -}}
{{- $texts := dict }}
{{- range $key, $value := . }}{{ $_ := set $texts $key (include "raykeeper.text" $value) }}{{ end }}
{{- toYaml $texts }}
{{- end }}

{{- /* A quantity such as 500m or 4Gi as a number; empty if it is none. */}}
{{- define "raykeeper.quantity" -}}
{{- $text := include "raykeeper.text" . }}
{{- $number := regexFind "^[0-9]+([.][0-9]+)?" $text }}
{{- $factors := dict "" 1.0 "m" 0.001 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 "Pi" 1125899906842624.0 }}
{{- if and $number (hasKey $factors (trimPrefix $number $text)) }}
{{- mulf (float64 $number) (get $factors (trimPrefix $number $text)) }}
{{- end }}
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
