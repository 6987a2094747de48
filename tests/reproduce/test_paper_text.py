"""Every hyper-parameter that the paper states is the one of the recipes that it is stated for."""

from fnmatch import fnmatchcase
from typing import Any

import pytest

from protocon.methods import METHODS, Method
from protocon.paper.columns import COLUMNS
from protocon.paper.datasets import SIZES
from protocon.paper.paper_cells import PaperCell, paper_cells
from protocon.reproduce.availability import missing_part
from protocon.settings.auto import resolve_auto
from protocon.settings.config import build_config, flat_settings
from tests.reproduce.paper_text import STATED, Stated

CELLS = [cell for cell in paper_cells().values() if missing_part(cell) is None]
DELTAS = {
    "table1": (1.20, 0.60, 0.51, 0.33, 1.36, -0.24, 1.78, 4.78),
    "table2": (4.75, 4.22, 3.01, 8.60, 7.93, 6.90),
    "table3": (2.2, 0.7, -2.0),
    "moderate": (0.87, 0.75, 2.43, 1.67),
}
"""The last rows of the tables, 'delta against best baseline'."""


@pytest.fixture(scope="module")
def settings() -> dict[str, dict[str, Any]]:
    return {cell.name: flat_settings(build_config(recipe=cell.name)) for cell in CELLS}


def about(stated: Stated, cell: PaperCell) -> bool:
    """Whether a statement is about a cell. Methods with schedules of their own follow their own papers."""
    named = any(fnmatchcase(cell.name, pattern) for pattern in stated.cells)
    otherwise = any(fnmatchcase(cell.name, pattern) for pattern in stated.but)
    method = stated.method in (None, cell.method.method) and cell.method.recipe is None
    return named and method and not otherwise


@pytest.mark.parametrize("stated", STATED, ids=lambda stated: f"{stated.place}: {stated.words} {stated.settings}")
def test_a_stated_hyper_parameter_is_that_of_the_recipes(stated: Stated, settings: dict[str, dict[str, Any]]) -> None:
    cells = [cell for cell in CELLS if about(stated, cell)]
    assert cells
    for cell in cells:
        own = settings[cell.name]
        for key, value in stated.settings.items():
            if key not in own:  # supervised has no threshold
                assert cell.method.method == "supervised", (cell.name, key)
                continue
            assert own[key] == value, (cell.name, key)


def test_views_of_small_images_are_those_of_the_text() -> None:
    """Section 4.1, Implementation Details: 'random horizontal flips for weak …, RandAugment … for strong ones'."""
    for name in ("table1/cifar10-40/protocon", "moderate/cifar100-2500/fixmatch", "ablations/cifar10-80/n-50"):
        resolved = resolve_auto(
            build_config(recipe=name), shape=(3, 32, 32), flip=True, unlabelled=49_960, classes=10
        ).config
        assert (resolved.views.weak, resolved.views.flip, resolved.views.strong) == ("shift", True, "randaugment"), name


def test_the_projection_has_two_layers_and_the_rate_falls_along_a_cosine() -> None:
    """Section 4.1, Implementation Details: 'a 2-layer projection MLP', '0.03 with a cosine decay schedule'."""
    cells = [cell for cell in CELLS if cell.method.recipe is None]
    for method in {cell.method.method for cell in cells}:
        assert METHODS[method].projector.layers == 2, method
        assert METHODS[method].learning_rate is Method.learning_rate, method  # FixMatch's cosine, tested with schedules


def test_runs_of_a_cell_are_as_many_as_the_paper_averages() -> None:
    """Table 1, caption: 'averaged over 5 different splits'; appendix C: 'only based on 3 runs instead of 5'."""
    seeds = {table: {cell.setting.seeds for cell in CELLS if cell.table == table} for table in DELTAS}
    assert seeds == {"table1": {5}, "table2": {1}, "table3": {1}, "moderate": {3}}


def test_fine_tuning_passes_over_the_labels_as_often_as_its_authors_do() -> None:
    """SimCLR v2, section 3: 60 epochs with 1 % of the labels, 30 with 10 %; SwAV's code: 20 with both."""
    epochs = {("simclr", "1"): 60, ("simclr", "10"): 30, ("swav", "1"): 20, ("swav", "10"): 20, ("dino", "10"): 20}
    for (row, percent), expected in epochs.items():
        optim = build_config(recipe=f"table3/imagenet-{percent}/{row}").optim
        assert isinstance(optim.batch_size, int)
        assert optim.total_steps is not None
        passes = optim.total_steps * optim.batch_size / COLUMNS[f"imagenet-{percent}"].labels
        assert passes == pytest.approx(expected, rel=0.002), (row, percent)


@pytest.mark.parametrize("row", ["swav", "dino"])
@pytest.mark.parametrize(("percent", "encoder", "head"), [("1", 0.02, 5.0), ("10", 0.01, 0.2)])
def test_fine_tuning_of_encoder_and_head_has_the_rates_of_swavs_code(
    row: str, percent: str, encoder: float, head: float
) -> None:
    own = flat_settings(build_config(recipe=f"table3/imagenet-{percent}/{row}"))
    rate = own["optim.lr"]
    assert rate * own["method.encoder_rate"] == pytest.approx(encoder)
    assert rate * own["method.classifier_rate"] == pytest.approx(head)


def test_mpl_on_imagenet_has_the_settings_of_its_authors_command() -> None:
    own = flat_settings(build_config(recipe="imagenet-mpl"))
    steps = own["optim.total_steps"]
    assert steps == 700_000
    assert round(own["method.ramp"] * steps, -1) == 50_000
    assert round(own["method.wait"] * steps, -1) == 20_000
    assert round(own["method.warmup"] * steps, -1) == 5_000
    scale = 1024 / 256  # their code multiplies both rates by batch/256
    stated = {
        **{"optim.lr": 0.1 * scale, "method.teacher_lr": 0.15 * scale, "optim.ema": 0.999},
        **{"optim.batch_size": 1024, "optim.mu": 15},
        **{"optim.weight_decay": 1e-4, "method.smoothing": 0.1, "method.dropout": 0.1, "method.clip": 5},
        **{"method.lambda_u": 20, "method.temperature": 0.5, "method.threshold": 0.6},
    }
    assert {key: own[key] for key in stated} == stated


def test_the_figures_give_the_papers_own_last_rows() -> None:
    for table, deltas in DELTAS.items():
        cells = [cell for cell in paper_cells().values() if cell.table == table]
        for column, delta in zip(dict.fromkeys(cell.column for cell in cells), deltas, strict=True):
            known = {cell.row: cell.reported[0] for cell in cells if cell.column == column and cell.reported}
            ours = max(value for row, value in known.items() if row.startswith("protocon"))
            best = max(value for row, value in known.items() if not row.startswith("protocon"))
            assert ours - best == pytest.approx(delta, abs=0.005), (table, column)


def test_there_is_a_recipe_for_every_cell_and_it_lists_only_what_differs() -> None:
    assert len(paper_cells()) == 6 * 8 + 4 * 6 + 14 * 3 + 3 * 4 + 10
    for cell in paper_cells().values():
        parent = flat_settings(build_config(recipe=cell.setting.parent))
        if cell.method.method != "protocon":
            continue  # the settings of another method have nothing in the parent to differ from
        listed = {
            f"{section}.{key}": value
            for section, content in cell.recipe().items()
            if isinstance(content, dict)
            for key, value in content.items()
        }
        assert all(parent[key] != value for key, value in listed.items()), cell.name


def test_labels_of_a_column_are_labels_per_class_times_classes_or_the_percentage() -> None:
    for name, column in COLUMNS.items():
        size, data = SIZES[column.data], column.settings["data"]
        if "labels_per_class" in data:
            assert column.labels == data["labels_per_class"] * size.classes == int(name.rpartition("-")[2])
        else:
            assert column.labels == round(size.train * data["labels_percent"] / 100)
