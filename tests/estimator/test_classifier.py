"""ProtoConClassifier: kinds of samples and labels, repeatability, scikit-learn's tools, files."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest
import torch
from PIL import Image
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine, make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from protocon import METHODS, ProtoConClassifier, load_run
from tests.engine.runs import small_run


def few_labels(y: np.ndarray, count: int) -> np.ndarray:
    """The first `count` labels of each class; −1 elsewhere."""
    known = np.full(len(y), -1)
    for label in np.unique(y):
        chosen = np.flatnonzero(y == label)[:count]
        known[chosen] = y[chosen]
    return known


@pytest.fixture(scope="module")
def blobs() -> tuple[np.ndarray, np.ndarray]:
    X, y = make_blobs(n_samples=90, centers=3, cluster_std=0.8, random_state=3)
    return X, y


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    found = load_digits()
    return found.images[:120], found.target[:120]


def test_unlabelled_samples_help(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On wine, from three labels a class; and nothing is left on the disk."""
    monkeypatch.chdir(tmp_path)
    X, y = load_wine(return_X_y=True)
    known = few_labels(y, 3)
    classifier = ProtoConClassifier().fit(X, known)
    labelled = known >= 0
    alone = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[labelled], y[labelled]).score(X, y)
    assert classifier.score(X, y) > max(alone, 0.9)
    assert np.mean(classifier.transduction_ == y) > max(alone, 0.9)
    assert (classifier.transduction_[labelled] == y[labelled]).all()
    assert classifier.label_distributions_.shape == (178, 3)
    assert np.allclose(classifier.label_distributions_.sum(1), 1)
    assert classifier.n_iter_ >= 20
    assert classifier.n_features_in_ == 13
    assert not list(tmp_path.iterdir())


def test_shifted_and_scaled_features_make_no_difference(blobs: tuple[np.ndarray, np.ndarray]) -> None:
    """A feature far from zero is as good as a centred one, and a constant one does no harm."""
    X, y = blobs
    known = few_labels(y, 2)
    moved = np.column_stack([X * [1e-3, 1e4] + [50.0, -1e6], np.full(len(X), 7.0)])
    assert ProtoConClassifier().fit(moved, known).score(moved, y) > 0.9
    fitted = ProtoConClassifier(epochs=3).fit(X, known)
    again = ProtoConClassifier(epochs=3).fit(X * 4.0 + 100.0, known)
    assert np.allclose(fitted.predict_proba(X), again.predict_proba(X * 4.0 + 100.0), atol=1e-3)


def test_a_seed_repeats_and_another_differs(blobs: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = blobs
    known = few_labels(y, 2)

    def fitted(state: Any) -> np.ndarray:
        torch.rand(3)  # what was drawn before makes no difference
        return ProtoConClassifier(epochs=3, random_state=state).fit(X, known).predict_proba(X)

    assert np.array_equal(fitted(1), fitted(1))
    assert np.array_equal(fitted(None), fitted(0))
    assert not np.array_equal(fitted(1), fitted(2))
    state = np.random.RandomState(0)
    assert not np.array_equal(fitted(state), fitted(state))  # a stream, as everywhere in scikit-learn


def test_torch_is_left_as_it_was(blobs: tuple[np.ndarray, np.ndarray]) -> None:
    before = torch.random.get_rng_state()
    torch.use_deterministic_algorithms(False)  # other tests of this process may have left it on
    ProtoConClassifier(epochs=1).fit(blobs[0], few_labels(blobs[1], 2))
    assert torch.equal(before, torch.random.get_rng_state())
    assert not torch.are_deterministic_algorithms_enabled()


def test_verbose_speaks_and_silence_is_the_default(
    blobs: tuple[np.ndarray, np.ndarray], capfd: pytest.CaptureFixture[str]
) -> None:
    X, known = blobs[0], few_labels(blobs[1], 2)
    ProtoConClassifier(epochs=1).fit(X, known)
    assert capfd.readouterr() == ("", "")
    ProtoConClassifier(epochs=1, verbose=True).fit(X, known)
    assert "epoch 1/1" in capfd.readouterr().err


@pytest.mark.parametrize(
    "unlabelled",
    [
        lambda y: y,
        lambda y: np.where(y < 0, np.nan, y),
        lambda y: [None if value < 0 else int(value) for value in y],
        lambda y: pd.array([pd.NA if value < 0 else value for value in y], dtype="Int64"),
    ],
    ids=["minus one", "NaN", "None", "pandas NA"],
)
def test_every_way_to_say_unlabelled(blobs: tuple[np.ndarray, np.ndarray], unlabelled: Any) -> None:
    X, y = blobs
    known = few_labels(y, 2)
    classifier = ProtoConClassifier(epochs=2).fit(X, unlabelled(known))
    assert classifier.classes_.tolist() == [0, 1, 2]
    expected = ProtoConClassifier(epochs=2).fit(X, known)
    assert np.array_equal(classifier.predict_proba(X), expected.predict_proba(X))


@pytest.mark.parametrize(
    "missing", [None, "", float("nan"), -1, "text"], ids=["None", "empty", "NaN", "−1", "−1 as text"]
)
def test_text_labels(blobs: tuple[np.ndarray, np.ndarray], missing: Any) -> None:
    X, y = blobs
    names = np.array(["ant", "bee", "cat"])
    known: Any = [missing if code < 0 else str(names[code]) for code in few_labels(y, 2)]
    if missing == "text":
        known = np.array([-1 if code < 0 else names[code] for code in few_labels(y, 2)])
        assert known.dtype.kind == "U"
    classifier = ProtoConClassifier(epochs=20).fit(X, known)
    assert classifier.classes_.tolist() == ["ant", "bee", "cat"]
    assert np.mean(classifier.predict(X) == names[y]) > 0.8
    assert np.mean(classifier.transduction_ == names[y]) > 0.8
    assert classifier.run_.class_names == ("ant", "bee", "cat")


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([-1] * 6, "no labels"),
        ([3] * 6, "only one class"),
        (["a", 1, "b", 2, "a", "b"], "text and of numbers"),
        ([0.5, 1.5, 2.5, 0.25, 0.1, 0.7], "continuous"),
        ([0, 1, 0], "inconsistent numbers of samples"),
        (None, "requires y"),
    ],
)
def test_labels_that_make_no_sense(y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ProtoConClassifier(epochs=1).fit(np.arange(12.0).reshape(6, 2), np.array(y, dtype=object) if y else y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"method": "protocn"}, "unknown method"),
        ({"alpha": 2.0}, "alpha"),
        ({"method": "fixmatch", "alpha": 0.5}, "alpha"),
        ({"epochs": -1}, "epochs"),
        ({"settings": {"muu": 3}}, "did you mean mu"),
        ({"settings": {"data": {"root": "x"}}}, "does nothing here"),
        ({"settings": ["mu"]}, "expected a dict"),
        ({"random_state": -3}, "random_state"),
        ({"encoder": "wrn-10-1"}, "embeddings"),
        ({"time_budget": "soon"}, "length of time"),
    ],
)
def test_parameters_are_checked_in_fit(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ProtoConClassifier(**parameters).fit(np.arange(12.0).reshape(6, 2), [0, 1, 0, 1, -1, -1])


def test_settings_reach_the_engine(blobs: tuple[np.ndarray, np.ndarray]) -> None:
    classifier = ProtoConClassifier(
        alpha=0.5,
        threshold=np.float64(0.7),
        neighbours=9,
        epochs=2,
        batch_size=8,
        lr=0.02,
        encoder="none",
        settings={"mu": 3, "views.strong_noise": 0.1, "optim": {"momentum": 0.5}},
        random_state=4,
    ).fit(blobs[0], few_labels(blobs[1], 2))
    config = classifier.run_.config
    method = config.method.model_dump()
    assert (method["alpha"], method["threshold"], method["neighbours"]) == (0.5, 0.7, 9)
    optim = config.optim
    assert (optim.epochs, optim.batch_size, optim.lr, optim.mu, optim.momentum) == (2, 8, 0.02, 3, 0.5)
    assert (config.network.encoder, config.views.strong_noise, config.run.seed) == ("none", 0.1, 4)
    assert classifier.n_iter_ == 2


@pytest.mark.parametrize("method", sorted(name for name in METHODS if METHODS[name].uses_labels))
def test_every_method(method: str, blobs: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = blobs
    classifier = ProtoConClassifier(method, epochs=25).fit(X, few_labels(y, 4))
    assert classifier.score(X, y) > 0.7
    projections = classifier.transform(X)
    assert np.allclose(np.linalg.norm(projections, axis=1), 1)
    assert len(classifier.get_feature_names_out()) == projections.shape[1]


@pytest.mark.parametrize(("rows", "features"), [(2, 1), (2, 3), (3, 2), (5, 1)])
def test_tiny_sets(rows: int, features: int) -> None:
    X = np.arange(float(rows * features)).reshape(rows, features)
    classifier = ProtoConClassifier().fit(X, np.arange(rows) % 2)
    assert classifier.predict(X).shape == (rows,)
    labels = [0, 1] + [-1] * (rows - 2)
    if rows > 3:
        assert set(ProtoConClassifier().fit(X, labels).transduction_) <= {0, 1}


def test_one_unlabelled_sample_is_enough() -> None:
    X = np.array([[0.0], [0.2], [4.0], [4.2], [4.1]])
    classifier = ProtoConClassifier().fit(X, [0, 0, 1, 1, -1])
    assert classifier.transduction_.tolist() == [0, 0, 1, 1, 1]
    assert classifier.run_.config.data.include_labelled  # else there would be nothing to cluster


def test_images_in_every_layout_give_the_same_model(digits: tuple[np.ndarray, np.ndarray]) -> None:
    images, y = digits
    levels = np.rint(images * 15.9375).astype(np.uint8)
    known = few_labels(y, 3)

    def fitted(X: Any) -> ProtoConClassifier:
        return ProtoConClassifier("fixmatch", epochs=1, image_size=8, settings={"views.flip": False}).fit(X, known)

    first = fitted(levels)
    assert first.run_.shape == (1, 8, 8)
    assert first.n_features_in_ == 64
    expected = first.predict_proba(levels)
    for other in (levels[..., None], levels[:, None], levels.astype(np.int64), list(levels), levels / 255.0):
        classifier = fitted(other)
        assert np.allclose(classifier.predict_proba(other), expected, atol=1e-6)
    with pytest.raises(ValueError, match="expected 0 to 1"):
        classifier.predict(levels.astype(float))  # it was fitted on pixels from 0 to 1
    with pytest.raises(ValueError, match="fitted on images"):
        first.predict(levels.reshape(len(levels), -1))


def test_colour_images_of_any_shape() -> None:
    red, blue = np.zeros((12, 20, 17, 3), dtype=np.uint8), np.zeros((12, 20, 17, 3), dtype=np.uint8)
    noise = np.random.default_rng(0).integers(0, 60, (24, 20, 17, 3), dtype=np.uint8)
    red[..., 0] += 180
    blue[..., 2] += 180
    X = np.concatenate([red, blue]) + noise
    y = np.array([0] * 12 + [1] * 12)
    classifier = ProtoConClassifier(epochs=12, image_size=8, settings={"views.operations": 0}).fit(X, few_labels(y, 3))
    assert classifier.run_.shape == (3, 8, 8)
    assert classifier.score(X, y) == 1.0
    assert classifier.score(X.transpose(0, 3, 1, 2), y) == 1.0
    with pytest.raises(ValueError, match="1 channels"):
        classifier.predict(X[..., 0])


def test_image_files(tmp_path: Path, digits: tuple[np.ndarray, np.ndarray]) -> None:
    images, y = digits
    paths = []
    for number, image in enumerate(images):
        paths.append(tmp_path / f"{number}.png")
        Image.fromarray(np.rint(image * 15.9375).astype(np.uint8)).save(paths[-1])
    known = few_labels(y, 3)
    settings = {"grey": True, "views.flip": False}
    classifier = ProtoConClassifier("fixmatch", epochs=1, image_size=8, settings=settings).fit(paths, known)
    assert classifier.run_.shape == (1, 8, 8)
    levels = np.rint(images * 15.9375).astype(np.uint8)
    as_arrays = ProtoConClassifier("fixmatch", epochs=1, image_size=8, settings={"views.flip": False}).fit(
        levels, known
    )
    assert np.allclose(classifier.predict_proba(paths), as_arrays.predict_proba(levels), atol=1e-6)
    assert np.allclose(classifier.predict_proba([str(p) for p in paths[:3]]), classifier.predict_proba(levels[:3]))
    assert len(classifier.predict(pd.Series([str(paths[0])] * 2))) == 2  # a path may come twice
    (tmp_path / "bad.png").write_text("no image")
    for wrong in (["nowhere.png"], [str(tmp_path / "bad.png")]):
        with pytest.raises(ValueError, match=Path(wrong[0]).name):
            classifier.predict(wrong)
    with pytest.raises(ValueError, match=r"bad\.png"):
        ProtoConClassifier().fit([*paths[:5], tmp_path / "bad.png"], [0, 1, 0, 1, -1, -1])


def test_score_counts_labelled_rows_only(blobs: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = blobs
    classifier = ProtoConClassifier(epochs=10).fit(X, few_labels(y, 3))
    some = np.where(np.arange(len(y)) % 2, y, -1)
    assert classifier.score(X, some) == np.mean(classifier.predict(X)[1::2] == y[1::2])
    with pytest.raises(ValueError, match="no accuracy"):
        classifier.score(X, np.full(len(y), -1))


def test_pipeline_grid_search_clone_and_pickle(blobs: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = blobs
    pipeline = make_pipeline(StandardScaler(), ProtoConClassifier(epochs=4))
    search = GridSearchCV(pipeline, {"protoconclassifier__alpha": [0.5, 0.9]}, cv=2).fit(X, few_labels(y, 6))
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    best = search.best_estimator_[-1]
    assert best.alpha == search.best_params_["protoconclassifier__alpha"]
    assert best.run_.config.method.model_dump()["alpha"] == best.alpha
    copy = clone(best)
    assert copy.get_params() == best.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(X)
    restored = pickle.loads(pickle.dumps(search.best_estimator_))
    assert np.array_equal(restored.predict_proba(X), search.predict_proba(X))


@pytest.mark.parametrize("names", [("ant", "bee", "cat"), (2, 3, 5), (1.0, 2.0, 3.0)])
def test_save_and_load(blobs: tuple[np.ndarray, np.ndarray], tmp_path: Path, names: tuple[Any, ...]) -> None:
    X, y = blobs
    labels = np.array(names)[y]
    frame = pd.DataFrame(X + 1000.0, columns=["width", "height"])
    classifier = ProtoConClassifier("simmatch", epochs=3, settings={"mu": 3}, random_state=5).fit(frame, labels)
    file = tmp_path / "model.safetensors"
    classifier.save(file)
    loaded = ProtoConClassifier.load(file)
    assert np.array_equal(loaded.predict_proba(frame), classifier.predict_proba(frame))
    assert np.array_equal(loaded.transform(frame), classifier.transform(frame))
    assert np.array_equal(loaded.transduction_, classifier.transduction_)
    assert loaded.classes_.dtype == classifier.classes_.dtype
    assert loaded.get_params() == classifier.get_params()
    assert (loaded.n_iter_, loaded.feature_names_in_.tolist()) == (3, ["width", "height"])
    run = load_run(file)
    rows = torch.from_numpy(frame.to_numpy(dtype=np.float32, copy=True))
    assert np.allclose(run.predict_proba(rows).numpy(), classifier.predict_proba(frame), atol=1e-4)
    assert run.class_names == tuple(str(name) for name in np.array(names))


def test_load_takes_a_run_folder(tmp_path: Path) -> None:
    result = small_run(tmp_path, "epochs=1", method="supervised")
    classifier = ProtoConClassifier.load(result["run"])
    images = np.rint(load_digits().images[:20] * 15.9375).astype(np.uint8)
    expected = load_run(result["run"]).predict_proba(torch.from_numpy(images[:, None]))
    assert np.allclose(classifier.predict_proba(images), expected.numpy(), atol=1e-6)
    assert classifier.classes_.tolist() == list("0123456789")
    assert classifier.get_params()["method"] == "supervised"


def test_a_damaged_file_is_refused(blobs: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    ProtoConClassifier(epochs=1).fit(blobs[0], blobs[1]).save(file)
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(Exception, match="damaged"):
        ProtoConClassifier.load(file)


def test_time_budget_sets_the_epochs(blobs: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = blobs
    short = ProtoConClassifier("fixmatch", time_budget=4, settings={"views.strong_noise": 0.2}).fit(X, few_labels(y, 3))
    assert short.n_iter_ >= 10
    assert short.run_.config.optim.epochs == short.n_iter_
