"""Words for processes that outlive their job, in code or prose: MEM601 and MEM608 read them."""

from advisor.rules.clues import words

LEFTOVER = words(
    "zombie|orphan|leftover|left-over|left over|still |not terminated|never ended|never exited|other process|other job|other program"
    "|fuser -v|kept after",
    r"zombie|orphan(?:ed)?\b|left[- ]?over (?:process|child|worker)|still (?:alive|running)\b.{0,40}(?:process|rank|worker|gpu)"
    r"|(?:process|rank|worker|child)\w*\b.{0,40}(?:still (?:alive|running|holds?)|not terminated|never (?:ended|exited))"
    r"|other (?:process|job|program)e?s?\b.{0,40}(?:hold|us(?:e|es|ing)|occup)|fuser -v|memory (?:was )?kept after",
)
