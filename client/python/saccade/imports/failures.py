"""The error that ends an import or a comparison."""


class ImportFailure(Exception):
    """Says what was wrong, what was expected and what to do."""
