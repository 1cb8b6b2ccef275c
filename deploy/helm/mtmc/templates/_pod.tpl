{{- /* What every pod has: (list $ COMPONENT SETTINGS). */ -}}
{{- define "mtmc.podSpec" -}}
{{- $top := index . 0 }}{{ $settings := index . 2 -}}
automountServiceAccountToken: false
enableServiceLinks: false
serviceAccountName: {{ include "mtmc.fullname" $top }}
{{- with $top.Values.image.pullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $settings.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $settings.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $settings.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{- define "mtmc.podMetadata" -}}
{{- $top := index . 0 }}{{ $component := index . 1 }}{{ $settings := index . 2 -}}
labels:
  {{- include "mtmc.labels" $top | nindent 2 }}
  app.kubernetes.io/component: {{ $component }}
{{- with $settings.podAnnotations }}
annotations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* The Pod Security Standard `restricted`. */ -}}
{{- define "mtmc.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "mtmc.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- /* Of (dict "port" NAME "start" SECONDS): liveness depends on nothing but the process. */ -}}
{{- define "mtmc.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: {{ .port }}}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: {{ max 15 (div .start 2) }}
livenessProbe:
  httpGet: {path: /healthz, port: {{ .port }}}
  periodSeconds: 10
  timeoutSeconds: 6
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: {{ .port }}}
  periodSeconds: 5
  timeoutSeconds: 6
{{- end }}

{{- define "mtmc.logArgs" -}}
- --log-level={{ .Values.log.level }}
- --log-format={{ .Values.log.format }}
{{- with .Values.otlpEndpoint }}
- --otlp-endpoint={{ . }}
{{- end }}
{{- end }}

{{- /* Of a daemon with services. */ -}}
{{- define "mtmc.serverArgs" -}}
{{- if eq .Values.tls.mode "off" }}
- --insecure
{{- else }}
- --tls-cert=/etc/mtmc/tls/tls.crt
- --tls-key=/etc/mtmc/tls/tls.key
- --tls-ca=/etc/mtmc/tls/ca.crt
{{- if .Values.tls.clients.required }}
- --tls-client-ca=/etc/mtmc/clients/ca.crt
{{- end }}
{{- end }}
{{- if ne .Values.auth.mode "off" }}
- --tokens=/etc/mtmc/auth/tokens
{{- with .Values.auth.requestsPerSecond }}
- --requests-per-second={{ . }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Of a program that calls the coordinator with the token of FILE: (list $ FILE). */ -}}
{{- define "mtmc.clientArgs" -}}
{{- $top := index . 0 -}}
{{- if eq $top.Values.tls.mode "off" }}
- --insecure
{{- else }}
- --tls-ca=/etc/mtmc/tls/ca.crt
{{- if $top.Values.tls.clients.required }}
- --tls-cert=/etc/mtmc/clients/tls.crt
- --tls-key=/etc/mtmc/clients/tls.key
{{- end }}
{{- end }}
{{- if ne $top.Values.auth.mode "off" }}
- --token-file=/etc/mtmc/auth/{{ index . 1 }}
{{- end }}
{{- end }}

{{- define "mtmc.secretMounts" -}}
{{- if ne .Values.tls.mode "off" }}
- {name: tls, mountPath: /etc/mtmc/tls, readOnly: true}
{{- if .Values.tls.clients.required }}
- {name: clients, mountPath: /etc/mtmc/clients, readOnly: true}
{{- end }}
{{- end }}
{{- if ne .Values.auth.mode "off" }}
- {name: auth, mountPath: /etc/mtmc/auth, readOnly: true}
{{- end }}
{{- end }}

{{- /* Only the files that a pod needs: (list $ (list TLS-FILE ...) (list AUTH-FILE ...)). */ -}}
{{- define "mtmc.secretVolumes" -}}
{{- $top := index . 0 -}}
{{- if ne $top.Values.tls.mode "off" }}
- name: tls
  secret:
    secretName: {{ include "mtmc.tlsSecret" $top }}
    defaultMode: 0440
    items:
      {{- range index . 1 }}
      - {key: {{ . }}, path: {{ . }}}
      {{- end }}
{{- if $top.Values.tls.clients.required }}
- name: clients
  secret:
    secretName: {{ include "mtmc.clientsSecret" $top }}
    defaultMode: 0440
    items:
      # Who serves has to know whom it lets in, who calls what to show.
      {{- range ternary (list "ca.crt") (list "tls.crt" "tls.key") (has "tls.key" (index . 1)) }}
      - {key: {{ . }}, path: {{ . }}}
      {{- end }}
{{- end }}
{{- end }}
{{- if ne $top.Values.auth.mode "off" }}
- name: auth
  secret:
    secretName: {{ include "mtmc.authSecret" $top }}
    defaultMode: 0440
    items:
      {{- range index . 2 }}
      - {key: {{ . }}, path: {{ . }}}
      {{- end }}
{{- end }}
{{- end }}
