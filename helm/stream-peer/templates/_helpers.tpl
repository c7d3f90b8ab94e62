{{/* Names and labels. Selectors hold name, instance and component only: they can never change. */}}
{{- define "stream-peer.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "stream-peer.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains (include "stream-peer.name" .) .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "stream-peer.name" .) | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "stream-peer.selector" -}}
app.kubernetes.io/name: {{ include "stream-peer.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "stream-peer.labels" -}}
{{ include "stream-peer.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: stream-peer
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "stream-peer.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "stream-peer.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "stream-peer.image" -}}
{{- $repository := .Values.image.repository -}}
{{- if .Values.image.registry -}}
{{- $repository = printf "%s/%s" .Values.image.registry $repository -}}
{{- end -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" $repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* The settings file. What the chart has a value for wins over `settings`. */}}
{{- define "stream-peer.settings" -}}
{{- $kafka := .Values.kafka -}}
{{- $security := dict "protocol" $kafka.security.protocol -}}
{{- range $key, $value := dict "mechanism" $kafka.security.mechanism "username" $kafka.security.username -}}
{{- if $value -}}{{- $_ := set $security $key $value -}}{{- end -}}
{{- end -}}
{{- if $kafka.security.allowPlaintextPassword -}}{{- $_ := set $security "allow_plaintext_password" true -}}{{- end -}}
{{- if $kafka.security.tokenSecret.name -}}{{- $_ := set $security "token_file" "/etc/stream-peer/token/token" -}}{{- end -}}
{{- if $kafka.security.caSecret.name -}}{{- $_ := set $security "ca_file" "/etc/stream-peer/ca/ca.crt" -}}{{- end -}}
{{- if $kafka.security.certificateSecret.name -}}
{{- $_ := set $security "cert_file" "/etc/stream-peer/certificate/tls.crt" -}}
{{- $_ := set $security "key_file" "/etc/stream-peer/certificate/tls.key" -}}
{{- end -}}
{{- $partitions := dict
  "forecast_events" (int $kafka.partitions.forecastEvents)
  "control_events" (int $kafka.partitions.controlEvents)
  "feed_log" (int $kafka.partitions.feedLog)
  "dead_letters" (int $kafka.partitions.deadLetters) -}}
{{- $document := dict
  "bootstrap" $kafka.bootstrapServers
  "prefix" $kafka.prefix
  "id" $kafka.applicationId
  "stage" .Values.stage
  "security" $security
  "session" (int $kafka.sessionSeconds)
  "shutdown_deadline" (int .Values.shutdownDeadlineSeconds)
  "http" (dict "host" "0.0.0.0" "port" (int .Values.http.port))
  "log" (dict "format" "json" "level" .Values.logLevel)
  "partitions" $partitions
  "replication" (int $kafka.replication) -}}
{{- if .Values.secret.name -}}{{- $_ := set $document "secret_file" "/etc/stream-peer/secret/secret" -}}{{- end -}}
{{- if .Values.feedSettings.defaults -}}{{- $_ := set $document "defaults" .Values.feedSettings.defaults -}}{{- end -}}
{{- if .Values.feedSettings.feeds -}}{{- $_ := set $document "feeds" .Values.feedSettings.feeds -}}{{- end -}}
{{- mergeOverwrite (deepCopy .Values.settings) $document | toYaml -}}
{{- end -}}

{{/* What every container has in common: arguments first, then these. */}}
{{- define "stream-peer.container" -}}
image: {{ include "stream-peer.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end -}}

{{- define "stream-peer.environment" -}}
- name: STREAM_PEER_CONFIG
  value: /etc/stream-peer/settings/settings.yaml
{{- if .Values.kafka.security.passwordSecret.name }}
- name: STREAM_PEER_SECURITY__PASSWORD_FILE
  value: /etc/stream-peer/password/password
{{- end }}
{{- end -}}

{{- define "stream-peer.mounts" -}}
- {name: tmp, mountPath: /tmp}
- {name: settings, mountPath: /etc/stream-peer/settings, readOnly: true}
{{- range $name, $secret := include "stream-peer.secrets" . | fromYaml }}
- {name: {{ $name }}, mountPath: /etc/stream-peer/{{ $name }}, readOnly: true}
{{- end }}
{{- end -}}

{{/* The Secrets in use: volume name -> Secret and the files it gives. */}}
{{- define "stream-peer.secrets" -}}
{{- $security := .Values.kafka.security -}}
{{- with .Values.secret }}{{ if .name }}
secret: {secretName: {{ .name | quote }}, items: [{key: {{ .key | quote }}, path: secret}]}
{{- end }}{{ end }}
{{- with $security.passwordSecret }}{{ if .name }}
password: {secretName: {{ .name | quote }}, items: [{key: {{ .key | quote }}, path: password}]}
{{- end }}{{ end }}
{{- with $security.tokenSecret }}{{ if .name }}
token: {secretName: {{ .name | quote }}, items: [{key: {{ .key | quote }}, path: token}]}
{{- end }}{{ end }}
{{- with $security.caSecret }}{{ if .name }}
ca: {secretName: {{ .name | quote }}, items: [{key: {{ .key | quote }}, path: ca.crt}]}
{{- end }}{{ end }}
{{- with $security.certificateSecret }}{{ if .name }}
certificate: {secretName: {{ .name | quote }}}
{{- end }}{{ end }}
{{- end -}}

{{/* Volumes; the argument is (list . name-of-the-ConfigMap). */}}
{{- define "stream-peer.volumes" -}}
{{- $root := index . 0 -}}
- name: tmp
  emptyDir: {sizeLimit: 16Mi}
- name: settings
  configMap: {name: {{ index . 1 }}}
{{- range $name, $secret := include "stream-peer.secrets" $root | fromYaml }}
- name: {{ $name }}
  secret:
    {{- toYaml $secret | nindent 4 }}
    {{- /* Readable for the pod's group (fsGroup) only. */}}
    defaultMode: 288
{{- end }}
{{- end -}}

{{- define "stream-peer.podSecurity" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Rules between values, which a schema cannot state. */}}
{{- define "stream-peer.checks" -}}
{{- $grace := int .Values.terminationGracePeriodSeconds -}}
{{- if le $grace (int .Values.shutdownDeadlineSeconds) -}}
{{- fail "terminationGracePeriodSeconds must be larger than shutdownDeadlineSeconds: a worker cut short recovers for longer" -}}
{{- end -}}
{{- if and .Values.kafka.staticMembership (ge $grace (int .Values.kafka.sessionSeconds)) -}}
{{- fail "terminationGracePeriodSeconds must be smaller than kafka.sessionSeconds: a restart would not keep its partitions" -}}
{{- end -}}
{{- end -}}
