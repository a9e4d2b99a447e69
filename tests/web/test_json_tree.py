"""JSON is shown as it was written: every digit, every key, all of it as text."""

from __future__ import annotations

import json
import re
from html import unescape

from howdah.web import json_tree
from howdah.web.json_tree import read, text, tree


def seen(html: str) -> str:
    """The words that a reader sees."""
    return unescape(re.sub(r"<[^>]*>", " ", html))


def test_numbers_keep_their_digits() -> None:
    written = '{"big": 12345678901234567890123, "price": 1.10, "tiny": 1e-400, "neg": -0.0}'
    shown = seen(str(tree(read(written))))
    for digits in ("12345678901234567890123", "1.10", "1e-400", "-0.0"):
        assert digits in shown.split()
        assert f": {digits}" in text(read(written))


def test_a_text_of_digits_is_told_from_a_number() -> None:
    shown = str(tree(read('{"a": "1.10", "b": 1.10}')))
    assert '<span class="str">&#34;1.10&#34;</span>' in shown
    assert '<span class="num">1.10</span>' in shown


def test_text_is_the_same_document() -> None:
    written = '{"a": [1, {"b": null}, []], "c": {}, "d": "\\"q\\" \\u00e9", "e": [true, false]}'
    assert json.loads(text(read(written))) == json.loads(written)


def test_markup_in_keys_and_values_is_text() -> None:
    shown = str(tree({"<b>": "<script>alert(1)</script>", "n": ["<i>"]}))
    assert "<script" not in shown
    assert "<b>" not in shown
    assert "<i>" not in shown
    assert "<script>alert(1)</script>" in seen(shown)


def test_containers_can_be_folded_and_say_how_much_is_in_them() -> None:
    shown = str(tree(read('{"a": {"b": {"c": 1}}, "list": [1, 2, 3]}')))
    assert shown.count("<details open>") == 3  # the document, a and the list
    assert shown.count("<details>") == 1  # b
    assert "[ 3 items ]" in seen(shown)
    assert str(tree(read('{"a": {"b": 1}}'), levels=1)).count("<details open>") == 1
    assert "<details" not in str(tree({}))


def test_a_long_list_is_folded_inside_but_never_at_the_top() -> None:
    many = list(range(json_tree.FEW + 1))
    assert "<details open>" in str(tree(many))
    assert str(tree({"many": many})).count("<details open>") == 1


def test_what_is_too_much_for_a_page_is_left_out_and_counted() -> None:
    shown = str(tree(read(json.dumps(list(range(5_000))))))
    assert shown.count("<li>") < json_tree.NODES
    left_out = 5_000 - shown.count("<li>")
    assert f"{left_out:,} more items" in seen(shown)
    long = seen(str(tree("x" * 10_000)))
    assert "8,002 more characters" in long
    assert long.count("x") < 2_001


def test_what_is_nested_without_end_is_said_and_not_shown() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    assert "nested too deep" in seen(str(tree(read(deep))))
    assert "nested too deep" in text(read(deep))
    some = read("[" * 60 + "]" * 60)
    assert "nested deeper than is shown" in seen(str(tree(some)))
    assert json.loads(text(some)) == json.loads("[" * 60 + "]" * 60)
