"""Maximum margin clustering with the hinge loss, by cutting planes and CCCP."""
