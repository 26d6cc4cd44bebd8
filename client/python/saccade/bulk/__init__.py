"""Bulk jobs: sends every picture of folders, lists, tar files and Parquet files through a model, and writes Parquet or
COCO JSON. Runs on this machine, on Ray or on Spark. `saccade-bulk` is the command; `run` is the same from Python."""

from saccade.bulk.job import BulkError, Job, Report, run

__all__ = ["BulkError", "Job", "Report", "run"]
