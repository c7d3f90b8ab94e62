"""The version of the method: data of the settings document, which a release serves or refuses with one sentence."""

from typing import Any

import msgspec
import pytest

from stream_peer.errors import RejectedEvent, SettingsError, UnservedMethodError
from stream_peer.events.feed_log import FeedLogRecord, SettingsChanged
from stream_peer.events.incoming import SettingsControl
from stream_peer.feeds.feed import decode_feed
from stream_peer.feeds.methods.served import served_method
from stream_peer.feeds.store import stored_feeds
from stream_peer.log.stage import Effects
from stream_peer.questions.control_stage import check_settings
from stream_peer.settings.feed.document import document_hash, load_document, stated_method, with_method
from stream_peer.settings.feed.model import METHOD_VERSIONS, NEWEST_METHOD, FeedSettings, with_stored_meaning
from tests.feed_histories import Changelog, folded, log_of, round_of, settings, stage
from tests.unit.questions.question_log import Partition, settings_event

Document = dict[str, Any]

NEXT = NEWEST_METHOD + 1
SENTENCE = f"version {NEXT} of the method .method_version., and this release serves 1 and 2: run a release that serves"
FORECASTS = {"ann": 0.9, "bob": 0.7, "cyd": 0.2, "dan": 0.8}


def of_version(version: object, **more: object) -> Document:
    return {"defaults": {"method_version": version, **more}}


def test_a_release_serves_its_own_version_and_the_one_before() -> None:
    assert METHOD_VERSIONS == (NEWEST_METHOD - 1, NEWEST_METHOD)
    assert [load_document(of_version(version)).default.method_version for version in METHOD_VERSIONS] == [1, 2]


def test_a_document_that_states_no_version_is_of_the_first() -> None:
    assert load_document({}).default.method_version == FeedSettings().method_version == 1


@pytest.mark.parametrize("document", [{}, {"defaults": None}, {"feeds": {"f": {"loss": "log"}}}])
def test_a_document_is_given_a_version_where_it_states_none(document: Document) -> None:
    given = with_method(document, 2)

    assert (stated_method(document), stated_method(given)) == (None, 2)
    assert load_document(given).of("f").method_version == 2
    assert with_method(given, 1) == given


def test_a_document_with_defaults_that_are_none_is_left_as_it_is() -> None:
    assert with_method({"defaults": 7}, 2) == {"defaults": 7}
    assert stated_method({"defaults": 7}) is None


def test_a_feed_may_have_another_version_than_the_others() -> None:
    book = load_document({**of_version(2), "feeds": {"old": {"method_version": 1}}})

    assert [book.of(feed).method_version for feed in ("old", "new")] == [1, 2]


@pytest.mark.parametrize("document", [of_version(NEXT), {"feeds": {"f": {"method_version": NEXT}}}])
def test_a_version_that_is_not_served_is_refused_with_one_sentence(document: Document) -> None:
    with pytest.raises(UnservedMethodError, match=SENTENCE) as refused:
        load_document(document)

    assert refused.value.exit_code == 78


def test_words_of_a_later_release_beside_its_version_are_not_the_fault() -> None:
    with pytest.raises(UnservedMethodError):
        load_document(of_version(NEXT, clairvoyance="on"))


@pytest.mark.parametrize("version", [0, -1, "second", 1.5, None])
def test_what_is_no_version_is_a_fault_of_the_document(version: object) -> None:
    with pytest.raises(SettingsError, match="method_version"):
        load_document(of_version(version))


def test_stored_settings_that_state_no_version_are_of_the_first() -> None:
    first, second = (FeedSettings(method_version=version) for version in METHOD_VERSIONS)

    assert "method_version" not in first.stored_meaning()
    assert with_stored_meaning(second, first.stored_meaning()) == first
    assert with_stored_meaning(first, second.stored_meaning()) == second


# --- workers ---


def test_the_control_stage_of_a_worker_hands_on_nothing_of_the_next_release() -> None:
    with pytest.raises(UnservedMethodError, match=SENTENCE):
        check_settings(_control(NEXT))


def test_a_version_that_no_release_beside_this_one_writes_is_a_dead_letter() -> None:
    with pytest.raises(RejectedEvent, match=r"settings-invalid: .* version 99"):
        check_settings(_control(99))


def _control(version: int) -> SettingsControl:
    return msgspec.json.decode(settings_event(of_version(version)), type=SettingsControl)


def test_a_question_stage_that_meets_a_version_it_does_not_know_stops_there() -> None:
    with pytest.raises(UnservedMethodError, match=SENTENCE):
        Partition().control(settings_event(of_version(NEXT)))


def test_a_feed_stage_that_meets_a_version_it_does_not_know_stops_there() -> None:
    with pytest.raises(UnservedMethodError, match=SENTENCE):
        folded(log_of([settings(of_version(NEXT))]))


def test_a_feed_stage_does_not_take_up_state_of_a_version_that_it_does_not_know() -> None:
    changelog = Changelog()
    here = folded(log_of([round_of("q", FORECASTS), settings(of_version(2))]))[0]
    here.document = of_version(NEXT)
    changelog.take(here)

    with pytest.raises(UnservedMethodError, match=SENTENCE):
        changelog.restored()


def test_feeds_with_rounds_are_rebuilt_under_another_version() -> None:
    events: list[FeedLogRecord] = [round_of("q", FORECASTS), settings(of_version(2))]
    here = stage()
    for record in log_of(events):
        here.step(record, Effects())

    assert here.needs_rebuild


def test_a_feed_that_was_stored_before_its_rebuild_is_still_of_the_version_it_was_made_with() -> None:
    changelog = Changelog()
    changelog.take(folded(log_of([round_of("q", FORECASTS)]))[0])

    (stored,) = stored_feeds(changelog.entries).values()
    assert "method_version" not in decode_feed(stored[0]).meaning
    assert changelog.restored().feeds.by_name["f"].settings.method_version == 1


def test_a_settings_record_of_the_feed_log_holds_the_version() -> None:
    record = settings(of_version(2))

    assert isinstance(record, SettingsChanged)
    assert record.hash == document_hash(of_version(2)) != document_hash({})


def test_versions_choose_the_default_method_alone() -> None:
    first, second = (FeedSettings(preset="paper", method_version=version) for version in METHOD_VERSIONS)

    assert served_method(first) == served_method(second)
