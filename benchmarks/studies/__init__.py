"""One file a study: its runs, what a run computes, and the tables made of the results."""
