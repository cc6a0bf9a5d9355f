"""The vocabulary: frozen records of what was seen, measured and concluded. Standard library only."""
