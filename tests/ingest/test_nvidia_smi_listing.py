from advisor.ingest.nvidia_smi_listing import looks_like_nvidia_smi_listing, read_nvidia_smi_listing

LINKS = b"""\
GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-11111111-2222-3333-4444-555555555555)
\t Link 0: 25 GB/s
\t Link 1: <inactive>
GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-66666666-2222-3333-4444-555555555555)
\t Link 0: 26.562 GB/s
"""


def test_links_have_their_speed_and_inactive_ones_none():
    first, second = read_nvidia_smi_listing(LINKS, "nvlink.txt").gpus
    assert first.nvlink_bandwidths == (25e9, None)
    assert second.nvlink_bandwidths == (26.562e9,)
    assert second.uuid == "GPU-66666666-2222-3333-4444-555555555555"


def test_a_plain_listing_has_names_alone():
    text = b"GPU 0: NVIDIA L4 (UUID: GPU-1111)\n  MIG 1g.10gb     Device  0: (UUID: MIG-1)\n"
    assert looks_like_nvidia_smi_listing(text)
    reading = read_nvidia_smi_listing(text, "list.txt")
    assert [gpu.name for gpu in reading.gpus] == ["NVIDIA L4"]
    assert "MIG device 1g.10gb" in reading.gaps[0]


def test_another_text_is_none_of_this():
    assert read_nvidia_smi_listing(b"GPU 0: busy\n", "log.txt") is None
