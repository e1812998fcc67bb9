"""One file a study: its runs, their computation, and the tables made of the results."""
