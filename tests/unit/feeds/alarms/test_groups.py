"""Experts who say the same: named, and with the guard on held down to one vote and one weight."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from stream_peer.events import topics
from stream_peer.events.feed_log import FeedLogRecord, Round
from stream_peer.feeds.alarm_checks import MOST_GROUPS, largest
from stream_peer.feeds.alarms.groups import Group, look_for_copies
from stream_peer.feeds.alarms.recent import Recent
from stream_peer.feeds.reading.weights import shared_by_groups
from stream_peer.feeds.stage import FeedStage
from stream_peer.feeds.vote_units import Groups, united, united_numbers
from stream_peer.log.stage import Effects
from stream_peer.numerics.dependence.blocks import find_blocks
from stream_peer.numerics.dependence.in_pieces import done_at_once
from tests.feed_histories import (
    Changelog,
    carry_out_rebuilds,
    changed,
    expert,
    folded,
    log_of,
    newest,
    outcome,
    round_of,
    settings,
    stage,
)
from tests.feed_transfers import import_log, lines_of

COPIES = [f"copy{number}" for number in range(6)]
GOOD = [f"good{number}" for number in range(4)]


class Attack:
    """Four good experts and six copies of a bad one, with probabilities of their own; and the outcomes."""

    def __init__(self, questions: int, *, alike: float = 1.0, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.outcomes = (rng.random(questions) < 0.5).astype(int)
        side = 2 * self.outcomes - 1
        good = np.where(rng.random((questions, 4)) < 0.15, -1, 1) * side[:, None]
        leader = (np.where(rng.random(questions) < 0.35, -1, 1) * side)[:, None]
        own = np.where(rng.random((questions, 6)) < 0.35, -1, 1) * side[:, None]
        votes = np.concatenate((good, np.where(rng.random((questions, 6)) < alike, leader, own)), axis=1)
        sure = rng.uniform(0.55, 0.95, votes.shape)
        self.forecasts = np.where(votes > 0, sure, 1.0 - sure).round(3)

    def rounds(self, without: Sequence[str] = ()) -> list[Round]:
        """Their rounds, of all experts but some."""
        rows = (dict(zip((*GOOD, *COPIES), row, strict=True)) for row in self.forecasts.tolist())
        said = ({name: p for name, p in row.items() if name not in without} for row in rows)
        return [round_of(f"q{number}", forecasts) for number, forecasts in enumerate(said)]


def lived(rounds: Sequence[FeedLogRecord], **defaults: object) -> tuple[FeedStage, list[dict[str, Any]]]:
    """A stage that has folded rounds one by one, and the reference answer to each at once."""
    feed_stage = stage(**defaults)
    answers: list[dict[str, Any]] = []
    for record in log_of(rounds):
        effects = Effects()
        feed_stage.step(record, effects)
        answers += newest(effects.outputs, topics.REFERENCE_ANSWERS).values()
    return feed_stage, answers


def weights_of(feed_stage: FeedStage) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(feed_stage.views()["f"].weights)
    return found


def share_right(answers: Sequence[Mapping[str, Any]], attack: Attack, since: int = 0) -> float:
    right = [answer["reference_answer"] == y for answer, y in zip(answers, attack.outcomes.tolist(), strict=True)]
    return float(np.mean(right[since:]))


@pytest.mark.case("C16")
@pytest.mark.parametrize("alike", [1.0, 0.99])
def test_six_copies_among_four_good_experts_are_named_and_with_the_guard_on_do_no_harm(alike: float) -> None:
    attack = Attack(1000, alike=alike)
    _, alone = lived(attack.rounds(without=COPIES[1:]))
    unguarded, off = lived(attack.rounds())
    guarded, on = lived(attack.rounds(), guard="on")

    for feed_stage in (unguarded, guarded):
        (group,) = weights_of(feed_stage)["groups"]
        assert (group["experts"], group["kind"]) == (COPIES, "copies")
        assert group["agreement"] > 0.95
        assert group["expected"] < 0.5
        assert weights_of(feed_stage)["status"] == "dependent"
    assert share_right(off, attack) < 0.75
    assert share_right(on, attack) >= 0.95 * share_right(alone, attack)
    assert share_right(on, attack, since=200) >= share_right(alone, attack, since=200) - 0.005


@pytest.mark.case("C16")
def test_the_alarm_comes_within_two_hundred_questions_and_trust_is_never_ok() -> None:
    attack, trusted, named = Attack(400), [], []
    feed_stage = stage()
    for record in log_of(attack.rounds()):
        feed_stage.step(record, Effects())
        path_state = feed_stage.feeds.by_name["f"].path_state
        trusted.append(path_state.trust)
        named.append(len(path_state.groups))

    assert named.index(1) < 200
    assert set(trusted) == {"warming-up", "dependent"}
    assert trusted[199:] == ["dependent"] * 201


@pytest.mark.case("C16")
def test_a_group_votes_once_and_shares_one_weight() -> None:
    attack = Attack(300)
    guarded, answers = lived(attack.rounds(), guard="on")
    off, before = lived(attack.rounds())

    assert (before[-1]["votes"], answers[-1]["votes"], answers[-1]["experts"]) == (10, 5, 10)
    weights = {row["id"]: row for row in weights_of(guarded)["experts"]}
    free = {row["id"]: row for row in weights_of(off)["experts"]}
    for name in ("mix", "select"):
        assert sum(row[name] for row in weights.values()) == pytest.approx(1.0, abs=1e-9)
        assert sum(weights[copy][name] for copy in COPIES) < 0.4 * sum(free[copy][name] for copy in COPIES)
    facts = guarded.feeds.by_name["f"].ledger.entries["q299"].latest()
    assert facts is not None
    assert facts.votes.voters == 5
    of_copies = [place for place, name in enumerate(sorted((*GOOD, *COPIES))) if name in COPIES]
    assert len(set(facts.answers[of_copies].tolist())) == 1  # they are left out together


def test_the_mix_is_what_the_weights_before_the_round_make_of_it() -> None:
    attack = Attack(200)
    told = [outcome(f"q{number}", 1 if y else 0) for number, y in enumerate(attack.outcomes[:150].tolist())]
    guarded, _ = folded(log_of([*attack.rounds()[:-1], *told]), stage(guard="on"))
    weights = {row["id"]: row["mix"] for row in weights_of(guarded)["experts"]}
    last = attack.rounds()[-1]
    expected = sum(weights[name] * p for name, p in zip(last.experts, last.probabilities, strict=True))

    guarded.step(log_of([last], first=349)[0], effects := Effects())

    assert newest(effects.outputs, topics.MIXED_FORECASTS)["q199"]["mix"] == pytest.approx(expected, abs=1e-9)


@pytest.mark.case("C17")
@pytest.mark.parametrize("guard", ["off", "on"])
def test_who_all_agree_have_the_answer_whatever_groups_there_are(guard: str) -> None:
    attack = Attack(100)
    together = [round_of("all", dict.fromkeys((*GOOD, *COPIES), p), boundary=2) for p in (0.1, 0.9)]
    for round_, answer in zip(together, (0, 1), strict=True):
        feed_stage, answers = lived([*attack.rounds(), round_], guard=guard)
        assert feed_stage.feeds.by_name["f"].path_state.groups
        assert answers[-1]["reference_answer"] == answer


LIFE: list[FeedLogRecord] = [
    *Attack(130).rounds(),
    outcome("q3", 1),
    expert("copy5", excluded=True),
    *(
        msgspec.structs.replace(of_round, question_id=f"r{number}")
        for number, of_round in enumerate(Attack(90).rounds())
    ),
    expert("copy5", excluded=False),
]


@pytest.mark.parametrize("cut", [60, 80, 131, 140, 215])
def test_a_restart_at_any_record_changes_nothing(cut: int) -> None:
    log = log_of(LIFE)
    straight, _ = folded(log, stage(guard="on"))
    changelog, first = Changelog(), stage(guard="on")
    folded(log[:cut], first)
    changelog.take(first)
    restarted = changelog.restored(guard="on")
    folded(log[cut:], restarted)

    assert straight.snapshot().head == restarted.snapshot().head
    assert weights_of(straight) == weights_of(restarted)
    assert straight.agrees()
    assert restarted.agrees()


def test_who_is_excluded_leaves_its_group_at_the_next_look() -> None:
    feed_stage, _ = folded(log_of(LIFE), stage(guard="on"))

    assert [group["experts"] for group in weights_of(feed_stage)["groups"]] == [COPIES[:5]]


@pytest.mark.case("C22")
def test_who_is_excluded_is_named_no_more_and_one_who_is_left_alone_is_no_group() -> None:
    events = Attack(220).rounds()
    feed_stage, _ = folded(log_of([*events, expert("copy0", excluded=True)]))
    alone, _ = folded(log_of([*events, *(expert(name, excluded=True) for name in COPIES[1:])]))

    said = weights_of(feed_stage)
    assert said["status"] == "dependent"
    assert "copy1" in said["status_reasons"][0]
    assert "copy0" not in msgspec.json.encode(said).decode()
    assert "groups" not in weights_of(alone)
    assert "copy0" not in " ".join(weights_of(alone)["status_reasons"])


def test_one_who_follows_the_crowd_alone_is_named_but_is_no_reason_for_distrust() -> None:
    one, three = (folded(log_of(herd(250, n_followers)))[0] for n_followers in (1, 3))

    assert [group["kind"] for group in weights_of(one)["groups"]] == ["follower"]
    assert "echo0" not in " ".join(weights_of(one)["status_reasons"])
    assert weights_of(three)["status"] == "dependent"
    assert "echo0" in weights_of(three)["status_reasons"][0]


def test_who_is_excluded_is_not_named_for_what_it_repeated() -> None:
    rng, events = np.random.default_rng(1), list[FeedLogRecord]()
    for number in range(50):
        crowd = {f"e{place}": round(float(p), 3) for place, p in enumerate(rng.random(6))}
        mean = sum(crowd.values()) / 6
        events.append(round_of(f"q{number}", crowd, boundary=1))
        events.append(round_of(f"q{number}", crowd | {"echo": mean}, boundary=2, final=True))
    there, excluded = (
        folded(log_of([*events[:-2], *some, *events[-2:]]), stage(method_version=2))[0].feeds.feed("f")
        for some in ([], [expert("echo", excluded=True)])
    )

    assert [group.experts for group in there.path_state.groups] == [[6]]
    assert excluded.path_state.groups == []


def test_who_is_forgotten_leaves_its_group_and_a_rebuild_finds_the_others_again() -> None:
    log = log_of([*Attack(130).rounds(), expert("copy0", forget=True)])
    without, _ = folded(log, stage(guard="on"))
    never, _ = folded(log_of(Attack(130).rounds(without=["copy0"])), stage(guard="on"))

    assert [group["experts"] for group in weights_of(without)["groups"]] == [COPIES[1:]]
    assert without.feeds.by_name["f"].path_state.groups == never.feeds.by_name["f"].path_state.groups


def test_a_reset_ends_groups_and_the_guard_can_be_turned_on_and_off_at_any_time() -> None:
    rounds = Attack(130).rounds()
    on, off = settings({"defaults": {"guard": "on"}}), settings({"defaults": {"guard": "off"}})
    feed_stage, answers = lived([*rounds[:110], on, *rounds[110:120], off, *rounds[120:]])
    log = log_of([*rounds, changed(reset=True)])
    fresh, _ = folded(log, stage(guard="on"))
    carry_out_rebuilds(feed_stage, log)

    assert [answer["votes"] for answer in answers] == [10] * 110 + [5] * 10 + [10] * 10
    assert fresh.feeds.by_name["f"].path_state.groups == []
    assert fresh.feeds.by_name["f"].roster.held_groups(np.array([0, 1])) is None


def test_a_declared_team_stays_one_and_takes_in_the_group_of_its_members() -> None:
    assert united_numbers(np.array([0, 0, 1, -1, -1, -1]), np.array([-1, 0, 0, 0, 1, 1])).tolist() == [0, 0, 0, 0, 3, 3]
    assert united_numbers(np.array([-1, -1]), np.array([-1, -1])).tolist() == [-1, -1]
    assert Groups.of([[2, 0]], 4).numbers.tolist() == [0, -1, 0, -1]

    team = [expert(copy, team="one mind") for copy in COPIES]
    feed_stage, answers = lived([*team, *Attack(130).rounds()], guard="on")
    assert "groups" not in weights_of(feed_stage)
    assert answers[-1]["votes"] == 10


def test_a_tied_group_does_not_vote_and_a_member_alone_votes_for_all() -> None:
    groups = np.array([0, 0, -1, -1])
    tied = united(np.array([1, -1, 1, -1], np.int8), np.array([0.9, 0.2, 0.7, 0.45]), None, groups, None)
    assert tied.side.tolist() == [0, 1, -1]
    assert tied.majority(0) == (1, True, 1, 2)  # the mean of the others' forecasts decides, not the group's
    assert tied.leave_one_out(0).answers.tolist() == [1, 1, 0, 1]

    alone = united(np.array([0, -1, 1, -1], np.int8), np.array([0.5, 0.2, 0.7, 0.45]), None, groups, None)
    assert alone.side.tolist() == [-1, 1, -1]
    assert alone.leave_one_out(0).answers.tolist() == [1, 1, 0, 0]


def test_weights_are_shared_among_those_who_are_there() -> None:
    weights = np.array([0.4, 0.2, 0.1, 0.3])

    assert shared_by_groups(weights, Groups.of([], 4)).tolist() == weights.tolist()
    shared = shared_by_groups(weights, Groups.of([[0, 1], [3]], 4))
    assert shared == pytest.approx(np.array([0.2, 0.1, 0.1, 0.3]) / 0.7, abs=1e-12)


def test_a_group_without_some_of_its_experts_is_one_while_two_are_left() -> None:
    group = Group([1, 3, 4], "copies", 1.0, 0.1, 50)

    assert group.without({1: 0, 4: 2}) == Group([0, 2], "copies", 1.0, 0.1, 50)
    assert group.without({4: 2}) is None
    assert Group([4], "follower", 1.0, 0.1, 50).without({4: 2}) is not None


def herd(questions: int, n_followers: int, seed: int = 0) -> list[Round]:
    """Two rounds a question: ten experts think; at the second, followers say what was published after the first."""
    rng = np.random.default_rng(seed)
    thinkers = [f"own{number}" for number in range(10)]
    feed_stage, mix = stage(), 0.5
    events: list[Round] = []
    for number in range(questions):
        known = rng.uniform(0.25, 0.75)
        for boundary in (1, 2):
            sure = np.clip(known + 0.2 * rng.standard_normal(10), 0.01, 0.99).round(3)
            forecasts = dict(zip(thinkers, sure.tolist(), strict=True))
            if boundary == 2:
                forecasts |= dict.fromkeys((f"echo{echo}" for echo in range(n_followers)), mix)
            events.append(round_of(f"q{number}", forecasts, boundary=boundary))
            effects = Effects()
            feed_stage.step(log_of([events[-1]], first=len(events))[0], effects)
            mix = newest(effects.outputs, topics.MIXED_FORECASTS)[f"q{number}"]["mix"]
    return events


@pytest.mark.case("C16")
@pytest.mark.parametrize("n_followers", [1, 3])
def test_copies_of_the_mix_that_was_published_before_are_named_and_nobody_else(n_followers: int) -> None:
    feed_stage, _ = folded(log_of(herd(100, n_followers)))
    (group,) = weights_of(feed_stage)["groups"]

    assert (group["kind"], group["experts"]) == ("follower", [f"echo{echo}" for echo in range(n_followers)])
    assert group["agreement"] > group["expected"]
    assert group["questions"] == 99  # the look was at the first round of the last question


def test_followers_vote_once_and_share_one_weight() -> None:
    feed_stage, answers = lived(herd(100, 3), guard="on")
    weights = {row["id"]: row["mix"] for row in weights_of(feed_stage)["experts"]}

    assert answers[-1]["votes"] == 11
    assert sum(weights[f"echo{echo}"] for echo in range(3)) < 0.2


def test_a_group_goes_along_with_an_exported_feed_without_those_who_are_forgotten() -> None:
    log = log_of(Attack(130).rounds())
    feed_stage, _ = folded(log, stage(guard="on"))
    moved = import_log(lines_of(feed_stage, log), first=1)
    there, _ = folded(moved, stage(guard="on"))
    without, _ = folded([*log_of([expert("copy2", forget=True)]), *moved], stage(guard="on"))

    assert weights_of(there)["groups"] == weights_of(feed_stage)["groups"]
    assert there.feeds.by_name["f"].roster.held_groups(np.array([0, 9])) is not None
    (group,) = weights_of(without)["groups"]
    assert group["experts"] == [name for name in COPIES if name != "copy2"]


def test_news_of_a_group_is_published_though_no_weight_moves() -> None:
    feed_stage, _ = folded(log_of(Attack(40).rounds()))
    feed = feed_stage.feeds.by_name["f"]
    feed_stage.feeds.publisher.changed(feed)
    assert feed_stage.feeds.publisher.publish(feed, only_news=True) == []

    feed.path_state.groups = [Group([0, 1], "copies", 1.0, 0.2, 40)]
    feed_stage.feeds.publisher.changed(feed)

    assert len(feed_stage.feeds.publisher.publish(feed, only_news=True)) == len(topics.KEYED_BY_FEED)


def test_of_very_many_groups_the_largest_are_kept_in_their_order() -> None:
    pairs = [Group([2 * n, 2 * n + 1], "copies", 1.0, 0.1, 50) for n in range(300)]
    three = Group([700, 701, 702], "copies", 1.0, 0.1, 50)

    assert largest([*pairs, three]) == [*pairs[: MOST_GROUPS - 1], three]
    assert largest(pairs[:3]) == pairs[:3]


def test_a_known_group_too_large_for_the_test_of_blocks_is_kept_by_that_of_pairs() -> None:
    rng = np.random.default_rng(8)
    truth = np.where(rng.random((150, 1)) < 0.5, -1, 1)
    good, mind = (np.where(rng.random((150, n)) < error, -1, 1) * truth for n, error in ((8, 0.25), (1, 0.4)))
    votes = np.hstack([good, mind.repeat(300, axis=1)]).astype(np.int8)
    herd = Group(list(range(8, 308)), "copies", 1.0, 0.1, 150)
    window = Recent().read(308)._replace(votes=votes, tallies=None)
    assert 8 not in {expert for block in find_blocks(votes, [herd.experts], turn=1) for expert in block.experts}

    found = done_at_once(look_for_copies(window, [herd], None, 1, blocks=True))

    assert [group.experts for group in found] == [herd.experts]


def test_a_group_that_all_but_a_team_have_left_is_none() -> None:
    rng = np.random.default_rng(4)
    truth = np.where(rng.random((150, 1)) < 0.5, -1, 1)
    votes = (np.where(rng.random((150, 9)) < 0.3, -1, 1) * truth).astype(np.int8)
    votes[:, 1] = votes[:, 0]
    window, named = Recent().read(9)._replace(votes=votes, tallies=None), Group([0, 1, 2], "copies", 0.8, 0.1, 32)
    teams = np.array([0, 0, *[-1] * 7])

    without_teams = done_at_once(look_for_copies(window, [named], None, 1, blocks=True))
    found = done_at_once(look_for_copies(window, [named], teams, 1, blocks=True))

    assert [group.experts for group in without_teams] == [[0, 1]]
    assert found == []


@pytest.mark.parametrize(("version", "named"), [(1, False), (2, True)])
def test_from_version_2_on_clones_that_go_their_own_way_share_a_vote_by_default(version: int, named: bool) -> None:
    attack = Attack(150, alike=0.85, seed=2)

    feed_stage, _ = lived(attack.rounds(), method_version=version)

    groups = [group["experts"] for group in weights_of(feed_stage).get("groups", [])]
    shares = {one["id"]: one["mix"] for one in weights_of(feed_stage)["experts"]}
    assert (COPIES in groups) is named
    assert (sum(shares[name] for name in COPIES) < 0.4) is named


def test_the_weightless_have_no_weight_unless_nobody_else_is_there() -> None:
    weights = np.array([0.4, 0.2, 0.2, 0.2])
    groups = Groups.of([[1, 2]], 4, weightless=[0])

    assert shared_by_groups(weights, groups).round(3).tolist() == [0.0, 0.25, 0.25, 0.5]
    assert shared_by_groups(np.array([1.0, 0.0, 0.0, 0.0]), groups).round(3).tolist() == [0.0, 0.333, 0.333, 0.333]
    assert shared_by_groups(np.array([1.0]), groups.at(np.array([0], np.int32))).tolist() == [1.0]


def test_the_weightless_are_one_voter() -> None:
    numbers = united_numbers(np.array([0, -1, -1, -1]), Groups.of([], 4, [2, 3]).numbers)

    assert numbers.tolist() == [0, -1, *[numbers[2]] * 2]
    assert numbers[2] > 0


def test_copies_that_share_one_vote_do_not_keep_the_peer_mixer_down() -> None:
    rounds = Attack(300).rounds()
    guarded, unguarded = (
        lived(rounds, method_version=2, guard=guard)[0].feeds.by_name["f"].path_state for guard in ("auto", "off")
    )

    assert (guarded.trust, unguarded.trust) == ("dependent", "dependent")
    assert (guarded.peer_prior, guarded.peer_stretch) == (2.0, 1.0)
    assert (unguarded.peer_prior, unguarded.peer_stretch) == (1.0, 0.0)
