"""Evaluation on public data sets: sends a data set's pictures to a running daemon, and computes the task's figures by their
standard definitions. `saccade-evaluate` is the command; `run` is the same from Python."""

from saccade.evaluate.failures import EvaluateError
from saccade.evaluate.job import Evaluation, Result, run

__all__ = ["EvaluateError", "Evaluation", "Result", "run"]
