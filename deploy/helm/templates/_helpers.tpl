{{- define "sluice.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "sluice.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "sluice.labels" -}}
{{ include "sluice.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "sluice.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}{{ else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* Refuses values that would give a pod that cannot work, with the key and the next step. */}}
{{- define "sluice.check" -}}
{{- $state := (.Values.config.state | default dict) -}}
{{- if and (eq .Values.mode "local") (ne (int .Values.replicas) 1) }}
{{- fail (printf "replicas is %d, but mode: local allows only 1: a state directory has one writer. Set replicas: 1, or mode: kafka" (int .Values.replicas)) }}
{{- end }}
{{- if not .Values.existingConfigMap }}
{{- if not .Values.config }}
{{- fail "config is empty: set config, or the name of a ConfigMap in existingConfigMap" }}
{{- end }}
{{- if and (eq .Values.mode "kafka") (not $state.kafka) }}
{{- fail "mode is kafka, but config.state.kafka is missing: set it, or mode: local" }}
{{- end }}
{{- if and (eq .Values.mode "local") $state.kafka }}
{{- fail "config.state.kafka is set, but mode is local: set mode: kafka" }}
{{- end }}
{{- $listen := (.Values.config.status | default dict).listen | default "127.0.0.1:8686" }}
{{- $port := int .Values.status.port }}
{{- if not (has $listen (list (printf "0.0.0.0:%d" $port) (printf "[::]:%d" $port))) }}
{{- fail (printf "config.status.listen is %s: set it to 0.0.0.0:%d, where the probes of the pod request it (with IPv6: [::]:%d)" $listen $port $port) }}
{{- end }}
{{- end }}
{{- end }}
