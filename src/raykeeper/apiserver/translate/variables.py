"""Environment variables of containers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from raykeeper.api.meta import JSON
from raykeeper.apiserver.protos.cluster_pb2 import EnvironmentVariables, EnvValueFrom

Source = EnvValueFrom.Source


def to_env(variables: EnvironmentVariables) -> list[JSON]:
    """The `env` of a container: values, then sources, each by name."""
    values: list[JSON] = [{"name": name, "value": value} for name, value in sorted(variables.values.items())]
    sources: list[JSON] = [
        {"name": name, "valueFrom": _value_from(source)} for name, source in sorted(variables.valuesFrom.items())
    ]
    return values + sources


def _value_from(source: EnvValueFrom) -> JSON:
    if source.source == Source.CONFIGMAP:
        return {"configMapKeyRef": {"name": source.name, "key": source.key}}
    if source.source == Source.SECRET:
        return {"secretKeyRef": {"name": source.name, "key": source.key}}
    if source.source == Source.RESOURCEFIELD:
        return resource_field(source.name, source.key)
    return {"fieldRef": {"fieldPath": source.key}}


def resource_field(container: str, resource: str) -> JSON:
    """A request or limit of a container. The divisor is what Go writes for none: a service that KubeRay made and we
    replace must not differ in it, or its cluster would be made anew."""
    return {"resourceFieldRef": {"containerName": container, "resource": resource, "divisor": "0"}}


def from_env(env: Sequence[JSON], reserved: frozenset[str]) -> EnvironmentVariables:
    """What a user set; `reserved` are the names that every container of that kind has."""
    found = EnvironmentVariables()
    for variable in env:
        name, origin = variable.get("name", ""), variable.get("valueFrom")
        if name in reserved:
            continue
        if origin is None:
            found.values[name] = variable.get("value", "")
        elif (source := _source(origin)) is not None:
            found.valuesFrom[name].CopyFrom(source)
    return found


def _source(origin: JSON) -> EnvValueFrom | None:
    if (key := origin.get("configMapKeyRef")) is not None:
        return EnvValueFrom(source=Source.CONFIGMAP, name=key.get("name"), key=key.get("key"))
    if (key := origin.get("secretKeyRef")) is not None:
        return EnvValueFrom(source=Source.SECRET, name=key.get("name"), key=key.get("key"))
    if (field := origin.get("resourceFieldRef")) is not None:
        return EnvValueFrom(source=Source.RESOURCEFIELD, name=field.get("containerName"), key=field.get("resource"))
    if (field := origin.get("fieldRef")) is not None:
        return EnvValueFrom(source=Source.FIELD, key=field.get("fieldPath"))
    return None


def to_env_from(variables: EnvironmentVariables) -> list[JSON]:
    """The `envFrom` of the autoscaler: whole ConfigMaps and Secrets. Other sources have no place there."""
    return list(_env_from(variables))


def _env_from(variables: EnvironmentVariables) -> Iterator[JSON]:
    for _, source in sorted(variables.valuesFrom.items()):
        if source.source == Source.CONFIGMAP:
            yield {"configMapRef": {"name": source.name}}
        elif source.source == Source.SECRET:
            yield {"secretRef": {"name": source.name}}


def from_env_from(items: Sequence[JSON], into: EnvironmentVariables) -> None:
    """The way back: sources have no names there, so they are called by their place."""
    for place, item in enumerate(items):
        if (reference := item.get("configMapRef")) is not None:
            into.valuesFrom[str(place)].CopyFrom(EnvValueFrom(source=Source.CONFIGMAP, name=reference.get("name")))
        elif (reference := item.get("secretRef")) is not None:
            into.valuesFrom[str(place)].CopyFrom(EnvValueFrom(source=Source.SECRET, name=reference.get("name")))
