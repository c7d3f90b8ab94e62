"""How a Faust app is made out of settings."""

from typing import Any

import faust

from stream_peer.kafka.worker.faust_bridge import credentials
from stream_peer.kafka.worker.ownership import Ownership, RunningApp
from stream_peer.kafka.worker.worker import StageMakers, feed_app, question_app
from stream_peer.settings.process import Secret, Security, Settings
from tests.unit.kafka.worker.fakes import FakeProducer, SumStage, surroundings


def make_stage(_partition: int) -> SumStage:
    return SumStage()


def faust_app(app: RunningApp) -> tuple[Any, Ownership]:
    return app.member, app.ownership


STAGES = StageMakers(make_stage, make_stage, make_stage)


def test_plaintext_needs_no_credentials_and_scram_over_tls_has_both() -> None:
    scram = Security(protocol="sasl_ssl", username="peer", password=Secret("s3cret"))

    made = credentials(scram)

    assert credentials(Security()) is None
    assert isinstance(made, faust.SASLCredentials)
    assert (made.username, made.password, str(made.protocol)) == ("peer", "s3cret", "AuthProtocol.SASL_SSL")
    assert isinstance(credentials(Security(protocol="ssl")), faust.SSLCredentials)


async def test_the_question_app_keeps_its_state_where_the_settings_say() -> None:
    settings = Settings(prefix="acme-", session=10.0, instance="pod-0")
    app, ownership = faust_app(question_app(settings, surroundings(FakeProducer())[0], make_stage))

    assert app.conf.id == "acme-stream-peer-question"
    assert set(app.tables.changelog_topics) == {settings.changelog("question")}
    assert set(ownership.stages) == {"acme-forecast-events"}
    assert app.conf.consumer_group_instance_id == "pod-0-acme-stream-peer-question"
    assert app.conf.broker_request_timeout >= app.conf.broker_session_timeout


async def test_the_feed_app_reads_the_feed_log_and_the_controls_and_neither_makes_topics_nor_serves_http() -> None:
    settings = Settings()
    app, ownership = faust_app(feed_app(settings, surroundings(FakeProducer())[0], STAGES))

    assert set(app.tables.changelog_topics) == {settings.changelog("feed")}
    assert set(ownership.stages) == {"feed-log", "control-events"}
    assert not app.conf.topic_allow_declare
    assert not app.conf.web_enabled


async def test_what_is_fetched_ahead_is_bounded_in_bytes() -> None:
    """Sixteen partitions of a backlog took twice the memory at the client's own limit."""
    app, _ = faust_app(question_app(Settings(), surroundings(FakeProducer())[0], make_stage))

    assert app.conf.consumer_max_fetch_size == 262_144


async def test_a_first_start_at_the_end_skips_forecasts_but_never_the_feed_log() -> None:
    latest, around = Settings(prefix="acme-", start="latest"), surroundings(FakeProducer())[0]

    skipping = [
        tp_input.input.topic
        for settings in (latest, Settings(prefix="acme-"))
        for app in (question_app(settings, around, make_stage), feed_app(settings, around, STAGES))
        for tp_input in app.ownership.stages.values()
        if tp_input.input.begins_at_end
    ]

    assert skipping == ["acme-forecast-events"]
