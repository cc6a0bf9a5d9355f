"""Bytes to evidence: readers that distrust their input, do no IO and raise one error family."""
