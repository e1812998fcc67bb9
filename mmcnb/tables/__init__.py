"""Read tables as rows of numbers: CSV text, Parquet, Arrow and data frames."""
