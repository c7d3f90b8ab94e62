from stream_peer.events import topics
from stream_peer.feeds.feed import Feed
from stream_peer.feeds.publisher import Publisher
from stream_peer.settings.feed.model import FeedSettings


def feed_of(name: str) -> Feed:
    return Feed(name, FeedSettings(), "hash", b"secret")


def test_a_changed_feed_is_published_once() -> None:
    publisher, feed = Publisher(), feed_of("f")
    publisher.changed(feed)

    assert publisher.unpublished() == ["f"]
    assert publisher.unpublished(["g"]) == []
    assert len(publisher.publish(feed, only_news=True)) == len(topics.KEYED_BY_FEED)
    assert publisher.unpublished() == []


def test_no_news_is_kept_back_until_everything_is_asked_for() -> None:
    publisher, feed = Publisher(), feed_of("f")
    publisher.publish(feed, only_news=True)
    publisher.changed(feed)

    assert publisher.publish(feed, only_news=True) == []
    assert publisher.unpublished() == ["f"]
    assert len(publisher.publish(feed, only_news=False)) == len(topics.KEYED_BY_FEED)


def test_another_state_of_trust_is_news() -> None:
    publisher, feed = Publisher(), feed_of("f")
    publisher.publish(feed, only_news=True)

    feed.path_state.trust = "ok"

    assert len(publisher.publish(feed, only_news=True)) == len(topics.KEYED_BY_FEED)


def test_a_view_is_made_once_for_each_change() -> None:
    publisher, feed = Publisher(), feed_of("f")
    view = publisher.view(feed)

    assert publisher.view(feed) is view
    publisher.changed(feed)
    assert publisher.view(feed) is not view


def test_the_latest_view_is_that_of_the_last_publication_until_there_is_another() -> None:
    publisher, feed = Publisher(), feed_of("f")
    publisher.publish(feed, only_news=True)
    first = publisher.latest(feed)
    publisher.changed(feed)

    assert publisher.latest(feed) is first
    publisher.publish(feed, only_news=False)
    assert publisher.latest(feed) is not first
    assert publisher.latest(feed) is publisher.view(feed)


def test_the_view_of_a_feed_that_ended_is_not_that_of_the_next_of_its_name() -> None:
    publisher = Publisher()
    first = publisher.latest(feed_of("f"))
    publisher.end("f")
    assert publisher.latest(feed_of("f")) is not first
