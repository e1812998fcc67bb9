"""The scikit-learn estimators; each class has a file of its own."""
