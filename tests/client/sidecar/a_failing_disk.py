"""Run in a mount namespace of its own: a trainer on a disk that fills up or becomes read-only, killed then; prints what is left."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

from watched_trainer import WatchedTrainer, is_alive, until


def main():
    kind, root = sys.argv[1], Path(sys.argv[2])
    (root / "spool").mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2560k,mode=0700", "tmpfs", root / "spool"], check=True)
    with WatchedTrainer(root, seconds=0.0005) as trainer:
        trainer.watched()
        if kind == "full":
            until(lambda: (trainer.folder / "steps").stat().st_size > 0)
            fill(root / "spool" / "ballast")
            until(lambda: "records cannot be kept" in trainer.log())
        else:
            subprocess.run(["mount", "--bind", trainer.folder, trainer.folder], check=True)
            subprocess.run(["mount", "-o", "remount,bind,ro", trainer.folder], check=True)
        said = trainer.step()
        trainer.kill()
        until(lambda: not is_alive(trainer.sidecar))
        end = trainer.folder / "end.json"
        kept = trainer.step_numbers()[-1] >= said
        sys.stdout.write(f"{trainer.log()}{end.read_text('ascii') if end.exists() else ''}\nlast step is kept: {kept}\n")


def fill(path):
    with path.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * size)
    os.sync()


if __name__ == "__main__":
    main()
