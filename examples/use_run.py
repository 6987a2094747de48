"""Use a trained run: predict new images, export the network to ONNX, and use that without this package.

python examples/use_run.py runs/photos-labels-protocon-seed0 new-photos/
"""

import sys
from pathlib import Path

import numpy as np
import onnxruntime

from protocon import export_run, load_run


def main(folder: str, *images: str) -> None:
    """Predict with the run, then with its ONNX file."""
    run = load_run(folder)
    for row in run.predict_files(images):
        print(f"{row['file']}: {row.get('error') or row['label']}")

    file = Path(folder) / "model.onnx"
    if not file.exists():
        done = export_run(folder, file_format="onnx", out=file)
        print(f"wrote {file}: probabilities differ by at most {done['largest_difference']:.0e} from the run's")

    # From here on only onnxruntime is needed: uint8 images in, probabilities out.
    session = onnxruntime.InferenceSession(str(file))
    grey = np.full((1, *run.shape), 128, dtype=np.uint8)
    (probabilities,) = session.run(None, {"images": grey})
    print(f"a plain grey image looks most like {run.class_names[int(probabilities[0].argmax())]}")


if __name__ == "__main__":
    main(*sys.argv[1:])
