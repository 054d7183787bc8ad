"""Rules about authentication, network isolation and encryption."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from raykeeper.api.containers import RAY_TLS_PATH, RAY_TLS_VOLUME
from raykeeper.api.meta import JSON
from raykeeper.api.rayclusteroptions import NetworkPolicyConfig, NetworkPolicyRules, WorkerGroupNetworkPolicyRules
from raykeeper.api.syntax import is_dns_1123_label
from raykeeper.api.versions import KUBERNETES_TOKEN_AUTH, TOKEN_AUTH, Version, parse_version
from raykeeper.operator.gates import Gate
from raykeeper.operator.raycluster.validation.candidate import Candidate
from raykeeper.operator.shared.features import is_kubernetes_token_auth, is_token_auth
from raykeeper.operator.shared.violations import Violation, has_value, is_missing, is_set

TLS_ENV: Final = ("RAY_USE_TLS", "RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT")


def token_auth_needs_a_ray_that_has_it(candidate: Candidate) -> Iterator[Violation]:
    if not is_token_auth(candidate.spec):
        return
    yield from _at_least(candidate, TOKEN_AUTH, "authOptions.mode: token")
    if is_kubernetes_token_auth(candidate.spec):
        yield from _at_least(candidate, KUBERNETES_TOKEN_AUTH, "authOptions.enableK8sTokenAuth")


def _at_least(candidate: Candidate, minimum: Version, feature: str) -> Iterator[Violation]:
    field, text = f"{candidate.path}.rayVersion", candidate.spec.ray_version
    version = parse_version(text)
    if not text:
        yield is_missing(field, f"{feature} needs Ray {minimum} or later; say which one the images have")
    elif version is None:
        yield has_value(field, text, f"{feature} needs Ray {minimum} or later; write the version as numbers")
    elif version < minimum:
        yield has_value(field, text, f"{feature} needs Ray {minimum} or later")


def kubernetes_tokens_replace_ours(candidate: Candidate) -> Iterator[Violation]:
    if not is_kubernetes_token_auth(candidate.spec):
        return
    path, options = f"{candidate.path}.authOptions", candidate.spec.auth_options
    if not is_token_auth(candidate.spec):
        yield has_value(f"{path}.enableK8sTokenAuth", True, f"it needs {path}.mode: token")
    if options and options.secret_name:
        yield is_set(f"{path}.secretName", "remove it, with enableK8sTokenAuth every caller has a token of its own")


def network_policies_are_possible(candidate: Candidate) -> Iterator[Violation]:
    config = candidate.spec.network_policy
    if config is None:
        return
    yield from candidate.needs_gate("networkPolicy", Gate.NETWORK_POLICY)
    for path, rules in _rules(f"{candidate.path}.networkPolicy", config):
        if rules.ingress_rules and config.mode == "DenyAllEgress":
            yield is_set(
                f"{path}.ingressRules", "mode DenyAllEgress lets everyone in; remove them or choose another mode"
            )
        if rules.egress_rules and config.mode == "DenyAllIngress":
            yield is_set(
                f"{path}.egressRules", "mode DenyAllIngress lets everyone out; remove them or choose another mode"
            )
    yield from _policies_have_groups(candidate, config)


def _rules(
    path: str, config: NetworkPolicyConfig
) -> Iterator[tuple[str, NetworkPolicyRules | WorkerGroupNetworkPolicyRules]]:
    if config.head:
        yield f"{path}.head", config.head
    if config.worker:
        yield f"{path}.worker", config.worker
    for index, group in enumerate(config.worker_groups):
        yield f"{path}.workerGroups[{index}]", group


def _policies_have_groups(candidate: Candidate, config: NetworkPolicyConfig) -> Iterator[Violation]:
    for path, group in candidate.workers:
        if not is_dns_1123_label(group.group_name):
            cure = "it becomes part of a NetworkPolicy's name; use lower-case letters, digits and dashes"
            yield has_value(f"{path}.groupName", group.group_name, cure)
    names = {group.group_name for group in candidate.spec.worker_group_specs}
    for index, policy in enumerate(config.worker_groups):
        if policy.group_name not in names:
            field = f"{candidate.path}.networkPolicy.workerGroups[{index}].groupName"
            yield has_value(field, policy.group_name, "there is no such worker group")


def tls_is_set_up_by_the_operator(candidate: Candidate) -> Iterator[Violation]:
    options = candidate.spec.tls_options
    if options is None:
        return
    yield from candidate.needs_gate("tlsOptions", Gate.MTLS)
    if not options.enabled:
        return
    for path, container in _containers_with_certificates(candidate):
        for entry in container.get("env") or []:
            if entry.get("name") in TLS_ENV:
                yield is_set(f"{path}.env[{entry['name']}]", "remove it, the operator writes it")
        for mount in container.get("volumeMounts") or []:
            if mount.get("name") == RAY_TLS_VOLUME or mount.get("mountPath") == RAY_TLS_PATH:
                cure = f"the operator mounts {RAY_TLS_VOLUME} at {RAY_TLS_PATH}; choose another name and path"
                yield is_set(f"{path}.volumeMounts[{mount.get('mountPath')}]", cure)


def _containers_with_certificates(candidate: Candidate) -> Iterator[tuple[str, JSON]]:
    for group in candidate.groups:
        yield group.container_path, group.container
    options = candidate.spec.autoscaler_options
    if options:
        yield f"{candidate.path}.autoscalerOptions", {"env": options.env, "volumeMounts": options.volume_mounts}
