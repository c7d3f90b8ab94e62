{{/*
The settings file. `settings` overrides what the chart only suggests; what the chart has a value of its own for must be
said there (_checks.tpl).
*/}}
{{- define "stream-peer.processSettings" -}}
{{- $kafka := .Values.kafka -}}
{{- $suggested := dict
  "http" (dict "host" "0.0.0.0")
  "log" (dict "format" "json") -}}
{{- $partitions := dict
  "forecast_events" (int $kafka.partitions.forecastEvents)
  "control_events" (int $kafka.partitions.controlEvents)
  "feed_log" (int $kafka.partitions.feedLog)
  "dead_letters" (int $kafka.partitions.deadLetters) -}}
{{- $names := include "stream-peer.serviceNames" (list . (include "stream-peer.fullname" .)) | fromJsonArray -}}
{{- $http := dict "port" (int .Values.http.port) "hosts" (concat $names .Values.http.hosts (include "stream-peer.publicHosts" . | fromYamlArray) | join ",") -}}
{{- if .Values.http.tokenSecret.name -}}{{- $_ := set $http "token_file" "/etc/stream-peer/http-token/token" -}}{{- end -}}
{{- $own := dict
  "bootstrap" $kafka.bootstrapServers
  "prefix" $kafka.prefix
  "id" $kafka.applicationId
  "security" (include "stream-peer.securitySettings" . | fromYaml)
  "session" (int $kafka.sessionSeconds)
  "shutdown_deadline" (int .Values.shutdownDeadlineSeconds)
  "http" $http
  "log" (dict "level" .Values.logLevel)
  "partitions" $partitions
  "replication" (int $kafka.replication) -}}
{{- if .Values.secret.name -}}{{- $_ := set $own "secret_file" "/etc/stream-peer/secret/secret" -}}{{- end -}}
{{- mergeOverwrite $suggested (deepCopy .Values.settings) $own | toYaml -}}
{{- end -}}

{{- define "stream-peer.securitySettings" -}}
{{- with .Values.kafka.security -}}
protocol: {{ .protocol }}
{{- with .mechanism }}
mechanism: {{ . }}
{{- end }}
{{- if .allowPlaintextPassword }}
allow_plaintext_password: true
{{- end }}
{{- if .tokenSecret.name }}
token_file: /etc/stream-peer/token/token
{{- end }}
{{- if .caSecret.name }}
ca_file: /etc/stream-peer/ca/ca.crt
{{- end }}
{{- if .certificateSecret.name }}
cert_file: /etc/stream-peer/certificate/tls.crt
key_file: /etc/stream-peer/certificate/tls.key
{{- end }}
{{- end }}
{{- end -}}

{{- define "stream-peer.settings" -}}
{{- $document := dict -}}
{{- with .Values.feedSettings.defaults -}}{{- $_ := set $document "defaults" . -}}{{- end -}}
{{- with .Values.feedSettings.feeds -}}{{- $_ := set $document "feeds" . -}}{{- end -}}
{{- include "stream-peer.processSettings" . }}
{{- with $document }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/*
The Secrets in use by a component, worker, gateway, set-up or test: volume name -> Secret and the files it gives; the argument is
(list . component). What signs is for workers alone, what tells producers for gateways as well; the signing key of the
chart itself is not there yet when the set-up Job runs.
*/}}
{{- define "stream-peer.secrets" -}}
{{- $values := (index . 0).Values -}}
{{- $security := $values.kafka.security -}}
{{- $files := dict
  "secret" (list $values.secret "secret")
  "http-token" (list $values.http.tokenSecret "token")
  "password" (list $security.passwordSecret "password")
  "token" (list $security.tokenSecret "token")
  "ca" (list $security.caSecret "ca.crt") -}}
{{- range $volume, $wanted := $files }}
{{- with index $wanted 0 }}{{ if .name }}
{{ $volume }}: {secretName: {{ .name | quote }}, items: [{key: {{ .key | quote }}, path: {{ index $wanted 1 }}}]}
{{- end }}{{ end }}
{{- end }}
{{- with $security.certificateSecret }}{{ if .name }}
certificate:
  secretName: {{ .name | quote }}
  items: [{key: {{ .certificateKey | quote }}, path: tls.crt}, {key: {{ .privateKey | quote }}, path: tls.key}]
{{- end }}{{ end }}
{{- if eq (index . 1) "worker" }}
signing-key:
  secretName: {{ include "stream-peer.signingKeyName" (index . 0) | quote }}
  items: [{key: {{ $values.signingKeySecret.key | quote }}, path: signing-key}]
{{- end }}
{{- if eq (index . 1) "gateway" }}
{{- range $volume, $wanted := dict "gateway-tokens" (list $values.gateway.tokensSecret "tokens") "gateway-client-ca" (list $values.gateway.clientCaSecret "ca.crt") }}
{{- with index $wanted 0 }}{{ if .name }}
{{ $volume }}: {secretName: {{ .name | quote }}, items: [{key: {{ .key | quote }}, path: {{ index $wanted 1 }}}]}
{{- end }}{{ end }}
{{- end }}
{{- with $values.gateway.certificateSecret }}{{ if .name }}
gateway-certificate:
  secretName: {{ .name | quote }}
  items: [{key: {{ .certificateKey | quote }}, path: tls.crt}, {key: {{ .privateKey | quote }}, path: tls.key}]
{{- end }}{{ end }}
{{- end }}
{{- if has (index . 1) (list "worker" "gateway") }}
{{- with $values.producersSecret.name }}
producers: {secretName: {{ . | quote }}}
{{- end }}
{{- end }}
{{- end -}}
