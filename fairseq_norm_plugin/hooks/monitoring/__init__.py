"""AER and mixing ratios in every validation."""
