"""What a run leaves behind: the model in one file, and a label for every unlabelled image."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import nn

from protocon.engine.checkpoint import write_bytes
from protocon.engine.session import Session
from protocon.types import Outputs

SOURCES = ("refined", "classifier", "cluster")


def save_model(path: Path, network: nn.Module, session: Session) -> None:
    """Weights as safetensors, with what is needed to use them (config, classes, shape) as metadata."""
    facts = {
        "config": session.config.model_dump(mode="json"),
        "class_names": list(session.bundle.train.class_names),
        "shape": list(session.bundle.train.shape),
    }
    tensors = {name: t.detach().cpu().contiguous().clone() for name, t in network.state_dict().items()}
    write_bytes(path, save(tensors, metadata={"protocon": json.dumps(facts)}))


def write_labels(path: Path, session: Session, outputs: Outputs) -> None:
    """One row per unlabelled image: refined, classifier's and cluster's label, each with its confidence.

    The classifier's opinion is the averaged network's on the clean image; the cluster's is that of the
    cluster the image was in when training last saw it.

    Args:
        path: CSV file.
        session: the run.
        outputs: of the averaged network for the unlabelled set, in its order.
    """
    images, unlabelled = session.bundle.train, session.split.unlabelled
    probs = outputs.logits.softmax(-1)
    method = session.method
    device = next((b.device for b in method.buffers()), torch.device("cpu"))
    with torch.no_grad():
        opinions = method.opinions(probs.to(device), torch.arange(len(unlabelled), device=device))
    given = [source for source in SOURCES if source in opinions]
    best = {source: opinions[source].max(-1) for source in given}
    names = images.class_names
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["file", *(column for s in given for column in (s, f"{s}_confidence"))])
    columns = [(best[s].indices.tolist(), best[s].values.tolist()) for s in given]
    for row, position in enumerate(unlabelled):
        cells: list[Any] = [images.ids[int(position)]]
        for labels, confidences in columns:
            cells += [names[labels[row]], f"{confidences[row]:.4f}"]
        writer.writerow(cells)
    write_bytes(path, text.getvalue().encode())
