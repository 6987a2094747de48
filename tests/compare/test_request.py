"""Which settings reach which method, and which requests fit into one folder."""

import pytest

from protocon.compare.request import (
    Cell,
    Request,
    additions,
    build_request,
    conflicts,
    names_in,
    numbers_in,
    request_from_yaml,
    request_to_yaml,
)
from protocon.errors import ConfigError, ProtoConError
from protocon.methods import METHODS
from protocon.references import REFERENCES

METHOD_NAMES = ["protocon", "fixmatch", "supervised", "label-spreading"]


def small(
    *overrides: str, seeds: int = 2, methods: list[str] | None = None, labels: tuple[int, ...] = (2, 4)
) -> Request:
    return build_request(
        methods=methods or METHOD_NAMES, labels_per_class=labels, seeds=seeds, overrides=["epochs=2", *overrides]
    )


def setting(request: Request, method: str, name: str) -> object:
    return request.configs[method].method.model_dump().get(name)


def test_all_methods_and_references_by_default() -> None:
    assert list(build_request().configs) == [*(name for name in METHODS if METHODS[name].uses_labels), *REFERENCES]


def test_a_method_without_labels_cannot_be_compared() -> None:
    with pytest.raises(ConfigError, match="simclr learns without labels"):
        small(methods=["simclr"])


def test_cells_are_the_whole_grid_with_their_own_labels_and_seed() -> None:
    request = small()
    cells = list(request.cells())
    assert len(cells) == len(set(cells)) == 4 * 2 * 2
    assert {cell.seed for cell in cells[:8]} == {0}  # a seed is finished before the next begins
    config = request.config(Cell("fixmatch", 4, 1))
    assert (config.method_name, config.data.labels_per_class, config.run.seed) == ("fixmatch", 4, 1)
    assert Cell("fixmatch", 4, 1).name == "fixmatch-4pc-seed1"


def test_common_settings_reach_all() -> None:
    request = small("optim.lr=0.01", "image_size=8")
    assert {config.optim.lr for config in request.configs.values()} == {0.01}
    assert {config.data.image_size for config in request.configs.values()} == {8}


def test_a_methods_setting_reaches_those_that_have_it() -> None:
    for key in ("threshold", "method.threshold"):
        request = small(f"{key}=0.8")
        assert setting(request, "protocon", "threshold") == setting(request, "fixmatch", "threshold") == 0.8
        assert setting(request, "supervised", "threshold") is None
    assert setting(small("method.alpha=0.7"), "protocon", "alpha") == 0.7


@pytest.mark.parametrize("key", ["least_retention", "method.least_retention", "protocon.least_retention"])
def test_a_setting_reaches_its_method_by_its_name_of_an_earlier_version(key: str) -> None:
    request = small(f"{key}=0.3")
    assert setting(request, "protocon", "min_retention") == 0.3
    assert setting(request, "fixmatch", "min_retention") is None


def test_a_setting_with_a_methods_name_reaches_that_one() -> None:
    request = small("threshold=0.8", "fixmatch.threshold=0.6")
    assert (setting(request, "protocon", "threshold"), setting(request, "fixmatch", "threshold")) == (0.8, 0.6)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("alpa=0.7", "did you mean alpha"),
        ("epochs", "not a setting"),
        ("simmatch.threshold=0.9", "simmatch, which is not compared"),
        ("supervised.threshold=0.9", "method.threshold"),
        ("label-spreading.neighbours=3", "label-spreading"),
        ("queue_size=10", "queue_size"),
        ("seed=3", "--seeds"),
        ("labels_per_class=3", "--labels-per-class"),
        ("labels_percent=1", "--labels-per-class"),
        ("data.split=x.json", "--labels-per-class"),
        ("time_budget=20m", "same number of steps"),
    ],
)
def test_a_setting_that_would_do_nothing_is_refused(override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        small(override)


def test_wrong_axes_are_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean fixmatch"):
        small(methods=["fixmach"])
    with pytest.raises(ConfigError, match="twice"):
        small(methods=["fixmatch", "fixmatch"])
    with pytest.raises(ConfigError, match="1 or more"):
        small(labels=(0, 2))
    with pytest.raises(ConfigError, match="2,4,8"):
        numbers_in("2;4")
    assert names_in(" a, b,") == ["a", "b"]
    assert numbers_in("2,4") == [2, 4]


def test_of_a_recipe_only_what_means_the_same_everywhere_reaches_other_methods() -> None:
    request = build_request(methods=["protocon", "fixmatch", "simmatch", "supervised"], recipe="paper-domainnet")
    assert setting(request, "protocon", "neighbours") == 250
    assert {setting(request, name, "threshold") for name in ("protocon", "fixmatch", "simmatch")} == {0.7}
    assert setting(request, "protocon", "class_prior") == setting(request, "simmatch", "class_prior") == "labels"
    assert setting(request, "simmatch", "temperature") == 0.1  # its own paper's
    assert setting(request, "supervised", "threshold") is None
    assert request.configs["fixmatch"].network == request.configs["protocon"].network
    assert request.data == "domainnet"
    over = build_request(methods=["fixmatch"], recipe="paper-domainnet", overrides=["threshold=0.9"])
    assert setting(over, "fixmatch", "threshold") == 0.9


def test_predictions_are_aligned_alike_in_all_methods() -> None:
    names = ["protocon", "fixmatch-da", "comatch", "simmatch"]
    assert {setting(small(methods=names), name, "alignment") for name in names} == {"mean"}
    assert {setting(small("alignment=dual", methods=names), name, "alignment") for name in names} == {"dual"}
    assert setting(small("protocon.alignment=none", methods=names), "protocon", "alignment") == "none"


def test_a_request_survives_its_file() -> None:
    request = small("fixmatch.threshold=0.6", "lr=0.01")
    text = request_to_yaml(request)
    assert request_from_yaml(text, "grid.yaml") == request
    assert conflicts(request, request_from_yaml(text, "grid.yaml")) == []
    with pytest.raises(ProtoConError, match=r"grid\.yaml"):
        request_from_yaml("methods: 3", "grid.yaml")


def test_conflicts_name_each_changed_setting_once() -> None:
    first = small("lr=0.03", "threshold=0.9")
    changed = small("lr=0.01", "threshold=0.8", "fixmatch.threshold=0.6")
    assert sorted(conflicts(first, changed)) == [
        "fixmatch.threshold: 0.9 → 0.6",
        "optim.lr: 0.03 → 0.01",
        "protocon.threshold: 0.9 → 0.8",
    ]


def test_a_request_may_add_but_not_take_away() -> None:
    larger = small(methods=[*METHOD_NAMES, "comatch"], labels=(2, 4, 8), seeds=3)
    assert conflicts(small(), larger) == []
    assert additions(small(), larger) == 5 * 3 * 3 - 4 * 2 * 2
    assert conflicts(larger, small()) == [
        "method comatch: left out",
        "labels_per_class 8: left out",
        "seed 2: left out",
    ]
