"""The well-known kinds this project touches. Read as `Object` where labels, owners and two or three fields matter,
as plain JSON where everything in them does."""

from __future__ import annotations

from raykeeper.api.meta import JSON, Object, Resource

PODS: Resource[Object] = Resource("", "v1", "pods", "Pod", Object)
SERVICES: Resource[Object] = Resource("", "v1", "services", "Service", Object)
NODES: Resource[Object] = Resource("", "v1", "nodes", "Node", Object, namespaced=False)
NAMESPACES: Resource[Object] = Resource("", "v1", "namespaces", "Namespace", Object, namespaced=False)
PERSISTENT_VOLUME_CLAIMS: Resource[Object] = Resource(
    "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", Object
)
CONFIG_MAPS: Resource[JSON] = Resource("", "v1", "configmaps", "ConfigMap", dict)
SECRETS: Resource[JSON] = Resource("", "v1", "secrets", "Secret", dict)
SERVICE_ACCOUNTS: Resource[JSON] = Resource("", "v1", "serviceaccounts", "ServiceAccount", dict)
ENDPOINT_SLICES: Resource[JSON] = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", dict)

JOBS: Resource[Object] = Resource("batch", "v1", "jobs", "Job", Object)
DEPLOYMENTS: Resource[Object] = Resource("apps", "v1", "deployments", "Deployment", Object)
INGRESSES: Resource[Object] = Resource("networking.k8s.io", "v1", "ingresses", "Ingress", Object)
NETWORK_POLICIES: Resource[Object] = Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", Object)
POD_DISRUPTION_BUDGETS: Resource[Object] = Resource(
    "policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", Object
)
ROUTES: Resource[Object] = Resource("route.openshift.io", "v1", "routes", "Route", Object)

GATEWAYS: Resource[Object] = Resource("gateway.networking.k8s.io", "v1", "gateways", "Gateway", Object)
HTTP_ROUTES: Resource[Object] = Resource("gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute", Object)

LEASES: Resource[JSON] = Resource("coordination.k8s.io", "v1", "leases", "Lease", dict)
EVENTS: Resource[JSON] = Resource("events.k8s.io", "v1", "events", "Event", dict)

ROLES: Resource[JSON] = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role", dict)
ROLE_BINDINGS: Resource[JSON] = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", dict)
CUSTOM_RESOURCE_DEFINITIONS: Resource[JSON] = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", dict, namespaced=False
)
TOKEN_REVIEWS: Resource[JSON] = Resource(
    "authentication.k8s.io", "v1", "tokenreviews", "TokenReview", dict, namespaced=False
)
SUBJECT_ACCESS_REVIEWS: Resource[JSON] = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", dict, namespaced=False
)
SELF_SUBJECT_ACCESS_REVIEWS: Resource[JSON] = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", dict, namespaced=False
)
