"""JSON is shown exactly: every digit and every key, as escaped text."""

from __future__ import annotations

import json
import re
from html import unescape

from howdah.web import json_tree
from howdah.web.json_tree import read, text, tree


def visible_text(html: str) -> str:
    """Return the visible text."""
    return unescape(re.sub(r"<[^>]*>", " ", html))


def test_numbers_keep_their_digits() -> None:
    document = '{"big": 12345678901234567890123, "price": 1.10, "tiny": 1e-400, "neg": -0.0}'
    visible = visible_text(str(tree(read(document))))
    for digits in ("12345678901234567890123", "1.10", "1e-400", "-0.0"):
        assert digits in visible.split()
        assert f": {digits}" in text(read(document))


def test_a_string_of_digits_differs_from_a_number() -> None:
    html = str(tree(read('{"a": "1.10", "b": 1.10}')))
    assert '<span class="str">&#34;1.10&#34;</span>' in html
    assert '<span class="num">1.10</span>' in html


def test_text_is_the_same_document() -> None:
    document = '{"a": [1, {"b": null}, []], "c": {}, "d": "\\"q\\" \\u00e9", "e": [true, false]}'
    assert json.loads(text(read(document))) == json.loads(document)


def test_markup_in_keys_and_values_is_text() -> None:
    html = str(tree({"<b>": "<script>alert(1)</script>", "n": ["<i>"]}))
    assert "<script" not in html
    assert "<b>" not in html
    assert "<i>" not in html
    assert "<script>alert(1)</script>" in visible_text(html)


def test_containers_can_be_folded_and_show_their_size() -> None:
    html = str(tree(read('{"a": {"b": {"c": 1}}, "list": [1, 2, 3]}')))
    assert html.count("<details open>") == 3  # the document, a and the list
    assert html.count("<details>") == 1  # b
    assert "[ 3 items ]" in visible_text(html)
    assert str(tree(read('{"a": {"b": 1}}'), levels=1)).count("<details open>") == 1
    assert "<details" not in str(tree({}))


def test_a_long_list_is_folded_inside_but_never_at_the_top() -> None:
    many = list(range(json_tree.FEW + 1))
    assert "<details open>" in str(tree(many))
    assert str(tree({"many": many})).count("<details open>") == 1


def test_items_beyond_the_limit_are_omitted_and_counted() -> None:
    html = str(tree(read(json.dumps(list(range(5_000))))))
    assert html.count("<li>") < json_tree.NODES
    omitted = 5_000 - html.count("<li>")
    assert f"{omitted:,} more items" in visible_text(html)
    long = visible_text(str(tree("x" * 10_000)))
    assert "8,002 more characters" in long
    assert long.count("x") < 2_001


def test_very_deep_nesting_gives_a_message() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    assert "nested too deep" in visible_text(str(tree(read(deep))))
    assert "nested too deep" in text(read(deep))
    some = read("[" * 60 + "]" * 60)
    assert "nested deeper than is shown" in visible_text(str(tree(some)))
    assert json.loads(text(some)) == json.loads("[" * 60 + "]" * 60)
