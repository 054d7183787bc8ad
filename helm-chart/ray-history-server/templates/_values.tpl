{{- /* Stops at values that the chart does not know, and names the nearest that it does. values.keys.json has the known ones. */}}
{{- define "raykeeper.checkValues" -}}
{{- $keys := .Files.Get "values.keys.json" | fromJson }}
{{- $found := dict "errors" list }}
{{- include "raykeeper.checkKeys" (list $found $keys "" .Values (get $keys "values")) }}
{{- with get $found "errors" }}
{{- fail (printf "\n%s" (join "\n" .)) }}
{{- end }}
{{- end }}

{{- /* (list found keys path value known): `known` is a map of names, the name of a type, or null for anything. */}}
{{- define "raykeeper.checkKeys" -}}
{{- $found := index . 0 }}
{{- $keys := index . 1 }}
{{- $path := index . 2 }}
{{- $value := index . 3 }}
{{- $known := index . 4 }}
{{- if kindIs "string" $known }}{{ $known = get (get $keys "types") $known }}{{ end }}
{{- if and (kindIs "map" $value) (kindIs "map" $known) }}
{{- range $key, $part := $value }}
{{- $place := ternary (printf "%s.%s" $path $key) $key (ne $path "") }}
{{- if or (hasKey $known $key) (hasKey $known "*") }}
{{- include "raykeeper.checkKeys" (list $found $keys $place $part (get $known (ternary $key "*" (hasKey $known $key)))) }}
{{- else }}
{{- $_ := set $found "errors" (append (get $found "errors") (printf "%s: there is no such value%s" $place (include "raykeeper.hint" (list $keys $path $key $known)))) }}
{{- end }}
{{- end }}
{{- else if and (kindIs "slice" $value) (kindIs "map" $known) }}
{{- range $index, $part := $value }}
{{- if kindIs "invalid" $part }}
{{- $_ := set $found "errors" (append (get $found "errors") (printf "%s[%d]: is empty; a list that --set makes begins at [0]" $path $index)) }}
{{- end }}
{{- include "raykeeper.checkKeys" (list $found $keys (printf "%s[%d]" $path $index) $part $known) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* `; did you mean ...?`: a name that looks alike, or the same name in another place; empty if there is none. */}}
{{- define "raykeeper.hint" -}}
{{- $path := index . 1 }}
{{- $key := index . 2 }}
{{- $place := ternary (printf "%s.%s" $path $key) $key (ne $path "") }}
{{- $told := get (get (index . 0) "hints") $place | default (get (get (index . 0) "hints") (printf "*.%s" $key)) }}
{{- if contains " " $told }}; {{ $told }}
{{- else if $told }}; did you mean {{ hasPrefix "*." $told | ternary (printf "%s.%s" $path (trimPrefix "*." $told)) $told }}?
{{- else }}
{{- $best := "" }}
{{- $bestScore := 39 }}
{{- range keys (index . 3) | sortAlpha }}
{{- $score := include "raykeeper.likeness" (list $key .) | int }}
{{- if gt $score $bestScore }}
{{- $best = ternary (printf "%s.%s" $path .) . (ne $path "") }}
{{- $bestScore = $score }}
{{- end }}
{{- end }}
{{- if and (lt $bestScore 80) (ne $key "enabled") }}
{{- range $place, $known := get (index . 0) "values" }}
{{- if kindIs "string" $known }}{{ $known = get (get (index $ 0) "types") $known }}{{ end }}
{{- if eq $place $key }}{{ $best = $place }}
{{- else if and (kindIs "map" $known) (hasKey $known $key) }}{{ $best = printf "%s.%s" $place $key }}
{{- end }}
{{- end }}
{{- end }}
{{- with $best }}; did you mean {{ . }}?{{ end }}
{{- end }}
{{- end }}

{{- /* How alike two names are, 0 to 100: the share of pairs of letters that both have. */}}
{{- define "raykeeper.likeness" -}}
{{- $one := printf "^%s$" (index . 0 | lower) }}
{{- $other := printf "^%s$" (index . 1 | lower) }}
{{- $common := 0 }}
{{- range until (sub (len $one) 1 | int) }}
{{- if contains (substr . (add . 2 | int) $one) $other }}{{ $common = add $common 1 }}{{ end }}
{{- end }}
{{- div (mul 200 $common) (sub (add (len $one) (len $other)) 2) }}
{{- end }}
