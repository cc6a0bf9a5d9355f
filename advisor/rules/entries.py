"""The table of all rules, written by `make docs`: code, name, module, required and optional needs."""

ENTRIES: tuple[tuple[str, str, str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("CMP101", "compute-bound", "advisor.rules.compute.compute_bound", ("StepBreakdown", "KernelMix"), ("OperatorCosts",)),  # fmt: skip
    ("CMP102", "elementwise-memory-bound", "advisor.rules.compute.elementwise_memory_bound", ("StepBreakdown", "KernelMix"), ("OptimizerSteps",)),  # fmt: skip
    ("CMP104", "tensor-cores-unused", "advisor.rules.compute.tensor_cores_unused", (), ("StepBreakdown", "KernelMix", "DeviceCeilings", "LogText", "Failure")),  # fmt: skip
    ("CMP106", "attention-not-fused", "advisor.rules.compute.attention_not_fused", ("StepBreakdown", "AttentionMix"), ("KernelMix",)),  # fmt: skip
    ("CMP107", "conversion-heavy", "advisor.rules.compute.conversion_heavy", (), ("StepBreakdown", "KernelMix", "OperatorTable")),  # fmt: skip
    ("CMP108", "optimizer-not-fused", "advisor.rules.compute.optimizer_not_fused", (), ("StepBreakdown", "OptimizerSteps", "KernelMix", "OperatorTable", "LogText", "Failure")),  # fmt: skip
    ("CMP111", "many-tiny-matmuls", "advisor.rules.compute.many_tiny_matmuls", ("StepBreakdown", "KernelMix"), ("LaunchProfile", "DecodeSigns")),  # fmt: skip
    ("CMP112", "decode-memory-bound", "advisor.rules.compute.decode_memory_bound", ("DecodeSigns",), ("StepBreakdown", "KernelMix", "DeviceCeilings")),  # fmt: skip
    ("CMP116", "allocator-stalls", "advisor.rules.compute.allocator_stalls", (), ("StepBreakdown", "DriverAllocations", "KernelMix", "OperatorTable", "LogText", "Failure")),  # fmt: skip
    ("CMP117", "low-mfu", "advisor.rules.compute.low_mfu", ("StepBreakdown", "OperatorCosts", "DeviceCeilings"), ("KernelMix", "DecodeSigns")),  # fmt: skip
    ("CMP118", "dtype-emulated", "advisor.rules.compute.dtype_emulated", (), ("StepBreakdown", "KernelMix", "DeviceCeilings", "LogText", "Failure")),  # fmt: skip
    ("CMP119", "weights-on-host", "advisor.rules.compute.weights_on_host", (), ("StepBreakdown", "CopyProfile", "KernelMix", "LogText", "Failure")),  # fmt: skip
    ("COM101", "exposed-communication", "advisor.rules.communication.exposed_communication", ("StepBreakdown",), ("Communication", "KernelMix")),  # fmt: skip
    ("DEV101", "thermal-throttle", "advisor.rules.device.thermal_throttle", ("NodeReading",), ("StepBreakdown",)),  # fmt: skip
    ("DEV102", "power-cap", "advisor.rules.device.power_cap", ("NodeReading",), ("StepBreakdown",)),  # fmt: skip
    ("DEV103", "hardware-slowdown", "advisor.rules.device.hardware_slowdown", ("NodeReading",), ("StepBreakdown",)),  # fmt: skip
    ("DEV104", "clock-below-max", "advisor.rules.device.clock_below_max", ("NodeReading",), ("StepBreakdown",)),  # fmt: skip
    ("DEV105", "memory-errors", "advisor.rules.device.memory_errors", ("NodeReading",), ("KernelLog",)),  # fmt: skip
    ("DEV106", "xid-error", "advisor.rules.device.xid_error", ("KernelLog",), ()),  # fmt: skip
    ("DEV107", "pcie-link-degraded", "advisor.rules.device.pcie_link_degraded", ("NodeReading",), ("KernelLog", "StepBreakdown")),  # fmt: skip
    ("HST101", "launch-bound", "advisor.rules.host.launch_bound", (), ("StepBreakdown", "LaunchProfile", "KernelMix", "OperatorTable", "LogText", "Failure")),  # fmt: skip
    ("HST102", "implicit-synchronization", "advisor.rules.host.implicit_synchronization", (), ("StepBreakdown", "Synchronizations", "KernelMix", "OperatorTable", "LogText", "Failure")),  # fmt: skip
    ("HST111", "warm-up-in-window", "advisor.rules.host.warm_up_in_window", ("StepTimes",), ("StepBreakdown", "KernelMix")),  # fmt: skip
    ("INP101", "input-bound", "advisor.rules.input.input_bound", (), ("StepBreakdown", "InputWait", "KernelMix", "OperatorTable", "LogText", "Failure")),  # fmt: skip
    ("INP102", "synchronous-data-loader", "advisor.rules.input.synchronous_data_loader", ("StepBreakdown", "InputWait"), ("KernelMix",)),  # fmt: skip
    ("INP103", "pageable-host-copies", "advisor.rules.input.pageable_host_copies", (), ("StepBreakdown", "CopyProfile", "KernelMix", "LogText", "Failure")),  # fmt: skip
    ("INP104", "host-to-device-bound", "advisor.rules.input.host_to_device_bound", ("StepBreakdown", "CopyProfile"), ("KernelMix",)),  # fmt: skip
    ("MEM101", "weights-exceed-device", "advisor.rules.memory.weights_exceed_device", ("Failure",), ("LogText", "TransformerShape")),  # fmt: skip
    ("MEM102", "model-states-exceed-device", "advisor.rules.memory.model_states_exceed_device", (), ("Failure", "LogText", "MemoryLedger", "AllocatorRecord", "TransformerShape")),  # fmt: skip
    ("MEM103", "optimizer-state-dominates", "advisor.rules.memory.optimizer_state_dominates", (), ("Failure", "LogText", "MemoryLedger", "AllocatorRecord", "TransformerShape")),  # fmt: skip
    ("MEM104", "gradients-held", "advisor.rules.memory.gradients_held", ("MemoryLedger", "AllocatorRecord"), ("Failure", "LogText")),  # fmt: skip
    ("MEM105", "full-precision-weights", "advisor.rules.memory.full_precision_weights", (), ("Failure", "LogText", "MemoryLedger", "AllocatorRecord", "TransformerShape")),  # fmt: skip
    ("MEM106", "second-model-copy", "advisor.rules.memory.second_model_copy", (), ("Failure", "LogText", "MemoryLedger", "AllocatorRecord")),  # fmt: skip
    ("MEM107", "checkpoint-loaded-on-device", "advisor.rules.memory.checkpoint_loaded_on_device", (), ("Failure", "LogText", "MemoryLedger", "AllocatorRecord")),  # fmt: skip
    ("MEM201", "activations-dominate", "advisor.rules.memory.activations_dominate", (), ("Failure", "LogText", "MemoryLedger", "AllocatorRecord")),  # fmt: skip
    ("MEM202", "attention-scores-materialized", "advisor.rules.memory.attention_scores_materialized", (), ("Failure", "LogText")),  # fmt: skip
    ("MEM203", "logits-upcast", "advisor.rules.memory.logits_upcast", (), ("Failure", "LogText", "MemoryLedger", "AllocatorRecord", "TransformerShape")),  # fmt: skip
    ("MEM204", "lora-keeps-activations", "advisor.rules.memory.lora_keeps_activations", ("LogText",), ("Failure", "MemoryLedger", "AllocatorRecord")),  # fmt: skip
    ("MEM205", "autograd-in-inference", "advisor.rules.memory.autograd_in_inference", (), ("Failure", "LogText")),  # fmt: skip
    ("MEM206", "evaluation-outputs-accumulate", "advisor.rules.memory.evaluation_outputs_accumulate", (), ("Failure", "LogText")),  # fmt: skip
    ("MEM207", "sequence-length-spike", "advisor.rules.memory.sequence_length_spike", ("LogText",), ("Failure",)),  # fmt: skip
    ("MEM208", "recompute-ineffective", "advisor.rules.memory.recompute_ineffective", (), ("Failure", "LogText", "MemoryLedger", "AllocatorRecord")),  # fmt: skip
    ("MEM301", "kv-cache-dominates", "advisor.rules.memory.kv_cache_dominates", (), ("Failure", "LogText", "MemoryLedger", "AllocatorRecord")),  # fmt: skip
    ("MEM302", "kv-budget-exhausted", "advisor.rules.memory.kv_budget_exhausted", (), ("Failure", "LogText")),  # fmt: skip
    ("MEM303", "colocated-engine-memory", "advisor.rules.memory.colocated_engine_memory", ("Failure",), ("LogText",)),  # fmt: skip
    ("MEM401", "fragmented-reserved-memory", "advisor.rules.memory.fragmented_reserved_memory", (), ("Failure", "AllocatorRecord", "MemoryLedger", "LogText", "MemorySummary")),  # fmt: skip
    ("MEM402", "cached-memory-overhang", "advisor.rules.memory.cached_memory_overhang", (), ("AllocatorRecord", "MemorySummary", "MemoryLedger", "DeviceCeilings", "Failure")),  # fmt: skip
    ("MEM403", "allocator-retries", "advisor.rules.memory.allocator_retries", ("MemorySummary",), ("LogText",)),  # fmt: skip
    ("MEM404", "cross-stream-hold", "advisor.rules.memory.cross_stream_hold", (), ("AllocatorRecord", "MemorySummary")),  # fmt: skip
    ("MEM405", "cuda-graph-pools", "advisor.rules.memory.cuda_graph_pools", (), ("Failure", "AllocatorRecord", "MemoryLedger", "LogText")),  # fmt: skip
    ("MEM406", "allocator-setting-not-applied", "advisor.rules.memory.allocator_setting_not_applied", ("LogText",), ("AllocatorRecord", "Failure")),  # fmt: skip
    ("MEM407", "variable-shape-fragmentation", "advisor.rules.memory.variable_shape_fragmentation", (), ("AllocatorRecord", "MemoryLedger", "Failure", "LogText")),  # fmt: skip
    ("MEM501", "memory-growth", "advisor.rules.memory.memory_growth", (), ("AllocatorRecord", "MemoryLedger", "Failure", "LogText")),  # fmt: skip
    ("MEM502", "retained-graph", "advisor.rules.memory.retained_graph", (), ("AllocatorRecord", "Failure", "LogText")),  # fmt: skip
    ("MEM601", "other-process-on-device", "advisor.rules.memory.other_process_on_device", (), ("Failure", "NodeReading", "LogText")),  # fmt: skip
    ("MEM602", "non-pytorch-memory", "advisor.rules.memory.non_pytorch_memory", (), ("Failure", "LogText", "MemoryLedger")),  # fmt: skip
    ("MEM603", "ranks-share-a-device", "advisor.rules.memory.ranks_share_a_device", (), ("Failure", "LogText", "NodeReading")),  # fmt: skip
    ("MEM604", "device-smaller-than-expected", "advisor.rules.memory.device_smaller_than_expected", (), ("Failure", "DeviceCeilings", "NodeReading", "LogText")),  # fmt: skip
    ("MEM605", "process-memory-cap", "advisor.rules.memory.process_memory_cap", ("Failure",), ()),  # fmt: skip
    ("MEM606", "framework-preallocation", "advisor.rules.memory.framework_preallocation", (), ("Failure", "LogText")),  # fmt: skip
    ("MEM607", "library-allocation-failed", "advisor.rules.memory.library_allocation_failed", ("Failure", "Failure"), ("NodeReading",)),  # fmt: skip
    ("MEM701", "request-exceeds-device", "advisor.rules.memory.request_exceeds_device", ("Failure",), ()),  # fmt: skip
    ("MEM702", "optimizer-step-spike", "advisor.rules.memory.optimizer_step_spike", (), ("Failure", "MemoryLedger", "AllocatorRecord")),  # fmt: skip
    ("MEM704", "state-dict-spike", "advisor.rules.memory.state_dict_spike", (), ("Failure", "LogText")),  # fmt: skip
    ("MEM706", "library-workspace-spike", "advisor.rules.memory.library_workspace_spike", (), ("Failure", "LogText", "MemoryLedger")),  # fmt: skip
    ("MEM707", "single-allocation-limit", "advisor.rules.memory.single_allocation_limit", ("Failure",), ("LogText",)),  # fmt: skip
    ("MEM708", "request-fits-free-memory", "advisor.rules.memory.request_fits_free_memory", (), ("Failure", "AllocatorRecord", "LogText")),  # fmt: skip
    ("MEM709", "not-out-of-memory", "advisor.rules.memory.not_out_of_memory", ("Failure",), ("LogText",)),  # fmt: skip
    ("MEM801", "host-memory-exhausted", "advisor.rules.memory.host_memory_exhausted", (), ("Failure", "KernelLog")),  # fmt: skip
    ("MEM802", "shared-memory-exhausted", "advisor.rules.memory.shared_memory_exhausted", ("Failure",), ("LogText",)),  # fmt: skip
    ("MEM804", "unified-memory-limit", "advisor.rules.memory.unified_memory_limit", ("Failure",), ()),  # fmt: skip
    ("MEM901", "recording-started-late", "advisor.rules.memory.recording_started_late", ("AllocatorRecord",), ("MemoryLedger",)),  # fmt: skip
    ("MEM902", "snapshot-after-unwind", "advisor.rules.memory.snapshot_after_unwind", (), ("AllocatorRecord", "MemorySummary", "Failure")),  # fmt: skip
    ("MEM903", "near-capacity", "advisor.rules.memory.near_capacity", (), ("AllocatorRecord", "MemorySummary", "MemoryLedger", "DeviceCeilings", "Failure", "LogText")),  # fmt: skip
)
