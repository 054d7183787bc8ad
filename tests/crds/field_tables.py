"""Every field of the `ray.io` kinds as KubeRay 1.7 has them, one a line, written down by hand from its reference;
after them those of a part that only Raykeeper has.

A line is the path, the type, and what else the schema says: `required`, `default=`, `enum=`, `minimum=`, `minLength=`,
`maxLength=`, `minItems=`, `pattern`, `key=` of a map-list, `atomic`, `nullable`, `rules=` (the number of CEL rules).
`[]` are the items of a list, `{}` the values of a map. A capital letter starts the name of a type of Kubernetes.
"""

from __future__ import annotations

RAY_CLUSTER_SPEC = """
headGroupSpec                                        object required
headGroupSpec.template                               PodTemplateSpec required
headGroupSpec.rayStartParams                         map-of-string
headGroupSpec.serviceType                            string
headGroupSpec.headService                            Service
headGroupSpec.enableIngress                          boolean
headGroupSpec.ingressOptions                         object
headGroupSpec.ingressOptions.host                    string
headGroupSpec.ingressOptions.path                    string
headGroupSpec.ingressOptions.pathType                string enum=Exact|Prefix|ImplementationSpecific
headGroupSpec.ingressOptions.tls                     list
headGroupSpec.ingressOptions.tls[]                   IngressTLS
headGroupSpec.resources                              map-of-string
headGroupSpec.labels                                 map-of-string
workerGroupSpecs                                     list
workerGroupSpecs[]                                   object
workerGroupSpecs[].groupName                         string required
workerGroupSpecs[].template                          PodTemplateSpec required
workerGroupSpecs[].replicas                          int32 default=0
workerGroupSpecs[].minReplicas                       int32 required default=0
workerGroupSpecs[].maxReplicas                       int32 required default=2147483647
workerGroupSpecs[].numOfHosts                        int32 default=1
workerGroupSpecs[].rayStartParams                    map-of-string
workerGroupSpecs[].scaleStrategy                     object
workerGroupSpecs[].scaleStrategy.workersToDelete     list
workerGroupSpecs[].scaleStrategy.workersToDelete[]   string
workerGroupSpecs[].idleTimeoutSeconds                int32
workerGroupSpecs[].suspend                           boolean
workerGroupSpecs[].resources                         map-of-string
workerGroupSpecs[].labels                            map-of-string
workerGroupSpecs[].priority                          int32 default=0
rayVersion                                           string
enableInTreeAutoscaling                              boolean
autoscalerOptions                                    object
autoscalerOptions.resources                          ResourceRequirements
autoscalerOptions.image                              string
autoscalerOptions.imagePullPolicy                    string
autoscalerOptions.securityContext                    SecurityContext
autoscalerOptions.idleTimeoutSeconds                 int32
autoscalerOptions.upscalingMode                      string enum=Default|Aggressive|Conservative
autoscalerOptions.version                            string enum=v1|v2
autoscalerOptions.env                                list
autoscalerOptions.env[]                              EnvVar
autoscalerOptions.envFrom                            list
autoscalerOptions.envFrom[]                          EnvFromSource
autoscalerOptions.volumeMounts                       list
autoscalerOptions.volumeMounts[]                     VolumeMount
autoscalerOptions.command                            list
autoscalerOptions.command[]                          string
autoscalerOptions.args                               list
autoscalerOptions.args[]                             string
headServiceAnnotations                               map-of-string
suspend                                              boolean
managedBy                                            string rules=2
gcsFaultToleranceOptions                             object
gcsFaultToleranceOptions.backend                     string enum=redis|rocksdb rules=1
gcsFaultToleranceOptions.redisAddress                string
gcsFaultToleranceOptions.redisUsername               object
gcsFaultToleranceOptions.redisUsername.value         string
gcsFaultToleranceOptions.redisUsername.valueFrom     EnvVarSource
gcsFaultToleranceOptions.redisPassword               object
gcsFaultToleranceOptions.redisPassword.value         string
gcsFaultToleranceOptions.redisPassword.valueFrom     EnvVarSource
gcsFaultToleranceOptions.externalStorageNamespace    string
gcsFaultToleranceOptions.storage                     object
gcsFaultToleranceOptions.storage.claimName           string
gcsFaultToleranceOptions.storage.size                quantity
gcsFaultToleranceOptions.storage.storageClassName    string
gcsFaultToleranceOptions.storage.accessModes         list
gcsFaultToleranceOptions.storage.accessModes[]       string
gcsFaultToleranceOptions.storage.subPath             string
gcsFaultToleranceOptions.storage.deletionPolicy      string enum=DeleteWithCluster|Retain
upgradeStrategy                                      object
upgradeStrategy.type                                 string enum=Recreate|None
authOptions                                          object
authOptions.mode                                     string enum=disabled|token
authOptions.secretName                               string
authOptions.enableK8sTokenAuth                       boolean
historyServerOptions                                 object
historyServerOptions.collectorOptions                object
historyServerOptions.collectorOptions.image          string
historyServerOptions.collectorOptions.imagePullPolicy  string
historyServerOptions.collectorOptions.resources      ResourceRequirements
historyServerOptions.collectorOptions.env            list
historyServerOptions.collectorOptions.env[]          EnvVar
networkPolicy                                        object
networkPolicy.mode                                   string default=DenyAll enum=DenyAll|DenyAllIngress|DenyAllEgress
networkPolicy.head                                   object
networkPolicy.head.ingressRules                      list
networkPolicy.head.ingressRules[]                    NetworkPolicyIngressRule
networkPolicy.head.egressRules                       list
networkPolicy.head.egressRules[]                     NetworkPolicyEgressRule
networkPolicy.worker                                 object
networkPolicy.worker.ingressRules                    list
networkPolicy.worker.ingressRules[]                  NetworkPolicyIngressRule
networkPolicy.worker.egressRules                     list
networkPolicy.worker.egressRules[]                   NetworkPolicyEgressRule
networkPolicy.workerGroups                           list key=groupName
networkPolicy.workerGroups[]                         object
networkPolicy.workerGroups[].groupName               string required
networkPolicy.workerGroups[].ingressRules            list
networkPolicy.workerGroups[].ingressRules[]          NetworkPolicyIngressRule
networkPolicy.workerGroups[].egressRules             list
networkPolicy.workerGroups[].egressRules[]           NetworkPolicyEgressRule
tlsOptions                                           object
tlsOptions.enabled                                   boolean
"""

CONDITIONS = """
conditions                                           list key=type
conditions[]                                         object
conditions[].type                                    string required maxLength=316 pattern
conditions[].status                                  string required enum=True|False|Unknown
conditions[].reason                                  string required minLength=1 maxLength=1024 pattern
conditions[].message                                 string required maxLength=32768
conditions[].lastTransitionTime                      date-time required
conditions[].observedGeneration                      int64 minimum=0
"""

RAY_CLUSTER_STATUS = f"""
state                                                string
reason                                               string
desiredCPU                                           quantity
desiredMemory                                        quantity
desiredGPU                                           quantity
desiredTPU                                           quantity
lastUpdateTime                                       date-time nullable
stateTransitionTimes                                 map-of-date-time
endpoints                                            map-of-string
head                                                 object
head.podIP                                           string
head.podName                                         string
head.serviceIP                                       string
head.serviceName                                     string
{CONDITIONS}
readyWorkerReplicas                                  int32
availableWorkerReplicas                              int32
desiredWorkerReplicas                                int32
minWorkerReplicas                                    int32
maxWorkerReplicas                                    int32
observedGeneration                                   int64
"""

RAY_JOB_SPEC = """
entrypoint                                           string
rayClusterSpec                                       object
clusterSelector                                      map-of-string
submissionMode                                       string default=K8sJobMode
submitterPodTemplate                                 PodTemplateSpec
submitterConfig                                      object
submitterConfig.backoffLimit                         int32
submitterConfig.resources                            ResourceRequirements
jobId                                                string
metadata                                             map-of-string
runtimeEnvYAML                                       string
entrypointNumCpus                                    float
entrypointNumGpus                                    float
entrypointResources                                  string
backoffLimit                                         int32 default=0
retryRayClusterStrategy                              string enum=RecreateRayCluster|ReuseRayCluster
activeDeadlineSeconds                                int32
preRunningDeadlineSeconds                            int32 minimum=1
shutdownAfterJobFinishes                             boolean
ttlSecondsAfterFinished                              int32 default=0
suspend                                              boolean
managedBy                                            string rules=2
deletionStrategy                                     object rules=2
deletionStrategy.onSuccess                           object
deletionStrategy.onSuccess.policy                    string enum=DeleteCluster|DeleteWorkers|DeleteSelf|DeleteNone
deletionStrategy.onFailure                           object
deletionStrategy.onFailure.policy                    string enum=DeleteCluster|DeleteWorkers|DeleteSelf|DeleteNone
deletionStrategy.deletionRules                       list atomic minItems=1
deletionStrategy.deletionRules[]                     object
deletionStrategy.deletionRules[].policy  string required enum=DeleteCluster|DeleteWorkers|DeleteSelf|DeleteNone
deletionStrategy.deletionRules[].condition           object required rules=2
deletionStrategy.deletionRules[].condition.jobStatus  string enum=SUCCEEDED|FAILED
deletionStrategy.deletionRules[].condition.jobDeploymentStatus  string enum=Failed
deletionStrategy.deletionRules[].condition.ttlSeconds  int32 default=0 minimum=0
"""

RAY_JOB_STATUS = f"""
jobId                                                string
rayClusterName                                       string
dashboardURL                                         string
jobStatus                                            string
jobDeploymentStatus                                  string
reason                                               string
message                                              string
startTime                                            date-time
endTime                                              date-time
succeeded                                            int32 default=0
failed                                               int32 default=0
rayJobInfo                                           object
rayJobInfo.startTime                                 date-time
rayJobInfo.endTime                                   date-time
rayClusterStatus                                     object
jobStatusCheckFailureStartTime                       date-time
observedGeneration                                   int64
headInstance                                         string
historyURL                                           string
failedAttempts                                       list atomic
failedAttempts[]                                     object
failedAttempts[].rayClusterName                      string
failedAttempts[].jobId                               string
failedAttempts[].reason                              string
failedAttempts[].message                             string
failedAttempts[].startTime                           date-time
failedAttempts[].endTime                             date-time
{CONDITIONS}
"""

RAY_SERVICE_SPEC = """
rayClusterConfig                                     object required
serveConfigV2                                        string
serveService                                         Service
upgradeStrategy                                      object
upgradeStrategy.type                                 string
upgradeStrategy.clusterUpgradeOptions                object rules=1
upgradeStrategy.clusterUpgradeOptions.maxSurgePercent  int32 default=100
upgradeStrategy.clusterUpgradeOptions.stepSizePercent  int32 required
upgradeStrategy.clusterUpgradeOptions.intervalSeconds  int32 required
upgradeStrategy.clusterUpgradeOptions.gatewayClassName  string
upgradeStrategy.clusterUpgradeOptions.httpRouteName  string
rayClusterDeletionDelaySeconds                       int32 minimum=0
excludeHeadPodFromServeSvc                           boolean
managedBy                                            string rules=2
suspend                                              boolean
serviceUnhealthySecondThreshold                      int32
deploymentUnhealthySecondThreshold                   int32
"""

SERVICE_STATUS = """
rayClusterName                                       string
rayClusterStatus                                     object
applicationStatuses                                  map
applicationStatuses{}                                object
applicationStatuses{}.status                         string
applicationStatuses{}.message                        string
applicationStatuses{}.serveDeploymentStatuses        map
applicationStatuses{}.serveDeploymentStatuses{}      object
applicationStatuses{}.serveDeploymentStatuses{}.status  string
applicationStatuses{}.serveDeploymentStatuses{}.message  string
targetCapacity                                       int32
trafficRoutedPercent                                 int32
lastTrafficMigratedTime                              date-time
unhealthySince                                       date-time
historyURL                                           string
"""

RAY_SERVICE_STATUS = f"""
{CONDITIONS}
lastUpdateTime                                       date-time
serviceStatus                                        string
numServeEndpoints                                    int32
observedGeneration                                   int64
activeServiceStatus                                  object
pendingServiceStatus                                 object
"""

RAY_CRON_JOB_SPEC = """
schedule                                             string required
jobTemplate                                          object required
timeZone                                             string minLength=1
suspend                                              boolean
concurrencyPolicy                                    string enum=Allow|Forbid|Replace
startingDeadlineSeconds                              int64 minimum=0
successfulJobsHistoryLimit                           int32 minimum=0
failedJobsHistoryLimit                               int32 minimum=0
"""

RAY_CRON_JOB_STATUS = f"""
lastScheduleTime                                     date-time
lastSuccessfulTime                                   date-time
active                                               list atomic
active[]                                             object
active[].name                                        string
active[].uid                                         string
observedGeneration                                   int64
{CONDITIONS}
"""


def parse_table(table: str, below: str = "") -> dict[str, str]:
    """Facts by path; the paths start with `below`."""
    lines = (line.split(maxsplit=1) for line in table.splitlines() if line)
    return {f"{below}.{path}": facts for path, facts in lines}


_JOB_SPEC = parse_table(RAY_JOB_SPEC) | parse_table(RAY_CLUSTER_SPEC, ".rayClusterSpec")

TABLES: dict[str, dict[str, str]] = {
    "RayCluster": parse_table(RAY_CLUSTER_SPEC, ".spec") | parse_table(RAY_CLUSTER_STATUS, ".status"),
    "RayJob": {f".spec{path}": facts for path, facts in _JOB_SPEC.items()}
    | parse_table(RAY_JOB_STATUS, ".status")
    | parse_table(RAY_CLUSTER_STATUS, ".status.rayClusterStatus"),
    "RayService": parse_table(RAY_SERVICE_SPEC, ".spec")
    | parse_table(RAY_CLUSTER_SPEC, ".spec.rayClusterConfig")
    | parse_table(RAY_SERVICE_STATUS, ".status")
    | parse_table(SERVICE_STATUS, ".status.activeServiceStatus")
    | parse_table(SERVICE_STATUS, ".status.pendingServiceStatus")
    | parse_table(RAY_CLUSTER_STATUS, ".status.activeServiceStatus.rayClusterStatus")
    | parse_table(RAY_CLUSTER_STATUS, ".status.pendingServiceStatus.rayClusterStatus"),
    "RayCronJob": parse_table(RAY_CRON_JOB_SPEC, ".spec")
    | {f".spec.jobTemplate{path}": facts for path, facts in _JOB_SPEC.items()}
    | parse_table(RAY_CRON_JOB_STATUS, ".status"),
}
"""Facts by path for every field of each kind."""
