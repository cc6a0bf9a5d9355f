"""How many elements a snapshot may hold, by its size: a pickle of a few bytes can name one list a million times."""

from advisor.model.errors import UnreadableInput

FREE_ELEMENTS = 10_000
"""Elements that any input may hold: so few cost nothing."""

ELEMENT_BYTES = 1
"""An element of a list takes at least an opcode or a character of the input, whatever it refers to."""

EVENT_BYTES = 8
"""An event or a segment is a dictionary of at least two keys and values: 11 bytes of the shortest pickle, and more of JSON."""


class Budget:
    """Elements that may still be looked at.

    Args:
        input_bytes: size of the input, decompressed.
        path: how to call it in messages.
    """

    def __init__(self, input_bytes: int, path: str) -> None:
        self._elements_left = FREE_ELEMENTS + input_bytes // ELEMENT_BYTES
        self._entries_left = FREE_ELEMENTS + input_bytes // EVENT_BYTES
        self._path = path

    def spend(self, element_count: int) -> None:
        """Look at elements of whatever kind (frames, blocks).

        Raises:
            UnreadableInput: there are more than the input has room for.
        """
        self._elements_left -= element_count
        if self._elements_left < 0:
            self._refuse()

    def spend_entries(self, entry_count: int) -> None:
        """Look at events or segments.

        Raises:
            UnreadableInput: there are more than the input has room for.
        """
        self._entries_left -= entry_count
        if self._entries_left < 0:
            self._refuse()

    def _refuse(self) -> None:
        raise UnreadableInput(
            f"{self._path} refers to the same data again and again: it unfolds to more elements than a file of its size can hold",
            "it is damaged or hostile; save it again with torch.cuda.memory._dump_snapshot('snapshot.pickle')",
        )
