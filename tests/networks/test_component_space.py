"""The space of a frozen encoder's features, against NumPy."""

import numpy as np
import pytest
import torch

from protocon.base.parts import Parts, look
from protocon.networks.component_space import RootSpace


def unit(rows: np.ndarray) -> np.ndarray:
    return np.array([row / max(np.sqrt((row**2).sum()), 1e-12) for row in rows])


def root(rows: np.ndarray) -> np.ndarray:
    return np.asarray(np.sign(rows) * np.sqrt(np.abs(rows)))


def reference(clean: np.ndarray, parts: Parts, count: int) -> np.ndarray:
    """Components of the rows that the space is made of, one part after the other."""
    pieces, start = [], 0
    for part in parts:
        own = clean[:, start : start + part.width]
        start += part.width
        if part.kind == "block":
            pieces.append(0.4 * unit(root((own - own.mean(0)) / own.std(0))))
        else:
            first = unit(root(own))
            pieces.append(unit(first - first.mean(0)))
    rows = np.concatenate(pieces, axis=1)
    rows = rows - rows.mean(0)
    _, singular, directions = np.linalg.svd(rows, full_matrices=False)
    components = rows @ directions[:count].T
    return np.asarray(components / np.sqrt((singular[:count] ** 2 / len(rows)).mean()))


def samples(count: int = 60) -> np.ndarray:
    generator = np.random.default_rng(0)
    return np.asarray(np.abs(generator.normal(size=(count, 12))) ** 3 * np.linspace(0.1, 9, 12))


@pytest.mark.parametrize("parts", [look(6, 4, 2), look(4, 2) * 2, look(5, 1) + look(6)])
def test_components_are_those_of_numpy_up_to_their_sign(parts: Parts) -> None:
    rows = samples()
    space = RootSpace(parts, 5)
    space.fit(torch.from_numpy(rows).float())
    found = space(torch.from_numpy(rows).float()).numpy()
    expected = reference(rows, parts, 5)
    expected *= np.sign((expected * found).sum(0))
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-4)
    assert abs(found.var(0).mean() - 1) < 1e-3


def test_one_part_is_enough_and_zero_rows_stay_finite() -> None:
    rows = torch.from_numpy(samples()).float()
    rows[0] = 0
    space = RootSpace(look(12), 3)
    space.fit(rows)
    assert space(rows).isfinite().all()


def test_a_long_tail_no_longer_decides_distances() -> None:
    """Two groups that differ in ten small features, with one huge feature at random: roots keep them apart."""
    generator = torch.Generator().manual_seed(0)
    group = torch.arange(200) % 2
    rows = 0.1 * torch.rand(200, 11, generator=generator)
    rows[:, :5] += 0.5 * (group == 0)[:, None]
    rows[:, 5:10] += 0.5 * (group == 1)[:, None]
    rows[:, 10] = 4 * torch.rand(200, generator=generator) ** 3
    space = RootSpace(look(11), 2)
    space.fit(rows)
    found = space(rows)
    apart = (found[group == 0].mean(0) - found[group == 1].mean(0)).norm()
    assert apart > 1.5


def test_the_order_of_rows_changes_no_component() -> None:
    rows = torch.from_numpy(samples()).float()
    one, other = RootSpace(look(6, 6), 4), RootSpace(look(6, 6), 4)
    one.fit(rows)
    other.fit(rows.flip(0))
    torch.testing.assert_close(one.matrix, other.matrix, rtol=1e-4, atol=1e-5)


def test_few_images_have_the_components_that_their_covariance_has() -> None:
    """Of fewer images than features the components come another way, to the same answer."""
    rows = torch.rand(40, 64, generator=torch.Generator().manual_seed(3))
    few, many = RootSpace(look(48, 16), 12), RootSpace(look(48, 16), 12)
    few.fit(rows)
    many.fit(rows.repeat(2, 1))  # the same covariance, from more rows than features
    assert torch.allclose(few.matrix, many.matrix, atol=1e-5)
    assert few(rows).var(0, correction=0).mean() == pytest.approx(1.0, rel=1e-4)


def test_a_direction_in_which_nothing_varies_is_nothing() -> None:
    rows = torch.rand(5, 64, generator=torch.Generator().manual_seed(3))
    space = RootSpace(look(48, 16), 5)  # five points span four directions
    space.fit(rows)
    assert space.matrix.isfinite().all()
    assert bool((space.matrix[:, -1] == 0).all())
