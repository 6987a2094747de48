"""ProtoCon: label-scarce semi-supervised image classification, with its baselines in one codebase."""
