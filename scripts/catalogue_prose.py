"""What the catalogue says in words: sources, notes and short names, by row of the table of facts.

`build_catalogue.py` takes the numbers from the table and the words from here. A figure that is
named in `UNVERIFIED` is recalled, derived or contested, whatever the rest of its row rests on.
"""

LIGHTNING = "Lightning fabric throughput.py@7f0c343"
TITAN = "torchtitan tools/utils.py@b5bcd76"
ANALYSIS = "llm-analysis@d841e40"
ENGINEERING = "stas00/ml-engineering@744d01e"
KLOCKWOOD = "glennklockwood.com"
INDUCTOR = "torch 2.14.1 _inductor/analysis/device_info.py"
CLOCKS = "hmc-tech.com (computed there from clocks)"

SOURCES = {
    "V100 SXM2 16/32GB": f"{LIGHTNING}; datacrunch (900 GB/s)",
    "V100 PCIe 16/32GB": LIGHTNING,
    "T4": LIGHTNING,
    "GeForce RTX 2080 Ti": "computed: 68 SM at 1545 MHz, half rate with fp32 accumulation",
    "GeForce RTX 3090": f"computed: 82 SM at 1695 MHz; ratios as the 3090 Ti's at {CLOCKS}",
    "GeForce RTX 4090": f"waredb.com; {CLOCKS}",
    "GeForce RTX 5090": f"spheron.network; Linux Format May 2025; {CLOCKS}",
    "A10": "Composer speed_monitor@6405188; sysrqmts.com",
    "A10G": f"{ANALYSIS} a10g.json; baseten.co",
    "A30": "recalled from the vendor's datasheet",
    "A40": f"{LIGHTNING}; A40 datasheet as quoted by ecer.com; {CLOCKS}",
    "RTX A6000": f"{TITAN}; {ANALYSIS}; sysrqmts.com",
    "RTX 6000 Ada": "recalled (half of the sparse fp8 figure); computed: 142 SM at 2505 MHz",
    "A100 SXM4 40GB": f"{LIGHTNING}; {ANALYSIS}; {KLOCKWOOD}; upb-pc2",
    "A100 SXM4 80GB": f"{LIGHTNING}; {ANALYSIS}; {KLOCKWOOD}; {ENGINEERING}",
    "A100 PCIe 40GB": f"{LIGHTNING}; {ANALYSIS}",
    "A100 PCIe 80GB": f"{LIGHTNING}; {ANALYSIS}; {ENGINEERING}",
    "L4": f"{LIGHTNING}; grokipedia L4 against L40S",
    "L40": f"{LIGHTNING}; L40 datasheet as quoted by mullet.se",
    "L40S": f"L40S datasheet as quoted by mullet.se; {ENGINEERING}; {TITAN}",
    "H100 SXM5 80GB": f"{LIGHTNING}; {TITAN}; {ENGINEERING}; datacrunch",
    "H100 PCIe 80GB": f"{LIGHTNING}; {TITAN}; {ENGINEERING}",
    "H100 NVL 94GB": f"{LIGHTNING}; {TITAN}",
    "H200 SXM": f"{LIGHTNING}; {TITAN}; {ENGINEERING}; itkb.uw.cz",
    "H20 96GB": f"{TITAN}; willitrunai.com; zangshuxian.com",
    "GH200 96/144GB": f"{ENGINEERING} (measured figure only); the rest recalled",
    "B100": f"recalled from the vendor's architecture brief; {KLOCKWOOD} mentions the 700 W card",
    "B200 SXM (HGX)": f"{KLOCKWOOD}; {TITAN}; {ENGINEERING}",
    "GB200 (per GPU)": f"{KLOCKWOOD}; {TITAN}; {ENGINEERING}",
    "B300 / GB300": f"{TITAN}; {ENGINEERING}; itkb.uw.cz",
    "MI210": f"{INDUCTOR}; {ANALYSIS}",
    "MI250X (OAM = 2 GCD)": (f"{TITAN} (per die); {ENGINEERING} and {ANALYSIS} (module, halved here)"),
    "MI300X": f"{INDUCTOR}; {TITAN}; {ENGINEERING}; aiwiki.ai",
    "MI325X": f"{ENGINEERING}; {TITAN}; wiaix.com",
    "MI350X": f"{INDUCTOR}; wccftech",
    "MI355X": f"{TITAN}; {ENGINEERING}; aiwiki.ai; wccftech",
}
"""Where the figures of a row come from."""

RECALLED = "recalled, no source at hand"

UNVERIFIED = {
    "V100 SXM2 16/32GB": {"power": RECALLED, "link": RECALLED},
    "T4": {"bandwidth": "recalled; the datasheet says 300 GB/s, the product brief 320"},
    "GeForce RTX 5090": {
        "fp64": RECALLED,
        "tf32": "computed by the GeForce half-rate rule",
        "fp16": "computed by the GeForce half-rate rule",
        "bf16": "computed by the GeForce half-rate rule",
        "fp8": "computed by the GeForce half-rate rule",
        "int8": "computed by the GeForce half-rate rule",
        "power": RECALLED,
    },
    "A10G": {
        "fp32": "computed: 80 SM at 1710 MHz",
        "tf32": "computed: 80 SM at 1710 MHz",
        "int8": f"computed; {ANALYSIS} says half of it",
        "power": RECALLED,
    },
    "H100 NVL 94GB": {"power": RECALLED},
    "GH200 96/144GB": dict.fromkeys(
        ("bandwidth", "fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "link", "power"),
        RECALLED,
    ),
    "B300 / GB300": {
        "fp64": RECALLED,
        "fp8": "contested: itkb.uw.cz gives about 7 PFLOP/s",
        "fp4": RECALLED,
        "link": RECALLED,
        "power": RECALLED,
        "measured_bf16": f"{ENGINEERING}; the row does not say which of the two was measured",
    },
    "MI210": {"link": RECALLED},
    "MI250X (OAM = 2 GCD)": {"link": RECALLED},
    "MI300X": {"link": "computed: 7 links of 128 GB/s"},
    "MI325X": {"power": RECALLED, "link": RECALLED},
    "MI350X": {"fp4": RECALLED, "link": RECALLED},
    "MI355X": {
        "fp64": RECALLED,
        "fp32": RECALLED,
        "fp16": f"recalled; {TITAN} and {ENGINEERING} round it to 2,500",
        "bf16": f"recalled; {TITAN} and {ENGINEERING} round it to 2,500",
        "fp8": f"recalled; {ENGINEERING} rounds it to 5,000",
        "int8": RECALLED,
        "fp4": f"recalled; {ENGINEERING} gives 10,100",
        "link": RECALLED,
    },
}
"""Figures that their row's sources do not settle, with what they rest on instead."""

UNVERIFIED_PLAIN = {
    "H100 NVL 94GB": ("sm_count",),
    "GH200 96/144GB": ("memory_bytes",),
    "B300 / GB300": ("capability",),
    "MI350X": ("sm_count",),
}
"""Plain figures of the catalogue that the table calls recalled; of a row that is recalled or computed as a whole all of them are."""

RUNTIME_NAMES = {
    "GeForce RTX 2080 Ti": ("GeForce RTX 2080 Ti",),
    "GeForce RTX 3090": ("GeForce RTX 3090",),
    "RTX A6000": ("RTX A6000",),
    "A100 SXM4 40GB": ("A100-SXM4-40GB",),
    "A100 SXM4 80GB": ("A100-SXM4-80GB", "A100-SXM-80GB"),
    "A100 PCIe 40GB": ("A100-PCIE-40GB",),
    "B300": ("NVIDIA B300 SXM6 AC",),
    "MI300X": ("AMD Instinct MI300X VF",),
    "MI325X": ("AMD Instinct MI325X VF",),
    "MI350X": ("AMD Instinct MI350X VF",),
}
"""Further names of the same device, by entry: drivers before 465 print no "NVIDIA" in front, and AMD's virtual functions of a whole
device (its memory, its compute units) say so. The bare names of those years (A10, A40) are left out: they are short names too."""

NOTES = {
    "V100 SXM2 16/32GB": ("No bf16, tf32 or fp8 on the tensor cores. A figure of 112 belongs to the PCIe card."),
    "V100 PCIe 16/32GB": "The V100S (130 TFLOP/s, 1,134 GB/s) is another card.",
    "T4": "No bf16 on the tensor cores: it is emulated and slow.",
    "GeForce RTX 2080 Ti": ("The Founders Edition boosts to 1635 MHz: 56.9 fp16. A figure of 28.5 is not of the tensor cores."),
    "GeForce RTX 3090": ("A figure of 35.6 for fp16 is not of the tensor cores: half of what they do."),
    "GeForce RTX 4090": ("82.6 for bf16 is not of the tensor cores; 661 in the press is fp16 accumulation with sparsity."),
    "GeForce RTX 5090": ("838 in the press is fp16 accumulation with sparsity, four times the figure here. Not a small B200."),
    "A10": "Not the A10G and not the A100.",
    "A10G": ("Not the A10: fewer tensor operations. Tables that say 125 or 62.5 mix the cards up; int8 is contested."),
    "A40": "Reports 45 GB where ECC is on.",
    "RTX A6000": "309.7 is with sparsity; 38.7 for bf16 is not of the tensor cores.",
    "RTX 6000 Ada": "Neither the Quadro RTX 6000 (Turing) nor the RTX PRO 6000 (Blackwell).",
    "A100 SXM4 40GB": "No fp8. Some tables give NVLink per direction (300).",
    "A100 SXM4 80GB": ("No fp8. Some tables give NVLink per direction (300) and round the bandwidth to 2.0 TB/s."),
    "A100 PCIe 40GB": "No fp8. NVLink only over a bridge between two cards.",
    "A100 PCIe 80GB": ("No fp8. NVLink only over a bridge between two cards. Some round the bandwidth to 2.0 TB/s."),
    "L4": ("242 (fp16) and 485 (fp8) are with sparsity. Torch's own table gives this card an H100's bandwidth."),
    "L40": "One source computes twice this dense rate from clocks; measure before trusting either.",
    "L40S": "366, 733 and 1,466 as some print them are rounded or with sparsity.",
    "H100 SXM5 80GB": ("1,979 (bf16) and 3,958 (fp8) are with sparsity. Some tables use 3,072 GB/s or round to 1,000."),
    "H100 PCIe 80GB": "Bandwidth is also quoted as 2,039 GB/s. NVLink only over a bridge.",
    "H100 NVL 94GB": ("Early material gives the pair (188 GB, twice everything). The SM count is recalled."),
    "H200 SXM": "1,979 (bf16) is with sparsity. The driver reports 139 to 140 GiB.",
    "H20 96GB": "No datasheet is published worldwide. Not the H200.",
    "GH200 96/144GB": "1,979 (bf16) is with sparsity. The power is the module's, with its CPU.",
    "B100": "Hardly shipped. 3,500 for bf16 is with sparsity.",
    "B200 SXM (HGX)": ("180 GB is what can be used of 192. tf32 is also quoted as 1,125, fp64 as 37; fp8 of 9,000 is with sparsity."),
    "GB200 (per GPU)": ("One of the two GPUs of a superchip. Sheets differ on fp64 (40 or 45) and fp32 (80 or 90)."),
    "B300 / GB300": ("Sources contradict each other on bf16 and fp8. int8 was reduced. The capability is recalled."),
    "MI210": ("fp32 is the matrix rate; vector code reaches 22.6. Bandwidth is also quoted as 1,600 GB/s."),
    "MI250X (OAM = 2 GCD)": ("Two dies; PyTorch sees each as a device, and these figures are one die's. The power is the module's."),
    "MI300X": ("Measured peaks stay near 54% of the datasheet: against the datasheet much looks worse than it is."),
    "MI325X": "Another measurement of bf16 gives 784.9.",
    "MI350X": "The number of compute units is recalled.",
    "MI355X": "fp4 gains nothing from sparsity. No tf32 in hardware (recalled).",
}
"""Traps and contradictions, in one or two sentences."""

TRACELENS = "TraceLens table of achieved peaks"

MEASURED = {
    "H100 SXM5 80GB": {"fp8": (1402.6, ENGINEERING)},
    "H200 SXM": {"fp8": (1453.4, ENGINEERING)},
    "B200 SXM (HGX)": {"fp8": (3432.5, ENGINEERING)},
    "GB200 (per GPU)": {"fp8": (3615.6, ENGINEERING)},
    "MI300X": {"bf16": (708.0, TRACELENS), "fp8": (1273.0, TRACELENS)},
    "MI325X": {"bf16": (843.0, TRACELENS)},
}
"""The best measured TFLOP/s where the table's own column has none or a lower one (its notes name
them)."""

HOPPER_PEAK = (989.0, f"{TITAN}: 989; half of the 1,979 that the datasheet prints with sparsity")

OVERRIDES = {
    "H100 SXM5 80GB": {"bf16": HOPPER_PEAK, "fp16": HOPPER_PEAK},
    "H200 SXM": {"bf16": HOPPER_PEAK, "fp16": HOPPER_PEAK},
    "MI210": {"fp32": (45.3, INDUCTOR)},
}
"""TFLOP/s that replace a cell: 989 is the figure the product states; MI210's fp32 ceiling is the
matrix unit's."""

ALIASES = {
    "V100 SXM2 16GB": ("v100-sxm2-16gb",),
    "V100 SXM2 32GB": ("v100-sxm2-32gb",),
    "V100 PCIe 16GB": ("v100-pcie-16gb",),
    "V100 PCIe 32GB": ("v100-pcie-32gb",),
    "T4": ("t4",),
    "GeForce RTX 2080 Ti": ("rtx-2080-ti", "2080-ti"),
    "GeForce RTX 3090": ("rtx-3090", "3090"),
    "GeForce RTX 4090": ("rtx-4090", "4090"),
    "GeForce RTX 5090": ("rtx-5090", "5090"),
    "A10": ("a10",),
    "A10G": ("a10g",),
    "A30": ("a30",),
    "A40": ("a40",),
    "RTX A6000": ("rtx-a6000", "a6000"),
    "RTX 6000 Ada": ("rtx-6000-ada",),
    "A100 SXM4 40GB": ("a100-sxm4-40gb", "a100-sxm-40gb"),
    "A100 SXM4 80GB": ("a100-sxm4-80gb", "a100-sxm-80gb"),
    "A100 PCIe 40GB": ("a100-pcie-40gb",),
    "A100 PCIe 80GB": ("a100-pcie-80gb",),
    "L4": ("l4",),
    "L40": ("l40",),
    "L40S": ("l40s",),
    "H100 SXM5 80GB": ("h100-sxm", "h100-sxm5", "h100-sxm5-80gb"),
    "H100 PCIe 80GB": ("h100-pcie",),
    "H100 NVL 94GB": ("h100-nvl",),
    "H200 SXM": ("h200", "h200-sxm"),
    "H20 96GB": ("h20",),
    "GH200 96GB": ("gh200-96gb",),
    "GH200 144GB": ("gh200-144gb",),
    "B100": ("b100",),
    "B200 SXM (HGX)": ("b200", "b200-sxm"),
    "GB200 (per GPU)": ("gb200",),
    "B300": ("b300",),
    "GB300": ("gb300",),
    "MI210": ("mi210",),
    "MI250X (one of two dies)": ("mi250x",),
    "MI300X": ("mi300x",),
    "MI325X": ("mi325x",),
    "MI350X": ("mi350x",),
    "MI355X": ("mi355x",),
}
"""Short names for the command line; each names one entry and nothing else."""

ASSUMED = {
    "H100 SXM5 80GB": {"h100": "the PCIe and the NVL card are called H100 as well"},
    "A100 SXM4 80GB": {"a100-80gb": "the PCIe card of 80 GB is called so as well, and has 1,935 GB/s"},
    "A100 SXM4 40GB": {"a100-40gb": "the PCIe card of 40 GB is called so as well, and draws less power"},
}
"""Short names that fit several cards, with the card that is taken and what else they could mean;
said in every answer."""

SPLIT = {
    "V100 SXM2 16/32GB": ("V100 SXM2 16GB", "V100 SXM2 32GB"),
    "V100 PCIe 16/32GB": ("V100 PCIe 16GB", "V100 PCIe 32GB"),
    "GH200 96/144GB": ("GH200 96GB", "GH200 144GB"),
    "B300 / GB300": ("B300", "GB300"),
}
"""Rows that hold several devices, in the order of their cells' parts."""

DIES = {"MI250X (OAM = 2 GCD)": ("MI250X (one of two dies)", 2)}
"""Modules of which PyTorch sees each die as a device: the entry's name, and the number of dies."""
