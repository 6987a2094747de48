"""Features of a frozen encoder: several views of every image, computed once, kept on disk."""
