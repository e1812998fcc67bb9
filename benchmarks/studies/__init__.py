"""One file per study: its runs, their computation, and the tables of the results."""
