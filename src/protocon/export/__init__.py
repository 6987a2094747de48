"""Trained networks as files that other programs run: ONNX, TorchScript, safetensors."""
