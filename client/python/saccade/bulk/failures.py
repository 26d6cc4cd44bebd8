"""Failures that end a job. A failure of one input is a row of the output instead."""

from __future__ import annotations


class BulkError(Exception):
    """The job cannot go on. The text says what was wrong, what was expected and what to do."""
