"""Xids that somebody tells of in prose: "the node showed Xid 79", "Xid 48/171, 63 and 94"; not the kernel's own messages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from advisor.hardware.xids import XIDS
from advisor.ingest.lazy_pattern import LazyPattern

if TYPE_CHECKING:
    from advisor.model.failure import LogText, Mention

_TOLD = LazyPattern(
    r"\bxids?(?:[ _-](?:errors?|codes?|events?|messages?|numbers?))?(?: ?\([^()\n]{1,60}\))?(?:(?: ?[:=#]| was| were| is| of)? {0,2})"
    r"(?P<numbers>\d{1,3}(?:(?: ?[/,&+] ?| and | or |, and )(?:xid )?\d{1,3})*)(?![\w%])(?!\.\d)",
    re.IGNORECASE,
)
"""The word, and the numbers that follow it at once."""

_DENIED = LazyPattern(
    r"\b(?:no|not|never|without|neither|nor|cannot|excluded?|rule[sd]? out|instead of|unlike|rather than|isn't|wasn't|weren't|aren't|didn't"
    r"|haven't|hasn't|don't|doesn't|fix(?:es|ed)|avoid(?:s|ed)?|if|when|whenever|unless|in case of|such as|like|e\.?g\.?|example"
    r"|means?|meaning|stands for|explain(?:s|ed)?|what is|documentation|docs?|grep|check(?:ed|ing)? for|look(?:ed|ing)? for"
    r"|search(?:ed|ing)? for|watch(?:es|ing)? for|alerts? (?:on|for)|monitor(?:s|ing)? for|ignor(?:e|es|ing))\b[^.;:!?\n]{0,60}$",
    re.IGNORECASE,
)
"""Before the word: denied, supposed, asked for, or only explained."""

_WAS_NOT = LazyPattern(
    r"^[^.;!?\n]{0,30}?\b(?:(?:did|was|were|has|have|is|are)(?: not|n't| never)|never|not seen|means|stands for|is documented)\b"
    r"|^ {0,2}[:=] {0,2}(?:0|none|no|false)\b",
    re.IGNORECASE,
)
"""Behind the numbers: it did not happen, or is explained."""

_REACH = 120
"""Characters around the word that are looked at: a sentence's."""


def told_xids(log: LogText | None) -> tuple[tuple[int, Mention], ...]:
    """The Xids of the catalog that a text says occurred, each with its first line; none that it denies, supposes or explains."""
    if log is None:
        return ()
    found: dict[int, Mention] = {}
    for mention in log.mentions:
        if mention.topic != "xid" or mention.in_code:
            continue
        for told in _TOLD.finditer(mention.text):
            before, behind = mention.text[max(0, told.start() - _REACH) : told.start()], mention.text[told.end() : told.end() + _REACH]
            if _DENIED.search(before) or _WAS_NOT.search(behind):
                continue
            for number in map(int, re.findall(r"\d+", told["numbers"])):
                if number in XIDS:
                    found.setdefault(number, mention)
    return tuple(found.items())
