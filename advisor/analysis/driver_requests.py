"""What PyTorch's caching allocator asks of the driver for a tensor that no cached block fits."""

MIB = 1024**2

SMALL_REQUEST_BYTES = 1 * MIB
SMALL_SEGMENT_BYTES = 2 * MIB
MIDDLE_REQUEST_BYTES = 10 * MIB
MIDDLE_SEGMENT_BYTES = 20 * MIB
ROUND_BYTES = 2 * MIB
"""What the caching allocator asks of the driver: 2 MiB for tensors up to 1 MiB, 20 MiB below 10 MiB, else multiples of 2 MiB
(c10/cuda/CUDACachingAllocator.cpp, get_allocation_size)."""


def asked_of_driver(tensor_bytes: int) -> int:
    """The segment that the caching allocator asks the driver for when no cached block fits a tensor of this size, bytes."""
    if tensor_bytes <= SMALL_REQUEST_BYTES:
        return SMALL_SEGMENT_BYTES
    if tensor_bytes < MIDDLE_REQUEST_BYTES:
        return MIDDLE_SEGMENT_BYTES
    return -(-tensor_bytes // ROUND_BYTES) * ROUND_BYTES
