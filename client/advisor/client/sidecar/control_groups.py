"""Where the control groups of a process are mounted, in version 2 and version 1, in containers and outside."""

from typing import NamedTuple

V1_MEMORY, V1_CPU = "memory", "cpu"


class ControlGroup(NamedTuple):
    """The folders of a process's group, itself first, then the groups around it as far as they can be seen from here.

    Attributes:
        version: 2, or 1.
        folders: paths.
    """

    version: int
    folders: tuple[str, ...]


def group_of(controller: str, groups: str, mounts: str) -> ControlGroup | None:
    """The group that accounts for something.

    Args:
        controller: V1_MEMORY or V1_CPU.
        groups: the text of /proc/PID/cgroup: lines "5:memory:/path", of version 2 "0::/path".
        mounts: the text of /proc/self/mountinfo, see proc_pid_mountinfo(5).

    Returns:
        None where it is not mounted. On a host with both versions the first is taken where it has the controller, as the kernel does.
    """
    paths = dict(line.split(":", 2)[1:] for line in groups.splitlines() if line.count(":") >= 2)  # noqa: PLR2004 - three fields
    named = next((names for names in paths if controller in names.split(",")), "")
    version = 1 if named else 2
    path = paths.get(named)
    if path is None:
        return None
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3:  # noqa: PLR2004 - up to the mount point; type, source, options
            continue
        is_it = kind[0] == "cgroup2" if version == 2 else kind[0] == "cgroup" and controller in kind[2].split(",")  # noqa: PLR2004
        if is_it:
            return ControlGroup(version, _folders(fields[3], fields[4], path))
    return None


def _folders(root: str, mount: str, path: str) -> tuple[str, ...]:
    """The folders from the group's to the mount's; of a group above or beside what is mounted here, the mount alone."""
    prefix = root.rstrip("/")
    inside = path[len(prefix) :] if path == prefix or path.startswith(prefix + "/") else ""
    parts = [part for part in inside.split("/") if part and part != ".."]
    return tuple("/".join((mount.rstrip("/"), *parts[:count])) for count in range(len(parts), -1, -1))
