"""Sends captured calls again, and compares the answers with those of the capture."""
