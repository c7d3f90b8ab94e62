from stream_peer.settings.process import Settings, leaves


def test_names_of_topics_groups_and_changelogs_follow_from_prefix_and_id() -> None:
    settings = Settings(prefix="acme-", id="peer")

    assert settings.topic("weights") == "acme-weights"
    assert settings.app_id("question") == "acme-peer-question"
    assert settings.changelog("feed") == "acme-peer-feed-feed-state-changelog"


def test_every_setting_has_a_flag_and_a_variable_of_its_own() -> None:
    known = leaves().values()

    assert len({leaf.flag for leaf in known}) == len({leaf.variable for leaf in known}) == len(known)
    assert leaves()["security.ca_file"].flag == "--security-ca-file"
    assert leaves()["security.ca_file"].variable == "STREAM_PEER_SECURITY__CA_FILE"
