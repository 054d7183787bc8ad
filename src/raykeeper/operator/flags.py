"""The operator's flags under KubeRay's names. Cheap to import, since `--help` shows them."""

from __future__ import annotations

from raykeeper.settings.flags import Flag
from raykeeper.settings.values import parse_decimal, parse_integer, parse_switch

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
        "Namespace of that Lease; the pod's own where not given.",
        "leaderElectionNamespace",
    ),
    Flag(
        "reconcile-concurrency",
        "Objects of a kind that are reconciled at the same time.",
        "reconcileConcurrency",
        parse_integer,
        "16",
    ),
    Flag("watch-namespace", "Namespaces to work in, separated by commas; all where not given.", "watchNamespace"),
    Flag("log-file-path", "Also write the log to this file, rotated at 500 MB with ten kept.", "logFile"),
    Flag("log-file-encoder", "Shape of the lines in the file: json or console.", "logFileEncoder", default="json"),
    Flag(
        "log-stdout-encoder",
        "Shape of the lines on standard output: json or console.",
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
        "Lines below this are not written: debug, info, warning, error, panic, or a number for debug.",
        default="info",
    ),
    Flag("zap-devel", "The log level is debug where none is given.", parse=parse_switch),
    Flag("zap-encoder", "Accepted and ignored, as KubeRay does: --log-stdout-encoder counts."),
    Flag("zap-stacktrace-level", "Accepted and ignored: stack traces are written for bugs alone."),
    Flag("zap-time-encoding", "Accepted and ignored: lines carry RFC 3339 times."),
)

WITHOUT_EFFECT = frozenset({"forced-cluster-upgrade", "zap-encoder", "zap-stacktrace-level", "zap-time-encoding"})
"""Flags that are accepted so that existing command lines keep working."""
