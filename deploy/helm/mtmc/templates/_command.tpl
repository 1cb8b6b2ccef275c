{{- /* A pod of the command line, with the administrator's token: (list $ ARGUMENTS). */ -}}
{{- define "mtmc.commandPod" -}}
{{- $top := index . 0 -}}
{{- include "mtmc.podSpec" (list $top "check" dict) }}
restartPolicy: Never
securityContext: {{ include "mtmc.podSecurity" $top | nindent 2 }}
containers:
  - name: mtmc
    image: {{ include "mtmc.image" (list $top "cli") }}
    imagePullPolicy: {{ $top.Values.image.pullPolicy }}
    securityContext: {{ include "mtmc.containerSecurity" $top | nindent 6 }}
    args:
      - --endpoint={{ include "mtmc.address" (list $top "coordinator" 50151) }}
      {{- include "mtmc.clientArgs" (list $top "admin.token") | nindent 6 }}
      {{- toYaml (index . 1) | nindent 6 }}
    resources:
      requests: {cpu: 50m, memory: 64Mi}
      limits: {cpu: 500m, memory: 256Mi}
    volumeMounts:
      - {name: tmp, mountPath: /tmp}
      {{- include "mtmc.secretMounts" $top | nindent 6 }}
volumes:
  - name: tmp
    emptyDir: {sizeLimit: 64Mi}
  {{- include "mtmc.secretVolumes" (list $top (list "ca.crt") (list "admin.token")) | nindent 2 }}
{{- end }}
