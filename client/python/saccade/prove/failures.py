"""Failures that end a proof. What differs is a part of the report instead."""

from __future__ import annotations

from saccade.bulk.failures import BulkError


class ProveError(BulkError):
    """The proof cannot go on. The text says what was wrong, what was expected and what to do."""
