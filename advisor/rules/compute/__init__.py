"""Rules about computing."""
