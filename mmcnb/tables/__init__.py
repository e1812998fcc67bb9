"""Read files of tables, data frames and arrays with gaps as rows of numbers."""
