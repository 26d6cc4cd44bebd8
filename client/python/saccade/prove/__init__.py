"""Verifies attested answers: their signatures, and that another daemon computes the same (docs/attestation.md)."""
