{{- define "saccade.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "saccade.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "saccade.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "saccade.selector" -}}
app.kubernetes.io/name: {{ include "saccade.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: server
{{- end -}}

{{- define "saccade.labels" -}}
{{ include "saccade.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: saccade
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "saccade.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "saccade.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- /* The container's ports are the daemon's own defaults; a Service may have others. */ -}}
{{- define "saccade.config" -}}
host=0.0.0.0
grpc-port=8001
http-port=8000
metrics-port=8002
model-repository={{ if .Values.models.demo }}/opt/saccade/demo{{ else }}{{ .Values.models.path }}{{ end }}
{{- range $flag, $value := .Values.config }}
{{- if has $flag (list "host" "grpc-port" "http-port" "metrics-port" "model-repository") }}
{{- fail (printf "config.%s: the chart sets it; the repository is models.path, and the Service's ports are service's" $flag) }}
{{- end }}
{{- /* Numbers come as floats, and large ones would be written with an exponent. */}}
{{ $flag }}={{ if and (kindIs "float64" $value) (eq (floor $value) $value) }}{{ int64 $value }}{{ else }}{{ $value }}{{ end }}
{{- end }}
{{ end -}}
