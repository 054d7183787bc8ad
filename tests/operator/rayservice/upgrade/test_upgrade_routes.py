"""What is written into a Gateway and an HTTPRoute, and what is read there."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest

from raykeeper.api.meta import JSON, Object, ObjectKey, ObjectMeta
from raykeeper.operator.rayservice.upgrade.routes import (
    Backend,
    carried_services,
    cluster_of,
    desired_gateway,
    desired_route,
    gateway_drift,
    gateway_trouble,
    route_drift,
    route_trouble,
    weighted_rules,
    weights_of,
)
from support.rayservice_facts import a_service

SERVICE = a_service()
OLD = Backend("web-bbbbb-serve-svc", 75, (8000, 8001))
NEW = Backend("web-ccccc-serve-svc", 25, (8000, 8001))


def names(rules: list[JSON]) -> list[list[tuple[str, int]]]:
    return [[(one["name"], one.get("weight", 1)) for one in rule.get("backendRefs", ())] for rule in rules]


def stored(route: JSON, **spec: Any) -> JSON:
    return {**route, "metadata": {**route["metadata"], "resourceVersion": "7"}, "spec": {**route["spec"], **spec}}


def test_a_route_as_we_made_it_has_not_drifted() -> None:
    route = stored(desired_route(SERVICE, [OLD, NEW]))
    assert route_drift(SERVICE, route, [OLD, NEW], is_attached=False) is None
    assert weights_of(SERVICE, route) == {"web-bbbbb": 75, "web-ccccc": 25}


def test_weights_are_written_to_the_route_that_was_looked_at() -> None:
    route = stored(desired_route(SERVICE, [OLD]), hostnames=["shop.example"])
    drift = route_drift(SERVICE, route, [OLD, NEW], is_attached=False)
    assert drift is not None
    assert drift.body["metadata"] == {"resourceVersion": "7"}
    assert drift.body["spec"].keys() == {"rules"}
    assert names(drift.body["spec"]["rules"]) == [[("web-bbbbb-serve-svc", 75), ("web-ccccc-serve-svc", 25)]]


def test_a_route_that_lost_our_gateway_gets_it_back_beside_the_users() -> None:
    route = stored(desired_route(SERVICE, [OLD]), parentRefs=[{"name": "users"}])
    drift = route_drift(SERVICE, route, [OLD], is_attached=False)
    assert drift is not None
    assert [one["name"] for one in drift.body["spec"]["parentRefs"]] == ["users", "web-gateway"]
    assert route_drift(SERVICE, route, [OLD], is_attached=True) is None


def test_our_backends_stand_where_ours_stood_in_every_rule() -> None:
    shadow = {"name": "shadow", "port": 80, "weight": 5}
    ours = {"name": "web-serve-svc", "port": 8001, "filters": [{"type": "RequestMirror"}]}
    rules: list[JSON] = [
        {"backendRefs": [shadow]},
        {"backendRefs": [shadow, ours]},
        {"backendRefs": [ours]},
        {"filters": []},
    ]
    before = copy.deepcopy(rules)
    written = weighted_rules(SERVICE, rules, [OLD, NEW])
    both = [("web-bbbbb-serve-svc", 75), ("web-ccccc-serve-svc", 25)]
    assert names(written) == [[("shadow", 5)], [("shadow", 5), *both], both, []]
    assert [(one["port"], one["filters"]) for one in written[2]["backendRefs"]] == [(8001, ours["filters"])] * 2
    assert weighted_rules(SERVICE, written, [OLD, NEW]) == written
    assert rules == before


def test_a_route_without_our_backends_gets_them_in_the_first_rule_that_leads_nowhere() -> None:
    redirect: JSON = {"filters": [{"type": "RequestRedirect"}]}
    rules: list[JSON] = [{"backendRefs": [{"name": "other"}]}, redirect, {"matches": []}, {}]
    ours = [("web-bbbbb-serve-svc", 75)]
    assert names(weighted_rules(SERVICE, rules, [OLD])) == [[("other", 1)], [], ours, []]
    assert names(weighted_rules(SERVICE, [], [OLD])) == [ours]


def test_a_route_that_leads_elsewhere_stays_as_it_is_and_says_so() -> None:
    rules: list[JSON] = [{"backendRefs": [{"name": "other", "port": 80}]}]
    assert weighted_rules(SERVICE, rules, [OLD]) == rules
    told = route_trouble(SERVICE, {"metadata": {}, "spec": {"rules": rules}}, "")
    assert "write web-serve-svc as a backend" in told


@pytest.mark.parametrize(
    "reference",
    [
        {"name": "web-bbbbb-serve-svc", "namespace": "elsewhere"},
        {"name": "web-bbbbb-serve-svc", "kind": "ServiceImport", "group": "multicluster.x-k8s.io"},
        {"name": "web-shop-bbbbb-serve-svc"},
        {"name": "web-large-serve-svc"},
        {"name": "webbbbbb-serve-svc"},
        {"name": "web-bbbbb"},
    ],
    ids=str,
)
def test_what_only_looks_like_ours_is_left_alone(reference: JSON) -> None:
    written = weighted_rules(
        SERVICE, [{"backendRefs": [reference]}, {"backendRefs": [{"name": "web-serve-svc"}]}], [OLD]
    )
    assert written[0]["backendRefs"] == [reference]


def test_the_class_of_a_gateway_is_ours_and_its_listeners_are_the_users() -> None:
    gateway = desired_gateway(SERVICE, "istio")
    users = {**gateway, "spec": {"gatewayClassName": "istio", "listeners": [{"name": "https", "port": 443}]}}
    assert gateway_drift(gateway, users) is None
    drift = gateway_drift(desired_gateway(SERVICE, "other"), users)
    assert drift is not None
    assert drift.body == {"spec": {"gatewayClassName": "other"}}


def conditions(*states: str, generation: int = 3) -> JSON:
    kinds = ("Accepted", states[0])
    return {
        "conditions": [
            {"type": kind, "status": status, "message": "why", "observedGeneration": generation}
            for kind, status in zip(kinds, states[1:], strict=True)
        ]
    }


def test_a_gateway_works_once_its_controller_says_so() -> None:
    item: JSON = {"metadata": {"generation": 3}}
    assert "not there" in gateway_trouble(None, "web-gateway")
    assert "has not said so" in gateway_trouble(item, "web-gateway")
    assert gateway_trouble(item | {"status": conditions("Programmed", "True", "True")}, "g") == ""
    assert gateway_trouble(item | {"status": conditions("Programmed", "True", "False")}, "g").endswith(
        "Programmed: why"
    )
    assert "not taken" in gateway_trouble(
        item | {"status": conditions("Programmed", "True", "True", generation=2)}, "g"
    )


def test_a_route_works_once_a_gateway_took_it_as_it_is() -> None:
    item: JSON = {"metadata": {"generation": 3}, "spec": {}}

    def parent(name: str, *states: str, generation: int = 3) -> JSON:
        return {"parentRef": {"name": name}, **conditions("ResolvedRefs", *states, generation=generation)}

    def trouble(*parents: JSON, gateway: str = "g") -> str:
        return route_trouble(SERVICE, item | {"status": {"parents": list(parents)}}, gateway)

    assert "not there" in route_trouble(SERVICE, None, "g")
    assert "no Gateway" in trouble()
    assert "no Gateway" in trouble(parent("other", "True", "True"))
    assert trouble(parent("g", "True", "True")) == ""
    assert trouble(parent("g", "True", "False")).endswith("ResolvedRefs: why")
    assert "not taken" in trouble(parent("g", "True", "True", generation=2))
    assert trouble(parent("a", "False", "True"), parent("b", "True", "True"), gateway="") == ""


def test_a_backend_tells_its_cluster() -> None:
    assert cluster_of("web", "web-bbbbb-serve-svc") == "web-bbbbb"
    assert cluster_of("web", "web-serve-svc") == ""
    assert cluster_of("web", "web-bbbbba-serve-svc") == ""
    assert cluster_of("web-a", "web-bbbbb-serve-svc") == ""


def test_a_change_of_a_route_concerns_the_services_behind_it() -> None:
    rules = [{"backendRefs": [{"name": "web-bbbbb-serve-svc"}, {"name": "cdn"}]}, {}]
    route = Object(ObjectMeta(name="r", namespace="ns"), msgspec.Raw(msgspec.json.encode({"rules": rules})))
    assert ObjectKey("ns", "web") in set(carried_services(route))
    assert list(carried_services(Object(ObjectMeta(name="r", namespace="ns")))) == []
