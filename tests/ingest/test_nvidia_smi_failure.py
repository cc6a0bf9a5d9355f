from advisor.ingest.nvidia_smi_failure import read_nvidia_smi_failure


def test_a_gpu_without_a_handle_is_lost():
    text = b"Unable to determine the device handle for GPU 0000:41:00.0: GPU is lost.\n"
    (gpu,) = read_nvidia_smi_failure(text, "smi.txt").gpus
    assert (gpu.bus_id, gpu.is_lost) == ("0000:41:00.0", True)


def test_the_newer_wording_names_the_index_too():
    text = b"Unable to determine the device handle for GPU2: 0000:41:00.0: Unknown Error\nNo devices were found\n"
    reading = read_nvidia_smi_failure(text, "smi.txt")
    assert [(gpu.index, gpu.bus_id) for gpu in reading.gpus] == [(2, "0000:41:00.0")]
    assert reading.gaps == ("line 2: No devices were found",)


def test_a_driver_that_is_not_reached_is_a_reading_without_gpus():
    text = b"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
    reading = read_nvidia_smi_failure(text, "smi.txt")
    assert reading.gpus == ()
    assert "couldn't communicate" in reading.gaps[0]


def test_another_text_is_none_of_this():
    assert read_nvidia_smi_failure(b"all is well\n", "log.txt") is None
