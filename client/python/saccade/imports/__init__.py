"""Imports vision networks of PyTorch's libraries into a model's folder, and compares what is served with them:
`python -m saccade import` and `python -m saccade verify`. Needs the extra `import` of this package."""
