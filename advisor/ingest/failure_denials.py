"""Words for a failure that did not happen: counted as none, denied, supposed, or the name of what guards against it."""

import re
from itertools import islice

from advisor.ingest.lazy_pattern import LazyPattern

_REACH = 160
"""Characters before and behind a name that are looked at: a sentence's."""

_MOST_NAMES = 16
"""Names of one line that are judged."""

_NAME = LazyPattern(
    r"(?<!systemd-)\bOOM(?:s|ed|ing|'?d|[ _-]?Kill(?:ed|s)?)?\b|\b(?:CUDA |GPU )?out[- ]of[- ](?:(?:GPU|device|CUDA|video|host) )?memory\b"
    r"|\b(?:[\w.]{1,40}\.)?OutOfMemoryError\b|\bRESOURCE_EXHAUSTED\b|\bResourceExhaustedError\b|\bMemoryError\b"
    r"|\b(?:CUDA|GPU) memory (?:exception|error|exhausted)\b|\bCUDA_ERROR_OUT_OF_MEMORY\b|\bcudaErrorMemoryAllocation\b",
    re.IGNORECASE,
)
"""How a lack of memory is named."""

_DENIED = LazyPattern(
    r"\b(?:no(?! (?:idea|clue|matter)\b)|not(?! (?:enough|solve|fix|avoid|prevent|help|resolve)\b)|never|none|without|zero"
    r"|(?<!not )(?:fix(?:es|ed)|avoid(?:s|ed)|prevent(?:s|ed)|solv(?:es|ed)))(?: {1,2}\w{1,20}){0,3} {0,2}[\"'`(]?$"
    r"|^\W{0,4}fix {1,2}(?:\w{1,20} ){0,3}$",
    re.IGNORECASE,
)
"""Before the name: it did not happen. A colon or comma ends what is denied ("it did not help: OOM")."""

_NONE_OF_THEM = LazyPattern(r"(?<!\w)0 {1,2}(?:(?:CUDA|GPU|host|device) )?$", re.IGNORECASE)
_SEVERAL = LazyPattern(r"\W? ?(?:errors|exceptions|events|kills|failures|occurrences|times|cases)\b", re.IGNORECASE)
"""Before and behind the name: "0 out of memory errors", and not the number of a device ("GPU 0 out of memory")."""

_COUNTED = LazyPattern(
    r"[\"'`)\]]{0,3}(?: {1,2}|_)?(?:errors?|exceptions?|events?|kills?|failures?|counts?|total)?[\"'`)\]]{0,3}\s{0,12}(?:[:=|]|->)?"
    r"\s{0,12}[\"'(]?(?:0(?:\.0)?(?![\d.:/\]]*\d|[\])]| ?(?:bytes|[KMGT]?i?B)\b)\b|none\b|false\b|never\b|null\b|nil\b|zero\b)",
    re.IGNORECASE,
)
_DID_NOT = LazyPattern(
    r"[\"'`)\]]{0,3}(?: errors?| exceptions?)? {0,2}(?:(?:did|was|were|has|have|is|are)(?: not|n't| never) (?:been )?|not |never )"
    r"(?:occur|happen|appear|raise|seen|hit|observed|reached|encountered|detected|triggered|reported|found|thrown)"
    r"|[\"'`)\]]{0,3}(?: errors?| exceptions?)? (?:was|were|is|are|has been|have been) (?:now )?"
    r"(?:avoided|prevented|fixed|solved|resolved|gone)\b",
    re.IGNORECASE,
)
"""Behind the name: a count of none, or that it did not happen."""

_SUPPOSED = LazyPattern(
    r"\b(?:to (?:avoid|prevent|reduce|handle|catch|survive)|avoid(?:ing)?|prevent(?:ing)?|in case of|(?:if|when|whenever|in case|unless)"
    r" you|may (?:cause|lead|run|result|trigger)|might|can (?:lead|cause|result|run)|could(?! not)"
    r"|would(?! (?:like|love|appreciate|be (?:nice|great|glad)))|lest)\b[^.;!?,:\n]{0,80}$",
    re.IGNORECASE,
)
_IF = LazyPattern(r"\b(?:if|when|whenever|in case)\b(?! (?:I|we|my|our)\b)[^.;!?,:\n]{0,60}$", re.IGNORECASE)
_THEN = LazyPattern(
    r"[^.;!?\n]{0,100}?[,;:]? (?:please |then )?(?:consider|try|set|reduce|lower|decrease|use|switch|pass|increase|add|enable|disable)\b",
    re.IGNORECASE,
)
"""A condition and the advice behind it ("if it runs out of memory, lower ..."); people tell in the same words what they saw, without."""

_GUARD = LazyPattern(
    r"[\"'`)\]]{0,2}(?: \(OOM\))?[ -](?:killer|guard|handler|handling|protection|prevention|detect(?:ion|or)|monitor|daemon|score)\b",
    re.IGNORECASE,
)
_ACTED = LazyPattern(r"\b(?:kill(?:ed|s|ing)|invoked|terminat\w{1,4}|triggered|sent|fired|victim|reaped)\b", re.IGNORECASE)
"""What is named after the failure it guards against, and words for its having done something."""


def is_unreal(text: str) -> bool:
    """Whether every place of a line that names a lack of memory says that there was none.

    Args:
        text: a line; one that names none of them is not judged, and gives False.
    """
    names = list(islice(_NAME.finditer(text), _MOST_NAMES))
    return bool(names) and all(_did_not_happen(text, name) for name in names)


def _did_not_happen(text: str, name: re.Match[str]) -> bool:
    before, behind = text[max(0, name.start() - _REACH) : name.start()], text[name.end() : name.end() + _REACH]
    if _DENIED.search(before) or _COUNTED.match(behind) or _DID_NOT.match(behind) or _SUPPOSED.search(before):
        return True
    if _NONE_OF_THEM.search(before) and (name[0][-1] in "sS" or _SEVERAL.match(behind)):
        return True
    if _IF.search(before) and _THEN.match(behind):
        return True
    is_first_of_two = behind.startswith(" (OOM)")
    return bool(_GUARD.match(behind) or (is_first_of_two and _GUARD.search(behind))) and not _ACTED.search(text)
