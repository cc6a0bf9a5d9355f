"""Run the command line in this process and keep what it wrote."""

import contextlib
import io
from dataclasses import dataclass

from advisor.cli.main import main


@dataclass(frozen=True)
class Finished:
    code: int
    out: str
    err: str


def run_cli(*arguments: object) -> Finished:
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    err = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as left:
            code = left.code or 0
    out.flush()
    return Finished(code=code, out=out.buffer.getvalue().decode("utf-8"), err=err.getvalue())
