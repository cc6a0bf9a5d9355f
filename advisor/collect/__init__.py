"""What talks to the machine: the reference training of the demo, in a process of its own."""
