"""Modules that protoc generates from proto/saccade/v1."""
