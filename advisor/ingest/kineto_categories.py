"""What profilers of all ages call their events."""

import re

from advisor.model.trace import Category

CATEGORIES: dict[str, Category] = {
    "cpu_op": Category.OPERATOR,
    "Operator": Category.OPERATOR,
    "user_annotation": Category.ANNOTATION,
    "python_function": Category.PYTHON,
    "cuda_runtime": Category.RUNTIME,
    "hip_runtime": Category.RUNTIME,
    "Runtime": Category.RUNTIME,
    "mtia_runtime": Category.RUNTIME,
    "xpu_runtime": Category.RUNTIME,
    "glow_runtime": Category.RUNTIME,
    "privateuse1_runtime": Category.RUNTIME,
    "cuda_driver": Category.DRIVER,
    "hip_driver": Category.DRIVER,
    "xpu_driver": Category.DRIVER,
    "privateuse1_driver": Category.DRIVER,
    "kernel": Category.KERNEL,
    "Kernel": Category.KERNEL,
    "concurrent_kernel": Category.KERNEL,
    "gpu_memcpy": Category.COPY,
    "Memcpy": Category.COPY,
    "gpu_memset": Category.FILL,
    "Memset": Category.FILL,
    "gpu_user_annotation": Category.DEVICE_ANNOTATION,
    "cuda_sync": Category.SYNCHRONIZATION,
    "overhead": Category.OVERHEAD,
    "cuda_profiler_range": Category.COUNTERS,
    "mtia_ccp_events": Category.CONTROL,
    "Trace": Category.SPAN,
}
"""Category by the text of "cat"; a text that is not here is OTHER."""

OLD_ANNOTATION = re.compile(r"ProfilerStep#|enumerate\(DataLoader\)#|Optimizer\.(?:step|zero_grad)#|DistributedDataParallel\.")
"""Annotations that profilers before torch 1.11 wrote as operators, by the start of their names."""

ELEMENT_BYTES: dict[str, int] = {
    "Double": 8,
    "Long": 8,
    "ComplexFloat": 8,
    "Float": 4,
    "Int": 4,
    "Half": 2,
    "BFloat16": 2,
    "Short": 2,
    "Byte": 1,
    "Char": 1,
    "Bool": 1,
    "Float8_e4m3fn": 1,
    "Float8_e5m2": 1,
}
"""Bytes of an element by the "dtype" of a collective (c10::ScalarType's names)."""

COLLECTIVE = re.compile(r"record_param_comms|^(?:nccl|rccl)", re.IGNORECASE)
"""Names of events that say what a collective sends."""
