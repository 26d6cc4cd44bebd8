"""What protoc makes of proto/saccade/v1."""
