{{/* The StatefulSets of the release: one for both stages, or one a stage. `partitions`: how many workers find work. */}}
{{- define "stream-peer.workloads" -}}
{{- $root := . -}}
{{- $name := include "stream-peer.fullname" . -}}
{{- $questions := int .Values.kafka.partitions.forecastEvents -}}
{{- $feeds := int .Values.kafka.partitions.feedLog -}}
{{- if .Values.stages.split -}}
{{- range $stage, $partitions := dict "question" $questions "feed" $feeds }}
{{- $own := index $root.Values.stages $stage }}
- name: {{ $name }}-{{ $stage }}
  stage: {{ $stage }}
  replicas: {{ int $own.replicaCount }}
  maxReplicas: {{ default (int $root.Values.autoscaling.maxReplicas) (int $own.maxReplicas) }}
  partitions: {{ $partitions }}
  resources: {{ default $root.Values.resources $own.resources | toJson }}
{{- end }}
{{- else }}
- name: {{ $name }}
  stage: all
  replicas: {{ int .Values.replicaCount }}
  maxReplicas: {{ int .Values.autoscaling.maxReplicas }}
  partitions: {{ max $questions $feeds }}
  resources: {{ .Values.resources | toJson }}
{{- end }}
{{- end -}}

{{/* Labels that tell a workload's pods from all others; the argument is (list . workload). */}}
{{- define "stream-peer.selector" -}}
{{ include "stream-peer.workers" (index . 0) }}
stream-peer/stage: {{ (index . 1).stage }}
{{- end -}}

{{/* Where workers may run. A constraint without a labelSelector is about the workload's own pods. */}}
{{- define "stream-peer.placement" -}}
{{- $root := index . 0 -}}
{{- with $root.Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.topologySpreadConstraints }}
{{- $selector := dict "matchLabels" (include "stream-peer.selector" $ | fromYaml) }}
topologySpreadConstraints:
  {{- range . }}
  - {{- (hasKey . "labelSelector" | ternary . (merge (dict "labelSelector" $selector) .)) | toYaml | nindent 4 }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* What a worker is told beside the settings file; the argument is (list . workload). */}}
{{- define "stream-peer.workerVariables" -}}
{{- $root := index . 0 -}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- {name: STREAM_PEER_STAGE, value: {{ (index . 1).stage }}}
{{- if $root.Values.kafka.staticMembership }}
- {name: STREAM_PEER_INSTANCE, value: $(POD_NAME)}
{{- end }}
- name: STREAM_PEER_HTTP__ADVERTISE
  value: {{ default (printf "http://$(POD_NAME).%s.%s.svc:%d" (include "stream-peer.headlessName" $root) $root.Release.Namespace (int $root.Values.http.port)) $root.Values.http.advertise | quote }}
{{- end -}}
