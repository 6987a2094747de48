"""Random numbers as a pure function of *what they are for*, not of a generator's history.

Every draw is the hash of a key (which sample, in which epoch, for which view) and a slot (which
parameter of the view). So a sample gets the same draw whichever batch, process or device it is in, a
resumed run continues exactly, and there is no generator state to save. The hash is the finaliser of
SplitMix64 (Steele, Lea and Flood, 2014) on wrapping 64-bit integers, which every torch device has.
"""

import math

import numpy as np
import torch
from torch import Tensor

# Odd constants of SplitMix64, as signed 64-bit integers.
_GOLDEN = 0x9E3779B97F4A7C15 - (1 << 64)
_MIX_1 = 0xBF58476D1CE4E5B9 - (1 << 64)
_MIX_2 = 0x94D049BB133111EB - (1 << 64)
_WORD = (1 << 64) - 1
_UNIFORM_STEP = 2.0**-24  # float32 holds 24 bits exactly


def _shift(x: Tensor, bits: int) -> Tensor:
    """Logical right shift: torch's is arithmetic, so the copied sign bits are masked away."""
    return (x >> bits).bitwise_and_((1 << (64 - bits)) - 1)


def _mix(x: Tensor) -> Tensor:
    # In place where nobody looks: half of the time would go into memory for numbers that are used once.
    x = _shift(x, 30).bitwise_xor_(x).mul_(_MIX_1)
    x = _shift(x, 27).bitwise_xor_(x).mul_(_MIX_2)
    return _shift(x, 31).bitwise_xor_(x)


def _mix_one(x: int) -> int:
    """`_mix` of one integer, 0 ≤ x < 2**64: a tensor of one number takes twenty times as long."""
    x = ((x >> 30) ^ x) * _MIX_1 & _WORD
    x = ((x >> 27) ^ x) * _MIX_2 & _WORD
    return (x >> 31) ^ x


def fold(keys: Tensor | int, number: Tensor | int) -> Tensor:
    """Derive new keys from keys and a number (an epoch, a sample index, a view's number…).

    Args:
        keys: int64 keys of any shape, or one integer.
        number: int64 tensor that broadcasts against `keys`, or one integer.
    """
    one = _as_int(keys)
    if one is None:
        number = torch.as_tensor(number, dtype=torch.int64, device=torch.as_tensor(keys).device)
        return _mix(_mix(torch.as_tensor(keys, dtype=torch.int64) + _GOLDEN) + (number + 1) * _GOLDEN)
    mixed = _mix_one(one + _GOLDEN & _WORD)
    other = _as_int(number)
    if other is None:
        return _mix((torch.as_tensor(number, dtype=torch.int64) + 1) * _GOLDEN + _signed(mixed))
    return torch.tensor(_signed(_mix_one(mixed + (other + 1) * _GOLDEN & _WORD)))


def _as_int(value: Tensor | int) -> int | None:
    """The integer that this is; None for tensors with dimensions or on another device, which stay what they are."""
    if isinstance(value, Tensor):
        return None if value.dim() or value.device.type != "cpu" else int(value)
    return int(value)


def _signed(word: int) -> int:
    """The same 64 bits as a signed integer."""
    return word - (1 << 64) if word >> 63 else word


def uniform(keys: Tensor, slot: int, count: int = 1) -> Tensor:
    """Uniform float32 in [0, 1), shape (len(keys), count). Another slot gives independent numbers.

    Args:
        keys: int64 (n,).
        slot: which of the key's independent sequences.
        count: numbers per key.
    """
    columns = torch.arange(count, device=keys.device, dtype=torch.int64)
    bits = fold(fold(keys, slot)[:, None], columns[None, :])
    return _shift(bits, 40).to(torch.float32).mul_(_UNIFORM_STEP)


def integers(keys: Tensor, slot: int, below: int, count: int = 1) -> Tensor:
    """Uniform int64 in [0, below), shape (len(keys), count); `below` far under 2**24.

    Args:
        keys: int64 (n,).
        slot: which of the key's independent sequences.
        below: exclusive upper bound.
        count: numbers per key.
    """
    return (uniform(keys, slot, count).double() * below).long().clamp_(max=below - 1)


def normal(keys: Tensor, slot: int, count: int = 1) -> Tensor:
    """Standard normal float32, shape (len(keys), count), by the Box-Muller transform.

    Args:
        keys: int64 (n,).
        slot: which of the key's independent sequences.
        count: numbers per key.
    """
    half = (count + 1) // 2
    u = uniform(keys, slot, 2 * half)
    radius = torch.sqrt(-2.0 * torch.log1p(-u[:, :half]))  # 1 - u is never 0
    angle = 2.0 * math.pi * u[:, half:]
    return torch.cat([radius * torch.cos(angle), radius * torch.sin(angle)], dim=1)[:, :count]


def permutation(size: int, *numbers: int) -> np.ndarray:
    """The permutation of range(size) that belongs to these numbers (seed, purpose, epoch…).

    The numbers and how many they are go into one key, so that (1,) and (1, 0) are different.
    """
    key = fold(0, len(numbers))
    for number in numbers:
        key = fold(key, number)
    return np.random.Generator(np.random.Philox(key=int(key) % 2**64)).permutation(size)
