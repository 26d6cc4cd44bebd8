"""Failures that end a replay. A call whose answer differs is a part of the report instead."""

from __future__ import annotations

from saccade.bulk.failures import BulkError


class ReplayError(BulkError):
    """The replay cannot go on. The text says what was wrong, what was expected and what to do."""
