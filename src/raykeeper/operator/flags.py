"""The operator's flags under KubeRay's names, and those of history by annotation. Cheap to import, since `--help` shows
them.
"""

from __future__ import annotations

from raykeeper.settings.flags import Flag
from raykeeper.settings.values import (
    parse_decimal,
    parse_duration,
    parse_integer,
    parse_json_list,
    parse_json_object,
    parse_switch,
)

_HISTORY = (
    Flag(
        "history-collector-image",
        "Image of collectors for clusters that ask for history by an annotation. Variable RAYKEEPER_COLLECTOR_IMAGE.",
        "history.collectorImage",
    ),
    Flag(
        "history-collector-image-pull-policy",
        "When that image is pulled: Always, IfNotPresent or Never. Default: IfNotPresent.",
        "history.collectorImagePullPolicy",
    ),
    Flag(
        "history-collector-resources",
        'Limits and requests of a collector as JSON, such as {"limits":{"memory":"256Mi"}}.',
        "history.collectorResources",
        parse_json_object,
    ),
    Flag(
        "history-store-url",
        "Where their history goes: s3://bucket/prefix, gs://, azblob://, oss:// or file:///folder.",
        "history.storeUrl",
    ),
    Flag(
        "history-store-volume",
        'Volume with the folder of a file:// URL as JSON, such as {"nfs":{"server":"nas","path":"/history"}}.',
        "history.storeVolume",
        parse_json_object,
    ),
    Flag(
        "history-env",
        'Variables of the collectors as JSON, such as [{"name":"S3_REGION","value":"eu-central-1"}].',
        "history.env",
        parse_json_list,
    ),
    Flag(
        "history-secret-name",
        "Secret in the namespace of each cluster whose keys are variables with credentials, such as AWS_ACCESS_KEY_ID.",
        "history.secretName",
    ),
    Flag(
        "service-account-prefix",
        "Pods with history run as the ServiceAccount PREFIX-CLUSTER, which is made. Default: ray-historyserver where "
        "--cloud-role-name or --service-account-annotations is given; else pods keep their own.",
        "history.serviceAccountPrefix",
    ),
    Flag(
        "service-account-annotations",
        'Annotations of that ServiceAccount as JSON, such as {"eks.amazonaws.com/role-arn":"arn:…"}.',
        "history.serviceAccountAnnotations",
        parse_json_object,
    ),
    Flag(
        "history-url",
        "Where people open the history server, such as https://history.example.com: for links. "
        "Default: that of --callback-service-name.",
        "history.url",
    ),
    Flag(
        "callback-service-name",
        "Host and port at which people reach the history server, such as history.example.com: for links.",
        "history.callbackServiceName",
    ),
    Flag(
        "cloud-role-name",
        "RAM role of the collectors in Alibaba Cloud (RRSA).",
        "history.cloudRoleName",
    ),
    Flag(
        "oidc-provider-arn",
        "OIDC provider of the ACK cluster, such as acs:ram::1234:oidc-provider/ack-rrsa-c1. Default: ACK's pod "
        "identity webhook knows it.",
        "history.oidcProviderArn",
    ),
    Flag("oss-bucket", "Bucket in Alibaba OSS, instead of --history-store-url.", "history.ossBucket"),
    Flag("oss-endpoint", "Its endpoint. Default: the public one of --oss-region.", "history.ossEndPoint"),
    Flag("oss-region", "Its region, such as cn-hangzhou.", "history.ossRegion"),
    Flag("oss-history-server-root-dir", "Folder in that bucket.", "history.ossHistoryServerRootDir"),
)

FLAGS = (
    Flag(
        "metrics-addr",
        "Where `/metrics` is served: host:port, :port for all interfaces, or 0.",
        "metricsAddr",
        default=":8080",
    ),
    Flag(
        "health-probe-bind-address",
        "Where `/healthz` and `/readyz` are served, in the same spelling.",
        "probeAddr",
        default=":8082",
    ),
    Flag(
        "enable-leader-election",
        "Let one replica at a time work, agreed through the Lease ray-operator-leader.",
        "enableLeaderElection",
        parse_switch,
        "true",
    ),
    Flag(
        "leader-election-namespace",
        "Namespace of that Lease. Default: the pod's own.",
        "leaderElectionNamespace",
    ),
    Flag(
        "leader-elect-lease-duration",
        "How long another replica waits after the last renewal it saw, in whole seconds.",
        parse=parse_duration,
        default="15s",
    ),
    Flag(
        "leader-elect-renew-deadline",
        "How long a leader that cannot renew goes on; below the lease duration.",
        parse=parse_duration,
        default="10s",
    ),
    Flag(
        "leader-elect-retry-period",
        "Time between two tries to get or renew the lease; 1.2 times it must be below the renew deadline.",
        parse=parse_duration,
        default="2s",
    ),
    Flag(
        "reconcile-concurrency",
        "Objects of a kind that are reconciled at the same time; slow ones of one namespace do not count for others.",
        "reconcileConcurrency",
        parse_integer,
        "16",
    ),
    Flag("watch-namespace", "Namespaces to work in, separated by commas. Default: all.", "watchNamespace"),
    Flag(
        "other-installations",
        "What other operators cover that do not say so themselves, by the namespace of their lease, such as "
        "kuberay-a=team-a,team-b;kuberay-c=team-c.",
    ),
    Flag("log-file-path", "Also write the log to this file, rotated at 500 MB with ten kept.", "logFile"),
    Flag("log-file-encoder", "Log format in the file: json or console.", "logFileEncoder", default="json"),
    Flag(
        "log-stdout-encoder",
        "Log format on standard output: json or console.",
        "logStdoutEncoder",
        default="json",
    ),
    Flag(
        "batch-scheduler",
        "Scheduler that starts the pods of a cluster together: volcano, yunikorn, kai-scheduler or scheduler-plugins.",
        "batchScheduler",
    ),
    Flag(
        "enable-batch-scheduler",
        "Deprecated spelling of --batch-scheduler=volcano.",
        "enableBatchScheduler",
        parse_switch,
    ),
    Flag(
        "config",
        "Configuration file (config.ray.io/v1alpha1). Flags it has a field for are ignored then, except encoders.",
    ),
    Flag("use-kubernetes-proxy", "Reach Ray heads through the API server's proxy.", "useKubernetesProxy", parse_switch),
    Flag("feature-gates", "Features to switch, such as RayMultiHostIndexing=true,RayCronJob=false."),
    Flag("enable-metrics", "Serve the kuberay_* metrics about Ray objects too.", "enableMetrics", parse_switch),
    Flag(
        "qps",
        "Requests per second to the API server in the long run; negative for no limit.",
        "qps",
        parse_decimal,
        "500",
    ),
    Flag("burst", "Requests to the API server at once.", "burst", parse_integer, "1000"),
    Flag("forced-cluster-upgrade", "Accepted and ignored, as KubeRay does.", parse=parse_switch),
    Flag(
        "kubeconfig",
        "Kubeconfig to reach the API server with; else $KUBECONFIG, the pod's service account, ~/.kube/config.",
    ),
    Flag(
        "zap-log-level",
        "Lowest level that is logged: debug, info, warning, error, panic, or a number for debug.",
        default="info",
    ),
    Flag("zap-devel", "The log level is debug where none is given.", parse=parse_switch),
    Flag("zap-encoder", "Accepted and ignored, as KubeRay does: --log-stdout-encoder counts."),
    Flag("zap-stacktrace-level", "Accepted and ignored: stack traces are written for bugs alone."),
    Flag("zap-time-encoding", "Accepted and ignored: lines carry RFC 3339 times."),
    *_HISTORY,
)

WITHOUT_EFFECT = frozenset({"forced-cluster-upgrade", "zap-encoder", "zap-stacktrace-level", "zap-time-encoding"})
"""Flags that are accepted so that existing command lines keep working."""
