"""What a page asked for and complained about, gathered from the browser's events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass
class Asked:
    """One request of a page, and what came of it."""

    method: str
    url: str
    status: int | None = None
    failure: str = ""
    is_done: bool = False


@dataclass(frozen=True)
class Complaint:
    """One error on the console. `url` is the request it is about, where the browser itself wrote it."""

    text: str
    url: str = ""


@dataclass
class Traffic:
    """Everything since the tab was opened."""

    requests: dict[str, Asked] = field(default_factory=dict)
    """By the browser's number; a redirected request keeps its number and its last address."""
    complaints: list[Complaint] = field(default_factory=list)

    @property
    def is_quiet(self) -> bool:
        """Nothing is under way."""
        return all(asked.is_done for asked in self.requests.values())

    def forget(self) -> None:
        """Begin anew; what is under way is waited for as before."""
        self.requests = {number: asked for number, asked in self.requests.items() if not asked.is_done}
        self.complaints = []

    def note(self, event: str, details: Json) -> None:
        """Take in one event of the browser."""
        match event:
            case "Network.requestWillBeSent":
                request = details["request"]
                self.requests[details["requestId"]] = Asked(request["method"], request["url"])
            case "Network.responseReceived" | "Network.loadingFinished" | "Network.loadingFailed":
                if (asked := self.requests.get(details["requestId"])) is not None:
                    _note_progress(asked, event, details)
            case "Runtime.consoleAPICalled" if details["type"] in ("error", "assert"):
                self.complaints.append(Complaint(" ".join(_said(part) for part in details["args"])))
            case "Runtime.exceptionThrown":
                thrown = details["exceptionDetails"]
                self.complaints.append(Complaint(thrown.get("exception", {}).get("description") or thrown["text"]))
            case "Log.entryAdded" if details["entry"]["level"] == "error":
                entry = details["entry"]
                self.complaints.append(Complaint(entry["text"], entry.get("url", "")))


def _note_progress(asked: Asked, event: str, details: Json) -> None:
    if event == "Network.responseReceived":
        asked.status = details["response"]["status"]
        return
    asked.is_done = True
    if event == "Network.loadingFailed" and not details.get(
        "canceled"
    ):  # a page that is left cancels what it waits for
        asked.failure = details["errorText"]


def _said(part: Json) -> str:
    return str(part.get("value", part.get("description", part["type"])))
