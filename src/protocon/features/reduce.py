"""Principal components of a frozen encoder's features: the heads' input."""

import torch
from torch import nn

from protocon.base import distributed
from protocon.base.parts import Parts
from protocon.features.cached_views import CachedViews
from protocon.features.saved_space import load_space, save_space, space_file
from protocon.networks.component_space import Kind, RootSpace, StandardSpace

_BLOCK = 4096


def principal_components(samples: CachedViews, count: int) -> StandardSpace:
    """The `count` directions in which standardised clean features vary most, all scaled alike.

    The scale makes the mean variance of a component 1, so that noise of a given strength means the same for every
    encoder. It is one for all components: their different spreads tell what matters, and whitening would hide it.

    In double precision, so that the last bits of an eigenvector are not a matter of how sums are ordered.
    """
    mean, std = samples.statistics()
    rows = ((samples.clean().double() - mean) / std.double()).nan_to_num_()
    values, vectors = torch.linalg.eigh(rows.T @ rows / len(rows))
    values, vectors = values[-count:].flip(0), vectors[:, -count:].flip(1)
    scale = values.mean().clamp(min=1e-12).sqrt()
    return StandardSpace(mean, (vectors / scale / std.double()[:, None]).float())


def fitted_space(samples: CachedViews, kind: Kind, *, parts: Parts, components: int) -> nn.Module:
    """The space that heads learn in, from the clean features; kept beside them where they have a table.

    Args:
        samples: features of all images.
        kind: roots; or standardised features, as in version 0.1.
        parts: what features consist of.
        components: k.
    """
    if kind == "standard":
        return principal_components(samples, components)
    space = RootSpace(parts, components)
    file = None if samples.table is None else space_file(samples.table, kind, components)
    if file is None or not load_space(file, space):
        space.fit(samples.clean())
        if file is not None and distributed.rank() == 0:
            save_space(file, space)
    return space


def reduced(samples: CachedViews, space: nn.Module) -> CachedViews:
    """The same samples with components in the place of features, in memory and in the precision of the features."""
    whole = samples.tensor
    blocks = [whole[start : start + _BLOCK] for start in range(0, len(whole), _BLOCK)]
    parts = [space(block.float()).to(whole.dtype) for block in blocks]
    return samples.with_features(torch.cat(parts))
