"""Where images come from, one file a source."""
