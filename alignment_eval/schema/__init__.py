"""What files of others may hold: JSON against types, Parquet against schemas."""
