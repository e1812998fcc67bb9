"""Maximum margin clustering in the hinge form: cutting planes and CCCP."""
