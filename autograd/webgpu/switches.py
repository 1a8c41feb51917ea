"""Environment variables that switch something on or off."""

import os


def switched(name, default):
    """Whether the variable says 1; the default where it is not set. ValueError for anything but 0 and 1."""
    value = os.environ.get(name, "")
    if value not in ("", "0", "1"):
        raise ValueError(f'[wgpu] {name} is "0" or "1" or not set; got {value!r}')
    return value == "1" if value else default
