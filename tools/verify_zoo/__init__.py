"""Imports networks of torchvision, timm and transformers, and compares what is served with their authors' Python."""
