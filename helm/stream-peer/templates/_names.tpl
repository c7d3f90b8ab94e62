{{/* Names and labels. Selectors hold what can never change: name, instance, component and stage. */}}
{{- define "stream-peer.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* 43: a StatefulSet's name, with a stage behind it, may have 52 characters, because of the labels of its pods. */}}
{{- define "stream-peer.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 43 | trimSuffix "-" -}}
{{- else if contains (include "stream-peer.name" .) .Release.Name -}}
{{- .Release.Name | trunc 43 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "stream-peer.name" .) | trunc 43 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Host names of the ways in from outside. */}}
{{- define "stream-peer.publicHosts" -}}
{{- $hosts := list -}}
{{- range $way := list .Values.ingress .Values.httpRoute -}}
{{- if $way.enabled -}}{{- $hosts = concat $hosts $way.hosts -}}{{- end -}}
{{- end -}}
{{- $hosts | uniq | toYaml -}}
{{- end -}}

{{- define "stream-peer.setUpName" -}}
{{ include "stream-peer.fullname" . }}-set-up
{{- end -}}

{{/* The Service that gives each pod a name of its own. */}}
{{- define "stream-peer.headlessName" -}}
{{ include "stream-peer.fullname" . }}-headless
{{- end -}}

{{/* The Secret with the key that signs what the service writes itself: one that exists, or the chart's own. */}}
{{- define "stream-peer.signingKeyName" -}}
{{ .Values.signingKeySecret.name | default (printf "%s-signing-key" (include "stream-peer.fullname" .)) }}
{{- end -}}

{{- define "stream-peer.release" -}}
app.kubernetes.io/name: {{ include "stream-peer.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* All workers of the release, whatever their stage. */}}
{{- define "stream-peer.workers" -}}
{{ include "stream-peer.release" . }}
app.kubernetes.io/component: worker
{{- end -}}

{{- define "stream-peer.gatewayName" -}}
{{ include "stream-peer.fullname" . }}-gateway
{{- end -}}

{{- define "stream-peer.gateways" -}}
{{ include "stream-peer.release" . }}
app.kubernetes.io/component: gateway
{{- end -}}

{{/* Names by which a Service of the release is asked for; the argument is (list . Service). */}}
{{- define "stream-peer.serviceNames" -}}
{{- $inNamespace := printf "%s.%s" (index . 1) (index . 0).Release.Namespace -}}
{{- list (index . 1) $inNamespace (printf "%s.svc" $inNamespace) (printf "%s.svc.cluster.local" $inNamespace) | toJson -}}
{{- end -}}

{{/* Labels of every object, except its component. */}}
{{- define "stream-peer.labels" -}}
{{ include "stream-peer.release" . }}
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

{{/* Before the first install the release's own account is not there yet: the Job brings one along. */}}
{{- define "stream-peer.setUpServiceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- include "stream-peer.setUpName" . -}}
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
