"""Real failures, recorded once: the headline of the report on each is what a person would say.

What happened in each was written down before: `tests/golden/failures/truths.yaml`. The first screen of a terminal is
beside each archive, for people to read: `tests/golden/failures/<name>.yaml`.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from raykeeper.history.commands.report_text import ReportScreen
from raykeeper.history.commands.subjects import opened_whole
from raykeeper.history.jobs_list.summary import job_summaries
from raykeeper.history.report.model import NOWHERE, Confidence, Outcome, Report
from raykeeper.history.report.rules.intended import CANCELLED, STOPPED
from raykeeper.history.report.rules.start import NAMED, UNMADE_ENVIRONMENT
from raykeeper.history.report.unstarted import report_on_unstarted
from raykeeper.history.report.words import verdict
from raykeeper.history.text import LINE_CHARS, cut_at_word
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.urls import parse_store_url
from recording.archives import ARCHIVES
from recording.scenarios import SCENARIOS
from support.golden import REGENERATE, AssertGolden, files_without_test
from support.recorded_failures import NAMES, RecordedFailures
from support.truths import differences, read_truths, truth_of

TRUTHS = read_truths()
JUDGED = {name: found for name in NAMES if (found := truth_of(name, TRUTHS))}
"""By the archive's name: the version of Ray, and what happened."""
OTHERS = ("careless-secrets", "head-image-missing")
"""Archives that are about something else, and have tests of their own."""


@pytest.mark.parametrize("name", JUDGED)
def test_the_headline_is_what_a_person_would_say(name: str, recorded_reports: Mapping[str, Report]) -> None:
    _, truth = JUDGED[name]
    found = list(differences(recorded_reports[name], truth))
    assert found if truth.missed else found == []


def test_nineteen_of_twenty_headlines_are_right_and_no_failure_is_called_nothing(
    recorded_reports: Mapping[str, Report],
) -> None:
    missed = [name for name, (_, truth) in JUDGED.items() if truth.missed]
    assert len(missed) <= len(JUDGED) * 0.05
    assert not [name for name, (_, truth) in JUDGED.items() if truth.cause and recorded_reports[name].headline is None]


@pytest.mark.parametrize("name", JUDGED)
def test_what_is_confirmed_is_named_to_the_line_or_told_by_who_did_it(
    name: str, recorded_reports: Mapping[str, Report]
) -> None:
    told = recorded_reports[name].headline
    if told is not None and told.confidence is Confidence.CONFIRMED:
        assert (told.where is not None and told.basis == NAMED) or told.basis in TOLD, told


TOLD = (
    CANCELLED,
    STOPPED,
    UNMADE_ENVIRONMENT,
    "Ray names the node",
    "Ray's memory monitor says so",
    "the entrypoint says so",
    "Kubernetes says so",
)
"""What a cause may rest on that no line of code is known of."""


@pytest.mark.parametrize("name", JUDGED)
def test_every_cause_has_evidence_and_what_can_be_looked_at_has_an_address(
    name: str, recorded_reports: Mapping[str, Report]
) -> None:
    report = recorded_reports[name]
    for cause in report.causes:
        assert cause.evidence
        assert cause.fingerprint
        unlinked = [fact for fact in cause.evidence if fact.source in LINKED and fact.address == NOWHERE]
        assert [fact.text for fact in unlinked if not fact.text.startswith(COUNTED)] == []
    assert not (report.headline and not (report.steps and report.headline.basis))
    assert all(excerpt.lines for excerpt in report.excerpts)


LINKED = ("task", "actor", "worker", "log")
COUNTED = ("required resources:", "1 of 1 such", "2 of 2 such", "1 task never", "2 tasks never", "2 of ", "1 of ")
"""Facts that are about several."""


@pytest.mark.parametrize("name", JUDGED)
def test_no_line_has_colours_or_is_cut_without_a_sign(name: str, recorded_reports: Mapping[str, Report]) -> None:
    report = recorded_reports[name]
    encoded = msgspec.json.encode(report).decode()
    assert "\\u001b" not in encoded
    shown = [line.text for excerpt in report.excerpts for line in excerpt.lines]
    titles = [cause.title for cause in report.causes] + [group.title for group in report.groups]
    for text in (*shown, *titles):
        assert len(text) < LINE_CHARS or text.endswith(" ...") or len(text) <= 2 * LINE_CHARS, text


def test_there_are_enough_and_some_of_each_library() -> None:
    by_library = Counter(truth.library for _, truth in JUDGED.values())
    assert len(JUDGED) >= 40
    assert min(by_library[name] for name in ("Core", "Data", "Train", "Tune", "Serve", "RLlib", "LLM")) >= 1


def test_the_table_in_the_documentation_is_that_of_the_recordings(
    recorded_reports: Mapping[str, Report], request: pytest.FixtureRequest
) -> None:
    table = "\n".join(_table(recorded_reports))
    before, begin, rest = DOCS.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    assert begin
    assert end
    if request.config.getoption(REGENERATE):
        DOCS.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}")
    assert f"{BEGIN}\n{table}\n{END}" in DOCS.read_text(), f"run pytest {REGENERATE}"


DOCS = Path(__file__).parents[3] / "docs" / "report.md"
BEGIN, END = "<!-- recorded failures: generated -->", "<!-- end of recorded failures -->"


def _table(reports: Mapping[str, Report]) -> Iterator[str]:
    wrong = {name for name, (_, truth) in JUDGED.items() if list(differences(reports[name], truth))}
    yield f"{len(JUDGED) - len(wrong)} of {len(JUDGED)} headlines are what a person would say."
    unrecorded = [f"`{name}`" for name in TRUTHS if name not in JUDGED]
    if unrecorded:
        yield f"Written down, but not recorded yet: {', '.join(unrecorded)}."
    yield ""
    yield "| recording | Ray | what happens | headline | line | confidence |"
    yield "|---|---|---|---|---|---|"
    order = list(TRUTHS)
    for name, (version, truth) in sorted(JUDGED.items(), key=lambda item: (order.index(_plain(item[0])), item[0])):
        told = reports[name].headline
        headline = told.text if told else verdict(reports[name])
        where, sure = (told.where.text if told.where else "", told.confidence.value) if told else ("", "")
        mark = " (not right)" if name in wrong else ""
        cells = (f"`{name}`", version, f"{truth.library}: {truth.happens}", _cell(headline) + mark, where, sure)
        yield f"| {' | '.join(cells)} |"


def _plain(name: str) -> str:
    return name.removesuffix("-ray252")


def _cell(text: str) -> str:
    return "`" + cut_at_word(text, 160).replace("|", "\\|").replace("`", "'") + "`"


async def test_lists_of_jobs_agree_with_the_report(recorded_failures: RecordedFailures) -> None:
    told = {}
    async with recorded_failures.served() as history:
        for name in ("serve-crashing-replica", "intended-ends"):
            context = await opened_whole(history, recorded_failures.sessions[name])
            [told[name]] = [job for job in await job_summaries(context) if job.submission_id == "nightly"]
    crashed, well = told["serve-crashing-replica"], told["intended-ends"]
    assert (crashed.status, crashed.outcome, crashed.is_provisional) == ("SUCCEEDED", "with failures", False)
    assert "of Ray Serve deployment Model of application chat died" in crashed.failure
    assert crashed.headline is not None
    assert crashed.headline.text == "tokenizer: vocabulary entry 50257 is out of range"
    assert [failure.fingerprint for failure in crashed.failures] == [crashed.headline.fingerprint]
    assert (well.status, well.outcome, well.failure, well.failures) == ("SUCCEEDED", "ok", "", ())


async def test_a_head_that_never_started_is_explained_without_a_session(recorded_failures: RecordedFailures) -> None:
    name = "head-image-missing"
    assert name not in recorded_failures.sessions
    store = open_store(parse_store_url(recorded_failures.store.as_uri(), {}))
    report = await report_on_unstarted(store, "recorded", name)
    assert report is not None
    assert (report.outcome, [cause.rule for cause in report.causes]) == (Outcome.FAILED, ["missing_image"])
    assert "image registry.example/team/ray:2.60.0-typo, ErrImageNeverPull" in report.causes[0].title
    assert await report_on_unstarted(store, "recorded", "nobody") is None


def test_every_recorded_failure_is_looked_at() -> None:
    assert {*NAMES} - {*JUDGED} == {*OTHERS}
    assert {*TRUTHS} - {*JUDGED} <= {scenario.name for scenario in SCENARIOS}
    assert files_without_test(ARCHIVES, [*JUDGED, "truths"]) == []


@pytest.mark.parametrize("name", JUDGED)
def test_the_terminal_shows_it_as_it_did(
    name: str, recorded_reports: Mapping[str, Report], assert_golden: AssertGolden
) -> None:
    assert_golden(ARCHIVES / f"{name}.yaml", shown(recorded_reports[name]))


def shown(report: Report) -> str:
    """The first screen of a terminal."""
    printed = io.StringIO()
    ReportScreen(Console(file=printed, highlight=False, width=120)).show(report)
    return printed.getvalue()
