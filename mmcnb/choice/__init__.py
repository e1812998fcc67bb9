"""Choice of a partition of the nodes: candidates, their scores, the pick, and trust."""
