"""What a run folder's files are called, and their columns: one place for all that write or read them."""

CONFIG = "config.yaml"
"""The settings as they were asked for, with `auto`."""
RESOLVED = "resolved.yaml"
"""The settings without `auto`: what a run is resumed with."""
ENVIRONMENT = "env.json"
"""Versions, machine and command."""
SPLIT = "split.json"
"""Which images are labelled."""
DATA = "data.json"
"""Every file of the data, used or skipped, and what `auto` chose."""
CHECKPOINTS = "checkpoints"
"""Folder of the newest checkpoints."""
HELD_OUT = "held_out"
"""Folder of finished groups of held-out labels, for a run that is interrupted among them."""
METRICS = "metrics.jsonl"
"""One JSON object per epoch; the same in every repetition of a run."""
CLASSES = "classes.jsonl"
"""Pseudo-label accuracy and cluster purity of every class, epoch by epoch, where the truth is known."""
TIMINGS = "timings.jsonl"
"""Seconds per epoch, kept apart because they never repeat."""
WARNINGS = "warnings.jsonl"
"""What the guards noticed: rows of epoch, kind, message and advice."""
CHANGES = "changes.jsonl"
"""Settings that were changed when the run was resumed, and when."""
TENSORBOARD = "tensorboard"
"""Folder of TensorBoard's event files."""
MODEL = "model.safetensors"
"""The trained network (averaged weights) and what is needed to use it."""
LABELS = "labels.csv"
"""A label for every image, and what to do with it."""
OPINIONS = "opinions.csv"
"""What classifier, cluster and prototype say of every image."""
CROSS_CHECK = "cross_check.csv"
"""Given labels that were held out, and what the runs without them say."""
CLUSTERS = "clusters.json"
"""Members and label of every cluster at the end, of methods that have clusters."""
FEATURE_MAP = "feature_map.json"
"""Places of some images on a map of a pre-trained encoder's features."""
EVALUATION = "evaluation.json"
"""Which classes of the test set are taken for which, at the end."""
RESULT = "result.json"
"""The summary that `train --json` prints; there once the run is finished."""
AUDIT = "audit.json"
"""Answers to a random sample, and the accuracy that they give."""
AUDIT_SHEET = "audit.csv"
"""The sample, to fill in."""
AUDIT_PAGE = "audit.html"
"""The sample's pictures."""
REPORT = "report.html"
"""The run on one page."""
CARD = "README.md"
"""The model card: what the model is for, what it learnt from, how good it is, what it cannot do."""
LOCK = "run.lock"
"""Held by the process that is at it."""

LABEL_COLUMNS = ("file", "label", "confidence", "triage", "review_rank", "given", "looks_like", "why")
"""The same for every method; a cell is empty where there is no such thing."""
OPINION_COLUMNS = (
    "file",
    "split",
    "classifier",
    "classifier_confidence",
    "cluster",
    "cluster_confidence",
    "agreement",
    "prototype",
    "prototype_score",
    "truth",
)
"""Row by row as in labels.csv."""
CROSS_CHECK_COLUMNS = ("file", "given", "found", "confidence", "sure")
"""One row per label that was held out."""
