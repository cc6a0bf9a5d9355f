"""Resolve what rules need, evaluate them, rank what they found: `advise(case)` is the one entry point."""
