"""What every system stands on: tables, counts, Dirichlet families, averaging, seeds, files, and the bases of the faces."""
