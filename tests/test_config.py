"""Settings: recipes, overrides, and errors that name the right key."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from protocon.errors import ConfigError
from protocon.methods.fixmatch import FixMatchConfig
from protocon.methods.needs import Facts
from protocon.methods.protocon_config import ClusterSizes, ProtoConConfig, cluster_sizes
from protocon.settings.auto import largest_side, resolve_auto
from protocon.settings.config import (
    RunConfig,
    build_config,
    differences,
    flat_settings,
    to_yaml,
    validate,
)
from protocon.settings.recipe import merge, parse_yaml, recipe_names, recipe_text


def protocon_settings(config: RunConfig) -> ProtoConConfig:
    assert isinstance(config.method, ProtoConConfig)
    return config.method


def test_bare_key_finds_its_section() -> None:
    config = build_config(overrides=["alpha=0.7", "lr=0.1", "labels_per_class=3"])
    assert protocon_settings(config).alpha == 0.7
    assert config.optim.lr == 0.1
    assert config.data.labels_per_class == 3


def test_dotted_key_is_unambiguous() -> None:
    config = build_config(overrides=["optim.momentum=0.5", "method.threshold=0.7"])
    assert config.optim.momentum == 0.5
    assert protocon_settings(config).threshold == 0.7


@pytest.mark.parametrize("override", ["least_retention=0.3", "method.least_retention=0.3"])
def test_a_setting_of_an_earlier_version_is_known_by_its_present_name(override: str, tmp_path: Path) -> None:
    recipe = tmp_path / "old.yaml"
    recipe.write_text("method: {least_retention: 0.3}\n")
    old = {"method": {"least_retention": 0.3}}
    for config in (
        build_config(overrides=[override]),
        build_config(settings={"method": {"min_retention": 0.1}}, overrides=[override]),
        build_config(settings=old),
        build_config(recipe=str(recipe)),
        validate(old),
    ):
        assert protocon_settings(config).min_retention == 0.3
        assert "least_retention" not in to_yaml(config)
    assert protocon_settings(build_config(recipe=str(recipe), overrides=["min_retention=0.5"])).min_retention == 0.5
    with pytest.raises(ConfigError, match=r"least_retention is now called method\.min_retention, and both are given"):
        validate({"method": {"least_retention": 0.3, "min_retention": 0.3}})


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("alpa=0.7", "did you mean alpha"),
        ("method.treshold=0.7", "did you mean method.threshold"),
        ("alpha", "expected key=value"),
        ("alpha=high", "method.alpha|alpha"),
        ("alpha=1.5", "less than or equal to 1"),
    ],
)
def test_wrong_override_says_what_is_right(override: str, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        build_config(overrides=[override])


def test_unknown_names_are_suggested() -> None:
    with pytest.raises(ConfigError, match="did you mean fixmatch"):
        build_config(settings={"method_name": "fixmach"})
    with pytest.raises(ConfigError, match="did you mean digits"):
        build_config(settings={"data": {"name": "digit"}})
    with pytest.raises(ConfigError, match="did you mean paper-cifar10"):
        build_config(recipe="paper-cifar-10")
    with pytest.raises(ConfigError, match="did you mean optim"):
        validate({"optims": {}})
    with pytest.raises(ConfigError, match=r"did you mean optim\.weight_decay"):
        validate({"optim": {"weight_decai": 1}})


def test_setting_of_another_method_is_refused() -> None:
    with pytest.raises(ConfigError, match="alpha"):
        build_config(settings={"method_name": "fixmatch"}, overrides=["alpha=0.7"])


def test_recipe_settings_of_another_method_do_not_carry_over() -> None:
    config = build_config(recipe="paper-cifar10", settings={"method_name": "fixmatch"})
    assert isinstance(config.method, FixMatchConfig)
    assert config.network.encoder == "wrn-28-2"


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_is_valid_and_survives_yaml(name: str) -> None:
    config = build_config(recipe=name)
    assert validate(parse_yaml(to_yaml(config), name)) == config


def test_paper_recipe_has_the_papers_hyper_parameters() -> None:
    config = build_config(recipe="paper-cifar10")
    method = protocon_settings(config)
    assert (method.alpha, method.temperature, method.threshold) == (0.8, 0.1, 0.95)
    assert (method.neighbours, method.dual_rate, method.size_ratio) == (250, 20, 0.9)
    assert (method.lambda_u, method.lambda_p, method.lambda_c) == (1, 1, 1)
    assert (method.first_epoch, method.prototype_labelled, method.center) == ("observe", False, False)
    assert (config.optim.batch_size, config.optim.mu, config.optim.lr) == (64, 7, 0.03)
    assert config.optim.total_steps == 2**20
    imagenet = build_config(recipe="paper-imagenet")
    assert protocon_settings(imagenet).heads == 2
    assert protocon_settings(imagenet).threshold == 0.7
    assert imagenet.optim.mu == 5


def test_recipe_file_extends_a_recipe(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("extends: paper-cifar10\nmethod: {alpha: 0.6}\n")
    method = protocon_settings(build_config(recipe=str(file)))
    assert (method.alpha, method.neighbours) == (0.6, 250)


def test_override_beats_setting_beats_recipe(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("method: {alpha: 0.1, threshold: 0.2}\n")
    config = build_config(
        recipe=str(file), settings={"method": {"alpha": 0.3, "temperature": 0.4}}, overrides=["alpha=0.5"]
    )
    method = protocon_settings(config)
    assert (method.alpha, method.threshold, method.temperature) == (0.5, 0.2, 0.4)


@pytest.mark.parametrize("text", ["[1, 2]", "a: [", "1: 2", "just words"])
def test_broken_yaml_is_our_error(text: str) -> None:
    with pytest.raises(ConfigError):
        validate(parse_yaml(text, "file.yaml"))


def test_differences_name_each_changed_setting() -> None:
    old, new = build_config(), build_config(overrides=["alpha=0.7", "seed=3"])
    assert differences(old, new) == ["method.alpha: 0.8 → 0.7", "run.seed: 0 → 3"]
    assert differences(old, old) == []


def test_merge_leaves_its_arguments_alone() -> None:
    base = {"optim": {"lr": 1}}
    assert merge(base, {"optim": {"mu": 2}}) == {"optim": {"lr": 1, "mu": 2}}
    assert base == {"optim": {"lr": 1}}


def sizes_for(config: ProtoConConfig, *, samples: int, classes: int) -> ClusterSizes:
    """n, K, γ and λ as a run of so many samples gets them."""
    return cluster_sizes(config.settled(Facts(samples, classes), {}), samples=samples)


@pytest.mark.parametrize(
    ("samples", "classes"), [(30, 10), (100, 10), (1377, 10), (10_000, 40), (49_960, 10), (1_281_167, 1000)]
)
def test_auto_sizes_leave_clusters_to_every_class(samples: int, classes: int) -> None:
    sizes = sizes_for(ProtoConConfig(), samples=samples, classes=classes)
    assert classes <= sizes.clusters <= samples // 2
    assert sizes.gamma == pytest.approx(0.9 * sizes.neighbours)
    assert sizes.dual_rate == pytest.approx(min(20, 0.08 * sizes.clusters))


def test_paper_sizes() -> None:
    config = protocon_settings(build_config(recipe="paper-cifar10"))
    assert sizes_for(config, samples=50_000, classes=10).clusters == 200
    imagenet = protocon_settings(build_config(recipe="paper-imagenet"))
    for unlabelled in (1_281_167 - 2_562, 1_281_167 - 128_117):  # 0.2 and 10 % are labelled
        assert sizes_for(imagenet, samples=unlabelled, classes=1000).clusters == 4800
    assert sizes_for(config, samples=5_000, classes=10).clusters == 20  # a part of CIFAR has no room for 200
    with pytest.raises(ConfigError, match="neighbours is 250, but there are 100"):
        sizes_for(config, samples=100, classes=10)


def test_auto_fills_every_setting_with_a_reason() -> None:
    resolved = resolve_auto(build_config(), shape=(1, 16, 16), flip=False, unlabelled=1377, classes=10)
    left = {key for key, value in flat_settings(resolved.config).items() if value == "auto"}
    assert left == {"run.accelerator", "data.storage", "data.bad_files"}  # whoever reads files or starts a run decides
    unused = {"views.cached_weak", "views.cached_strong", "views.cached_mirror", "network.hidden"}
    unused |= {f"network.{name}" for name in ("components", "space", "feature_engine", "pooled_blocks")}
    unused |= {"network.second_look", "network.colour_shares"}
    asked = {key for key, value in flat_settings(build_config()).items() if value == "auto"}
    assert asked - left - unused - {"method.class_prior"} == asked & resolved.reasons.keys()
    assert resolved.config.views.flip is False
    assert resolved.reasons["network.encoder"].startswith("wrn-10-1")
    assert (resolved.steps_per_epoch, resolved.total_epochs) == (13, 100)
    assert resolve_auto(
        build_config(), shape=(640,), flip=False, unlabelled=1377, classes=10
    ).config.network.encoder == ("mlp-512")


def test_own_images_on_a_cpu_get_what_a_cpu_can_train() -> None:
    own, benchmark = ["data.name=folder", "frozen=false"], ["data.name=domainnet"]
    gpu = [*own, "run.accelerator=cuda"]
    assert [largest_side(build_config(overrides=o)) for o in (own, benchmark, gpu)] == [32, 224, 224]
    pretrained = ["data.name=folder", "network.encoder=resnet18", "network.weights=x.pth"]
    assert largest_side(build_config(overrides=pretrained)) == 224
    small = resolve_auto(build_config(overrides=own), shape=(3, 32, 32), flip=True, unlabelled=900, classes=3)
    usual = resolve_auto(build_config(overrides=gpu), shape=(3, 224, 224), flip=True, unlabelled=900, classes=3)
    assert (small.config.network.encoder, usual.config.network.encoder) == ("wrn-10-2", "resnet18")
    steps = [found.total_epochs * found.steps_per_epoch for found in (small, usual)]
    assert 3000 <= steps[0] < 3100
    assert steps[1] >= 2**14
    assert "--image-size" in small.reasons["data.image_size"]
    assert small.reasons["method.neighbours"].startswith("100 (n; K = 9 clusters")
    assert small.reasons["method.dual_rate"].startswith("0.72")


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("20m", 1200), ("2h", 7200), ("1h30m", 5400), ("0.5 h", 1800), ("5min", 300)]
)
def test_time_budgets_are_written_as_people_do(text: str, seconds: float) -> None:
    config = build_config(overrides=[f"optim.time_budget={text}"])
    assert config.optim.time_budget == seconds
    assert validate(parse_yaml(to_yaml(config), "x")) == config


@pytest.mark.parametrize("text", ["soon", "20 parsecs", "-3", "0", "m", "1h later"])
def test_other_time_budgets_are_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        build_config(overrides=[f"optim.time_budget={text}"])


def test_classes_of_a_benchmark_count_as_balanced_where_labels_were_drawn_per_class() -> None:
    for override, expected in (("labels_per_class=4", "dual"), ("labels_percent=10", "mean")):
        resolved = resolve_auto(
            build_config(overrides=[override]), shape=(3, 32, 32), flip=True, unlabelled=2240, classes=10
        )
        assert protocon_settings(resolved.config).alignment == expected
    own = build_config(overrides=["data.name=imagefolder", "labels_per_class=4", "frozen=false"])
    resolved = resolve_auto(own, shape=(3, 32, 32), flip=True, unlabelled=2240, classes=10)
    assert protocon_settings(resolved.config).alignment == "mean"  # of one's own images nobody knows
    assert protocon_settings(build_config(recipe="paper-cifar10")).alignment == "mean"


def test_a_resolved_setting_cannot_be_auto() -> None:
    for section, key in (("optim", "lr"), ("optim", "epochs"), ("network", "projection_dim"), ("run", "cross_check")):
        resolved = resolve_auto(build_config(), shape=(1, 16, 16), flip=False, unlabelled=1377, classes=10).config
        values = {**dict(getattr(resolved, section)), key: "auto"}
        with pytest.raises(ValidationError, match=key):
            type(getattr(resolved, section)).model_validate(values)


def test_embeddings_leave_no_setting_of_pixels_open() -> None:
    resolved = resolve_auto(build_config(), shape=(640,), flip=False, unlabelled=1377, classes=10).config
    left = {key for key, value in flat_settings(resolved).items() if value == "auto"}
    assert left == {"run.accelerator", "data.storage", "data.bad_files"}
    assert resolved.data.image_size is None
    assert validate(parse_yaml(to_yaml(resolved), "x")).data.size_asked is None


def test_total_steps_become_whole_passes() -> None:
    config = build_config(overrides=["total_steps=100", "batch_size=32", "mu=7"])
    resolved = resolve_auto(config, shape=(3, 32, 32), flip=True, unlabelled=2240, classes=10)
    assert (resolved.steps_per_epoch, resolved.total_epochs, resolved.config.optim.epochs) == (10, 10, 10)


@pytest.mark.parametrize("recipe", ["paper-cifar10", "paper-cifar100", "paper-mini-imagenet"])
@pytest.mark.parametrize("labels", [20, 40, 800])
def test_the_papers_200_clusters_do_not_depend_on_the_labels_left_out(recipe: str, labels: int) -> None:
    settings = protocon_settings(build_config(recipe=recipe))
    sizes = sizes_for(settings, samples=50_000 - labels, classes=10)
    assert (sizes.clusters, sizes.neighbours, sizes.gamma) == (200, 250, 225.0)
    assert settings.centroid_warmup == 20
    usual = settings.model_copy(update={"clusters": None})
    assert sizes_for(usual, samples=50_000 - labels, classes=10).clusters < 200


def test_domainnets_recipe_has_its_values_and_says_where_each_comes_from() -> None:
    config = build_config(recipe="paper-domainnet")
    settings = protocon_settings(config)
    assert (config.optim.weight_decay, config.optim.epochs, config.optim.mu) == (0.0003, 300, 5)  # FixMatch's, ImageNet
    assert (config.optim.batch_size, settings.heads) == (64, 1)  # stated nowhere
    assert (settings.threshold, settings.centroid_warmup, settings.neighbours) == (0.7, 70, 250)  # the paper's
    comment = " ".join(recipe_text("paper-domainnet").replace("\n#", "").split("extends:")[0].split())
    for source in ("From the paper's text:", "weight decay 0.0003 and 300 epochs are the defaults of FixMatch's"):
        assert source in comment
    assert "Stated nowhere, and ours: a batch of 64" in comment
    assert "one clustering head" in comment
