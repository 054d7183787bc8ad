{{- /* Whether the chart looks after the CRDs: that needs a ClusterRole. */}}
{{- define "kuberay-operator.managesCrds" -}}
{{- if and (ne (toString (.Values.crds).enabled) "false") .Values.rbacEnable (not .Values.singleNamespaceInstall) }}true{{ end }}
{{- end }}

{{- /* `true` if the cluster has CRDs of these names that are not ours, or not of this version. Empty where no cluster can be asked. */}}
{{- define "kuberay-operator.hasOtherCrds" -}}
{{- $differ := dict }}
{{- range $path, $_ := .Files.Glob "crds/*.yaml" }}
{{- $name := printf "%s.ray.io" (base $path | trimPrefix "ray.io_" | trimSuffix ".yaml") }}
{{- with lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" $name }}
{{- $ours := regexFind "raykeeper.io/crd-hash: \\w+" ($.Files.Get $path | trunc 1000) | trimPrefix "raykeeper.io/crd-hash: " }}
{{- if ne $ours (dig "metadata" "annotations" "raykeeper.io/crd-hash" "" .) }}{{ $_ := set $differ $name true }}{{ end }}
{{- end }}
{{- end }}
{{- if $differ }}true{{ end }}
{{- end }}

{{- /* The spec of a Job that runs `raykeeper crds`: (dict root action name labels). */}}
{{- define "kuberay-operator.crdJob" -}}
{{- $values := .root.Values -}}
backoffLimit: 3
activeDeadlineSeconds: 300
# Exit code 2 says that trying again does not help: stored objects would lose fields.
podFailurePolicy:
  rules:
    - action: FailJob
      onExitCodes:
        operator: In
        values: [2]
template:
  metadata:
    labels: {{- toYaml .labels | nindent 6 }}
  spec:
    restartPolicy: Never
    serviceAccountName: {{ .name }}
    {{- with $values.nodeSelector }}
    nodeSelector: {{- include "raykeeper.texts" . | nindent 6 }}
    {{- end }}
    {{- range $field := list "imagePullSecrets" "tolerations" "priorityClassName" }}
    {{- with get $values $field }}
    {{ $field }}: {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- end }}
    {{- with $values.podSecurityContext }}
    securityContext: {{- toYaml . | nindent 6 }}
    {{- end }}
    volumes:
      - name: tmp
        emptyDir: {}
    containers:
      - name: crds
        image: {{ include "kuberay-operator.image" .root }}
        {{- with ($values.image).pullPolicy }}
        imagePullPolicy: {{ . }}
        {{- end }}
        command: [raykeeper, crds, --{{ .action }}]
        terminationMessagePolicy: FallbackToLogsOnError
        {{- with $values.securityContext }}
        securityContext: {{- toYaml . | nindent 10 }}
        {{- end }}
        resources:
          requests:
            cpu: 100m
            memory: 128Mi
          limits:
            memory: 512Mi
        volumeMounts:
          - name: tmp
            mountPath: /tmp
{{- end }}
