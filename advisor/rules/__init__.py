"""Rules: one rule, one file; each a pure function from evidence and measures to a finding."""
