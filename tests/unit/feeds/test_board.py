from stream_peer.feeds.board import Board
from stream_peer.feeds.feed import Feed
from stream_peer.settings.feed.model import FeedSettings


def feed_of(name: str) -> Feed:
    return Feed(name, FeedSettings(), "hash", b"secret")


def test_a_changed_feed_is_published_once() -> None:
    board, feed = Board(), feed_of("f")
    board.changed(feed)

    assert board.unpublished() == ["f"]
    assert board.unpublished(["g"]) == []
    assert len(board.publish(feed, only_news=True)) == 2
    assert board.unpublished() == []


def test_no_news_is_kept_back_until_everything_is_asked_for() -> None:
    board, feed = Board(), feed_of("f")
    board.publish(feed, only_news=True)
    board.changed(feed)

    assert board.publish(feed, only_news=True) == []
    assert board.unpublished() == ["f"]
    assert len(board.publish(feed, only_news=False)) == 2


def test_another_state_of_trust_is_news() -> None:
    board, feed = Board(), feed_of("f")
    board.publish(feed, only_news=True)

    feed.standing.trust = "ok"

    assert len(board.publish(feed, only_news=True)) == 2


def test_a_view_is_made_once_for_each_change() -> None:
    board, feed = Board(), feed_of("f")
    view = board.view(feed)

    assert board.view(feed) is view
    board.changed(feed)
    assert board.view(feed) is not view


def test_the_latest_view_is_that_of_the_last_publication_until_there_is_another() -> None:
    board, feed = Board(), feed_of("f")
    board.publish(feed, only_news=True)
    first = board.latest(feed)
    board.changed(feed)

    assert board.latest(feed) is first
    board.publish(feed, only_news=False)
    assert board.latest(feed) is not first
    assert board.latest(feed) is board.view(feed)


def test_the_view_of_a_feed_that_ended_is_not_that_of_the_next_of_its_name() -> None:
    board = Board()
    first = board.latest(feed_of("f"))
    board.end("f")
    assert board.latest(feed_of("f")) is not first
