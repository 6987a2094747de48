"""From many runs to tables: the comparison of methods over label counts and seeds."""
