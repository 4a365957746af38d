"""AER, significance tests, sweeps over maps, and classes of errors."""
