{{- /* Who may call, where the API server asks itself instead of the proxy: a mode of --auth, or empty. */}}
{{- define "kuberay-apiserver.authMode" -}}
{{- default "" (.Values.auth).mode }}
{{- end }}

{{- /* Whether requests to Kubernetes are made with the server's own rights: `true`, or empty where they are the caller's. */}}
{{- define "kuberay-apiserver.usesOwnRights" -}}
{{- if not (or (eq (include "kuberay-apiserver.authMode" .) "passthrough") (.Values.auth).impersonate) }}true{{ end }}
{{- end }}

{{- /* Arguments of the mode. */}}
{{- define "kuberay-apiserver.authArguments" -}}
{{- $auth := default dict .Values.auth }}
{{- with include "kuberay-apiserver.authMode" . }}
- --auth={{ . }}
{{- end }}
{{- if eq (include "kuberay-apiserver.authMode" .) "token" }}
- --auth-token-file=/var/run/raykeeper/token
{{- end }}
{{- with $auth.audiences }}
- --auth-audiences={{ join "," . }}
{{- end }}
{{- if $auth.impersonate }}
- --impersonate=true
{{- end }}
{{- if eq (include "kuberay-apiserver.authMode" .) "oidc" }}
{{- $flags := dict "issuerUrl" "issuer-url" "clientId" "client-id" "usernameClaim" "username-claim" "usernamePrefix" "username-prefix"
  "groupsClaim" "groups-claim" "groupsPrefix" "groups-prefix" }}
{{- range $name, $flag := $flags }}
{{- with get $auth.oidc $name }}
- {{ printf "--oidc-%s=%s" $flag . | quote }}
{{- end }}
{{- end }}
{{- with $auth.oidc.requiredClaims }}
{{- $claims := list }}
{{- range $name, $value := . }}{{ $claims = append $claims (printf "%s=%s" $name (include "raykeeper.text" $value)) }}{{ end }}
- {{ printf "--oidc-required-claim=%s" (join "," $claims) | quote }}
{{- end }}
{{- if $auth.oidc.caConfigMap }}
- --oidc-ca-file=/etc/raykeeper/oidc/ca.crt
{{- end }}
{{- end }}
{{- end }}

{{- /* What the mode reads from files: a list of {name, path, source}. */}}
{{- define "kuberay-apiserver.authFiles" -}}
{{- if eq (include "kuberay-apiserver.authMode" .) "token" }}
- name: token
  path: /var/run/raykeeper
  source: {secret: {secretName: {{ include "kuberay-apiserver.authSecret" . }}, items: [{key: token, path: token}]}}
{{- else if and (eq (include "kuberay-apiserver.authMode" .) "oidc") .Values.auth.oidc.caConfigMap }}
- name: oidc-ca
  path: /etc/raykeeper/oidc
  source: {configMap: {name: {{ .Values.auth.oidc.caConfigMap }}, items: [{key: ca.crt, path: ca.crt}]}}
{{- end }}
{{- end }}

{{- define "kuberay-apiserver.authSecret" -}}
{{- default (printf "%s-token" (include "kuberay-apiserver.fullname" .)) .Values.auth.existingSecret }}
{{- end }}

{{- /* Rights that are about callers; empty where the mode needs none. They are cluster-wide, whatever the namespaces of Ray objects are. */}}
{{- define "kuberay-apiserver.callerRules" -}}
{{- $mode := include "kuberay-apiserver.authMode" . }}
{{- if eq $mode "kubernetes" }}
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
{{- end }}
{{- if has $mode (list "kubernetes" "oidc") }}
{{- if .Values.auth.impersonate }}
- apiGroups: [""]
  resources: [groups, serviceaccounts, users]
  verbs: [impersonate]
{{- else }}
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end }}
{{- end }}
{{- end }}

{{- /* Stops on values about callers that contradict each other or that the API server would refuse at its start. */}}
{{- define "kuberay-apiserver.validateAuth" -}}
{{- $auth := default dict .Values.auth }}
{{- $mode := include "kuberay-apiserver.authMode" . }}
{{- if and $mode .Values.security }}
{{- fail (printf "auth.mode %s and security exclude each other: both want the header Authorization. Set security: null to leave the proxy out" $mode) }}
{{- end }}
{{- if and $auth.impersonate (not (has $mode (list "kubernetes" "oidc"))) }}
{{- fail "auth.impersonate needs auth.mode kubernetes or oidc, which know the caller" }}
{{- end }}
{{- if and $auth.audiences (ne $mode "kubernetes") }}
{{- fail "auth.audiences are of tokens of Kubernetes: they need auth.mode kubernetes" }}
{{- end }}
{{- if and (or $auth.token $auth.existingSecret) (ne $mode "token") }}
{{- fail "auth.token and auth.existingSecret need auth.mode token" }}
{{- end }}
{{- if and $auth.token $auth.existingSecret }}
{{- fail "auth.existingSecret holds the token; leave auth.token out" }}
{{- end }}
{{- if and $auth.token (lt (len $auth.token) 16) }}
{{- fail "auth.token must have at least 16 characters" }}
{{- end }}
{{- if eq $mode "oidc" }}
{{- range $name := list "issuerUrl" "clientId" }}
{{- if not (get (default dict $auth.oidc) $name) }}{{ fail (printf "auth.oidc.%s: auth.mode oidc needs it" $name) }}{{ end }}
{{- end }}
{{- else if (default dict $auth.oidc).issuerUrl }}
{{- fail "auth.oidc needs auth.mode oidc" }}
{{- end }}
{{- end }}
