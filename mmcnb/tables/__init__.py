"""Read table files, data frames, and arrays with missing values as numeric rows."""
