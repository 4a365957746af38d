"""AER and mixing ratios on every validation."""
