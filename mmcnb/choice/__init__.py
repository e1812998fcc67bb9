"""Choose a partition of the nodes: score candidates, pick one, and assess its trust."""
