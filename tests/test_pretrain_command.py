"""`protocon pretrain`: from a folder without labels to an encoder that other commands take; ImageNet's recipes."""

import json
from pathlib import Path

import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file

from protocon.engine.loop.trainer import build_trainer
from protocon.engine.planning.preview import describe_plan
from protocon.engine.run import fit
from protocon.engine.setup.fabric import build_fabric
from protocon.engine.setup.session import prepare
from protocon.methods import METHODS
from protocon.settings.config import RunConfig, build_config, to_yaml
from protocon.settings.recipe import recipe_names
from tests.commands import run_command
from tests.engine.layouts import imagenet, save_class
from tests.methods.test_toys import steps

QUICK = (
    *("--encoder", "wrn-10-1", "--image-size", "16", "--epochs", "2", "--json"),
    *("optim.batch_size=12", "tensorboard=false", "projection_dim=8"),
)


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images of two kinds, of which nothing says which is which."""
    root = tmp_path_factory.mktemp("photos")
    save_class(root, 0, 12)
    save_class(root, 1, 12, first=12)
    return root


def test_an_encoder_from_a_folder_without_labels_is_what_other_commands_take(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ("--out", str(tmp_path))
    done = run_command(monkeypatch, capsys, "pretrain", str(photos), *QUICK, *out)
    assert done.code == 0, done.err
    assert "24 images without labels" in done.err
    run = Path(done.json["run"])
    assert run.name.endswith("-simclr-seed0")
    assert "knn_accuracy" not in done.json  # nobody knows the classes
    assert done.json["feature_spread"] > 0
    assert "Map of the features" in (run / "report.html").read_text()
    assert len(json.loads((run / "feature_map.json").read_text())["places"]) == 24

    labels = tmp_path / "labels.csv"
    labels.write_text("file,label\n" + "".join(f"{n:03}.png,{'red' if n < 12 else 'blue'}\n" for n in range(6, 18)))
    train = ("train", str(photos), "--labels", str(labels), "--init", str(run), *out, "--epochs", "1", "report=false")
    small = ("optim.batch_size=4", "--json", "tensorboard=false", "run.cross_check=0")
    for extra in (("--method", "supervised", "--image-size", "16"), ("--frozen", f"run.cache={tmp_path / 'cache'}")):
        done = run_command(monkeypatch, capsys, *train, *small, *extra)
        assert done.code == 0, done.err
        config = json.loads(json.dumps(build_config(settings=_resolved(done.json["run"])).model_dump(mode="json")))
        assert (config["network"]["encoder"], config["data"]["image_size"]) == ("wrn-10-1", 16)
    saved, used = load_file(run / "model.safetensors"), load_file(Path(done.json["run"]) / "model.safetensors")
    assert torch.equal(used["encoder.backbone.stem.weight"], saved["encoder.stem.weight"])
    assert torch.equal(used["mean"], saved["mean"])


def _resolved(run: str) -> dict[str, object]:
    import yaml

    content: dict[str, object] = yaml.safe_load((Path(run) / "resolved.yaml").read_text())
    return content


def test_a_method_with_labels_is_refused(
    photos: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done = run_command(monkeypatch, capsys, "pretrain", str(photos), "--method", "fixmatch")
    assert done.code == 1
    assert "simclr, moco, swav, dino" in done.err


def test_a_dry_run_tells_memory_and_time(
    photos: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done = run_command(monkeypatch, capsys, "pretrain", str(photos), "--method", "swav", "--dry-run", *QUICK)
    assert done.code == 0, done.err
    assert done.json["memory"]["total"].endswith("MiB")
    assert done.json["time"].startswith(("about", "roughly"))
    assert done.json["sizes"]["prototypes"] == 128


RECIPES = [name for name in recipe_names() if name.startswith("imagenet-")]


def of_recipe(name: str, root: Path, *overrides: str) -> RunConfig:
    """A recipe on a tree of ImageNet's layout: ResNet-50 and the method's settings, with small images and batches.

    Its numbers of prototypes, queued keys and classes per step are lowered to what two classes and a few images allow.
    """
    small = ["image_size=32", "batch_size=4", "mu=1", "epochs=1", "total_steps=null", "workers=0", "accelerator=cpu"]
    fields = METHODS[build_config(recipe=name).method_name].Config.model_fields
    lowered = {
        "prototypes": 64,
        "queue_size": 8,
        "queue_from_epoch": 0,
        "small_size": 16,
        "small_crops": 1,
        "support_classes": 2,
        "head_layers": 0,
    }
    small += [f"method.{key}={value}" for key, value in lowered.items() if key in fields]
    if METHODS[build_config(recipe=name).method_name].uses_labels:
        small += ["labels_percent=null", "labels_per_class=2"]
    return build_config(
        recipe=name, settings={"data": {"root": str(root)}}, overrides=[*small, "projection_dim=16", *overrides]
    )


@pytest.mark.parametrize("name", RECIPES)
def test_imagenets_recipes_run_two_steps_with_resnet50(name: str, tmp_path: Path) -> None:
    imagenet(tmp_path)
    config = of_recipe(name, tmp_path)
    assert config.network.encoder == "resnet50"
    trainer = build_trainer(prepare(config), build_fabric(config))
    terms = list(steps(trainer, 2))
    assert all(bool(value.isfinite()) for step in terms for value in step.values())
    assert len(terms) == 2


def test_fine_tuning_by_simclrs_recipe_keeps_the_first_layer_of_the_head_on_resnet50(tmp_path: Path) -> None:
    imagenet(tmp_path / "data")
    one_step = ("epochs=auto", "total_steps=1", "report=false", "tensorboard=false")
    pretraining = of_recipe("imagenet-simclr", tmp_path / "data", *one_step)
    fit(pretraining, out=tmp_path, name="encoder", console=Console(quiet=True))
    weights = tmp_path / "encoder" / "model.safetensors"
    config = of_recipe(
        "imagenet-finetune-simclr", tmp_path / "data", "method.head_layers=1", f"network.weights={weights}"
    )
    assert build_config(recipe="imagenet-finetune-simclr").method.model_dump()["head_layers"] == 1
    trainer = build_trainer(prepare(config), build_fabric(config))
    kept = trainer.state()["network"]["kept.0.weight"]
    assert kept.shape[1] == 2048
    assert torch.equal(kept, load_file(weights)["projector.0.weight"])
    assert len(list(steps(trainer, 2))) == 2


@pytest.mark.parametrize("name", RECIPES)
def test_a_dry_run_of_imagenets_recipes_tells_memory_and_time(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    imagenet(tmp_path)
    settings = tmp_path / "small.yaml"
    settings.write_text(to_yaml(of_recipe(name, tmp_path)))
    command = "train" if METHODS[build_config(recipe=name).method_name].uses_labels else "pretrain"
    done = run_command(monkeypatch, capsys, command, "--recipe", str(settings), "--dry-run", "--json")
    assert done.code == 0, done.err
    assert done.json["memory"]["total"].endswith("MiB")
    assert done.json["time"].startswith(("about", "roughly"))


def test_imagenets_recipes_have_the_papers_settings() -> None:
    configs = {name.removeprefix("imagenet-"): build_config(recipe=name) for name in RECIPES}
    assert {"simclr", "moco", "swav", "swav-256", "dino", "paws", "mpl"} <= configs.keys()
    rates = {name: config.optim.lr for name, config in configs.items()}
    assert rates["simclr"] == pytest.approx(0.075 * 4096**0.5)
    assert rates["dino"] == pytest.approx(5e-4 * 1024 / 256)
    assert rates["mpl"] == pytest.approx(0.1 * 1024 / 256)
    assert configs["mpl"].method.model_dump()["teacher_lr"] == pytest.approx(0.15 * 1024 / 256)
    assert rates["finetune-simclr"] == pytest.approx(0.005 * 1024**0.5)
    swav = configs["swav-256"].method.model_dump()
    assert (swav["prototypes"], swav["queue_size"], swav["fixed_steps"]) == (3000, 3840, 5005)
    paws = configs["paws"]
    assert paws.optim.lr * paws.method.model_dump()["first_lr"] == pytest.approx(0.3)
    assert paws.optim.mu * int(paws.optim.batch_size) == 4096
    moco = configs["moco"].method.model_dump()
    assert (moco["queue_size"], moco["momentum"], moco["temperature"]) == (65536, 0.999, 0.2)


def test_the_plan_of_an_imagenet_recipe_counts_crops_by_their_area(tmp_path: Path) -> None:
    imagenet(tmp_path)
    plans = [describe_plan(of_recipe("imagenet-swav", tmp_path, f"small_crops={n}"), timed=False) for n in (0, 8)]
    step = [float(plan["memory"]["activations of a step (estimate)"].split()[0]) for plan in plans]
    assert step[1] / step[0] == pytest.approx((2 + 8 / 4) / 2, rel=0.01)  # small crops of half the side
