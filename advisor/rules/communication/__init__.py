"""Rules about communication and ranks."""
