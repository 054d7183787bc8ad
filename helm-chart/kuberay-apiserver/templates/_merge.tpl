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
{{- $target := index . 0 }}
{{- $key := index . 1 }}
{{- $old := index . 2 }}
{{- $new := index . 3 }}
{{- if include "raykeeper.identityField" $key }}
{{- $names := list }}
{{- range $old }}{{ $names = append $names (default "" .name) }}{{ end }}
{{- $items := $old }}
{{- range $one := $new }}
{{- $field := include "raykeeper.identityField" $key }}
{{- /* Two ports of one name would be refused, so one with a name that is there must be meant; else they are told apart as by Kubernetes. */}}
{{- if and (eq $key "ports") (not (hasKey $one "containerPort")) $one.name (has $one.name $names) }}{{ $field = "name" }}{{ end }}
{{- $found := false }}
{{- range $old }}
{{- if and (not $found) (eq (include "raykeeper.identity" (list $one $field)) (include "raykeeper.identity" (list . $field))) }}
{{- $found = true }}
{{- include "raykeeper.merge" (list . $one) }}
{{- end }}
{{- end }}
{{- if not $found }}{{ $items = append $items $one }}{{ end }}
{{- end }}
{{- $_ := set $target $key $items }}
{{- else }}
{{- $_ := set $target $key $new }}
{{- end }}
{{- end }}

{{- /* The field by which the things in a list are told apart; empty for a list that is replaced as a whole. */}}
{{- define "raykeeper.identityField" -}}
{{- get (dict "containers" "name" "initContainers" "name" "env" "name" "volumes" "name" "imagePullSecrets" "name"
  "resourceClaims" "name" "ports" "port" "volumeMounts" "mountPath" "volumeDevices" "devicePath" "hostAliases" "ip"
  "workerGroupSpecs" "groupName") . }}
{{- end }}

{{- /* What tells one thing from others: (list item field). A port, of a container or a Service, is its number and its protocol. */}}
{{- define "raykeeper.identity" -}}
{{- $item := index . 0 }}
{{- if eq (index . 1) "port" }}{{ printf "%s/%s" (default $item.port $item.containerPort | include "raykeeper.text") (default "TCP" $item.protocol) }}
{{- else }}{{ get $item (index . 1) | toString }}
{{- end }}
{{- end }}
