"""What devices can do at most: a catalogue in which every number has its source, and exact look-up."""
