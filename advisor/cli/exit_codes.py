"""The exit codes, a public contract; docs/exit-codes.md explains them."""

NOTHING_FOUND = 0
DIAGNOSES_FOUND = 1
UNREADABLE = 2
INTERNAL = 3
UNREACHABLE = 4
READER_LEFT = 141
"""128 + SIGPIPE, as shells count it."""

INTERRUPTED = 130
"""128 + SIGINT, as shells count it."""
