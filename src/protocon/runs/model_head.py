"""What a model file says of itself, from its head alone: no weights are read, and torch is not needed."""

import json
from pathlib import Path
from typing import Any

_MAX_HEAD = 2**26


def model_facts(file: Path) -> dict[str, Any]:
    """Settings, classes and shape of the network in a model file; empty for any other file."""
    if file.suffix != ".safetensors" or not file.is_file():
        return {}
    with file.open("rb") as content:
        length = int.from_bytes(content.read(8), "little")
        head = content.read(min(length, _MAX_HEAD))
    try:
        facts = json.loads(json.loads(head)["__metadata__"]["protocon"])
    except (ValueError, KeyError, TypeError):
        return {}
    return facts if isinstance(facts, dict) else {}
