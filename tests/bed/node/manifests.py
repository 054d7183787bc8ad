"""Objects the node needs in its cluster: what CoreDNS may read, and how much the node claims to have."""

from __future__ import annotations

from bed.node.services import DNS_USER
from bed.node.settings import CLAIMED_CPUS, CLAIMED_MEMORY, NODE_NAME

DNS_RIGHTS = f"""
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: {DNS_USER}}}
rules:
- {{apiGroups: [""], resources: [services, pods, namespaces], verbs: [get, list, watch]}}
- {{apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: {DNS_USER}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {DNS_USER}}}
subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: {DNS_USER}}}]
"""

# The kubelet reads its own Node back from the API server before it admits a pod, so it agrees with the claim.
# CPU limits stay real: they are shares of time, enforced by the kernel.
CLAIMED_CPU_POLICY = f"""
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {{name: bed-claimed-cpus}}
spec:
  failurePolicy: Ignore
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
    - {{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [nodes, nodes/status]}}
  matchConditions:
  - name: is-the-real-node
    expression: object.metadata.name == '{NODE_NAME}'
  - name: tells-its-cpus
    expression: has(object.status) && has(object.status.capacity) && 'cpu' in object.status.capacity
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        [JSONPatch{{op: "add", path: "/status/capacity/cpu", value: "{CLAIMED_CPUS}"}},
         JSONPatch{{op: "add", path: "/status/allocatable/cpu", value: "{CLAIMED_CPUS}"}},
         JSONPatch{{op: "add", path: "/status/capacity/memory", value: "{CLAIMED_MEMORY}"}},
         JSONPatch{{op: "add", path: "/status/allocatable/memory", value: "{CLAIMED_MEMORY}"}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {{name: bed-claimed-cpus}}
spec: {{policyName: bed-claimed-cpus}}
"""

NODE_MANIFESTS = "---".join([DNS_RIGHTS, CLAIMED_CPU_POLICY])
