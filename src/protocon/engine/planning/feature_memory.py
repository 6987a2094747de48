"""What a frozen encoder's features take: how many are still to be computed, and how much memory that needs."""

from protocon.data.imageset import DataBundle
from protocon.engine.setup.encode import FeatureInputs
from protocon.engine.setup.inputs import Inputs
from protocon.engine.setup.view_factory import image_views
from protocon.features.extract import FrozenEncoder, feature_table
from protocon.features.key import default_cache
from protocon.networks.component_space import FITTED_TOGETHER
from protocon.settings.resolved_config import ResolvedConfig

COMPUTING = 355 * 2**20
"""onnxruntime with a few batches in the encoder, and the report's libraries: as measured."""
USING = 15 * 2**20
"""The same where all features are in the cache."""
_BLOCK_BYTES = 16
"""Per feature of the views that become components together, in single precision, with temporary copies."""


def missing_features(config: ResolvedConfig, bundle: DataBundle, encoder: FrozenEncoder) -> int:
    """How many views of training images are not in the cache, about: a chunk that lacks some counts as a whole.

    Args:
        config: without `auto`.
        bundle: the data.
        encoder: the frozen one.
    """
    views = image_views(config, shape=bundle.train.shape)
    cache = (config.run.cache or default_cache()).expanduser()
    table = feature_table(bundle.train, encoder, views, seed=0, cache=cache, precision="half")
    return len(bundle.train) * len(views) * len(table.missing()) // max(1, table.chunks)


def feature_memory(config: ResolvedConfig, bundle: DataBundle, inputs: Inputs) -> dict[str, int]:
    """Bytes of features while they are computed, mapped into memory, and made into components; by what it is for.

    Args:
        config: without `auto`.
        bundle: the data.
        inputs: of the run; empty ones will do.
    """
    if not isinstance(inputs, FeatureInputs):
        return {}
    features = inputs.cached.tensor
    mapped = features.numel() * features.element_size()
    together = _BLOCK_BYTES * features[:FITTED_TOGETHER].numel()
    libraries = COMPUTING if missing_features(config, bundle, inputs.encoder) else USING
    return {"features, their space, and the report (estimate)": libraries + mapped + together}
