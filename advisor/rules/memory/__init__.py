"""Rules about device and host memory."""
