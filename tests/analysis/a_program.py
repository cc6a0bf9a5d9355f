"""Random programs of allocations and frees, and how to run them on the model of the allocator."""

from hypothesis import strategies as st
from ingest.a_snapshot import MIB

SIZES = st.one_of(
    st.integers(1, 4096),
    st.integers(1, 2 * MIB),
    st.integers(MIB, 12 * MIB),
    st.integers(10 * MIB, 40 * MIB),
    st.sampled_from([512, MIB, MIB + 1, 2 * MIB, 10 * MIB, 19 * MIB, 20 * MIB, 20 * MIB - 512]),
)

PROGRAMS = st.lists(
    st.one_of(
        st.tuples(st.just("alloc"), SIZES),
        st.tuples(st.just("free"), st.integers(0, 1000)),
        st.tuples(st.just("hold"), st.integers(0, 1000)),
        st.tuples(st.just("complete"), st.integers(0, 1000)),
        st.tuples(st.just("release"), st.just(0)),
    ),
    max_size=60,
)


def run(allocator, program, live, pending):
    for verb, number in program:
        if verb == "alloc":
            live.append(allocator.alloc(number))
        elif verb in ("free", "hold") and live:
            address = live.pop(number % len(live))
            allocator.free(address, completes=verb == "free")
            if verb == "hold":
                pending.append(address)
        elif verb == "complete" and pending:
            allocator.complete(pending.pop(number % len(pending)))
        elif verb == "release":
            allocator.release_cached()
