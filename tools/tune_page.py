"""What docs/benchmarks/tune.md says of its own rows."""

# Columns of the table.
MODEL, RATE, WISH, MEASURED = 0, 1, 2, 5


def missed_wishes(rows):
    """A sentence that names the chosen configurations whose measured p99 was longer than their wish."""
    missed = [row for row in rows if row[MEASURED] != "-" and float(row[MEASURED]) > float(row[WISH])]
    if not missed:
        return "Each chosen configuration that was measured kept its wish."
    named = "; ".join(f"{row[MODEL]} at {row[RATE]} a second, {row[MEASURED]} ms instead of {row[WISH]}" for row in missed)
    return f"{len(missed)} of the {len(rows)} chosen configurations missed its own wish: {named}."
