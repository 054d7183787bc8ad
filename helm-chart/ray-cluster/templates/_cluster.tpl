{{- /*
The spec of a RayCluster from the values, for the charts ray-cluster, ray-job and ray-service.
Templates that make an object take the dict that they write into as their first argument and print nothing.
*/}}

{{- define "ray-cluster.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "ray-cluster.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- $made := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) }}
{{- default $made .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "ray-cluster.chart" -}}
{{- printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* Without app.kubernetes.io/name: the operator gives its own to the pods. */}}
{{- define "ray-cluster.labels" -}}
helm.sh/chart: {{ include "ray-cluster.chart" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "ray-cluster.serviceAccountName" -}}
{{- with .Values.serviceAccount }}
{{- if .create }}{{ default (include "ray-cluster.fullname" $) .name }}{{ end }}
{{- end }}
{{- end }}

{{- /* name, namespace, labels and annotations of the object that the chart makes. */}}
{{- define "ray-cluster.metadata" -}}
{{- include "raykeeper.metadata" (dict "root" . "name" (include "ray-cluster.fullname" .) "annotations" .Values.annotations
  "labels" (merge dict (default dict .Values.labels) (include "ray-cluster.labels" . | fromYaml))) }}
{{- end }}

{{- /* Copies the values of these names that are set: (list target values names). */}}
{{- define "ray-cluster.copy" -}}
{{- $target := index . 0 }}
{{- $values := index . 1 }}
{{- range index . 2 }}
{{- $value := get $values . }}
{{- if or $value (kindIs "bool" $value) (kindIs "float64" $value) (kindIs "int64" $value) }}
{{- $_ := set $target . $value }}
{{- end }}
{{- end }}
{{- end }}

{{- /*
Limits and requests: (list target resources defaults isWorker). Of a resource that only one of them has, the other gets the same.
The values of `head` and `worker` name cpu and memory as "", which means the default; one that is missing there was removed by the user.
*/}}
{{- define "ray-cluster.resources" -}}
{{- $target := index . 0 }}
{{- $resources := index . 1 }}
{{- $defaults := index . 2 }}
{{- $named := index . 3 }}
{{- $sides := dict "limits" "requests" "requests" "limits" }}
{{- range $side, $other := $sides }}
{{- $mine := default dict (get $resources $side) }}
{{- $theirs := default dict (get $resources $other) }}
{{- $isRemoved := ternary (not (hasKey $resources $side)) (and (hasKey $resources $side) (kindIs "invalid" (get $resources $side))) $named }}
{{- $rendered := dict }}
{{- range ternary list (concat (keys $mine) (keys $theirs) | uniq) $isRemoved }}
{{- $value := get $mine . }}
{{- $isUnset := or (kindIs "invalid" $value) (eq (toString $value) "") }}
{{- $isNull := or (and (hasKey $mine .) (kindIs "invalid" $value)) (and $named (hasKey $defaults .) (not (hasKey $mine .))) }}
{{- if $isUnset }}
{{- $value = get $theirs . }}
{{- if or (kindIs "invalid" $value) (eq (toString $value) "") }}{{ $value = get $defaults . }}{{ end }}
{{- end }}
{{- if not $isNull }}{{ $_ := set $rendered . $value }}{{ end }}
{{- end }}
{{- if $rendered }}{{ $_ := set $target $side $rendered }}{{ end }}
{{- end }}
{{- with $resources.claims }}{{ $_ := set $target "claims" . }}{{ end }}
{{- end }}

{{- /* Stops where a container asks for more than its limit: (list template place). Kubernetes would refuse the pod, long after Helm was content. */}}
{{- define "ray-cluster.checkRequests" -}}
{{- $place := index . 1 }}
{{- range (index . 0).spec.containers }}
{{- $limits := default dict (.resources).limits }}
{{- range $name, $request := default dict (.resources).requests }}
{{- $asked := include "raykeeper.quantity" $request }}
{{- $most := include "raykeeper.quantity" (get $limits $name) }}
{{- if and $asked $most (gt (float64 $asked) (float64 $most)) }}
{{- fail (printf "%s: the request for %s, %v, is above its limit, %v; set only one of them, and the other follows" $place $name $request (get $limits $name)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Lines about worker groups whose number the operator does not take as it is, for the notes. */}}
{{- define "ray-cluster.notes" -}}
{{- $groups := merge dict (default dict .Values.additionalWorkerGroups) }}
{{- $_ := set $groups (include "raykeeper.text" (default "workergroup" (.Values.worker).groupName)) (default dict .Values.worker) }}
{{- range $name, $group := $groups }}
{{- if and $group (not $group.disabled) (not (kindIs "invalid" $group.replicas)) }}
{{- $least := int64 (ternary 0 $group.minReplicas (kindIs "invalid" $group.minReplicas)) }}
{{- $most := int64 (ternary 2147483647 $group.maxReplicas (kindIs "invalid" $group.maxReplicas)) }}
{{- if or (lt (int64 $group.replicas) $least) (gt (int64 $group.replicas) $most) }}

Worker group {{ $name }} gets {{ ternary $least $most (lt (int64 $group.replicas) $least) }} replicas and not {{ $group.replicas }}: minReplicas is {{ $least }}, maxReplicas {{ $most }}.
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The image of a group; what it leaves out is that of all. */}}
{{- define "ray-cluster.image" -}}
{{- $own := default dict .group.image }}
{{- $image := merge dict $own (default dict .root.Values.image) }}
{{- $digest := ternary $own.digest $image.digest (hasKey $own "tag") }}
{{- if $digest }}{{ printf "%s@%s" $image.repository $digest }}
{{- else }}{{ printf "%s:%s" $image.repository (include "raykeeper.text" $image.tag) }}
{{- end }}
{{- end }}

{{- /* The Ray container: (list target root group name defaults isNamed). */}}
{{- define "ray-cluster.container" -}}
{{- $target := index . 0 }}
{{- $root := index . 1 }}
{{- $group := index . 2 }}
{{- $_ := set $target "name" (index . 3) }}
{{- $_ := set $target "image" (include "ray-cluster.image" (dict "root" $root "group" $group)) }}
{{- with (merge dict (default dict $group.image) (default dict $root.Values.image)).pullPolicy }}
{{- $_ := set $target "imagePullPolicy" . }}
{{- end }}
{{- with concat (default list ($root.Values.common).containerEnv) (default list $group.containerEnv) }}
{{- $_ := set $target "env" . }}
{{- end }}
{{- include "ray-cluster.copy" (list $target $group (list "command" "args" "envFrom" "ports" "volumeMounts" "lifecycle" "securityContext")) }}
{{- $resources := dict }}
{{- if $group.resources }}
{{- include "ray-cluster.resources" (list $resources $group.resources (index . 4) (index . 5)) }}
{{- else if not (index . 5) }}
{{- $resources = dict "limits" (index . 4) "requests" (index . 4) }}
{{- end }}
{{- with $resources }}{{ $_ := set $target "resources" . }}{{ end }}
{{- end }}

{{- /* The pod template of a group: (list target root group container defaults isNamed). */}}
{{- define "ray-cluster.template" -}}
{{- $target := index . 0 }}
{{- $root := index . 1 }}
{{- $group := index . 2 }}
{{- $labels := merge dict (default dict $group.labels) (include "ray-cluster.labels" $root | fromYaml) (default dict $root.Values.commonLabels) }}
{{- $metadata := dict "labels" (include "raykeeper.texts" $labels | fromYaml) }}
{{- with $group.annotations }}{{ $_ := set $metadata "annotations" (include "raykeeper.texts" . | fromYaml) }}{{ end }}
{{- $container := dict }}
{{- include "ray-cluster.container" (prepend (rest .) $container) }}
{{- $pod := dict "containers" (concat (list $container) (default list $group.sidecarContainers)) }}
{{- with include "ray-cluster.serviceAccountName" $root }}{{ $_ := set $pod "serviceAccountName" . }}{{ end }}
{{- with $root.Values.imagePullSecrets }}{{ $_ := set $pod "imagePullSecrets" . }}{{ end }}
{{- include "ray-cluster.copy" (list $pod $group (list "initContainers" "volumes" "dnsConfig" "affinity" "tolerations"
  "priorityClassName" "priority" "topologySpreadConstraints" "restartPolicy" "runtimeClassName" "serviceAccountName" "resourceClaims")) }}
{{- with $group.nodeSelector }}{{ $_ := set $pod "nodeSelector" (include "raykeeper.texts" . | fromYaml) }}{{ end }}
{{- with $group.podSecurityContext }}{{ $_ := set $pod "securityContext" . }}{{ end }}
{{- $template := deepCopy (dict "metadata" $metadata "spec" $pod) }}
{{- include "raykeeper.merge" (list $template $group.template) }}
{{- $_ := set $target "template" $template }}
{{- end }}

{{- /* What head and workers have in common: (list target root group container defaults isNamed). */}}
{{- define "ray-cluster.group" -}}
{{- $target := index . 0 }}
{{- $group := index . 2 }}
{{- $parameters := dict }}
{{- range list $group.initArgs $group.rayStartParams }}
{{- range $key, $value := default dict . }}
{{- $_ := set $parameters $key (include "raykeeper.text" $value) }}
{{- end }}
{{- end }}
{{- with $parameters }}{{ $_ := set $target "rayStartParams" . }}{{ end }}
{{- with $group.rayResources }}{{ $_ := set $target "resources" (include "raykeeper.texts" . | fromYaml) }}{{ end }}
{{- with $group.rayLabels }}{{ $_ := set $target "labels" (include "raykeeper.texts" . | fromYaml) }}{{ end }}
{{- include "ray-cluster.template" . }}
{{- end }}

{{- define "ray-cluster.head" -}}
{{- $target := index . 0 }}
{{- $root := index . 1 }}
{{- $head := default dict $root.Values.head }}
{{- include "ray-cluster.copy" (list $target $head (list "headService" "enableIngress" "ingressOptions")) }}
{{- with ($root.Values.service).type }}{{ $_ := set $target "serviceType" . }}{{ end }}
{{- include "ray-cluster.group" (list $target $root $head "ray-head" (dict "cpu" "1" "memory" "5Gi") true) }}
{{- include "ray-cluster.checkRequests" (list $target.template "head.resources") }}
{{- end }}

{{- /* A group of workers: (list target root group name isNamed). */}}
{{- define "ray-cluster.workers" -}}
{{- $target := index . 0 }}
{{- $group := index . 2 }}
{{- $name := include "raykeeper.text" (index . 3) }}
{{- $_ := set $target "groupName" $name }}
{{- $least := ternary 0 $group.minReplicas (kindIs "invalid" $group.minReplicas) }}
{{- $most := ternary 2147483647 $group.maxReplicas (kindIs "invalid" $group.maxReplicas) }}
{{- if gt (int64 $least) (int64 $most) }}
{{- fail (printf "worker group %s: minReplicas %d is above maxReplicas %d" $name (int64 $least) (int64 $most)) }}
{{- end }}
{{- if and $group.suspend ((index . 1).Values.head).enableInTreeAutoscaling }}
{{- fail (printf "worker group %s: an autoscaled cluster cannot suspend a group; turn head.enableInTreeAutoscaling off" $name) }}
{{- end }}
{{- $_ := set $target "minReplicas" $least }}
{{- $_ := set $target "maxReplicas" $most }}
{{- $_ := set $target "numOfHosts" 1 }}
{{- include "ray-cluster.copy" (list $target $group (list "replicas" "numOfHosts" "idleTimeoutSeconds" "scaleStrategy" "suspend")) }}
{{- include "ray-cluster.group" (list $target (index . 1) $group "ray-worker" (dict "cpu" "1" "memory" "1Gi") (index . 4)) }}
{{- include "ray-cluster.checkRequests" (list $target.template (printf "worker group %s" $name)) }}
{{- end }}

{{- define "ray-cluster.faultTolerance" -}}
{{- $options := index . 1 }}
{{- if and (ne (default "redis" $options.backend) "rocksdb") (not $options.redisAddress) }}
{{- fail "gcsFaultTolerance.enabled needs gcsFaultTolerance.redisAddress, such as redis-master:6379, or gcsFaultTolerance.backend: rocksdb" }}
{{- end }}
{{- include "ray-cluster.copy" (list (index . 0) $options
  (list "redisAddress" "externalStorageNamespace" "redisPassword" "redisUsername" "backend" "storage")) }}
{{- end }}

{{- /* The whole spec of the RayCluster: (list target root). */}}
{{- define "ray-cluster.spec" -}}
{{- $target := index . 0 }}
{{- $root := index . 1 }}
{{- $values := $root.Values }}
{{- include "ray-cluster.copy" (list $target (default dict $values.head) (list "rayVersion" "enableInTreeAutoscaling" "autoscalerOptions")) }}
{{- if ($values.gcsFaultTolerance).enabled }}
{{- $options := dict }}
{{- include "ray-cluster.faultTolerance" (list $options $values.gcsFaultTolerance) }}
{{- $_ := set $target "gcsFaultToleranceOptions" $options }}
{{- end }}
{{- $head := dict }}
{{- include "ray-cluster.head" (list $head $root) }}
{{- $_ := set $target "headGroupSpec" $head }}
{{- $groups := list }}
{{- $worker := default dict $values.worker }}
{{- $workerName := include "raykeeper.text" (default "workergroup" $worker.groupName) }}
{{- if not $worker.disabled }}
{{- $group := dict }}
{{- include "ray-cluster.workers" (list $group $root $worker $workerName true) }}
{{- $groups = append $groups $group }}
{{- end }}
{{- range $name, $wanted := $values.additionalWorkerGroups }}
{{- if and $wanted (not $wanted.disabled) }}
{{- if and (not $worker.disabled) (eq $name $workerName) }}
{{- fail (printf "two worker groups are called %s: change worker.groupName, or the name in additionalWorkerGroups" $name) }}
{{- end }}
{{- $group := dict }}
{{- include "ray-cluster.workers" (list $group $root $wanted $name false) }}
{{- $groups = append $groups $group }}
{{- end }}
{{- end }}
{{- $_ := set $target "workerGroupSpecs" $groups }}
{{- end }}
