"""KubeRay's markers as entries of our catalog. Pure."""

from __future__ import annotations

from datetime import date

from raykeeper.history.kuberay.adapted import AdaptedRecord
from raykeeper.history.kuberay.keys import KubeRayPlace
from raykeeper.history.kuberay.places import Marked, Marker
from raykeeper.layout.keys import CATALOG_PREFIX, CatalogKey, parse_catalog_key
from raykeeper.layout.records import CatalogStart, encode_record
from raykeeper.storage.store import ObjectStat


def adapted_days(marked: Marked) -> set[str]:
    """Days on which sessions started, as folders of the catalog."""
    return {day.isoformat() for day in marked.by_day}


def adapted_day(marked: Marked, prefix: str) -> list[AdaptedRecord]:
    """The entries of the day that the prefix is in, in order; none for a prefix that is wider."""
    try:
        day = date.fromisoformat(prefix.removeprefix(CATALOG_PREFIX).partition("/")[0])
    except ValueError:
        return []
    return sorted(map(_entry, marked.by_day.get(day, ())), key=lambda entry: entry.stat.key)


def adapted_entry(marked: Marked, key: str) -> AdaptedRecord | None:
    """The entry that has the key; None for what KubeRay tells nothing of."""
    facts = parse_catalog_key(key)
    marker = marked.markers.get(facts.session) if facts else None
    return _entry(marker) if marker and catalog_key(marker.place) == key else None


def catalog_start(place: KubeRayPlace) -> CatalogStart:
    """What a list shows of the session."""
    return CatalogStart(
        namespace=place.session.namespace,
        cluster=place.session.cluster,
        session=place.session.session,
        started_at=place.started_at,
        owner_kind=place.owner_kind,
        owner_name=place.owner,
    )


def catalog_key(place: KubeRayPlace) -> str:
    return CatalogKey(place.started_at.date(), place.session, "start").key


def _entry(marker: Marker) -> AdaptedRecord:
    data = encode_record(catalog_start(marker.place))
    return AdaptedRecord(ObjectStat(catalog_key(marker.place), len(data), marker.written), data)
