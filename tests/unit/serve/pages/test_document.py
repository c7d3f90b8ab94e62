from stream_peer.serve.pages.document import document


def test_a_title_is_shown_as_text_and_the_style_sheet_stands_in_the_page() -> None:
    page = document("<b>1 & 2</b>", "<p>body</p>", "let x = 1;\n")

    assert "<h1>&lt;b&gt;1 &amp; 2&lt;/b&gt;</h1>" in page
    assert "prefers-color-scheme: dark" in page
    assert "<script>\nlet x = 1;\n</script>" in page
