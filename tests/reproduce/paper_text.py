"""Sentences of the paper that state a hyper-parameter, with their place, and the settings that follow from them."""

from dataclasses import dataclass
from typing import Any

ALL = "*"
LARGE = ("table2/*", "table3/*")
DETAILS = "section 4.1, Implementation Details"
CLUSTERS = "section 3.1, Number of Clusters"


@dataclass(frozen=True)
class Stated:
    """A statement and the cells that it is about."""

    place: str
    words: str
    """As the paper has them, without LaTeX's commands."""
    settings: dict[str, Any]
    """`section.key` and value."""
    cells: tuple[str, ...] = (ALL,)
    """Patterns of cells' names, any of them."""
    method: str | None = None
    """Only cells of this method."""
    but: tuple[str, ...] = ()
    """Cells for which another statement says otherwise."""


FIXMATCH = "FixMatch's code, google-research/fixmatch, imagenet/training.py"
FIXMATCH_TOO = "FixMatch's code, google-research/fixmatch, imagenet/fixmatch.py"
"""The paper follows "the same hyperparameters as in" FixMatch on ImageNet and DomainNet."""
_LARGE_300 = ("table2/*", "table3/*/protocon", "table3/*/fixmatch", "table3/*/debiaspl")
_FAMILY = tuple(f"{table}/*/{row}" for table in ("table2", "table3") for row in ("fixmatch", "fixmatch-da", "debiaspl"))

_OTHER_N = ("moderate/*", "ablations/*/n-*")
_SMALL = ("table1/*", "moderate/*", "ablations/*")

STATED = (
    Stated(DETAILS, "WideResent-28-2(28-8)", {"network.encoder": "wrn-28-2"}, ("*/cifar10-*",)),
    Stated(DETAILS, "WideResent-28-2(28-8)", {"network.encoder": "wrn-28-8"}, ("*/cifar100-*",)),
    Stated(DETAILS, "embedding dimension d=64", {"network.projection_dim": 64}, ("*/cifar10*",)),
    Stated(DETAILS, "a momentum of 0.9", {"optim.momentum": 0.9, "optim.optimizer": "sgd"}),
    Stated(DETAILS, "weight decay of 0.0005(0.001)", {"optim.weight_decay": 0.0005}, ("*/cifar10-*",)),
    Stated(DETAILS, "weight decay of 0.0005(0.001)", {"optim.weight_decay": 0.001}, ("*/cifar100-*",)),
    Stated(DETAILS, "a batch size of 64 and mu=7", {"optim.batch_size": 64, "optim.mu": 7}, _SMALL),
    Stated(DETAILS, "We set the threshold tau=0.95", {"method.threshold": 0.95}, _SMALL),
    Stated(DETAILS, "train our models for 1024 epochs", {"optim.total_steps": 1024 * 1024}, _SMALL),
    Stated(DETAILS, "a learning rate of 0.03", {"optim.lr": 0.03}),
    Stated(DETAILS, "RandAugment for strong ones", {"views.strong": "randaugment"}, ("*/mini-imagenet*",)),
    Stated(
        DETAILS,
        "a Resnet-50 encoder and d=128, mu=5",
        {"network.encoder": "resnet50", "network.projection_dim": 128, "optim.mu": 5},
        LARGE,
    ),
    Stated(DETAILS, "and tau=0.7", {"method.threshold": 0.7}, LARGE),
    Stated(DETAILS, "SimCLR augmentations for the strong view", {"views.strong": "simclr"}, LARGE),
    Stated(DETAILS, "we set n to 250", {"method.neighbours": 250}, method="protocon", but=_OTHER_N),
    Stated(DETAILS, "dual learning rate lambda = 20", {"method.dual_rate": 20}, method="protocon"),
    Stated(DETAILS, "mixing ratio alpha=0.8", {"method.alpha": 0.8}, method="protocon", but=("*/alpha-*",)),
    Stated(DETAILS, "and temperature T=0.1", {"method.temperature": 0.1}, method="protocon"),
    Stated(
        DETAILS,
        "corresponding to K=200 for CIFARs, and Mini-ImageNet",
        {"method.clusters": 200},
        ("table1/*", "ablations/*"),
        "protocon",
        but=("*/n-*",),
    ),
    Stated(DETAILS, "and 4800 for ImageNet", {"method.clusters": 4800}, ("table3/*",), "protocon"),
    Stated(
        "section 3, Self-supervised Loss, Eq. 12, sharper as the text says",
        "SM(q^w / 5T), SM(q^s / T)",
        {"method.sharpening": 5.0},
        method="protocon",
    ),
    Stated(
        CLUSTERS,
        "K can be simply calculated as K=N/n",
        {"method.clusters": 2000},
        ("moderate/*",),
        "protocon",
    ),
    Stated(CLUSTERS, "we fix gamma=0.9n", {"method.size_ratio": 0.9}, method="protocon"),
    Stated(
        "section 3.1, Multi-head Clustering",
        "for large datasets e.g. ImageNet … dual heads",
        {"method.heads": 2},
        ("table3/*",),
        "protocon",
    ),
    Stated(
        "section 3.1, Multi-head Clustering",
        "for smaller datasets, a single head is sufficient",
        {"method.heads": 1},
        _SMALL,
        "protocon",
    ),
    Stated("section 3, Final Objective", "fixing for all lambda = 1", {"method.lambda_u": 1.0}, method="protocon"),
    Stated(
        "section 3, Final Objective",
        "fixing for all lambda = 1",
        {"method.lambda_p": 1.0, "method.lambda_c": 1.0},
        method="protocon",
        but=("*/no-*",),
    ),
    Stated("Algorithm 1", "apply losses (except in first epoch)", {"method.first_epoch": "observe"}, method="protocon"),
    Stated(
        "section 3, Refining Pseudo-labels, footnote",
        "a running average of p^w during training",
        {"method.alignment": "mean"},
        method="protocon",
    ),
    Stated(
        "section 4.3, Ablations",
        "d=64 for CIFARs and 128 for all others",
        {"network.projection_dim": 128},
        ("*/mini-imagenet*",),
    ),
    Stated(
        "appendix A, Mini-batch updates vs Epoch updates",
        "20 epochs of warmup are sufficient",
        {"method.centroid_warmup": 20},
        _SMALL,
        "protocon",
    ),
    Stated(
        "appendix A, Mini-batch updates vs Epoch updates",
        "we increase the warmup period to 70 epochs",
        {"method.centroid_warmup": 70},
        LARGE,
        "protocon",
    ),
    Stated(
        "appendix C, Moderate-label Regime",
        "n=25 instead of n=250",
        {"method.neighbours": 25},
        ("moderate/*",),
        "protocon",
    ),
    Stated(
        "appendix C, Moderate-label Regime",
        "25, and 40 images per class",
        {"data.labels_per_class": 25},
        ("moderate/*-2500/*",),
    ),
    Stated(
        "appendix C, Moderate-label Regime",
        "25, and 40 images per class",
        {"data.labels_per_class": 40},
        ("moderate/*-4000/*",),
    ),
    Stated("section 4.1, Datasets", "84x84 each", {"data.image_size": 84}, ("*/mini-imagenet-*",)),
    Stated(
        "section 4.1, Datasets",
        "splits for 4 and 10 labeled images per class",
        {"data.labels_per_class": 4},
        ("table1/mini-imagenet-400/*",),
    ),
    Stated(
        "section 4.1, Datasets",
        "splits for 4 and 10 labeled images per class",
        {"data.labels_per_class": 10},
        ("table1/mini-imagenet-1000/*",),
    ),
    Stated("Table 2, caption", "2, 4, and 8 labels per class", {"data.labels_per_class": 2}, ("table2/*-690/*",)),
    Stated("Table 2, caption", "2, 4, and 8 labels per class", {"data.labels_per_class": 4}, ("table2/*-1380/*",)),
    Stated("Table 2, caption", "2, 4, and 8 labels per class", {"data.labels_per_class": 8}, ("table2/*-2760/*",)),
    Stated("section 4.1, Datasets", "Clipart and Sketch domains", {"data.domain": "clipart"}, ("table2/clipart-*",)),
    Stated("section 4.1, Datasets", "Clipart and Sketch domains", {"data.domain": "sketch"}, ("table2/sketch-*",)),
    Stated("Table 3, columns", "0.2% 1% 10%", {"data.labels_percent": 0.2}, ("table3/imagenet-0.2/*",)),
    Stated("Table 3, columns", "0.2% 1% 10%", {"data.labels_percent": 1.0}, ("table3/imagenet-1/*",)),
    Stated("Table 3, columns", "0.2% 1% 10%", {"data.labels_percent": 10.0}, ("table3/imagenet-10/*",)),
    Stated(
        "Table 3, Epochs",
        "ProtoCon 300",
        {"optim.epochs": 300},
        ("table3/*/protocon", "table3/*/fixmatch", "table3/*/debiaspl"),
    ),
    Stated("Table 3, Epochs", "FMatch + DA 300", {"optim.epochs": 300}, ("table3/*/fixmatch-da",)),
    Stated("Table 3, Epochs", "Supervised 300", {"optim.epochs": 300}, ("table3/*/supervised",)),
    Stated("Table 3, Epochs", "850", {"optim.epochs": 50}, ("table3/*-eman",)),  # after 800 of MoCo
    Stated(FIXMATCH, "'weight_decay': 0.0003", {"optim.weight_decay": 0.0003}, LARGE),
    Stated(FIXMATCH, "'num_epochs': 300", {"optim.epochs": 300}, _LARGE_300),
    Stated(FIXMATCH_TOO, "'uratio': 5", {"optim.mu": 5}, LARGE),
    Stated(FIXMATCH_TOO, "'wu': 10.0", {"method.lambda_u": 10.0}, _FAMILY),
    Stated(FIXMATCH_TOO, "'confidence': 0.7", {"method.threshold": 0.7}, LARGE),
    Stated("Table 3, Epochs", "CoMatch 400", {"optim.epochs": 400}, ("table3/*/comatch",)),
    Stated(
        "section 4.1, Baselines",
        "Exponential Moving Average Normalisation",
        {"method.teacher": "eman"},
        ("table3/*-eman",),
    ),
    Stated("Table 5, Losses", "-L_c", {"method.lambda_c": 0, "method.lambda_p": 1}, ("ablations/*/no-lc",)),
    Stated("Table 5, Losses", "-L_p", {"method.lambda_c": 1, "method.lambda_p": 0}, ("ablations/*/no-lp",)),
    Stated("Table 5, Losses", "-(L_c, L_p)", {"method.lambda_c": 0, "method.lambda_p": 0}, ("ablations/*/no-lc-lp",)),
    Stated(
        "Table 5, Cluster size",
        "50 250 500 1000",
        {"method.neighbours": 50, "method.clusters": 1000},
        ("ablations/*/n-50",),
    ),
    Stated(
        "Table 5, Cluster size",
        "50 250 500 1000",
        {"method.neighbours": 500, "method.clusters": 100},
        ("ablations/*/n-500",),
    ),
    Stated(
        "Table 5, Cluster size",
        "50 250 500 1000",
        {"method.neighbours": 1000, "method.clusters": 50},
        ("ablations/*/n-1000",),
    ),
    Stated("Table 5, Refinement Ratio", "0.5 0.7 0.8 0.9", {"method.alpha": 0.5}, ("ablations/*/alpha-0.5",)),
    Stated("Table 5, Refinement Ratio", "0.5 0.7 0.8 0.9", {"method.alpha": 0.7}, ("ablations/*/alpha-0.7",)),
    Stated("Table 5, Refinement Ratio", "0.5 0.7 0.8 0.9", {"method.alpha": 0.9}, ("ablations/*/alpha-0.9",)),
    Stated("Table 5, caption", "CIFAR-10 (80)", {"data.labels_per_class": 8, "data.name": "cifar10"}, ("ablations/*",)),
)
