"""Numbers as people read them: 8k, 1.90 G, 2.1 ms, 5.1 days."""

from __future__ import annotations


def short(value: float) -> str:
    """Return a count in few characters: whole multiples of 1,024 as k, large ones as M, G or T.

    Example:
        >>> short(512), short(8192), short(8191), short(1_896_425_587)
        ('512', '8k', '8,191', '1.90 G')
    """
    if 1024 <= value < 2**20 and value % 1024 == 0:
        return f"{value // 1024:.0f}k"
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if value >= size:
            return f"{value / size:.2f} {unit}"
    return f"{value:,.0f}"


def duration(seconds: float) -> str:
    """Return a time with its unit.

    Example:
        >>> duration(0.0021), duration(1.25), duration(90), duration(5_400), duration(440_640)
        ('2.1 ms', '1.2 s', '90.0 s', '90.0 min', '5.1 days')
    """
    for limit, size, unit in ((1.0, 1e-3, "ms"), (120.0, 1.0, "s"), (7_200.0, 60.0, "min"), (172_800.0, 3_600.0, "h")):
        if seconds < limit:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds / 86_400:.1f} days"


def size(count: float) -> str:
    """Return a number of bytes with a decimal unit.

    Example:
        >>> size(3_608_348), size(7.6e9), size(12)
        ('3.6 MB', '7.6 GB', '12 B')
    """
    for unit_size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= unit_size:
            return f"{count / unit_size:.1f} {unit}"
    return f"{count:.0f} B"


def ratio(value: float) -> str:
    """Return padded/real with the digits that differ: four below 1.01, else three.

    Example:
        >>> ratio(1.00007), ratio(1.0351), ratio(2.1494)
        ('1.0001', '1.035', '2.149')
    """
    return f"{value:.4f}" if value < 1.01 else f"{value:.3f}"


def percent(share: float) -> str:
    """Return a share with the digits that matter.

    Example:
        >>> percent(0.503), percent(0.0225), percent(0.00021)
        ('50.3%', '2.2%', '0.02%')
    """
    return f"{share:.1%}" if share >= 0.01 else f"{share:.2%}"
