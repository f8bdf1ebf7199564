"""Figures of devices as their vendors print them, each row with its document."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeviceFigures:
    """Figures of a device as its vendor prints them.

    Attributes
    ----------
    vendor : str
    memory : float
        GB.
    bandwidth : float
        Of the memory, GB/s.
    peak : float
        Dense 32-bit floating point without sparsity and without reduced-precision modes, TFLOP/s.
    source : str
        The vendor's document that prints these figures.
    dies : int
        Devices that software sees on one card. The figures are those of the card; each device has
        its share of them.
    """

    vendor: str
    memory: float
    bandwidth: float
    peak: float
    source: str
    dies: int = 1


# Rounded as printed: TB/s are converted, 3276.8 GB/s becomes 3277. A device that is not listed has
# no figures: features that need them are unknown (NaN).
DEVICES = {
    "P4": DeviceFigures("NVIDIA", 8, 192, 5.5, "Tesla P4 data sheet"),
    "P100": DeviceFigures("NVIDIA", 16, 732, 9.3, "Tesla P100 PCIe data sheet"),
    "V100": DeviceFigures("NVIDIA", 32, 900, 14.0, "V100 data sheet, PCIe"),
    "T4": DeviceFigures("NVIDIA", 16, 320, 8.1, "T4 data sheet"),
    "L4": DeviceFigures("NVIDIA", 24, 300, 30.3, "L4 data sheet"),
    "L40S": DeviceFigures("NVIDIA", 48, 864, 91.6, "L40S data sheet"),
    "A10": DeviceFigures("NVIDIA", 24, 600, 31.2, "A10 data sheet"),
    "A40": DeviceFigures("NVIDIA", 48, 696, 37.4, "A40 data sheet"),
    "A100-40G": DeviceFigures("NVIDIA", 40, 1555, 19.5, "A100 data sheet, 40 GB PCIe"),
    "A100-40G-SXM": DeviceFigures("NVIDIA", 40, 1555, 19.5, "A100 data sheet, 40 GB SXM"),
    "A100-80G": DeviceFigures("NVIDIA", 80, 1935, 19.5, "A100 data sheet, 80 GB PCIe"),
    "A100-80G-SXM": DeviceFigures("NVIDIA", 80, 2039, 19.5, "A100 data sheet, 80 GB SXM"),
    "H100": DeviceFigures(
        "NVIDIA", 80, 3350, 66.9, "H100 data sheet, SXM; peak: H100 architecture white paper"
    ),
    "H100-PCIe": DeviceFigures(
        "NVIDIA", 80, 2000, 51.2, "H100 data sheet, PCIe; peak: H100 architecture white paper"
    ),
    "H200": DeviceFigures("NVIDIA", 141, 4800, 67.0, "H200 data sheet, SXM"),
    "MI100": DeviceFigures("AMD", 32, 1229, 23.1, "Instinct MI100 product page"),
    "MI210": DeviceFigures("AMD", 64, 1638, 22.6, "Instinct MI210 product page"),
    "MI250": DeviceFigures("AMD", 128, 3277, 45.3, "Instinct MI250 product page", dies=2),
    "MI300X": DeviceFigures("AMD", 192, 5300, 163.4, "Instinct MI300X data sheet"),
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
