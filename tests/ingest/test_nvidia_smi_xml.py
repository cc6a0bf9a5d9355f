import pytest

from advisor.ingest.nvidia_smi_xml import looks_like_nvidia_smi_xml, read_nvidia_smi_xml
from advisor.model.errors import UnreadableInput

MIB = 1024**2

HEAD = '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n'

GPU = """
<gpu id="00000000:07:00.0">
  <product_name>NVIDIA A100-SXM4-80GB</product_name>
  <uuid>GPU-1</uuid>
  <mig_mode><current_mig>Enabled</current_mig></mig_mode>
  <mig_devices><mig_device><index>0</index><gpu_instance_id>3</gpu_instance_id>
    <fb_memory_usage><total>19968 MiB</total><used>12 MiB</used></fb_memory_usage></mig_device>
  </mig_devices>
  <pci><pci_gpu_link_info>
    <pcie_gen><max_link_gen>4</max_link_gen><current_link_gen>4</current_link_gen></pcie_gen>
    <link_widths><max_link_width>16x</max_link_width><current_link_width>8x</current_link_width></link_widths>
  </pci_gpu_link_info></pci>
  <performance_state>P0</performance_state>
  <clocks_throttle_reasons>
    <clocks_throttle_reason_gpu_idle>Not Active</clocks_throttle_reason_gpu_idle>
    <clocks_throttle_reason_sw_power_cap>Active</clocks_throttle_reason_sw_power_cap>
    <clocks_throttle_reason_hw_power_brake_slowdown>Active</clocks_throttle_reason_hw_power_brake_slowdown>
  </clocks_throttle_reasons>
  <fb_memory_usage>
    <total>81920 MiB</total><used>50 MiB</used><free>81000 MiB</free>
  </fb_memory_usage>
  <bar1_memory_usage><total>131072 MiB</total></bar1_memory_usage>
  <utilization><gpu_util>N/A</gpu_util></utilization>
  <ecc_errors><volatile><double_bit><total>2</total></double_bit></volatile></ecc_errors>
  <power_readings>
    <power_draw>67.03 W</power_draw><enforced_power_limit>400.00 W</enforced_power_limit>
  </power_readings>
  <clocks><sm_clock>1275 MHz</sm_clock></clocks>
  <max_clocks><sm_clock>1410 MHz</sm_clock></max_clocks>
  <processes><process_info>
    <pid>77</pid><process_name>python</process_name><used_memory>44 MiB</used_memory>
  </process_info></processes>
</gpu>"""


def a_document(*gpus, attached=None):
    body = "<driver_version>535.54.03</driver_version>"
    body += f"<attached_gpus>{attached or len(gpus)}</attached_gpus>"
    return (HEAD + "<nvidia_smi_log>" + body + "".join(gpus) + "</nvidia_smi_log>\n").encode()


def test_a_document_with_its_document_type_is_read():
    reading = read_nvidia_smi_xml(a_document(GPU), "x.xml")
    (gpu,) = reading.gpus
    assert (reading.driver_version, gpu.bus_id) == ("535.54.03", "00000000:07:00.0")
    assert (gpu.total_bytes, gpu.used_bytes) == (81920 * MIB, 50 * MIB)
    assert gpu.clock_event_reasons == ("sw_power_cap", "hw_power_brake")
    assert gpu.mig_devices == (("GPU instance 3", 19968 * MIB),)
    assert (gpu.ecc_uncorrected, gpu.gpu_utilization_ratio, gpu.pcie_width) == (2, None, 8)
    assert (gpu.power_limit_watts, gpu.sm_clock_mhz, gpu.max_sm_clock_mhz) == (
        400.0,
        1275.0,
        1410.0,
    )
    assert (gpu.processes[0].pid, gpu.processes[0].used_bytes) == (77, 44 * MIB)


def test_a_document_that_breaks_off_keeps_what_stands_before():
    text = a_document(GPU, GPU.replace("GPU-1", "GPU-2"), attached=2)
    reading = read_nvidia_smi_xml(text[: text.rindex(b"<utilization>")], "x.xml")
    assert [gpu.total_bytes for gpu in reading.gpus] == [81920 * MIB, 81920 * MIB]
    assert "breaks off" in reading.gaps[0]


@pytest.mark.parametrize(
    "hostile",
    [
        '<!DOCTYPE nvidia_smi_log [<!ENTITY a "a"><!ENTITY b "&a;&a;">]><nvidia_smi_log/>',
        '<!DOCTYPE nvidia_smi_log [<!ENTITY x SYSTEM "file:///etc/passwd">]><nvidia_smi_log>&x;</nvidia_smi_log>',
        '<!DOCTYPE nvidia_smi_log [<!ENTITY % p SYSTEM "http://example.org/p">%p;]><nvidia_smi_log/>',
    ],
)
def test_entities_are_refused(hostile):
    with pytest.raises(UnreadableInput, match="entities"):
        read_nvidia_smi_xml(hostile.encode(), "x.xml")


def test_a_tree_deeper_than_any_node_prints_is_refused():
    text = ("<nvidia_smi_log>" + "<a>" * 5000).encode()
    with pytest.raises(UnreadableInput, match="levels"):
        read_nvidia_smi_xml(text, "x.xml")


@pytest.mark.parametrize(
    "hostile",
    [
        b"<nvidia_smi_log a='" + b"x" * 400_000 + b"'/>",
        b"<nvidia_smi_log><gpu><uuid>" + b"x" * 400_000,
        b"<nvidia_smi_log>" + b"<a/>" * 200_000,
    ],
)
def test_a_document_that_only_costs_time_is_refused(hostile):
    with pytest.raises(UnreadableInput, match="than nvidia-smi prints"):
        read_nvidia_smi_xml(hostile, "x.xml")


def test_a_document_without_a_first_value_is_broken():
    with pytest.raises(UnreadableInput, match="broken"):
        read_nvidia_smi_xml(b"<nvidia_smi_log><driver", "x.xml")


def test_another_document_is_none_of_this():
    assert not looks_like_nvidia_smi_xml(b"<?xml version='1.0'?><html/>")
    assert read_nvidia_smi_xml(b"<?xml version='1.0'?><html/>", "x.xml") is None
