"""Data-sheet figures of devices: memory, memory bandwidth and peak rate of 32-bit floats.

Facts of the vendors' data sheets, rounded as printed there. A device that is not listed has no
figures: features that need them are unknown (NaN), and nothing fails.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEVICES", "DeviceFigures", "figures_of"]


@dataclass(frozen=True, slots=True)
class DeviceFigures:
    """What the data sheet says of a device.

    Attributes
    ----------
    vendor : str
    memory : float
        GB.
    bandwidth : float
        Of the memory, GB/s.
    peak : float
        Dense 32-bit floating point without sparsity and without reduced-precision modes, TFLOP/s.
    """

    vendor: str
    memory: float
    bandwidth: float
    peak: float


DEVICES = {
    "P4": DeviceFigures("NVIDIA", 8, 192, 5.5),
    "P100": DeviceFigures("NVIDIA", 16, 732, 9.3),
    "V100": DeviceFigures("NVIDIA", 32, 900, 14.0),
    "T4": DeviceFigures("NVIDIA", 16, 320, 8.1),
    "L4": DeviceFigures("NVIDIA", 24, 300, 30.3),
    "L40S": DeviceFigures("NVIDIA", 48, 864, 91.6),
    "A10": DeviceFigures("NVIDIA", 24, 600, 31.2),
    "A40": DeviceFigures("NVIDIA", 48, 696, 37.4),
    "A100-40G": DeviceFigures("NVIDIA", 40, 1555, 19.5),
    "A100-40G-SXM": DeviceFigures("NVIDIA", 40, 1555, 19.5),
    "A100-80G": DeviceFigures("NVIDIA", 80, 1935, 19.5),
    "A100-80G-SXM": DeviceFigures("NVIDIA", 80, 2039, 19.5),
    "H100": DeviceFigures("NVIDIA", 80, 3350, 66.9),
    "H100-PCIe": DeviceFigures("NVIDIA", 80, 2000, 51.2),
    "H200": DeviceFigures("NVIDIA", 141, 4800, 66.9),
    "MI100": DeviceFigures("AMD", 32, 1229, 23.1),
    "MI210": DeviceFigures("AMD", 64, 1638, 22.6),
    "MI250": DeviceFigures("AMD", 64, 1638, 22.6),
    "MI300X": DeviceFigures("AMD", 192, 5300, 163.4),
}


def figures_of(device: str) -> DeviceFigures | None:
    """Return the figures of a device by its short name; None where it is not listed.

    Examples
    --------
    >>> figures_of("H100").bandwidth
    3350
    >>> figures_of("my accelerator") is None
    True
    """
    return DEVICES.get(device)
