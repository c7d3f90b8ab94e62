{{/* What every pod of the chart has in common; the argument is (list . component ConfigMap account), each by its name. */}}
{{- define "stream-peer.pod" -}}
{{- $root := index . 0 -}}
{{- $values := $root.Values -}}
{{- $component := index . 1 -}}
serviceAccountName: {{ index . 3 }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- $security := dict "runAsNonRoot" true "seccompProfile" (dict "type" "RuntimeDefault") }}
{{- with int $values.runAsUser }}
{{- $security = merge $security (dict "runAsUser" . "runAsGroup" . "fsGroup" . "fsGroupChangePolicy" "OnRootMismatch") }}
{{- end }}
securityContext:
  {{- mergeOverwrite $security $values.podSecurityContext | toYaml | nindent 2 }}
{{- with $values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $values.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumes:
  - name: tmp
    emptyDir: {sizeLimit: 16Mi}
  - name: settings
    configMap: {name: {{ index . 2 }}}
  {{- range $name, $secret := include "stream-peer.secrets" (list $root $component) | fromYaml }}
  - name: {{ $name }}
    secret:
      {{- toYaml $secret | nindent 6 }}
      {{- /* 0440: readable for the pod's group (fsGroup) only. */}}
      defaultMode: 288
  {{- end }}
  {{- with $values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* What every container has in common; its own variables come first: the argument is (list . component variables). */}}
{{- define "stream-peer.container" -}}
{{- $root := index . 0 -}}
{{- $values := $root.Values -}}
{{- $component := index . 1 -}}
image: {{ include "stream-peer.image" $root }}
imagePullPolicy: {{ $values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
env:
  {{- with index . 2 }}
  {{- . | nindent 2 }}
  {{- end }}
  - {name: STREAM_PEER_CONFIG, value: /etc/stream-peer/settings/settings.yaml}
  {{- with $values.kafka.security }}
  {{- if .username }}
  - {name: STREAM_PEER_SECURITY__USERNAME, value: {{ .username | quote }}}
  {{- else if .passwordSecret.usernameKey }}
  - name: STREAM_PEER_SECURITY__USERNAME
    valueFrom: {secretKeyRef: {name: {{ .passwordSecret.name | quote }}, key: {{ .passwordSecret.usernameKey | quote }}}}
  {{- end }}
  {{- if .passwordSecret.name }}
  - {name: STREAM_PEER_SECURITY__PASSWORD_FILE, value: /etc/stream-peer/password/password}
  {{- end }}
  {{- end }}
  {{- if eq $component "worker" }}
  - {name: STREAM_PEER_SIGNING_KEY_FILE, value: /etc/stream-peer/signing-key/signing-key}
  {{- end }}
  {{- if and $values.producersSecret.name (has $component (list "worker" "gateway")) }}
  - {name: STREAM_PEER_PRODUCERS_FILE, value: {{ printf "/etc/stream-peer/producers/%s" $values.producersSecret.key | quote }}}
  {{- end }}
  {{- with $values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with $values.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
  - {name: settings, mountPath: /etc/stream-peer/settings, readOnly: true}
  {{- range $name, $secret := include "stream-peer.secrets" (list $root $component) | fromYaml }}
  - {name: {{ $name }}, mountPath: /etc/stream-peer/{{ $name }}, readOnly: true}
  {{- end }}
  {{- with $values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}
