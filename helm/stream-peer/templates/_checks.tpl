{{/* Rules between values, which a schema cannot state: each says what to change. */}}
{{- define "stream-peer.checks" -}}
{{- include "stream-peer.checkTimes" . -}}
{{- include "stream-peer.checkSettings" . -}}
{{- include "stream-peer.checkFeedNames" . -}}
{{- include "stream-peer.checkSecurity" . -}}
{{- include "stream-peer.checkScaling" . -}}
{{- include "stream-peer.checkGateway" . -}}
{{- include "stream-peer.checkWaysIn" . -}}
{{- if and .Values.metrics.podMonitor.enabled .Values.metrics.serviceMonitor.enabled -}}
{{- fail "metrics.podMonitor and metrics.serviceMonitor are both enabled: everything would be scraped and counted twice" -}}
{{- end -}}
{{- end -}}

{{- define "stream-peer.checkWaysIn" -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.hosts) -}}
{{- fail "ingress.hosts: an Ingress needs a host, by which workers know that a request is for them" -}}
{{- end -}}
{{- if and .Values.httpRoute.enabled (not (and .Values.httpRoute.hosts .Values.httpRoute.parentRefs)) -}}
{{- fail "httpRoute: set hosts and parentRefs; a route needs a gateway and a host" -}}
{{- end -}}
{{- $security := .Values.kafka.security -}}
{{- if and .Values.strimzi.cluster .Values.strimzi.user -}}
{{- if or (eq $security.protocol "plaintext") (not (has $security.mechanism (list "" "SCRAM-SHA-512"))) -}}
{{- fail "strimzi.user: Strimzi's users log in by SCRAM-SHA-512 or a certificate; set kafka.security, or strimzi.user to false" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "stream-peer.checkTimes" -}}
{{- $grace := int .Values.terminationGracePeriodSeconds -}}
{{- if le $grace (int .Values.shutdownDeadlineSeconds) -}}
{{- fail "terminationGracePeriodSeconds must be larger than shutdownDeadlineSeconds: a worker cut short recovers for longer" -}}
{{- end -}}
{{- if and .Values.kafka.staticMembership (ge $grace (int .Values.kafka.sessionSeconds)) -}}
{{- fail "terminationGracePeriodSeconds must be smaller than kafka.sessionSeconds: a restart would not keep its partitions" -}}
{{- end -}}
{{- end -}}

{{/* A setting that is said twice would silently be one of the two. */}}
{{- define "stream-peer.checkSettings" -}}
{{- $elsewhere := dict
  "bootstrap" "kafka.bootstrapServers" "prefix" "kafka.prefix" "id" "kafka.applicationId" "session" "kafka.sessionSeconds"
  "replication" "kafka.replication" "partitions" "kafka.partitions" "security" "kafka.security"
  "instance" "kafka.staticMembership" "stage" "stages.split" "secret_file" "secret.name"
  "producers_file" "producersSecret.name" "signing_key_file" "signingKeySecret.name"
  "shutdown_deadline" "shutdownDeadlineSeconds" "defaults" "feedSettings.defaults" "feeds" "feedSettings.feeds" -}}
{{- range $name, $value := $elsewhere -}}
{{- if hasKey $.Values.settings $name -}}{{- fail (printf "settings.%s: say it by %s" $name $value) -}}{{- end -}}
{{- end -}}
{{- $nested := dict
  "http" (dict "port" "http.port" "advertise" "http.advertise" "hosts" "http.hosts" "token_file" "http.tokenSecret.name")
  "gateway" (dict "tokens_file" "gateway.tokensSecret.name" "cert_file" "gateway.certificateSecret.name"
    "key_file" "gateway.certificateSecret.name" "client_ca_file" "gateway.clientCaSecret.name")
  "log" (dict "level" "logLevel") -}}
{{- range $block, $names := $nested -}}
{{- $given := dig $block (dict) $.Values.settings -}}
{{- range $name, $value := $names -}}
{{- if hasKey $given $name -}}{{- fail (printf "settings.%s.%s: say it by %s" $block $name $value) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Helm reads `no:` and `off` as false and `010:` as 8, and the chart cannot see what was written. */}}
{{- define "stream-peer.checkFeedNames" -}}
{{- include "stream-peer.checkWords" (dict "feed" "defaults" "within" .Values.feedSettings.defaults) -}}
{{- range $name, $settings := .Values.feedSettings.feeds -}}
{{- include "stream-peer.checkWords" (dict "feed" $name "within" $settings) -}}
{{- if regexMatch "^(true|false|null|[+-]?([0-9]+([.][0-9]*)?([eE][+-]?[0-9]+)?|[.](inf|nan)))$" $name -}}
{{- fail (printf "feedSettings.feeds: Helm read the name of a feed as %s, which may not be what you wrote (no, off, 010): apply the settings of such a feed by `stream-peer settings apply` and set setUp.applyFeedSettings to false" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Settings that are a word, however deep in those of a feed. */}}
{{- define "stream-peer.checkWords" -}}
{{- $feed := .feed -}}
{{- if or (kindIs "map" .within) (kindIs "slice" .within) -}}
{{- range $name, $value := .within -}}
{{- if and (has $name (list "guard" "trust_prior")) (kindIs "bool" $value) -}}
{{- fail (printf "feedSettings: %s of %s: write \"on\" or \"off\" in quotes; Helm reads them without as true and false" $name $feed) -}}
{{- end -}}
{{- include "stream-peer.checkWords" (dict "feed" $feed "within" $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What the set-up Job would refuse some minutes later. */}}
{{- define "stream-peer.checkSecurity" -}}
{{- $security := .Values.kafka.security -}}
{{- $sasl := hasPrefix "sasl_" $security.protocol -}}
{{- $token := eq $security.mechanism "OAUTHBEARER" -}}
{{- $fromElsewhere := or .Values.extraEnv .Values.extraEnvFrom -}}
{{- if and $sasl $token (not $security.tokenSecret.name) (not $fromElsewhere) -}}
{{- fail "kafka.security.tokenSecret.name: OAUTHBEARER needs a Secret with the token" -}}
{{- end -}}
{{- if and $sasl (not $token) (not $fromElsewhere) -}}
{{- if not $security.passwordSecret.name -}}
{{- fail (printf "kafka.security.passwordSecret.name: %s needs a Secret with the password" $security.protocol) -}}
{{- end -}}
{{- if not (or $security.username $security.passwordSecret.usernameKey) -}}
{{- fail (printf "kafka.security.username: %s needs it, or passwordSecret.usernameKey" $security.protocol) -}}
{{- end -}}
{{- end -}}
{{- if and (eq $security.protocol "sasl_plaintext") (not $security.allowPlaintextPassword) -}}
{{- fail "kafka.security.allowPlaintextPassword: sasl_plaintext shows the password to anyone on the wire; use sasl_ssl" -}}
{{- end -}}
{{- if not $sasl -}}
{{- range $name := list "passwordSecret" "tokenSecret" -}}
{{- if (index $security $name).name -}}
{{- fail (printf "kafka.security.%s would not be used by protocol %s: set sasl_ssl" $name $security.protocol) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if not (hasSuffix "ssl" $security.protocol) -}}
{{- range $name := list "caSecret" "certificateSecret" -}}
{{- if (index $security $name).name -}}
{{- fail (printf "kafka.security.%s would not be used by protocol %s: set ssl or sasl_ssl" $name $security.protocol) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What a gateway would end with. */}}
{{- define "stream-peer.checkGateway" -}}
{{- with .Values.gateway -}}
{{- if .enabled -}}
{{- if not $.Values.producersSecret.name -}}
{{- fail "producersSecret.name: a gateway needs it, as who posts is a producer" -}}
{{- end -}}
{{- if not (or .tokensSecret.name .clientCaSecret.name) -}}
{{- fail "gateway.tokensSecret.name: nobody could post without it, or gateway.clientCaSecret.name" -}}
{{- end -}}
{{- if and .clientCaSecret.name (not .certificateSecret.name) -}}
{{- fail "gateway.certificateSecret.name: client certificates need the gateway's own" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "stream-peer.checkScaling" -}}
{{- $scaling := .Values.autoscaling -}}
{{- if ne $scaling.by "none" -}}
{{- range include "stream-peer.workloads" . | fromYamlArray -}}
{{- if gt (int .maxReplicas) (int .partitions) -}}
{{- fail (printf "autoscaling.maxReplicas: %d workers of %s would share %d partitions, and some have nothing to do" (int .maxReplicas) .name (int .partitions)) -}}
{{- end -}}
{{- if gt (int $scaling.minReplicas) (int .maxReplicas) -}}
{{- fail (printf "autoscaling.minReplicas is above the maxReplicas of %s" .name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and (eq $scaling.by "lag") (hasPrefix "sasl_" .Values.kafka.security.protocol) (not $scaling.lag.authenticationRef.name) -}}
{{- include "stream-peer.checkLogin" .Values.kafka.security -}}
{{- end -}}
{{- end -}}

{{/* KEDA logs in with Secrets that it reads itself: what a worker has by extraEnv or from a file is not there for it. */}}
{{- define "stream-peer.checkLogin" -}}
{{- $own := "or name a TriggerAuthentication of your own in autoscaling.lag.authenticationRef.name" -}}
{{- if eq .mechanism "OAUTHBEARER" -}}
{{- fail "autoscaling.lag.authenticationRef.name: KEDA cannot read a token file; name a TriggerAuthentication of your own" -}}
{{- end -}}
{{- if not .passwordSecret.name -}}
{{- fail (printf "kafka.security.passwordSecret.name: KEDA needs it with autoscaling.by lag, %s" $own) -}}
{{- end -}}
{{- if not (or .username .passwordSecret.usernameKey) -}}
{{- fail (printf "kafka.security.username: KEDA needs it, or passwordSecret.usernameKey, with autoscaling.by lag, %s" $own) -}}
{{- end -}}
{{- end -}}
