"""Run as a file, isolated from the trainer's packages: `python -I -S .../sidecar/__main__.py FOLDER PID`."""

import sys

if sys.flags.isolated == 0:
    del sys.path[0]  # this folder, whose modules would hide others of their names
# Last, so that no package installed beside this one hides a module of the standard library.
sys.path.append(__file__.rsplit("/", 4)[0])

from advisor.client.sidecar.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
