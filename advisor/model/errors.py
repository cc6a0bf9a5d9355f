"""The errors that this product raises on purpose; anything else is a fault of ours."""


class AdvisorError(Exception):
    """Something the user can act on: what is wrong, and what to do about it.

    Attributes:
        problem: what is wrong, naming the thing (a file, an option, a device).
        remedy: what to do, in one sentence; empty where nothing can be advised.
    """

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(f"{problem}; {remedy}" if remedy else problem)
        self.problem = problem
        self.remedy = remedy


class UnreadableInput(AdvisorError):  # noqa: N818 - the field says "unreadable input", as the JSON does
    """An input cannot be read: damaged, hostile, too large, or of no known kind."""


class WrongUsage(AdvisorError):  # noqa: N818 - reads as a sentence where it is raised
    """The command was called with something that it cannot mean."""
