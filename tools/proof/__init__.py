"""./dev proof: MLPerf's LoadGen against the daemon and its peers, and a report that others can repeat."""
