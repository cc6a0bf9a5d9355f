"""Rules about the device."""
