"""Which partition of the nodes is taken: candidates, judge, pick and trust."""
