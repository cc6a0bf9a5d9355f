"""What a message's wording says of the version, and what a printed setting switches on."""

import pytest

from advisor.rules.allocator_advice import is_on, version_of
from advisor.rules.samples import a_failure


@pytest.mark.parametrize(
    ("generation", "version"),
    [
        ("torch 2.4", (2, 4)),
        ("torch 1.x cached", (1, 0)),
        ("torch 1.11 reserved", (1, 11)),
        ("words only", None),
        ("", None),
    ],
)
def test_the_wording_names_the_earliest_release(generation: str, version: tuple[int, int] | None) -> None:
    assert version_of(a_failure(generation=generation)) == version
    assert version_of(None) is None


@pytest.mark.parametrize(
    ("settings", "on"),
    [
        ("expandable_segments:True", True),
        ("'max_split_size_mb:128,expandable_segments:true'", True),
        ("expandable_segments:False", False),
        ("max_split_size_mb:128", False),
        ("", False),
    ],
)
def test_a_printed_setting_is_on_or_off(settings: str, on: bool) -> None:
    assert is_on(settings, "expandable_segments") is on
