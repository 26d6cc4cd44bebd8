{{- define "saccade.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- /* At most 46 characters: Kubernetes cuts the name of a pod before its last part at 58, and the hash of the template takes up
to 10 of them. The queries of the autoscaler and of the analysis look for the whole name and the whole hash. */ -}}
{{- define "saccade.fullname" -}}
{{- $name := include "saccade.name" . -}}
{{- $full := .Values.fullnameOverride | default (ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name)) -}}
{{- $full | trunc 46 | trimSuffix "-" -}}
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

{{- /* Probes ask the metrics port: it is never encrypted, and its answers do not depend on how much is sent to the others. */ -}}
{{- define "saccade.probe" -}}
{{- if .tls.secretName -}}
httpGet: {path: /v2/health/{{ .path }}, port: metrics, scheme: HTTP}
{{- else -}}
grpc: {port: 8002{{ if eq .path "live" }}, service: liveness{{ end }}}
{{- end -}}
{{- end -}}

{{- /* The seconds after which the kubelet ends a container that is not ready. */ -}}
{{- define "saccade.startupSeconds" -}}
{{- with .Values.startupProbe -}}
{{- $allowed := add (default 0 .initialDelaySeconds) (mul .periodSeconds .failureThreshold) -}}
{{- $deadline := ternary (get $.Values.config "load-deadline-seconds") 240 (hasKey $.Values.config "load-deadline-seconds") | int -}}
{{- if gt (add $deadline 30) $allowed -}}
{{- fail (printf "startupProbe: allows %d s, but the models may take %d s to load (config.load-deadline-seconds), so that the kubelet would end a pod which still loads; set startupProbe.failureThreshold so that periodSeconds times it is at least %d" $allowed $deadline (add $deadline 30)) -}}
{{- end -}}
{{- $allowed -}}
{{- end -}}
{{- end -}}

{{- /* "yes" if callers are authenticated and the traffic is encrypted. */ -}}
{{- define "saccade.guarded" -}}
{{- if and .Values.tls.secretName (or .Values.tls.clientCASecretName .Values.tokens.secretName) }}yes{{ end -}}
{{- end -}}

{{- /* A value as text. Helm passes numbers as floats; large ones would be printed with an exponent. */ -}}
{{- define "saccade.text" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) }}{{ int64 . }}{{ else }}{{ . }}{{ end -}}
{{- end -}}

{{- /* Where the models come from: demo, image, fetch or claim. */ -}}
{{- define "saccade.models" -}}
{{- with .Values.models -}}
{{- if and .image.reference .fetch.image -}}
{{- fail "models: image.reference and fetch.image are both set; set the one that the models come from" -}}
{{- end -}}
{{- if and .fetch.uri (not .fetch.image) -}}
{{- fail "models.fetch.uri: is set, but models.fetch.image is empty; set an image that has rclone, such as rclone/rclone:1.75.2" -}}
{{- end -}}
{{- if .demo }}demo{{ else if .image.reference }}image{{ else if .fetch.image }}fetch{{ else }}claim{{ end -}}
{{- end -}}
{{- end -}}

{{- /* "yes" if the daemon gets a public key for the models' signatures. */ -}}
{{- define "saccade.signed" -}}
{{- with .Values.models.signingKey -}}
{{- if and .configMapName .secretName -}}
{{- fail "models.signingKey: configMapName and secretName are both set; set the one that holds the public key" -}}
{{- end -}}
{{- if or .configMapName .secretName }}yes{{ end -}}
{{- end -}}
{{- end -}}

{{- /* The label by which the pods of two templates differ. */ -}}
{{- define "saccade.hashLabel" -}}
{{ if .Values.progressive.enabled }}rollouts-pod-template-hash{{ else }}pod-template-hash{{ end }}
{{- end -}}

{{- define "saccade.serviceSpec" -}}
{{- if .Values.service.headless }}
clusterIP: None
{{- end }}
selector:
  {{- include "saccade.selector" . | nindent 2 }}
ports:
  - {name: grpc, port: {{ .Values.service.grpcPort }}, targetPort: grpc, protocol: TCP, appProtocol: {{ if .Values.tls.secretName }}https{{ else }}kubernetes.io/h2c{{ end }}}
  - {name: http, port: {{ .Values.service.httpPort }}, targetPort: http, protocol: TCP, appProtocol: {{ if .Values.tls.secretName }}https{{ else }}http{{ end }}}
  - {name: metrics, port: {{ .Values.service.metricsPort }}, targetPort: metrics, protocol: TCP, appProtocol: http}
{{- end -}}

{{- /* The namespace, and the hashes by which the names of the new and of the old pods differ. */ -}}
{{- define "saccade.analysisArgs" -}}
args:
  - name: namespace
    valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
  - name: new
    valueFrom: {podTemplateHashValue: Latest}
  - name: old
    valueFrom: {podTemplateHashValue: Stable}
{{- end -}}

{{- define "saccade.metric" -}}
interval: {{ .analysis.interval }}
# The first minutes of a pod have too few measurements for a rate.
initialDelay: 2m
{{- if .counted }}
count: {{ .analysis.count }}
{{- end }}
failureLimit: {{ .analysis.failureLimit }}
inconclusiveLimit: 10
# Prometheus that does not answer is no verdict.
consecutiveErrorLimit: 10
{{- end -}}

{{- /* The daemon's variables: OpenTelemetry's for the export of traces, the namespace for captured calls, and those of the user. */ -}}
{{- define "saccade.env" -}}
{{- if .Values.traces.endpoint }}
- {name: OTEL_EXPORTER_OTLP_ENDPOINT, value: {{ .Values.traces.endpoint | quote }}}
{{- range $name, $value := .Values.traces.settings }}
- {name: {{ $name }}, value: {{ include "saccade.text" $value | quote }}}
{{- end }}
{{- end }}
{{- if .Values.capture.sink.url }}
# Becomes ce-namespace of every event.
- {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
{{- end }}
{{- if and .Values.capture.enabled .Values.capture.claim }}
- {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* The port of a URL; the scheme's default if the address has none, as in clients of OTLP and HTTP. */ -}}
{{- define "saccade.urlPort" -}}
{{- $url := urlParse . -}}
{{- $port := regexFind "[0-9]+$" (regexFind ":[0-9]+$" $url.host) -}}
{{- if $port }}{{ $port }}{{ else if eq $url.scheme "https" }}443{{ else }}80{{ end -}}
{{- end -}}

{{- /* The container's ports are the daemon's defaults; the Service may use others. */ -}}
{{- define "saccade.config" -}}
host=0.0.0.0
{{- if not (include "saccade.guarded" .) }}
{{- if not .Values.insecure }}
{{- fail "insecure: is false, but nothing identifies callers; set tls.secretName with tokens.secretName or tls.clientCASecretName, or set insecure to true if everyone whom networkPolicy admits may do everything" }}
{{- end }}
insecure=true
{{- end }}
{{- with .Values.tls.secretName }}
tls-cert=/etc/saccade-tls/tls.crt
tls-key=/etc/saccade-tls/tls.key
{{- end }}
{{- with .Values.tls.clientCASecretName }}
tls-client-ca=/etc/saccade-client-ca/ca.crt
{{- end }}
{{- with .Values.tokens.secretName }}
token-file=/etc/saccade-tokens/tokens
{{- end }}
{{- if or .Values.tls.secretName .Values.tokens.secretName }}
plain-metrics=true
{{- end }}
grpc-port=8001
http-port=8000
metrics-port=8002
model-repository={{ if .Values.models.demo }}/opt/saccade/demo{{ else }}{{ .Values.models.path }}{{ end }}
{{- if include "saccade.signed" . }}
signing-key=/etc/saccade-signing-key/{{ .Values.models.signingKey.key }}
{{- if .Values.models.signingKey.required }}
require-signed=true
{{- end }}
{{- end }}
{{- if .Values.capture.enabled }}
capture=/var/lib/saccade-capture/calls
{{- end }}
{{- with .Values.capture.sink.url }}
capture-sink={{ . }}
{{- end }}
{{- range $flag, $value := .Values.config }}
{{- if eq $flag "exit-timeout-secs" }}
{{- fail "config.exit-timeout-secs: is another name of drain-timeout-seconds; set that one, which the pod's grace period follows" }}
{{- end }}
{{- if has $flag (list "host" "grpc-port" "http-port" "metrics-port" "model-repository" "model-store" "insecure" "tls-cert" "tls-key" "tls-client-ca" "token-file" "plain-metrics" "signing-key" "require-signed" "capture" "capture-sink") }}
{{- fail (printf "config.%s: is set by the chart; use models.path for the repository, models.signingKey for its signatures, insecure, tls and tokens for access, service for the Service's ports, and capture for captured calls" $flag) }}
{{- end }}
{{ $flag }}={{ include "saccade.text" $value }}
{{- end }}
{{ end -}}
