"""The neighbour graph of some nodes: communities, linkage, layout and votes, as functions on arrays."""
