"""AER and its statistics: significance, sweeps over maps, classes of errors."""
