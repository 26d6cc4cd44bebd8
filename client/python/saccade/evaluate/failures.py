"""Failures that end an evaluation. A failure of one picture is an entry of the report instead."""

from __future__ import annotations

from saccade.bulk.failures import BulkError


class EvaluateError(BulkError):
    """The evaluation cannot go on. The text says what was wrong, what was expected and what to do."""
