"""The commands of the guide to the charts that users follow (KubeRay's Helm charts in depth), word by word.

Two things are different when they run here: the repository `kuberay/` is our folder of charts, and `kind` and Bitnami's
Redis, which cannot be had, are stood in for.
"""

from __future__ import annotations

from typing import Final

FEATURE_GATES: Final = r"""
helm install kuberay-operator kuberay/kuberay-operator \
  --set "featureGates[0].name=RayJobDeletionPolicy" \
  --set "featureGates[0].enabled=true"
"""
VOLCANO: Final = r"""
helm install kuberay-operator kuberay/kuberay-operator \
  --set batchScheduler.name=volcano
"""
YUNIKORN: Final = r"""
helm install kuberay-operator kuberay/kuberay-operator \
  --set batchScheduler.name=yunikorn
"""
SCHEDULER_PLUGINS: Final = r"""
helm install kuberay-operator kuberay/kuberay-operator \
  --set batchScheduler.name=scheduler-plugins
"""
KAI_SCHEDULER: Final = r"""
helm install kuberay-operator kuberay/kuberay-operator \
  --set batchScheduler.name=kai-scheduler
"""
CLUSTER_WIDE: Final = r"""
helm install kuberay-operator kuberay/kuberay-operator \
  --set rbacEnable=true \
  --set singleNamespaceInstall=false
"""
SOME_NAMESPACES: Final = r"""
helm install kuberay-operator kuberay/kuberay-operator \
  --namespace ray-system \
  --set rbacEnable=true \
  --set singleNamespaceInstall=true \
  --set crNamespacedRbacEnable=true \
  --set "watchNamespace={ray-ns1,ray-ns2}"
"""
STANDBY: Final = r"""
helm install kuberay-operator kuberay/kuberay-operator \
  --set replicas=3 \
  --set leaderElectionEnabled=true
"""
MONITORING: Final = r"""
helm install kuberay-operator kuberay/kuberay-operator \
  --set metrics.enabled=true \
  --set metrics.serviceMonitor.enabled=true \
  --set metrics.serviceMonitor.interval=30s \
  --set metrics.serviceMonitor.namespace=monitoring
"""
DEVELOPMENT: Final = r"""
kind create cluster --name ray-dev

helm install kuberay-operator kuberay/kuberay-operator \
  --set replicas=1 \
  --set resources.limits.cpu=100m \
  --set resources.limits.memory=256Mi \
  --set leaderElectionEnabled=false \
  --set metrics.enabled=false

helm install ray-cluster kuberay/ray-cluster \
  --set head.resources.limits.cpu=500m \
  --set head.resources.limits.memory=1Gi \
  --set head.resources.requests.cpu=500m \
  --set head.resources.requests.memory=1Gi \
  --set worker.replicas=1 \
  --set worker.resources.limits.cpu=500m \
  --set worker.resources.limits.memory=512Mi \
  --set worker.resources.requests.cpu=500m \
  --set worker.resources.requests.memory=512Mi
"""
TEAMS: Final = r"""
kubectl create namespace ray-system
kubectl create namespace ray-team-a
kubectl create namespace ray-team-b

helm install kuberay-operator kuberay/kuberay-operator \
  --namespace ray-system \
  --set replicas=2 \
  --set leaderElectionEnabled=true \
  --set singleNamespaceInstall=true \
  --set crNamespacedRbacEnable=true \
  --set "watchNamespace={ray-system,ray-team-a,ray-team-b}" \
  --set metrics.enabled=true \
  --set metrics.serviceMonitor.enabled=true \
  --set resources.limits.cpu=500m \
  --set resources.limits.memory=512Mi \
  --set resources.requests.cpu=200m \
  --set resources.requests.memory=256Mi

helm install ray-cluster-team-a kuberay/ray-cluster \
  --namespace ray-team-a \
  --set head.resources.limits.cpu=2 \
  --set head.resources.limits.memory=4Gi \
  --set worker.replicas=3 \
  --set worker.maxReplicas=10
"""
GPUS: Final = r"""
helm install kuberay-operator kuberay/kuberay-operator \
  --set replicas=2 \
  --set leaderElectionEnabled=true \
  --set batchScheduler.name=volcano \
  --set metrics.enabled=true

helm install ray-gpu-cluster kuberay/ray-cluster \
  --set image.tag=2.52.0-py310-gpu \
  --set head.resources.limits.cpu=4 \
  --set head.resources.limits.memory=8Gi \
  --set head.resources.requests.cpu=4 \
  --set head.resources.requests.memory=8Gi \
  --set worker.groupName=cpu-workers \
  --set worker.replicas=2 \
  --set worker.resources.limits.cpu=4 \
  --set worker.resources.limits.memory=8Gi \
  --set worker.resources.requests.cpu=4 \
  --set worker.resources.requests.memory=8Gi \
  --set additionalWorkerGroups.gpuWorkers.disabled=false \
  --set additionalWorkerGroups.gpuWorkers.replicas=1 \
  --set additionalWorkerGroups.gpuWorkers.minReplicas=0 \
  --set additionalWorkerGroups.gpuWorkers.maxReplicas=4 \
  --set additionalWorkerGroups.gpuWorkers.resources.limits.cpu=8 \
  --set additionalWorkerGroups.gpuWorkers.resources.limits.memory=16Gi \
  --set "additionalWorkerGroups.gpuWorkers.resources.limits.nvidia\.com/gpu=1" \
  --set additionalWorkerGroups.gpuWorkers.resources.requests.cpu=8 \
  --set additionalWorkerGroups.gpuWorkers.resources.requests.memory=16Gi \
  --set "additionalWorkerGroups.gpuWorkers.resources.requests.nvidia\.com/gpu=1"
"""
TENANTS: Final = r"""
helm install kuberay-operator kuberay/kuberay-operator \
  --namespace ray-system \
  --set replicas=3 \
  --set leaderElectionEnabled=true \
  --set batchScheduler.name=yunikorn \
  --set singleNamespaceInstall=true \
  --set crNamespacedRbacEnable=true \
  --set "watchNamespace={ray-system,tenant-a,tenant-b,tenant-c}" \
  --set reconcileConcurrency=4 \
  --set kubeClient.qps=200 \
  --set kubeClient.burst=400 \
  --set metrics.enabled=true \
  --set metrics.serviceMonitor.enabled=true \
  --set priorityClassName=system-cluster-critical

helm install kuberay-apiserver kuberay/kuberay-apiserver \
  --namespace ray-system \
  --set enableAPIServerV2=true \
  --set ingress.enabled=true \
  --set "ingress.hosts[0].host=ray-api.example.com" \
  --set "ingress.hosts[0].paths[0].path=/" \
  --set "ingress.hosts[0].paths[0].pathType=Prefix"
"""
FAULT_TOLERANCE: Final = r"""
helm install redis oci://registry-1.docker.io/bitnamicharts/redis \
  --set auth.password=ray-redis-password

kubectl create secret generic redis-password-secret \
  --from-literal=password=ray-redis-password

helm install ray-ft-cluster kuberay/ray-cluster \
  --set gcsFaultTolerance.enabled=true \
  --set gcsFaultTolerance.redisAddress="redis-master:6379" \
  --set gcsFaultTolerance.redisPassword.valueFrom.secretKeyRef.name=redis-password-secret \
  --set gcsFaultTolerance.redisPassword.valueFrom.secretKeyRef.key=password \
  --set head.resources.limits.cpu=2 \
  --set head.resources.limits.memory=4Gi \
  --set worker.replicas=3
"""
