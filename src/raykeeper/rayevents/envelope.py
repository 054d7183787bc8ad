"""What every event of Ray says about itself, whatever its payload: session, node and type."""

from __future__ import annotations

import msgspec


class Envelope(msgspec.Struct, frozen=True, gc=False):
    """The fields that filing needs. Ray writes camelCase or, where it is told to, the names of its protobuf."""

    sessionName: str = ""  # noqa: N815 - as Ray spells it; a rename would allow one spelling only
    session_name: str = ""
    nodeId: str = ""  # noqa: N815
    node_id: str = ""
    eventType: str = ""  # noqa: N815
    event_type: str = ""

    @property
    def session(self) -> str:
        return self.sessionName or self.session_name

    @property
    def node(self) -> str:
        """The emitting node's id in base64; empty before Ray 2.54."""
        return self.nodeId or self.node_id

    @property
    def type(self) -> str:
        return self.eventType or self.event_type


_decode = msgspec.json.Decoder(Envelope).decode
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_text = msgspec.json.Decoder(str).decode


def parse_envelope(event: bytes | msgspec.Raw) -> Envelope:
    """The envelope of one event; a field that is not text counts as unset. Raises msgspec.DecodeError for no object."""
    try:
        return _decode(event)
    except msgspec.ValidationError:
        fields = _decode_fields(event)
        return Envelope(**{name: _text(fields[name]) for name in Envelope.__struct_fields__ if name in fields})


def _text(value: msgspec.Raw) -> str:
    try:
        return _decode_text(value)
    except msgspec.DecodeError:
        return ""
