"""Who has a label: label files, and splits drawn from known labels."""
