"""ProtoCon and its baselines as a scikit-learn classifier."""
