"""Classifiers on the CPU through ONNX Runtime."""
