"""A trained norm as it would be had it also seen the image at hand.

A BatchNorm takes off the mean, and divides by the spread, that its channels had over ImageNet. In an image of another
kind (an aerial view, a scan) a few channels stand out everywhere in the picture, and drown what differs within it. With
a share of the image's own pixels among those that the norm is fitted to, what the whole image has in common counts for
less. Nothing is trained, and no other image has a say.
"""

from torch import Tensor

TINY = 1e-8


def with_own_statistics(normal: Tensor, gain: Tensor, bias: Tensor, share: float) -> Tensor:
    """What a norm gives if `share` of all pixels that it knows are those of the image.

    With u what the trained norm gives, and d and v the mean of u − bias and the variance of u over the image's pixels:
    (u − bias − share · d) · gain / √V + bias, where V = (1 − share) · gain² + share · v + share · (1 − share) · d² is
    the variance of both sets of pixels together.

    Args:
        normal: u (n, C, H, W).
        gain: of the norm, (C,).
        bias: of the norm, (C,).
        share: from 0, which changes nothing, to 1, an instance norm.
    """
    squared, bias = gain.square().view(1, -1, 1, 1), bias.view(1, -1, 1, 1)
    mean = normal.mean((2, 3), keepdim=True)
    variance = (normal.square().mean((2, 3), keepdim=True) - mean.square()).clamp(min=0.0)
    shift = mean - bias
    both = (1.0 - share) * squared + share * variance + share * (1.0 - share) * shift.square()
    scale = ((squared + TINY) / (both + TINY)).sqrt()
    return normal * scale + (bias - (bias + share * shift) * scale)
