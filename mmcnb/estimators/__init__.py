"""The scikit-learn estimators, one file a class."""
