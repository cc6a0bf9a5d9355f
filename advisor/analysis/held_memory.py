"""Share memory that outlives a training step out among weights, gradients and optimizer states, by counting blocks of each size.

A model with g trainable parameters of s bytes holds g blocks of s bytes as weights, g as gradients, and an optimizer with two moments
2 g as states (with half-precision gradients the master copy and the moments have 2 s bytes each).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable

from advisor.model.dataclass import dataclass

STATES_PER_PARAMETER = 2
"""Blocks of a parameter's own size that an optimizer keeps for it: Adam and its kin two; more is left unexplained."""

STATES_PER_HALF_PARAMETER = 3
"""Blocks of twice its size for a half-precision parameter: fp32 master copy and two fp32 moments."""

REPEATED = 4
"""Blocks of one size from which on they look like the layers of a model."""

ORDER = {"lasting": 0, "built": 1, "replaced": 2, "state": 3}
"""Which candidates are weights first: the sure ones of longer life before those that the step replaced or made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One live block that outlives the step.

    Attributes:
        at: the caller's number for it.
        kind: "lasting" (older than the record, lives through it), "built" (made in a constructor, or by plain Python, and kept),
            "replaced" (older than the record, freed in an optimizer's step), "state" (made in an optimizer's step and kept).
        size: requested bytes.
        order: of two of one kind the lower one is rather a weight: the older block, or the later line of a step.
    """

    at: int
    kind: str
    size: int
    order: int


Shares = dict[int, tuple[str, str]]


def share_out(  # noqa: PLR0913 - what the record shows, each by its name
    candidates: Iterable[Candidate],
    parameter_sizes: Counter[int],
    *,
    known_weights: Counter[int],
    gradients_are_old: bool,
    has_optimizer: bool,
    lasting_is_weights: bool,
) -> Shares:
    """Say what each candidate is, where that can be said.

    Args:
        candidates: blocks that no stack decided.
        parameter_sizes: trainable parameters by size in bytes; empty where the record does not show them.
        known_weights: blocks that stacks already showed to be weights, by size.
        gradients_are_old: there is a backward pass, and it made no gradient anew: those of before are added to.
        has_optimizer: the record holds an optimizer's step.
        lasting_is_weights: what is as old as the record and of no parameter's size can be called weights.

    Returns:
        Entry of the ledger and reason by `Candidate.at`; candidates that nothing explains are missing.
    """
    by_size: dict[int, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        by_size[candidate.size].append(candidate)
    shares: Shares = {}
    left: list[Candidate] = []
    for size, group in by_size.items():
        group.sort(key=lambda candidate: (ORDER[candidate.kind], candidate.order, candidate.at))
        left.extend(
            _share_size(
                group,
                parameter_sizes[size],
                known_weights[size],
                shares,
                gradients_are_old=gradients_are_old,
                has_optimizer=has_optimizer,
            )
        )
    if has_optimizer:
        left = _half_precision(left, parameter_sizes, shares)
    # What is left of a parameter's size can be a state, an old gradient or another copy of the model: it stays unexplained.
    sizes = {scale * size for size in parameter_sizes for scale in (1, 2)}
    _others(left, sizes, shares, lasting_is_weights=lasting_is_weights)
    return shares


def _share_size(  # noqa: PLR0913 - see share_out
    group: list[Candidate],
    parameters: int,
    known: int,
    shares: Shares,
    *,
    gradients_are_old: bool,
    has_optimizer: bool,
) -> list[Candidate]:
    """Share the candidates of one size out; returns those that are left."""
    if not parameters:
        return group
    weights = max(0, parameters - known)
    for candidate in group[:weights]:
        shares[candidate.at] = (
            "weights",
            "one block of each parameter's size that outlives the step",
        )
    rest = group[weights:]
    if gradients_are_old:
        for candidate in rest[:parameters]:
            shares[candidate.at] = (
                "gradients",
                "a second block of each parameter's size; backward makes no new gradients",
            )
        rest = rest[parameters:]
    if not has_optimizer:
        return rest
    limit = STATES_PER_PARAMETER * parameters
    for candidate in rest[:limit]:
        shares[candidate.at] = ("optimizer_states", _state_reason(candidate))
    return rest[limit:]


def _state_reason(candidate: Candidate) -> str:
    if candidate.kind == "state":
        return "made in the optimizer's step and kept after it"
    if candidate.kind == "replaced":
        return "of a parameter's size, and freed in the optimizer's step"
    return "more blocks of each parameter's size than weights and gradients need"


def _half_precision(left: list[Candidate], parameter_sizes: Counter[int], shares: Shares) -> list[Candidate]:
    room = {2 * size: STATES_PER_HALF_PARAMETER * count for size, count in parameter_sizes.items()}
    rest = []
    for candidate in left:
        if candidate.kind != "state" and room.get(candidate.size, 0) > 0:
            room[candidate.size] -= 1
            shares[candidate.at] = (
                "optimizer_states",
                "twice a half-precision parameter's size: a master copy or a moment in fp32",
            )
        else:
            rest.append(candidate)
    return rest


def _others(left: list[Candidate], sizes: set[int], shares: Shares, *, lasting_is_weights: bool) -> None:
    for candidate in left:
        if candidate.kind == "state":
            shares[candidate.at] = (
                "optimizer_states",
                "made in the optimizer's step and kept after it",
            )
        elif candidate.kind == "built" and candidate.size not in sizes:
            shares[candidate.at] = ("weights", "made in a constructor and kept")
    if not lasting_is_weights:
        return
    lasting = [candidate for candidate in left if candidate.kind == "lasting" and candidate.size not in sizes]
    counts = Counter(candidate.size for candidate in lasting)
    repeated = sum(size * count for size, count in counts.items() if count >= REPEATED)
    is_a_model = 2 * repeated >= sum(candidate.size for candidate in lasting)
    for candidate in lasting:
        if is_a_model or counts[candidate.size] >= REPEATED:
            shares[candidate.at] = (
                "weights",
                "older than the record, lives through it, and has the sizes of a model's layers",
            )
