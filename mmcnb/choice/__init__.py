"""Which partition of the nodes of a graph is taken: candidates, their judge, the pick and its trust."""
