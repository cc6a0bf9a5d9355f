"""Which run this process belongs to and as which rank: from what launchers put into the environment."""

import os
from collections.abc import Mapping
from pathlib import Path

from advisor.client.spool import new_run_id

RANK_VARIABLES = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
WORLD_VARIABLES = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")


def rank_of(environment: Mapping[str, str]) -> int | None:
    """The rank, where a launcher started several processes; None for a single one."""
    for rank_name, world_name in zip(RANK_VARIABLES, WORLD_VARIABLES, strict=True):
        rank, world = environment.get(rank_name, ""), environment.get(world_name, "")
        if rank.isdecimal() and (rank_name == "RANK" or (world.isdecimal() and int(world) > 1)):
            return int(rank)
    return None


def run_id_of(environment: Mapping[str, str], named: str | None) -> str:
    """The run's name: given, from the environment, of the launcher that all ranks share, or a new one.

    Ranks of one launch must agree without talking to each other. torchrun's ranks share their parent, whose process number and start
    make the name; a job of Slurm shares its job and step; a restart by torchrun is a new run.
    """
    if named:
        return _as_name(named)
    if environment.get("ADVISOR_RUN_ID"):
        return _as_name(environment["ADVISOR_RUN_ID"])
    if environment.get("SLURM_JOB_ID") and rank_of(environment) is not None:
        return _as_name(f"slurm-{environment['SLURM_JOB_ID']}-{environment.get('SLURM_STEP_ID', '0')}")
    if "TORCHELASTIC_RUN_ID" in environment and rank_of(environment) is not None:
        parts = (environment["TORCHELASTIC_RUN_ID"], environment.get("MASTER_ADDR", ""), environment.get("MASTER_PORT", ""))
        restart = environment.get("TORCHELASTIC_RESTART_COUNT", "0")
        launcher = f"{os.getppid()}.{start_ticks(os.getppid())}" if environment.get("GROUP_WORLD_SIZE", "1") == "1" else ""
        return _as_name("-".join(("torchrun", *filter(None, parts), *filter(None, (launcher,)), restart)))
    return new_run_id()


def _as_name(text: str) -> str:
    """The text as a folder's name."""
    name = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "-_.") else "_" for letter in text)
    return name.lstrip(".")[:120] or new_run_id()


def start_ticks(pid: int) -> int:
    """When a process started, in clock ticks since boot: with its number the identity that is not used twice; 0 where it cannot be read."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
        return int(text.rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def boot_id() -> str:
    """The kernel's name for this boot, shortened; empty where it cannot be read."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").replace("-", "")[:16]
    except (OSError, ValueError):
        return ""
