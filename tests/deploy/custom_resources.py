"""Schemas of the custom resources that the manifests make. Kubernetes has none for them: these are the parts that are used of
Argo Rollouts', the Gateway API's, KEDA's and Prometheus' operator's own definitions. A field that is not in them is an error."""


def of(required, **properties):
    return {"type": "object", "additionalProperties": False, "required": required.split(), "properties": properties}


def several(items):
    return {"type": "array", "minItems": 1, "items": items}


def resource(version, kind, spec):
    return of("apiVersion kind metadata spec", apiVersion={"const": version}, kind={"const": kind},
              metadata={"type": "object", "required": ["name"]}, spec=spec)


TEXT, COUNT, FLAG = {"type": "string", "minLength": 1}, {"type": "integer", "minimum": 0}, {"type": "boolean"}
SPAN = {"type": "string", "pattern": "^[0-9]+[smh]$"}
_SECONDS = {"type": "string", "pattern": "^[0-9]+s$"}
SHARE = {"anyOf": [COUNT, {"type": "string", "pattern": "^[0-9]+%$"}]}

_arguments = several(of("name valueFrom", name=TEXT, valueFrom=of(
    "", podTemplateHashValue={"enum": ["Latest", "Stable"]}, fieldRef=of("fieldPath", fieldPath=TEXT))))
_analysis = of("templates args", templates=several(of("templateName", templateName=TEXT)), args=_arguments)
_background = of("templates args", templates=several(of("templateName", templateName=TEXT)), args=_arguments,
                 startingStep={"type": "integer", "minimum": 1})
_step = {"oneOf": [of("setWeight", setWeight={"type": "integer", "minimum": 0, "maximum": 100}),
                   of("pause", pause=of("", duration=SPAN))]}
ROLLOUT = resource("argoproj.io/v1alpha1", "Rollout", of(
    "workloadRef strategy", replicas=COUNT, revisionHistoryLimit=COUNT, progressDeadlineSeconds=COUNT,
    progressDeadlineAbort=FLAG,
    workloadRef=of("apiVersion kind name", apiVersion={"const": "apps/v1"}, kind={"const": "Deployment"}, name=TEXT,
                   scaleDown={"enum": ["never", "onsuccess", "progressively"]}),
    strategy={"type": "object", "additionalProperties": False, "minProperties": 1, "maxProperties": 1, "properties": {
        "canary": of("steps", maxUnavailable=SHARE, maxSurge=SHARE, analysis=_background, steps=several(_step)),
        "blueGreen": of("activeService", activeService=TEXT, previewService=TEXT, autoPromotionEnabled=FLAG,
                        scaleDownDelaySeconds=COUNT, prePromotionAnalysis=_analysis, postPromotionAnalysis=_analysis)}}))

ANALYSIS_TEMPLATE = resource("argoproj.io/v1alpha1", "AnalysisTemplate", of(
    "metrics", args=several(of("name", name=TEXT)),
    metrics=several(of("name provider", name=TEXT, interval=SPAN, initialDelay=SPAN, count=COUNT, failureLimit=COUNT,
                       inconclusiveLimit=COUNT, consecutiveErrorLimit=COUNT, successCondition=TEXT, failureCondition=TEXT,
                       provider=of("prometheus", prometheus=of("address query", address=TEXT, query=TEXT))))))

_parents = several(of("name", name=TEXT, namespace=TEXT, sectionName=TEXT, port=COUNT, group=TEXT, kind=TEXT))
_backends = several(of("name port", name=TEXT, port={"type": "integer", "minimum": 1, "maximum": 65535}))


def _route(kind, match):
    return resource("gateway.networking.k8s.io/v1", kind, of(
        "parentRefs rules", parentRefs=_parents, hostnames=several(TEXT),
        rules=several(of("matches backendRefs", matches=several(match), backendRefs=_backends))))


GRPC_ROUTE = _route("GRPCRoute", of("method", method=of("service", service=TEXT, method=TEXT)))
HTTP_ROUTE = _route("HTTPRoute", of("path", path=of("type value", type={"enum": ["Exact", "PathPrefix"]},
                                                    value={"type": "string", "pattern": "^/"})))

SERVICE_MONITOR = resource("monitoring.coreos.com/v1", "ServiceMonitor", of(
    "selector endpoints",
    selector=of("matchLabels", matchLabels={"type": "object", "minProperties": 1}),
    endpoints=several(of("port", port={"type": "string"}, path={"type": "string", "pattern": "^/"},
                         interval=_SECONDS, scrapeTimeout=_SECONDS, relabelings=several(of(
                             "targetLabel replacement", action={"const": "replace"}, targetLabel=TEXT, replacement=TEXT))))))

_labels = {"type": "object", "additionalProperties": {"type": "string"}}
_rule = {"oneOf": [of("alert expr", alert=TEXT, expr=TEXT, labels=_labels, annotations=_labels, **{"for": SPAN}),
                   of("record expr", record=TEXT, expr=TEXT, labels=_labels)]}
PROMETHEUS_RULE = resource("monitoring.coreos.com/v1", "PrometheusRule", of(
    "groups", groups=several(of("name rules", name=TEXT, rules=several(_rule)))))

# KEDA takes all values of a trigger's metadata as text.
_trigger = of("type metadata", type={"const": "prometheus"}, metricType={"enum": ["AverageValue", "Value"]}, metadata={
    "type": "object", "required": ["serverAddress", "query", "threshold"], "additionalProperties": {"type": "string"},
    "properties": {"serverAddress": {"type": "string", "pattern": "^https?://"},
                   "threshold": {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?$"}}})
SCALED_OBJECT = resource("keda.sh/v1alpha1", "ScaledObject", of(
    "scaleTargetRef minReplicaCount maxReplicaCount triggers", scaleTargetRef=of("name", name=TEXT, apiVersion=TEXT, kind={"enum": ["Deployment", "Rollout"]}), minReplicaCount=COUNT,
    maxReplicaCount={"type": "integer", "minimum": 1}, pollingInterval={"type": "integer", "minimum": 1},
    fallback=of("failureThreshold replicas", failureThreshold={"type": "integer", "minimum": 1}, replicas=COUNT,
                behavior={"enum": ["static", "currentReplicas", "currentReplicasIfHigher", "currentReplicasIfLower"]}),
    advanced=of("horizontalPodAutoscalerConfig", horizontalPodAutoscalerConfig=of("behavior", behavior={"type": "object"})),
    triggers=several(_trigger)))

SCHEMAS = {"Rollout": ROLLOUT, "AnalysisTemplate": ANALYSIS_TEMPLATE, "GRPCRoute": GRPC_ROUTE, "HTTPRoute": HTTP_ROUTE,
           "ServiceMonitor": SERVICE_MONITOR, "PrometheusRule": PROMETHEUS_RULE, "ScaledObject": SCALED_OBJECT}
