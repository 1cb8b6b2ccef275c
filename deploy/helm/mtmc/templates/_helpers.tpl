{{- define "mtmc.fullname" -}}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride }}
{{- else if contains "mtmc" .Release.Name }}{{ .Release.Name | trunc 30 | trimSuffix "-" }}
{{- else }}{{ printf "%s-mtmc" (.Release.Name | trunc 25 | trimSuffix "-") }}{{ end -}}
{{- end }}

{{- define "mtmc.selector" -}}
app.kubernetes.io/name: mtmc
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "mtmc.labels" -}}
{{ include "mtmc.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- end }}

{{- /* The image of (list $ ROLE). */ -}}
{{- define "mtmc.image" -}}
{{- $top := index . 0 }}{{ $role := index . 1 -}}
{{- $name := printf "%s/mtmc-%s" $top.Values.image.registry $role -}}
{{- with index $top.Values.image.digests $role }}{{ printf "%s@%s" $name . }}
{{- else }}{{ printf "%s:%s" $name ($top.Values.image.tag | default $top.Chart.AppVersion) }}{{ end -}}
{{- end }}

{{- /* HOST:PORT of a Service of this release: (list $ NAME PORT). */ -}}
{{- define "mtmc.address" -}}
{{- $top := index . 0 -}}
{{ include "mtmc.fullname" $top }}-{{ index . 1 }}.{{ $top.Release.Namespace }}.svc:{{ index . 2 }}
{{- end }}

{{- define "mtmc.tlsSecret" -}}
{{ .Values.tls.existingSecret | default (printf "%s-tls" (include "mtmc.fullname" .)) }}
{{- end }}

{{- define "mtmc.clientsSecret" -}}
{{ .Values.tls.clients.existingSecret | default (printf "%s-clients" (include "mtmc.fullname" .)) }}
{{- end }}

{{- define "mtmc.authSecret" -}}
{{ .Values.auth.existingSecret | default (printf "%s-tokens" (include "mtmc.fullname" .)) }}
{{- end }}

{{- define "mtmc.postgresqlSecret" -}}
{{ .Values.coordinator.store.postgresql.existingSecret }}
{{- end }}
