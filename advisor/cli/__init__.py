"""The command line: one module a command; files are opened and terminals are written here and nowhere else."""
