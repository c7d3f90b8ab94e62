"""Which broker the tests get, by what the machine has."""

import pytest

from tests.integration.support.brokers import GIVEN, REQUIRE, LadderError, Probes, Rung, choose

NOTHING = Probes(docker_answers=lambda: False, java_version=lambda: None, has_jars=lambda: False)
JAVA_AND_MAVEN = NOTHING._replace(java_version=lambda: 17, has_jars=lambda: True)
EVERYTHING = JAVA_AND_MAVEN._replace(docker_answers=lambda: True)


def never() -> bool:
    """Fail the test: a probe that takes time although the choice is made."""
    pytest.fail("probed for nothing")


def test_a_given_broker_wins_and_nothing_is_probed() -> None:
    probes = Probes(docker_answers=never, java_version=never, has_jars=never)

    assert choose({GIVEN: "127.0.0.1:9092"}, probes).rung is Rung.GIVEN


def test_an_empty_bootstrap_is_none() -> None:
    assert choose({GIVEN: ""}, NOTHING).rung is Rung.EMBEDDED


def test_a_docker_engine_comes_before_jars() -> None:
    assert choose({}, EVERYTHING._replace(java_version=never)).rung is Rung.CONTAINER


def test_jars_are_taken_where_no_engine_answers() -> None:
    assert choose({}, JAVA_AND_MAVEN).rung is Rung.JARS


@pytest.mark.parametrize(
    ("probes", "reason"),
    [
        (NOTHING, "no Java, 17 is needed"),
        (JAVA_AND_MAVEN._replace(java_version=lambda: 11), "Java 11, 17 is needed"),
        (JAVA_AND_MAVEN._replace(has_jars=lambda: False), "no Maven and no cached Kafka jars"),
    ],
)
def test_the_embedded_broker_is_the_last_rung_and_says_why(probes: Probes, reason: str) -> None:
    choice = choose({}, probes)

    assert choice.rung is Rung.EMBEDDED
    assert not choice.rung.is_real
    assert choice.describe() == f"embedded broker ({GIVEN} is not set; no Docker engine answers; {reason})"


def test_a_newer_java_will_do() -> None:
    assert choose({}, JAVA_AND_MAVEN._replace(java_version=lambda: 25)).rung is Rung.JARS


@pytest.mark.parametrize("probes", [JAVA_AND_MAVEN, EVERYTHING])
def test_a_demand_for_kafka_changes_nothing_where_there_is_one(probes: Probes) -> None:
    assert choose({REQUIRE: "kafka"}, probes) == choose({}, probes)


def test_a_demand_for_kafka_makes_the_embedded_broker_an_error_that_names_what_is_missing() -> None:
    with pytest.raises(LadderError, match=r"no Docker engine answers; no Java, 17 is needed"):
        choose({REQUIRE: "kafka"}, NOTHING)


def test_an_unknown_demand_is_refused() -> None:
    with pytest.raises(LadderError, match="may be 'kafka' or unset"):
        choose({REQUIRE: "yes"}, EVERYTHING)
