"""Evidence to measures: arithmetic only, no words, no IO beyond the tables of this package."""
