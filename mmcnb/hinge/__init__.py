"""Maximum margin clustering in the hinge form: cutting planes, CCCP and their working sets."""
