"""What devices can do at most: every number with its source, and exact look-up."""
